"""What reports of tests mean for an answer: only a whole run in which every test passed is a pass."""

from typing import Any

import pytest

from sandbox.reports import ExecReport, RunReport
from schemas.execution import ExecResult, KilledBy
from schemas.scores import AnswerVerdict
from scoring.verdicts import PASSED, Ruling, rule

TESTS = ("t.py::a", "t.py::b[x y]")
FAILED, TIMEOUT, UNSCORED = AnswerVerdict.FAILED, AnswerVerdict.TIMEOUT, AnswerVerdict.UNSCORED


def phase(nodeid: str, when: str = "call", outcome: str = "passed", error: str = "", text: str = "") -> dict[str, Any]:
    record = {"t": "phase", "id": nodeid, "when": when, "outcome": outcome, "xfail": False, "seconds": 0.1}
    return record | {"error": error, "text": text}


def report(
    *phases: dict[str, Any], status: int | None = 0, fault: str = "", killed_by: KilledBy = KilledBy.NONE,
    hung: str | None = None, broken: str | None = None,
) -> ExecReport:  # fmt: skip
    main = RunReport(status=status)
    for record in phases:
        main.take(record)
    if hung is not None:
        main.take({"t": "hang", "id": hung})
    if broken is not None:
        main.take({"t": "broken", "id": "t.py", "text": broken})
    result = ExecResult(0, b"", b"", 1.0, 1.0, None, killed_by)
    return ExecReport(main=main, jobs={}, full=None, fault=fault, forged=0, at="", cpu_seconds=0.0, result=result)


BOTH = [phase(nodeid) for nodeid in TESTS]


def test_answer_passes_when_every_test_passed_in_a_whole_run() -> None:
    assert rule(report(*BOTH), TESTS) == PASSED


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            report(BOTH[0], phase(TESTS[1], "call", "failed", "ValueError", "no"), status=1),
            Ruling(FAILED, "test_failed", "t.py::b[x y]: ValueError: no"),
        ),
        (
            report(BOTH[0], phase(TESTS[1], "setup", "failed", "KeyError", "'k'"), status=1),
            Ruling(FAILED, "test_failed", "t.py::b[x y]: KeyError: 'k'"),
        ),
        # A test that stopped the run explains why the next one has no report.
        (report(phase(TESTS[0], "call", "failed"), status=2), Ruling(FAILED, "test_failed", "t.py::a")),
        (
            report(*BOTH, phase(TESTS[1], "teardown", "failed", "OSError", "x"), status=1),
            Ruling(FAILED, "test_failed", "t.py::b[x y]: OSError: x"),
        ),
        (
            report(status=2, broken="SyntaxError: invalid syntax"),
            Ruling(FAILED, "import_failed", "t.py: SyntaxError: invalid syntax"),
        ),
        (
            report(BOTH[0], phase(TESTS[1], "call", "skipped"), status=0),
            Ruling(FAILED, "test_skipped", "t.py::b[x y]"),
        ),
        (report(BOTH[0], status=0), Ruling(FAILED, "crashed", "no report of t.py::b[x y]")),
        (report(BOTH[0], status=None), Ruling(FAILED, "crashed", "pytest did not come to its end")),
        # All tests say that they passed, but the process did not come to its end.
        (report(*BOTH, status=None), Ruling(FAILED, "crashed", "pytest did not come to its end")),
        (report(BOTH[0], status=None, hung=TESTS[1]), Ruling(TIMEOUT, "timeout", "t.py::b[x y]")),
        (
            report(BOTH[0], status=None, killed_by=KilledBy.TIMEOUT, fault="the sandbox ended the run: timeout"),
            Ruling(TIMEOUT, "timeout", "the sandbox ended the run: timeout"),
        ),
        (
            report(status=None, killed_by=KilledBy.OOM, fault="the sandbox ended the run: oom"),
            Ruling(FAILED, "oom", "the sandbox ended the run: oom"),
        ),
        (
            report(*BOTH, killed_by=KilledBy.BACKEND, fault="the sandbox ended the run: backend"),
            Ruling(UNSCORED, "backend_error", "the sandbox ended the run: backend"),
        ),
    ],
)
def test_everything_else_is_no_pass_and_says_why(given: ExecReport, expected: Ruling) -> None:
    assert rule(given, TESTS) == expected
