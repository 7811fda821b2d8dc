"""Runs mocks against tests in the servers, and says what the tests' reports mean."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.baseline import Baseline, limits_of
from sandbox.environment import BuiltEnvironment
from sandbox.inside.forks import AGAIN, CONTROL, SAMPLE, VARIANTS
from sandbox.mocks import Mock
from sandbox.protocol import Session
from sandbox.reports import RunReport, steady
from sandbox.runs import Job, run_job
from sandbox.targets import Function
from schemas.execution import MockResult, RealCodeConfig, TestOutcome, Verdict

# Elapsed time of one call of a server. What ends a mock is the budget of its tests; this only ends a broken server.
_SERVER_SECONDS = 7_200.0
# Jobs of one call: their records have to fit into the output limit.
_BATCH = 1_000
_MAX_DETAIL = 300
# What a fork costs, in tests that do little: 8 to 10 ms against 1.6 ms (measured on small suites).
_FORK = 6
# Children over which so many tests of a mock are spread, so that each says by itself what it says; more share two. Of
# 178 proven functions of five repositories 127 have no more. A fresh process costs about ten times what a fork does.
_SPREAD = {"forks": 10, "fresh": 4}


@dataclass(frozen=True, slots=True)
class Case:
    """A function, its mocks, and the tests that are to catch them."""

    number: int
    """Number that no other case of the same call has."""
    function: Function | None
    """The function; null for tests that run without a mock alone."""
    mocks: tuple[Mock, ...]
    """Its mocks, in the order in which they are run; each only against what failed with all before it."""
    tests: tuple[str, ...]
    """Node ids of stable tests, in order."""
    control: bool = False
    """When every mock is caught, run the tests without one as well."""
    stop: bool = False
    """Stop at the first failure."""
    sample: bool = False
    """Run some tests of a long list that failed with every mock with the last one again, each by itself."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a server said about a case."""

    results: tuple[MockResult, ...]
    """The mocks that were run, in their order: all up to the first that was not caught."""
    unfit: str
    """Why this server cannot judge the case, from the run without a mock; empty when it can."""
    steady: bool = True
    """What was drawn from a long list failed again, by itself."""


class Judge:
    """Runs cases in one session."""

    def __init__(self, session: Session, built: BuiltEnvironment, baseline: Baseline, config: RealCodeConfig) -> None:
        self.session = session
        self.built = built
        self.baseline = baseline
        self.limits = limits_of(config, _SERVER_SECONDS)
        self.tests = [nodeid for nodeid in baseline.order if nodeid in baseline.stable]
        self.numbers = {nodeid: number for number, nodeid in enumerate(self.tests)}
        self.cpu_seconds = 0.0
        self.reports: list[str] = []

    def in_warmed(self, cases: Sequence[Case]) -> dict[int, Judged]:
        """Judge cases in forks of a process that has collected their tests, replacing code in place.

        The same tests first run there without a mock: either each test alone (one that passes alone and in the whole
        suite, in both orders, has no need of what others leave behind, so that no choice of tests makes it fail), or
        every choice that a case makes, whichever is less work.

        What tests import from outside the tree while they run is there already, once for all forks; a case whose tests
        do not pass so is judged without.

        A test fails by itself or behind what others left when a mock broke them. Of short lists every test is alone
        with each mock, or its exception reached it. Where a single one of a long list is seen to fail behind others
        only, every test of the repository's long lists that failed with every mock meets each in a fork of its own.
        """
        cases = [replace(case, sample=True) for case in cases]
        judged = self._in_forks(cases, self.baseline.late)
        unfit = [case for case in cases if self.baseline.late and judged[case.number].unfit]
        judged |= self._in_forks(unfit, ()) if unfit else {}
        if all(one.steady for one in judged.values()):
            return judged
        caught = [case for case in cases if not judged[case.number].unfit and _is_caught(judged[case.number])]
        without = {case.number for case in unfit}
        judged |= self._each_alone([case for case in caught if case.number not in without], judged, self.baseline.late)
        return judged | self._each_alone([case for case in caught if case.number in without], judged, ())

    def _each_alone(
        self, cases: Sequence[Case], judged: Mapping[int, Judged], imports: Sequence[str]
    ) -> dict[int, Judged]:
        """Judge the tests that have failed with every mock again, each in forks of its own."""
        singles: list[Case] = []
        places: dict[int, list[int]] = {}
        for case in cases:
            common = _failing_with_all(judged[case.number])
            for id_ in (id_ for id_ in case.tests if id_ in common and len(common) > _SPREAD["forks"]):
                places.setdefault(case.number, []).append(len(singles))
                singles.append(replace(case, number=len(singles), tests=(id_,), sample=False))
        wanted = {id_ for case in singles for id_ in case.tests}
        found = self._serve("forks", singles, [id_ for id_ in self.tests if id_ in wanted], imports)
        alone = {
            number: {singles[place].tests[0]: found[place] for place in of_case} for number, of_case in places.items()
        }
        return {case.number: _corrected(case, judged[case.number], alone.get(case.number, {})) for case in cases}

    def _in_forks(self, cases: Sequence[Case], imports: Sequence[str]) -> dict[int, Judged]:
        """Judge cases in forks of a process that has loaded these modules, too."""
        wanted = sorted({self.numbers[nodeid] for case in cases for nodeid in case.tests})
        ids = [self.tests[number] for number in wanted]
        choices: list[tuple[str, ...]] = list(dict.fromkeys(case.tests for case in cases))
        alone: list[tuple[str, ...]] = [(nodeid,) for nodeid in ids]
        groups = choices if _work(choices) < _work(alone) else alone
        first = max((case.number for case in cases), default=0) + 1
        controls = [Case(first + place, None, (), tests, control=True) for place, tests in enumerate(groups)]
        judged = self._serve("forks", [*controls, *cases], ids, imports)
        unfit = {case.tests: judged[case.number].unfit for case in controls if judged[case.number].unfit}
        for case in cases:
            bad = next((unfit[t] for t in (case.tests, *((id_,) for id_ in case.tests)) if t in unfit), "")
            if bad:
                judged[case.number] = Judged((), bad)
        return {case.number: judged[case.number] for case in cases}

    def in_fresh(self, cases: Sequence[Case]) -> dict[int, Judged]:
        """Judge cases in processes that have not loaded anything of the tree, with the file changed on disk.

        What their tests import from outside the tree is there already. All the tests first run there together without
        a mock; if one does not pass, because such a module must not be imported early or brings something of the tree
        with it, every process loads everything itself. So it is for single cases whose own tests do not pass.
        """
        tests = {nodeid for case in cases for nodeid in case.tests}
        number = max((case.number for case in cases), default=0) + 1
        control = Case(number, None, (), tuple(id_ for id_ in self.tests if id_ in tests), control=True)
        judged: dict[int, Judged] = {}
        if cases and self.baseline.imports and not self.baseline.early:
            judged = self._serve("fresh", [control, *cases], None, self.baseline.imports)
        shared = number in judged and not judged[number].unfit
        alone = [case for case in cases if not shared or judged[case.number].unfit]
        judged |= self._serve("fresh", alone, None)
        return {case.number: judged[case.number] for case in cases}

    def _serve(
        self, mode: str, cases: Sequence[Case], ids: Sequence[str] | None, imports: Sequence[str] = ()
    ) -> dict[int, Judged]:
        """Run cases in as many calls as they need: behind one that broke the server or filled the disk, anew."""
        judged: dict[int, Judged] = {}
        pending = list(cases)
        while pending:
            batch = pending[:_BATCH]
            runs, reached = self._call(mode, batch, ids, imports)
            for case in batch[:reached]:
                judged[case.number] = _judge(case, runs)
            pending = pending[reached:]
            if reached < len(batch):
                self.session.reset()
        return judged

    def _call(
        self, mode: str, batch: Sequence[Case], ids: Sequence[str] | None, imports: Sequence[str]
    ) -> tuple[dict[int, RunReport], int]:
        """Call a server; return the reports of its runs and how many cases it has dealt with, at least one."""
        jobs = [{**self._job(case), "spread": _SPREAD[mode]} for case in batch]
        budgets = [self.baseline.budget(nodeid) for nodeid in self.tests]
        job = Job(
            mode=mode, ids=ids, jobs=jobs, tests=self.tests, budgets=budgets, imports=imports,
            bare=self.baseline.early, configured=not self.baseline.conftests,
        )  # fmt: skip
        report = run_job(self.session, self.built, job, self.limits)
        self.cpu_seconds += report.cpu_seconds
        places = {case.number: place for place, case in enumerate(batch)}
        if report.full is not None:
            # What the last job wrote is too much for the next; its own failures may come from that, too.
            for number in range(report.full * VARIANTS, (report.full + 1) * VARIANTS):
                report.jobs.setdefault(number, RunReport()).problems.append("the disk is full")
            return report.jobs, places[report.full] + 1
        if not report.fault and not report.main.problems and (mode == "fresh" or report.main.status is not None):
            return report.jobs, len(batch)
        self.reports.append(report.fault or "; ".join(report.main.problems) or "the server died")
        # A server that died did so in its last case, or could not even begin.
        seen = [places[number // VARIANTS] for number in report.jobs]
        return report.jobs, max(seen, default=0) + 1

    def _job(self, case: Case) -> dict[str, object]:
        """Return a case as the servers read it."""
        job: dict[str, object] = {
            "number": case.number,
            "ids": [self.numbers[nodeid] for nodeid in case.tests],
            "variants": [{"body": mock.body} for mock in case.mocks],
            "control": case.control,
            "stop": case.stop,
            "sample": case.sample,
        }
        if case.function is not None:
            code = case.function.code
            job["key"] = list(case.function.key)
            job["path"] = case.function.target.path
            job["span"] = [len(code.left), len(code.left) + len(code.body)]
            job["digest"] = hashlib.sha256(code.left + code.body + code.right).hexdigest()
        return job


def _work(groups: Sequence[Sequence[str]]) -> int:
    """Return about what it costs to run each group of tests in a fork of its own."""
    return sum(_FORK + len(tests) for tests in groups)


def _judge(case: Case, runs: Mapping[int, RunReport]) -> Judged:
    base = case.number * VARIANTS
    results: list[MockResult] = []
    again = runs.get(base + AGAIN, RunReport())
    if again.problems:
        result = MockResult(case.mocks[0].kind, case.mocks[0].body, Verdict.INFRASTRUCTURE, ())
        return Judged((replace(result, detail=steady(again.problems[0])[:_MAX_DETAIL]),), "")
    # What the first mock's exception did not reach, and what did not fail by itself.
    tests = tuple(nodeid for nodeid in case.tests if nodeid not in again.tests or again.test(nodeid).own_failure)
    for place, mock in enumerate(case.mocks):
        result = verdict(mock, tests, runs.get(base + place, RunReport()))
        results.append(result)
        if result.verdict is not Verdict.CAUGHT:
            return Judged(tuple(results), "")
        failed = set(result.failing_tests)
        tests = tuple(nodeid for nodeid in tests if nodeid in failed)
    unfit = _control_fault(base + CONTROL, case.tests, runs) if case.control else ""
    drawn = (*again.tests.values(), *runs.get(base + SAMPLE, RunReport()).tests.values())
    return Judged(tuple(results), unfit, all(test.own_failure for test in drawn))


def _is_caught(judged: Judged) -> bool:
    """Tell whether every mock was caught."""
    return bool(judged.results) and judged.results[-1].verdict is Verdict.CAUGHT


def _failing_with_all(judged: Judged) -> frozenset[str]:
    """Return the tests that failed with every mock."""
    first, *others = (frozenset(result.failing_tests) for result in judged.results)
    return first.intersection(*others)


def _corrected(case: Case, judged: Judged, alone: Mapping[str, Judged]) -> Judged:
    """Return what a case's tests say without those that met the mocks by themselves and did not fail.

    Those that one mock passes over are not asked about the next: they are in none of the lists behind it, unless
    nothing else is.
    """
    results: list[MockResult] = []
    for place, together in enumerate(judged.results):
        met = {id_: one.results[place] for id_, one in alone.items() if len(one.results) > place}
        before = [id_ for id_ in case.tests if id_ in together.failing_tests]
        failing = [id_ for id_ in before if id_ not in alone or (id_ in met and met[id_].verdict is Verdict.CAUGHT)]
        if not failing and met:
            # What kept a test from saying that it passes tells more than that another one passes.
            results.append(max((met[id_] for id_ in sorted(met)), key=lambda one: one.verdict is not Verdict.SURVIVED))
            break
        failing = failing or before
        first = failing[0]
        detail = met[first].detail if first in met else together.detail if first == before[0] else first
        results.append(replace(together, failing_tests=tuple(sorted(failing)), detail=detail))
    return Judged(tuple(results), "")


def _control_fault(number: int, tests: Sequence[str], runs: Mapping[int, RunReport]) -> str:
    """Return what is wrong with the run without a mock; empty when all of its tests passed."""
    run = runs.get(number, RunReport())
    run = runs.get(run.same, RunReport()) if run.same is not None else run
    bad = [nodeid for nodeid in tests if run.test(nodeid).outcome is not TestOutcome.PASSED]
    if bad:
        return f"without a mock, {bad[0]}: {run.test(bad[0]).outcome.value}"
    return ("; ".join(run.problems)) if run.problems else ""


def verdict(mock: Mock, tests: Sequence[str], run: RunReport) -> MockResult:
    """Say what the tests' reports mean for a mock.

    Caught by a named test's own failure, in set-up or call, and by nothing else. It survives only when every test has
    reported a whole run without one. A hang is a time-out, and everything else (a missing report, a broken import, a
    crash, a full disk) says nothing.
    """
    outcomes = {nodeid: run.test(nodeid) for nodeid in tests}
    failing = tuple(sorted(nodeid for nodeid, test in outcomes.items() if test.own_failure))
    result = MockResult(mock.kind, mock.body, Verdict.INFRASTRUCTURE, failing)
    if run.problems or not run.finished:
        why = run.problems[0] if run.problems else "the run did not come to its end"
        return replace(result, failing_tests=(), detail=steady(why)[:_MAX_DETAIL])
    if failing:
        first = next(nodeid for nodeid in tests if outcomes[nodeid].own_failure)
        test = outcomes[first]
        detail = f"{first}: {test.error}" if test.error else first
        return replace(result, verdict=Verdict.CAUGHT, detail=detail[:_MAX_DETAIL])
    hung = [nodeid for nodeid in tests if outcomes[nodeid].outcome is TestOutcome.TIMEOUT]
    if hung:
        return replace(result, verdict=Verdict.TIMEOUT, detail=f"{hung[0]} takes too long"[:_MAX_DETAIL])
    missing = [nodeid for nodeid in tests if outcomes[nodeid].outcome is TestOutcome.NOT_RUN]
    if missing:
        broken = f"; {run.broken[0][0]}: {run.broken[0][1]}" if run.broken else ""
        return replace(result, detail=steady(f"no report of {missing[0]}{broken}")[:_MAX_DETAIL])
    trouble = [nodeid for nodeid in tests if _in_trouble(run, nodeid)]
    if trouble:
        return replace(result, detail=steady(f"{trouble[0]}: {outcomes[trouble[0]].text}")[:_MAX_DETAIL])
    return replace(result, verdict=Verdict.SURVIVED)


def _in_trouble(run: RunReport, nodeid: str) -> bool:
    """Tell whether a test failed in set-up or call, but not by itself."""
    return any(p["outcome"] == "failed" and p["when"] in ("setup", "call") for p in run.phases.get(nodeid, ()))
