"""The original's tests, several times: which are stable, how long they take, which functions they enter."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.environment import BuiltEnvironment
from sandbox.protocol import Limits, Session
from sandbox.reports import ExecReport, TestRun, run_fault, steady
from sandbox.runs import OUTPUT_BYTES, Budget, Job, run_job
from schemas.errors import DataError
from schemas.execution import KilledBy, RealCodeConfig, TestOutcome

Key = tuple[str, str, int]

# Hash seed, time zone and order of the runs of the original; further runs begin again with the first.
VARIATIONS = (("0", "UTC", False), ("1", "Asia/Kolkata", False), ("77", "UTC", True))
# Share of a processor of the additional run, which finds tests that depend on how fast they are.
THROTTLED = 0.3
# Tests that may hang or crash before the repository is given up.
MAX_EXCLUDED = 3
# Share of a suite's limit that one test may take.
TEST_SHARE = 0.2
# Elapsed time of a suite over its limit, which is meant for a machine that does nothing else.
BUSY = 4.0
# Elapsed time over processor time of a test that computes, on a busy machine.
WAITING = 5.0
# What type and text of an exception say when something is missing that no sandbox gives to tests.
_NETWORK = re.compile(r"gaierror|name resolution|Network is unreachable|ConnectError|NewConnectionError")
_SERVICE = re.compile(r"ConnectionRefused|Connection refused|docker|Could not connect|server is not running")
_DISPLAY = re.compile(r"DISPLAY|TclError|XOpenDisplay|Xlib")
_SECRET = re.compile(r"(?i)api.?key|token|secret|credential|password|environment variable")


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known about the tests of the original."""

    order: tuple[str, ...]
    """Every test that was collected, in order."""
    stable: frozenset[str]
    """Tests that enter a target and passed in every run."""
    flaky: tuple[str, ...]
    """Tests that enter a target and passed in some runs only, or passed and measure time, in order."""
    seconds: Mapping[str, float]
    """Longest duration of each stable test, the throttled run left out."""
    entered: Mapping[int, frozenset[str]]
    """Tests whose set-up or call enters a target, by the target's number."""
    at_import: frozenset[int]
    """Targets that also run outside every test: at import or collection."""
    imports: tuple[str, ...]
    """Modules from outside the tree that conftests and tests import, in order."""
    late: tuple[str, ...]
    """Those that tests import while they run, in order."""
    early: bool
    """Modules of the tree are loaded before its first conftest."""
    conftests: bool
    """Modules of the tree are loaded before the collection."""
    reports: tuple[ExecReport, ...]
    """The runs."""

    def covering(self, number: int) -> list[str]:
        """Return the stable tests that enter a target, in order."""
        entered = self.entered.get(number, frozenset()) & self.stable
        return [nodeid for nodeid in self.order if nodeid in entered] if entered else []

    def budget(self, nodeid: str) -> Budget:
        """Return what a stable test may cost with a mock before it counts as hanging: ten times as much, and a bit."""
        seconds = self.seconds[nodeid]
        cpu = max(2.0, 10 * seconds + 1)
        return Budget(cpu, max(10.0, WAITING * cpu))


def limits_of(config: RealCodeConfig, wall_seconds: float) -> Limits:
    """Return the limits of a command that runs tests."""
    return Limits(
        wall_seconds=wall_seconds,
        memory_bytes=config.memory_mib << 20,
        pids=config.pids,
        disk_bytes=config.disk_mib << 20,
        output_bytes=OUTPUT_BYTES,
    )


def run_originals(
    session: Session, built: BuiltEnvironment, targets: Sequence[Key], config: RealCodeConfig
) -> Baseline:
    """Run the suite `config.runs` times in other orders and with other hash seeds, and once throttled.

    The first run is that of every test; the others leave out tests that enter no target in it, of which nothing is to
    be known, and those that measure time: with a mock they would tell how fast the machine is. DataError when nothing
    can be proven with it: `no_tests`, `collection_error`, `runner_self_hosted`, `suite_too_slow`, `suite_flaky`,
    `all_tests_fail` or what all tests miss (`needs_network` ...), `timeout`, `oom`, `disk_full`, `pids`.
    """
    excluded: list[str] = []
    reports: list[ExecReport] = []
    entering: list[str] = []
    ids: list[str] | None = None
    for number in range(config.runs + 1):
        seed, zone, reverse = VARIATIONS[number % len(VARIATIONS)] if number < config.runs else VARIATIONS[0]
        job = Job(
            reverse=reverse,
            ids=ids,
            targets=targets if number == 0 or (reverse and number < len(VARIATIONS)) else None,
            first=number == 0,
        )
        share = THROTTLED if number == config.runs else 1.0
        env = {"PYTHONHASHSEED": seed, "TZ": zone}
        report = _run_suite(session, built, job, env, config, share, excluded)
        while ids and len(rest := _collected(report, ids)) < len(ids):
            ids = rest
            if ids:
                report = _run_suite(session, built, replace(job, ids=ids), env, config, share, excluded)
        reports.append(report)
        if number == 0:
            _check_first(reports[0])
            entering, timed = _entering(reports[0]), set(reports[0].main.timed)
            ids = [id_ for id_ in entering if id_ not in timed]
            if not ids:
                break
    return _summary(reports, entering, excluded)


def _entering(report: ExecReport) -> list[str]:
    """Return the tests whose set-up or call enters a target, in order."""
    found = {id_ for (_, phase), ids in report.main.entered.items() if phase in ("setup", "call") for id_ in ids}
    return [id_ for id_ in report.main.collected if id_ in found]


def _collected(report: ExecReport, ids: Sequence[str]) -> list[str]:
    """Return the tests whose files can be collected without those that are left out; pytest runs none if one cannot.

    A file may need what another imports before it, as where the tree's modules import each other in a circle.
    """
    broken = {where.split("::", 1)[0] for where, _ in report.main.broken}
    return [id_ for id_ in ids if id_.split("::", 1)[0] not in broken]


def _run_suite(  # noqa: PLR0913 - one run: where, what, how
    session: Session,
    built: BuiltEnvironment,
    job: Job,
    env: Mapping[str, str],
    config: RealCodeConfig,
    share: float,
    excluded: list[str],
) -> ExecReport:
    """Run the suite to its end; tests that hang or crash are added to `excluded`, and it is run again without."""
    limits = replace(limits_of(config, config.suite_seconds * BUSY / share), cpus=min(1.0, share))
    cpu = config.suite_seconds * TEST_SHARE
    while True:
        job = replace(job, excluded=tuple(excluded), default=Budget(cpu, cpu * WAITING / share))
        report = run_job(session, built, job, limits, env=env)
        culprit = report.main.hung[0] if report.main.hung else report.at
        if not run_fault(report):
            if report.cpu_seconds > config.suite_seconds:
                raise DataError("suite_too_slow", f"one run takes more than {config.suite_seconds} s of processor time")
            return report
        if report.main.status is None and culprit and len(excluded) < MAX_EXCLUDED:
            excluded.append(culprit)
            continue
        raise _reason_of(report, limits)


def _reason_of(report: ExecReport, limits: Limits) -> DataError:
    """Return why a run that is no evidence ended as it did."""
    fault = run_fault(report)
    killed = report.result.killed_by
    problem = report.main.problems[0] if report.main.problems else ""
    if problem.startswith("hosted"):
        return DataError("runner_self_hosted", f"pytest runs on modules of this repository: {problem[8:]}")
    if report.result.wall_seconds >= limits.wall_seconds:
        return DataError("suite_too_slow", f"one run takes more than {limits.wall_seconds:.0f} s")
    if killed is KilledBy.OOM:
        return DataError("oom", fault)
    if killed is KilledBy.PIDS:
        return DataError("pids", fault)
    if killed is KilledBy.DISK:
        return DataError("disk_full", fault)
    if report.main.hung or report.at:
        return DataError("timeout", f"more than {MAX_EXCLUDED} tests hang or crash: {report.at or report.main.hung[0]}")
    text = report.result.stderr.decode("utf-8", "replace")
    return DataError("collection_error", f"{fault}: {steady(text)[-600:]}")


def _check_first(report: ExecReport) -> None:
    """Give up when the first run already says that there is nothing to prove with."""
    run = report.main
    if not run.collected and run.broken:
        raise DataError("collection_error", steady("; ".join(f"{where}: {text}" for where, text in run.broken))[:600])
    if not run.collected:
        raise DataError("no_tests", "pytest collects no test")
    tests = run.tests
    if not any(test.outcome is TestOutcome.PASSED for test in tests.values()):
        raise _missing(list(tests.values()))


def _missing_reason(text: str) -> str:
    """Return what an exception says is missing; empty when it says nothing of that kind."""
    if _NETWORK.search(text):
        return "needs_network"
    if _SERVICE.search(text):
        return "needs_service"
    if _DISPLAY.search(text):
        return "needs_display"
    return "needs_env_secret" if _SECRET.search(text) else ""


def _missing(tests: Sequence[TestRun]) -> DataError:
    """Return what tests of which none passes miss, when most of them say the same."""
    failed = [test for test in tests if test.outcome in (TestOutcome.FAILED, TestOutcome.ERROR)]
    if not failed:
        return DataError("all_tests_fail", "every test is skipped")
    texts = [steady(f"{test.error}: {test.text}") for test in failed]
    found, count = Counter(map(_missing_reason, texts)).most_common(1)[0]
    if found and count * 2 > len(failed):
        return DataError(found, texts[0])
    return DataError("all_tests_fail", f"{len(failed)} of {len(tests)} tests fail, the first with {texts[0]}")


def _worst(reports: Sequence[ExecReport], ids: Sequence[str]) -> str:
    """Say of the run in which the fewest of these tests pass what went wrong first."""
    runs = [[report.main.test(id_) for id_ in ids] for report in reports]
    bad = [[test for test in run if test.outcome is not TestOutcome.PASSED] for run in runs]
    number = max(range(len(runs)), key=lambda place: len(bad[place]))
    texts = [f"{where}: {text}" for where, text in reports[number].main.broken]
    texts += [f"{test.outcome.value} {test.error}: {test.text}" for test in bad[number]]
    first = f", the first with {steady(texts[0])[:300]}" if texts else ""
    return f"in run {number + 1} of {len(runs)} {len(bad[number])} do not{first}"


def _summary(reports: Sequence[ExecReport], ids: Sequence[str], excluded: Sequence[str]) -> Baseline:
    """Compare what the runs say of the tests that all of them had."""
    order = tuple(reports[0].main.collected)
    runs = [report.main.tests for report in reports]
    passed = [frozenset(id_ for id_, test in run.items() if test.outcome is TestOutcome.PASSED) for run in runs]
    stable = frozenset(ids).intersection(*passed) - set(excluded) - set(reports[0].main.timed)
    flaky = tuple(id_ for id_ in ids if id_ not in stable and any(id_ in one for one in passed))
    if not stable and flaky:
        detail = f"none of the {len(ids)} tests that enter a function passes in every run"
        raise DataError("suite_flaky", f"{detail}; {_worst(reports, ids)}")
    entered: dict[int, set[str]] = {}
    at_import = set()
    for report in reports:
        for (number, phase), ids in report.main.entered.items():
            if phase in ("setup", "call"):
                entered.setdefault(number, set()).update(ids)
            elif phase == "import":
                at_import.add(number)
    return Baseline(
        order=order,
        stable=stable,
        flaky=flaky,
        seconds={id_: max(run[id_].seconds for run in runs[:-1]) for id_ in stable},
        imports=tuple(reports[0].main.modules),
        late=tuple(reports[0].main.late),
        entered={number: frozenset(ids) for number, ids in entered.items()},
        at_import=frozenset(at_import),
        early=any(report.main.early for report in reports),
        conftests=any(report.main.conftests for report in reports),
        reports=tuple(reports),
    )
