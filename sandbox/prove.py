"""Proof by execution: which functions of a repository have tests that tell their body from a mock."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from sandbox.baseline import Baseline, run_originals
from sandbox.environment import BuiltEnvironment
from sandbox.judging import Case, Judge, Judged
from sandbox.mocks import mocks_of
from sandbox.protocol import Backend, SandboxSpec
from sandbox.runs import ResidentSession
from sandbox.targets import Function, Target, read_function
from schemas.errors import DataError
from schemas.execution import MockKind, MockResult, RealCodeConfig, Verdict

# Import packages that pytest itself runs on, or that our runs have loaded before anything of the tested tree: with
# their code replaced no report could be trusted (seen with pluggy: a mock made all 144 tests "pass").
RUNNER_PACKAGES = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "coverage", "exceptiongroup", "tomli"}
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A function whose tests prove its body."""

    function: Function
    """The function, with its file cut around the body."""
    pass_to_pass: tuple[str, ...]
    """Covering tests that pass on the original in every run, sorted."""
    fail_to_pass: tuple[str, ...]
    """Those of them that fail with every mock, sorted."""
    mocks: tuple[MockResult, ...]
    """The mocks, all caught."""
    flaky_tests: tuple[str, ...]
    """Covering tests that do not agree with themselves, sorted."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A function that is not proven."""

    target: Target
    """Which one."""
    reason: str
    """Why, a reason of an Exclusion."""
    detail: str
    """Evidence for a reader."""
    tests: tuple[str, ...] = ()
    """Covering tests, where its mocks were judged, sorted."""
    mocks: tuple[MockResult, ...] = ()
    """The mocks that were judged."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proven about a repository."""

    evidence: tuple[Evidence, ...]
    """Proven functions, in the order of the targets."""
    dropped: tuple[Dropped, ...]
    """All others, in the same order."""
    tests: tuple[str, ...]
    """Tests that were collected, in order."""
    flaky: tuple[str, ...]
    """Those that passed in some runs only, in order."""
    runs: int
    """Runs of the original, the throttled one among them."""
    cpu_seconds: float
    """Processor time of all runs: measured, never the same twice."""


def prove(  # noqa: PLR0913 - a repository's tree, its environment, and what to prove about it
    backend: Backend,
    spec: SandboxSpec,
    built: BuiltEnvironment,
    files: Mapping[str, bytes],
    targets: Sequence[Target],
    config: RealCodeConfig,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Proof:
    """Prove functions of a tree: for each target the evidence, or the reason why there is none.

    `spec` has the tree and the environment `built`; `files` has the contents of the targets' files. `progress` is
    called with a stage's name, how many of its steps are done and how many there are. DataError when the repository
    as a whole cannot be judged (`run_originals`), SandboxError when the sandbox fails.
    """
    _refuse_runner(targets)
    functions: list[Function] = []
    dropped: dict[str, Dropped] = {}
    for target in targets:
        try:
            functions.append(read_function(files[target.path], target))
        except DataError as error:
            dropped[target.row_id] = Dropped(target, error.reason, error.detail)
    with backend.open(spec) as opened, closing(ResidentSession(opened, built)) as session:
        progress("originals", 0, 1)
        baseline = run_originals(session, built, [function.key for function in functions], config)
        progress("originals", 1, 1)
        prover = _Prover(Judge(session, built, baseline, config), baseline, functions, progress)
        evidence = prover.prove()
    dropped |= prover.dropped
    cpu = sum(report.cpu_seconds for report in baseline.reports) + prover.judge.cpu_seconds
    return Proof(
        evidence=tuple(evidence[target.row_id] for target in targets if target.row_id in evidence),
        dropped=tuple(dropped[target.row_id] for target in targets if target.row_id in dropped),
        tests=baseline.order,
        flaky=baseline.flaky,
        runs=len(baseline.reports),
        cpu_seconds=cpu,
    )


def _refuse_runner(targets: Sequence[Target]) -> None:
    for target in targets:
        parts = target.path.removeprefix("src/").split("/")
        if parts[0].removesuffix(".py") in RUNNER_PACKAGES:
            raise DataError("runner_self_hosted", f"pytest runs on {parts[0]}")


class _Prover:
    """The steps from covered functions to evidence."""

    def __init__(
        self,
        judge: Judge,
        baseline: Baseline,
        functions: Sequence[Function],
        progress: Callable[[str, int, int], None],
    ) -> None:
        self.judge = judge
        self.baseline = baseline
        self.functions = functions
        self.progress = progress
        self.dropped: dict[str, Dropped] = {}

    def prove(self) -> dict[str, Evidence]:
        """Return the evidence by row; everything else is in `dropped`."""
        cases = [case for number in range(len(self.functions)) if (case := self._case(number)) is not None]
        warmed = [case for case in cases if case.number not in self.baseline.at_import]
        fresh = [case for case in cases if case.number in self.baseline.at_import]
        self.progress("mocks", 0, len(cases))
        judged = self.judge.in_warmed(warmed)
        # What a warmed process cannot judge, a fresh one can: it depends on an import that has been done already.
        fresh += [case for case in warmed if judged[case.number].unfit or _said_nothing(judged[case.number])]
        in_fresh = {case.number for case in fresh}
        evidence = self._caught([case for case in warmed if case.number not in in_fresh], judged)
        # In one call, since fresh processes share what they load from outside the tree.
        again = [self._confirmation(case, evidence[case.number]) for case in warmed if case.number in evidence]
        self.progress("mocks", len(cases) - len(fresh), len(cases))
        self.progress("confirm", 0, len(again))
        found = self.judge.in_fresh([*(replace(case, control=True) for case in fresh), *again])
        self.progress("mocks", len(cases), len(cases))
        self._confirm(again, found, evidence)
        evidence |= self._caught(fresh, found)
        self.progress("confirm", len(again), len(again))
        return {found.function.target.row_id: found for found in evidence.values()}

    def _caught(self, cases: Sequence[Case], judged: Mapping[int, Judged]) -> dict[int, Evidence]:
        """Return the evidence of cases whose mocks were all caught by the same tests."""
        return {
            case.number: self._evidence(case, judged[case.number].results)
            for case in cases
            if self._is_caught(case, judged[case.number])
        }

    def _drop(self, number: int, error: DataError, mocks: tuple[MockResult, ...] = ()) -> None:
        target = self.functions[number].target
        tests = tuple(sorted(self.baseline.covering(number))) if mocks else ()
        self.dropped[target.row_id] = Dropped(target, error.reason, error.detail, tests, mocks)

    def _case(self, number: int) -> Case | None:
        """Return what is to be judged about a function; None, with the reason noted, when nothing can be."""
        entered = self.baseline.entered.get(number, frozenset())
        tests = self.baseline.covering(number)
        if tests:
            function = self.functions[number]
            # From the strongest to the one that is hardest to tell from the original.
            return Case(number, function, mocks_of(function)[::-1], tuple(tests))
        flaky = [nodeid for nodeid in self.baseline.flaky if nodeid in entered]
        if flaky:
            self._drop(number, DataError("only_flaky_tests", f"{len(flaky)} tests, the first is {flaky[0]}"))
        elif entered:
            self._drop(number, DataError("not_covered", f"none of the {len(entered)} tests that enter it passes"))
        elif number in self.baseline.at_import:
            self._drop(number, DataError("runs_at_import", "it runs at import or collection only, in no test"))
        else:
            self._drop(number, DataError("not_covered", "no test enters it"))
        return None

    def _is_caught(self, case: Case, judged: Judged) -> bool:
        """Tell whether every mock was caught by the same tests; note the reason when not."""
        if judged.unfit:
            self._drop(case.number, DataError("mock_infrastructure", judged.unfit))
            return False
        last = judged.results[-1]
        if last.verdict is not Verdict.CAUGHT:
            at_import = case.number in self.baseline.at_import
            detail = f"{last.kind.value}: {last.detail}".rstrip(": ")
            self._drop(case.number, DataError(_reason_of(last.verdict, at_import), detail), judged.results)
            return False
        if not set(case.tests).intersection(*(result.failing_tests for result in judged.results)):
            error = DataError("mock_survived", "no test fails with every mock")
            self._drop(case.number, error, judged.results)
            return False
        return True

    def _evidence(self, case: Case, results: tuple[MockResult, ...]) -> Evidence:
        entered = self.baseline.entered[case.number]
        common = set(case.tests).intersection(*(result.failing_tests for result in results))
        order = list(MockKind)
        return Evidence(
            function=self.functions[case.number],
            pass_to_pass=tuple(sorted(case.tests)),
            fail_to_pass=tuple(sorted(common)),
            mocks=tuple(sorted(results, key=lambda result: order.index(result.kind))),
            flaky_tests=tuple(sorted(nodeid for nodeid in self.baseline.flaky if nodeid in entered)),
        )

    def _confirmation(self, case: Case, evidence: Evidence) -> Case:
        """Return what a process that starts from nothing is to see once more: the function mocked on disk.

        The quickest of the tests that must fail, with the mock that is hardest to tell from the original.
        """
        test = min(evidence.fail_to_pass, key=lambda id_: (self.baseline.seconds[id_], id_))
        mock = next((mock for mock in case.mocks if mock.kind is MockKind.TYPED), case.mocks[-1])
        return replace(case, tests=(test,), mocks=(mock,))

    def _confirm(self, cases: Sequence[Case], judged: Mapping[int, Judged], evidence: dict[int, Evidence]) -> None:
        """Drop the functions whose test did not fail once more."""
        for case in cases:
            result = judged[case.number].results[0]
            if result.verdict is not Verdict.CAUGHT:
                mocks = evidence.pop(case.number).mocks
                error = DataError("not_confirmed", f"{result.verdict.value}: {result.detail}")
                self._drop(case.number, error, mocks)


def _said_nothing(judged: Judged) -> bool:
    return any(result.verdict is Verdict.INFRASTRUCTURE for result in judged.results)


def _reason_of(verdict: Verdict, at_import: bool) -> str:
    """Return the reason of a function one of whose mocks was not caught."""
    if verdict is Verdict.INFRASTRUCTURE:
        return "runs_at_import" if at_import else "mock_infrastructure"
    return "mock_timeout" if verdict is Verdict.TIMEOUT else "mock_survived"
