"""What the reports of tests mean, phase by phase and for a mock."""

import ast
import hmac
from typing import Any

import pytest

from sandbox.inside.wire import seal, sign, unseal
from sandbox.judging import verdict
from sandbox.mocks import Mock
from sandbox.reports import RunReport, judge, read_report, steady
from sandbox.runs import runner_files
from schemas.execution import ExecResult, KilledBy, MockKind, MockResult, TestOutcome, Verdict

KEY = b"k" * 32
MOCK = Mock(MockKind.PASS, "pass")


def phase(
    when: str = "call", outcome: str = "passed", *, error: str = "", text: str = "", xfail: bool = False
) -> dict[str, Any]:
    return {"when": when, "outcome": outcome, "xfail": xfail, "seconds": 0.5, "error": error, "text": text}


@pytest.mark.parametrize(
    ("phases", "outcome", "own"),
    [
        ([phase()], TestOutcome.PASSED, False),
        ([phase(outcome="failed", error="E")], TestOutcome.FAILED, True),
        ([phase("setup", "failed", error="E")], TestOutcome.ERROR, True),
        ([phase("teardown", "failed", error="E")], TestOutcome.ERROR, False),
        ([phase(), phase("teardown", "failed", error="E")], TestOutcome.ERROR, False),
        ([phase("setup", "skipped")], TestOutcome.SKIPPED, False),
        ([phase(xfail=True)], TestOutcome.SKIPPED, False),
        ([phase(outcome="skipped", xfail=True)], TestOutcome.SKIPPED, False),
        # Subtests and reruns: the worst counts.
        ([phase(), phase(outcome="failed", error="E"), phase()], TestOutcome.FAILED, True),
        ([phase(outcome="rerun", error="E"), phase()], TestOutcome.FAILED, False),
        # Not the code's fault.
        ([phase(outcome="failed", error="OSError", text="[Errno 28] No space left")], TestOutcome.FAILED, False),
        ([phase(outcome="failed", error="MemoryError")], TestOutcome.FAILED, False),
        ([phase(outcome="failed", error="RuntimeError", text="can't start new thread")], TestOutcome.FAILED, False),
        ([], TestOutcome.NOT_RUN, False),
    ],
)
def test_outcome_is_the_worst_of_all_reports(phases: list[Any], outcome: TestOutcome, own: bool) -> None:
    run = judge(phases)
    assert (run.outcome, run.own_failure, run.seconds) == (outcome, own, 0.5 * len(phases))


def report(
    *, finished: bool = True, hung: tuple[str, ...] = (), problems: tuple[str, ...] = (), **tests: dict[str, Any]
) -> RunReport:
    return RunReport(phases={name: [item] for name, item in tests.items()}, hung=list(hung), problems=list(problems),
                     finished=finished)  # fmt: skip


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (report(a=phase(), b=phase(outcome="failed", error="E", text="0x7f")), (Verdict.CAUGHT, ("b",), "b: E")),
        (report(a=phase("setup", "failed", error="E"), b=phase()), (Verdict.CAUGHT, ("a",), "a: E")),
        (report(a=phase(), b=phase()), (Verdict.SURVIVED, (), "")),
        (report(a=phase(), b=phase(outcome="skipped")), (Verdict.SURVIVED, (), "")),
        (report(a=phase(), b=phase("teardown", "failed", error="E")), (Verdict.SURVIVED, (), "")),
        (report(a=phase(), hung=("b",)), (Verdict.TIMEOUT, (), "b takes too long")),
        (report(a=phase(outcome="failed", error="E"), hung=("b",)), (Verdict.CAUGHT, ("a",), "a: E")),
        (report(a=phase()), (Verdict.INFRASTRUCTURE, (), "no report of b")),
        (report(), (Verdict.INFRASTRUCTURE, (), "no report of a")),
        (report(a=phase(outcome="failed", error="E"), b=phase(), finished=False),
         (Verdict.INFRASTRUCTURE, (), "the run did not come to its end")),
        (report(a=phase(outcome="failed", error="E"), b=phase(), problems=("unpatched: no live function",)),
         (Verdict.INFRASTRUCTURE, (), "unpatched: no live function")),
        (report(a=phase(), b=phase(outcome="failed", error="OSError", text="[Errno 28] full")),
         (Verdict.INFRASTRUCTURE, (), "b: [Errno 28] full")),
    ],
)  # fmt: skip
def test_mock_is_caught_by_a_tests_own_failure_alone(run: RunReport, expected: tuple[Verdict, Any, str]) -> None:
    assert verdict(MOCK, ("a", "b"), run) == MockResult(MockKind.PASS, "pass", *expected)


def test_what_differs_from_run_to_run_is_left_out_of_texts() -> None:
    text = "<A object at 0x7f3c>\n in /tmp/job-1.0/x.txt after 0.25s, 3 seconds or 20 ms; 3 items"
    assert steady(text) == "<A object at ~> in ~ after ~, ~ or ~; 3 items"


def test_record_is_read_by_who_has_the_key_and_by_nobody_else() -> None:
    line = seal(KEY, "main", 3, "passed", {"ids": ["a b\u2603"], "seconds": [0.5]})
    assert line[:32].decode() == hmac.new(KEY, line[33:], "sha256").hexdigest()[:32]
    message = unseal(KEY, line)
    assert message is not None
    assert (message.stream, message.number, message.kind) == ("main", 3, "passed")
    assert message.record() == {"t": "passed", "ids": ["a b\u2603"], "seconds": [0.5]}
    for forged in (line[:-1] + b" ", b"0" * 32 + line[32:], b"", b"x", line[33:], b" " + line):
        assert unseal(KEY, forged) is None
    assert unseal(b"other", line) is None


def result(*lines: bytes) -> ExecResult:
    return ExecResult(0, b"\n".join(lines), b"", 1.0, 1.0, None, KilledBy.NONE)


def passed(number: int, id_: str, stream: str = "main") -> bytes:
    inner = unseal(b"inner", seal(b"inner", stream, number, "passed", {"ids": [id_], "seconds": [0.5]}))
    assert inner is not None
    return sign(KEY, f"out {number} pass ".encode() + inner.signed)


END = b'{"forged": 2, "at": "", "cpu": 0.5}'


def test_missing_record_is_a_fault() -> None:
    end = sign(KEY, b"out 2 end " + END)
    whole = read_report(result(passed(0, "a"), passed(1, "b"), end), KEY)
    assert (whole.fault, whole.forged, sorted(whole.main.tests)) == ("", 2, ["a", "b"])
    assert read_report(result(passed(0, "a"), end), KEY).fault == "record 1 is missing"
    assert read_report(result(passed(0, "a"), passed(1, "b")), KEY).fault == "the supervisor died with status 0"


def test_runs_of_a_server_are_told_apart_by_their_streams() -> None:
    lines = (passed(0, "a", "8.0"), passed(1, "b", "8.1"), passed(2, "a", "9.0"), sign(KEY, b"out 3 end " + END))
    report = read_report(result(*lines), KEY)
    assert {number: sorted(run.tests) for number, run in report.jobs.items()} == {8: ["a", "b"], 9: ["a"]}


@pytest.mark.parametrize("path", runner_files())
def test_what_runs_inside_needs_no_newer_python_than_environments_have(path: str) -> None:
    tree = ast.parse(runner_files()[path], feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported <= STANDARD | {"pytest", "_pytest"}


STANDARD = {
    "__future__", "_operator", "_sha2", "_sha256", "collections", "contextlib", "ctypes", "dis", "functools", "gc",
    "hashlib", "importlib", "inspect", "json", "mmap", "os", "pathlib", "random", "select", "shutil", "signal",
    "socket", "struct", "sys", "tempfile", "textwrap", "threading", "time", "types", "typing", "warnings",
}  # fmt: skip
