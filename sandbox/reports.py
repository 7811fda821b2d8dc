"""What tests said, from the signed records of a sandbox: outcomes by node id, never from text."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.inside.wire import Message, unseal
from schemas.execution import ExecResult, KilledBy, TestOutcome

# pytest's exit status: 0 all passed, 1 some failed, 5 nothing ran; 2 interrupted, 3 internal error, 4 usage error.
_WHOLE_RUN = (0, 1, 5)
# Texts of errors that a full sandbox causes and not the code: nobody's own failure.
_TROUBLE = ("[Errno 28]", "[Errno 11]", "[Errno 12]", "No space left on device", "can't start new thread")
_UNSTEADY = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)? ?(?:s|ms|seconds)\b|/tmp/[^\s'\"]*")
_WORST = (TestOutcome.PASSED, TestOutcome.SKIPPED, TestOutcome.NOT_RUN, TestOutcome.FAILED, TestOutcome.ERROR)


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test in one run; the worst of all its reports."""

    __test__ = False  # not a test class of pytest

    outcome: TestOutcome
    """What came out."""
    own_failure: bool
    """It failed by itself, in set-up or call: no hang, no crash, no broken tear-down, no full disk."""
    seconds: float
    """Duration of its phases together."""
    error: str
    """Type of the first exception that made it fail, else of the one that skipped it."""
    text: str
    """First line of that exception's text."""


_PASSED = {"when": "call", "outcome": "passed", "xfail": False, "error": "", "text": ""}
NOT_RUN = TestRun(TestOutcome.NOT_RUN, False, 0.0, "", "")


def steady(text: str) -> str:
    """Return a text of tested code on one line, without what differs from run to run: addresses, times, folders."""
    return " ".join(_UNSTEADY.sub("~", text).split())


def judge(phases: Sequence[Mapping[str, Any]], *, hung: bool = False) -> TestRun:
    """Return a test's outcome from the reports of its phases; subtests and reruns give several for one phase."""
    seconds = sum(phase["seconds"] for phase in phases)
    if hung:
        return TestRun(TestOutcome.TIMEOUT, False, seconds, "", "")
    worst, own, error, text = TestOutcome.PASSED, False, "", ""
    called = False
    for phase in phases:
        outcome = _outcome(phase)
        called = called or phase["when"] == "call" or outcome is not TestOutcome.PASSED
        failed = outcome in (TestOutcome.FAILED, TestOutcome.ERROR)
        own = own or (phase["outcome"] == "failed" and phase["when"] in ("setup", "call") and not _is_trouble(phase))
        if (failed and worst not in (TestOutcome.FAILED, TestOutcome.ERROR)) or not error:
            error, text = phase["error"], phase["text"]
        worst = max(worst, outcome, key=_WORST.index)
    return TestRun(worst if called else TestOutcome.NOT_RUN, own, seconds, error, text)


def _outcome(phase: Mapping[str, Any]) -> TestOutcome:
    if phase["outcome"] == "passed":
        return TestOutcome.SKIPPED if phase["xfail"] else TestOutcome.PASSED
    if phase["outcome"] == "skipped":
        return TestOutcome.SKIPPED
    return TestOutcome.FAILED if phase["when"] == "call" else TestOutcome.ERROR


def _is_trouble(phase: Mapping[str, Any]) -> bool:
    return phase["error"] == "MemoryError" or any(text in phase["text"] for text in _TROUBLE)


@dataclass(slots=True)
class RunReport:
    """What one run of tests told: a whole pytest, or one job of a server."""

    collected: list[str] = field(default_factory=list)
    """Node ids in the order in which they were to run."""
    timed: list[str] = field(default_factory=list)
    """Tests that measure time, in the same order, where that was asked for."""
    phases: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Reports by node id."""
    hung: list[str] = field(default_factory=list)
    """Tests that were killed, because they took far longer than they should."""
    broken: list[tuple[str, str]] = field(default_factory=list)
    """Files and folders that could not be collected, each with the last line of the reason."""
    problems: list[str] = field(default_factory=list)
    """What makes the run worthless as a whole."""
    entered: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    """Tests that entered a target, by the target's number and the phase."""
    status: int | None = None
    """pytest's exit status, null when it did not come to its end."""
    finished: bool = False
    """A server's run came to its end, however that was."""
    early: bool = False
    """Modules of the tree were loaded before its first conftest: plugins of pytest are among them."""
    conftests: bool = False
    """Modules of the tree were loaded before the collection."""
    modules: list[str] = field(default_factory=list)
    """Modules from outside the tree that conftests and tests loaded, in order."""
    late: list[str] = field(default_factory=list)
    """Those that tests loaded while they ran, in order."""
    same: int | None = None
    """A server's run that was not made, because this one had the same tests."""

    def test(self, nodeid: str) -> TestRun:
        """Return what a test did."""
        hung = nodeid in self.hung
        return judge(self.phases.get(nodeid, ()), hung=hung) if hung or nodeid in self.phases else NOT_RUN

    @property
    def tests(self) -> dict[str, TestRun]:
        """Return what every test did that was run or should have been."""
        return {nodeid: self.test(nodeid) for nodeid in dict.fromkeys([*self.collected, *self.phases, *self.hung])}

    def take(self, record: Mapping[str, Any]) -> None:
        """Add one record."""
        kind = record["t"]
        if kind == "phase":
            self.phases.setdefault(record["id"], []).append(record)
        elif kind == "passed":
            for nodeid, seconds in zip(record["ids"], record["seconds"], strict=True):
                self.phases.setdefault(nodeid, []).append({**_PASSED, "seconds": seconds})
        elif kind == "collected":
            self.collected.extend(record["ids"])
        elif kind == "timed":
            self.timed.extend(record["ids"])
        elif kind == "entered":
            self.entered.setdefault((record["target"], record["phase"]), []).extend(record["ids"])
        elif kind == "hang":
            self.hung.append(record["id"])
        elif kind == "broken":
            self.broken.append((record["id"], record["text"]))
        elif kind in ("internal", "abort", "unpatched", "hosted", "broke"):
            self.problems.append(f"{kind}: {record.get('error', '')} {record['text']}".replace(":  ", ": "))
        elif kind == "exit":
            self.status = record["status"]
        elif kind == "ended":
            self.finished = True
        elif kind == "modules":
            self.modules.extend(record["names"])
        elif kind == "late":
            self.late.extend(record["names"])
        elif kind == "early":
            self.early = True
        elif kind == "conftests":
            self.conftests = True
        elif kind == "same":
            self.same = record["other"]


@dataclass(slots=True)
class ExecReport:
    """What one command of ours told."""

    main: RunReport
    """Records of the runner itself."""
    jobs: dict[int, RunReport]
    """Records of a server's jobs, by their number."""
    full: int | None
    """Job after which the server stopped, because what was written so far would disturb further ones."""
    fault: str
    """Why the records are not the whole truth; empty when they are."""
    forged: int
    """Messages that somebody else wrote."""
    at: str
    """Test at which the runner ended; empty when it came to its end."""
    cpu_seconds: float
    """Processor time of our own processes and those whose end they saw; backends may know better."""
    result: ExecResult
    """How the command ended."""


def read_report(result: ExecResult, key: bytes) -> ExecReport:
    """Return what a command told on its standard output; lines without our signature are nobody's."""
    report = ExecReport(RunReport(), {}, None, "", 0, "", 0.0, result)
    expected, end = 0, None
    for message in _messages(result.stdout.splitlines(), key):
        if message.number != expected:
            report.fault = f"record {expected} is missing"
        expected = message.number + 1
        if message.kind == "end":
            end = message.record()
        elif message.kind == "hang":
            record = message.record()
            _run_of(report, record["s"], record).take(record)
        else:
            stream, _, kind, text = message.text.split(b" ", 3)
            record = {"t": kind.decode("ascii"), **json.loads(text)}
            if record["t"] == "full":
                report.full = record["job"]
            else:
                _run_of(report, stream.decode("ascii"), record).take(record)
    if result.killed_by is not KilledBy.NONE and end is None:
        report.fault = f"the sandbox ended the run: {result.killed_by.value}"
    elif end is None:
        report.fault = report.fault or f"the supervisor died with status {result.returncode}"
    else:
        report.forged, report.at, report.cpu_seconds = end["forged"], end["at"], end["cpu"]
    return report


def _messages(lines: Iterable[bytes], key: bytes) -> Iterable[Message]:
    return (message for line in lines if (message := unseal(key, line)) is not None)


def _run_of(report: ExecReport, stream: str, record: Mapping[str, Any]) -> RunReport:
    """Return the run that a record belongs to: a server's main stream tells of its runs, too."""
    number = record.get("job") if stream == "main" else int(stream.split(".")[0])
    return report.main if number is None else report.jobs.setdefault(number, RunReport())


def run_fault(report: ExecReport) -> str:
    """Return why a run of pytest is no evidence at all; empty when it is."""
    run = report.main
    if report.fault:
        return report.fault
    if run.problems:
        return run.problems[0]
    if run.status is None:
        return "pytest did not come to its end"
    if run.status not in _WHOLE_RUN and not run.broken:
        return f"pytest ended with status {run.status}"
    return ""
