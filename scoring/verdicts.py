"""What the tests' reports mean for an answer, given that they pass with the canonical solution."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.reports import ExecReport, run_fault
from schemas.execution import KilledBy, TestOutcome
from schemas.scores import AnswerVerdict

MAX_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and its grounds."""

    verdict: AnswerVerdict
    """What the tests say."""
    reason: str
    """Why it did not pass; empty when it did."""
    detail: str
    """Evidence for a reader."""


PASSED = Ruling(AnswerVerdict.PASSED, "", "")


def unscored(reason: str, detail: str) -> Ruling:
    """Return that nothing is known."""
    return Ruling(AnswerVerdict.UNSCORED, reason, detail[:MAX_DETAIL])


def rule(report: ExecReport, tests: Sequence[str]) -> Ruling:
    """Return the verdict of one run of an answer's tests.

    It passes only when every test reported a whole run that passed. Everything else is the answer's doing, if the same
    command passes with the canonical solution: the caller has to see to that.
    """
    if report.result.killed_by is KilledBy.BACKEND:
        return unscored("backend_error", report.fault)
    outcomes = {nodeid: report.main.test(nodeid) for nodeid in tests}
    if all(test.outcome is TestOutcome.PASSED for test in outcomes.values()):
        fault = run_fault(report)
        return Ruling(AnswerVerdict.FAILED, "crashed", fault[:MAX_DETAIL]) if fault else PASSED
    for nodeid, test in outcomes.items():
        if test.outcome in (TestOutcome.FAILED, TestOutcome.ERROR):
            error = f": {test.error}: {test.text}" if test.error else ""
            return Ruling(AnswerVerdict.FAILED, "test_failed", f"{nodeid}{error}"[:MAX_DETAIL])
    hung = [nodeid for nodeid, test in outcomes.items() if test.outcome is TestOutcome.TIMEOUT]
    if hung or report.result.killed_by is KilledBy.TIMEOUT:
        return Ruling(AnswerVerdict.TIMEOUT, "timeout", (hung or [report.fault])[0][:MAX_DETAIL])
    if report.result.killed_by is not KilledBy.NONE:
        return Ruling(AnswerVerdict.FAILED, report.result.killed_by.value, report.fault[:MAX_DETAIL])
    return _without_report(
        report, [nodeid for nodeid, test in outcomes.items() if test.outcome is not TestOutcome.PASSED]
    )


def _without_report(report: ExecReport, missing: Sequence[str]) -> Ruling:
    """Return the verdict when tests neither passed nor failed: a broken import, a dead process, a skipped test."""
    if report.main.broken:
        path, text = report.main.broken[0]
        return Ruling(AnswerVerdict.FAILED, "import_failed", f"{path}: {text.removeprefix('E').strip()}"[:MAX_DETAIL])
    if report.main.test(missing[0]).outcome is TestOutcome.SKIPPED:
        return Ruling(AnswerVerdict.FAILED, "test_skipped", missing[0][:MAX_DETAIL])
    detail = run_fault(report) or f"no report of {missing[0]}"
    return Ruling(AnswerVerdict.FAILED, "crashed", detail[:MAX_DETAIL])
