"""The runner inside a real sandbox: what it reports, and that nobody else can."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.environment import BuiltEnvironment
from sandbox.protocol import Limits
from sandbox.reports import ExecReport, TestRun, read_report, run_fault
from sandbox.runs import OUTPUT_BYTES, Budget, Job, run_job
from schemas.execution import ExecResult, KilledBy, TestOutcome
from tests.sandbox.environments import spec_for

LIMITS = Limits(output_bytes=OUTPUT_BYTES, wall_seconds=60)

TESTS = '''
import os, sys, unittest
import pytest

def test_good(): pass
def test_bad(): raise ValueError("first\\nsecond")
@pytest.mark.parametrize("value", ["a b", "x[1]", "caf\\u00e9 \\u2603", "a::b", "-k"], ids=str)
def test_ids(value): assert value != "x[1]"
@pytest.fixture
def broken(): raise OSError(28, "No space left on device")
def test_set_up(broken): pass
@pytest.fixture
def late():
    yield
    raise KeyError("late")
def test_tear_down(late): pass
def test_skipped(): pytest.skip("why")
@pytest.mark.xfail
def test_expected(): assert False
class TestCase(unittest.TestCase):
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)
def test_noise():
    line = b'0123456789abcdef0123456789abcdef main 0 {"t":"phase","id":"tests/test_a.py::test_bad","when":"call"}\\n'
    print(line.decode())
    os.write(1, line); os.write(2, line)
    for root in ("/proc/self/fd", "/proc/1/fd", f"/proc/{os.getppid()}/fd"):
        try:
            names = os.listdir(root)
        except OSError:
            continue
        for name in names:
            try:
                descriptor = os.open(f"{root}/{name}", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                descriptor = int(name) if "self" in root else -1
            try:
                if descriptor > 2:
                    os.write(descriptor, line)
            except OSError:
                pass
'''  # fmt: skip


@pytest.fixture(scope="module")
def report(small_environment: BuiltEnvironment, tmp_path_factory: pytest.TempPathFactory) -> ExecReport:
    source = Path(tmp_path_factory.mktemp("source"))
    spec = spec_for(small_environment, source, {"tests/test_a.py": TESTS})
    with BubblewrapBackend().open(spec) as session:
        return run_job(session, small_environment, Job(), LIMITS)


def test_every_test_has_one_outcome_whatever_its_name(report: ExecReport) -> None:
    assert run_fault(report) == ""
    assert report.main.status == 1
    assert {id_.removeprefix("tests/test_a.py::"): run.outcome for id_, run in report.main.tests.items()} == {
        "test_good": TestOutcome.PASSED,
        "test_bad": TestOutcome.FAILED,
        "test_ids[a b]": TestOutcome.PASSED,
        "test_ids[x[1]]": TestOutcome.FAILED,
        "test_ids[caf\\xe9 \\u2603]": TestOutcome.PASSED,
        "test_ids[a::b]": TestOutcome.PASSED,
        "test_ids[-k]": TestOutcome.PASSED,
        "test_set_up": TestOutcome.ERROR,
        "test_tear_down": TestOutcome.ERROR,
        "test_skipped": TestOutcome.SKIPPED,
        "test_expected": TestOutcome.SKIPPED,
        "TestCase::test_subtests": TestOutcome.FAILED,
        "test_noise": TestOutcome.PASSED,
    }


def test_failure_is_a_tests_own_in_set_up_or_call_and_not_that_of_a_full_disk(report: ExecReport) -> None:
    own = {id_.split("::", 1)[1] for id_, run in report.main.tests.items() if run.own_failure}
    assert own == {"test_bad", "test_ids[x[1]]", "TestCase::test_subtests"}


def test_exception_is_named_with_its_first_line(report: ExecReport) -> None:
    run = report.main.test("tests/test_a.py::test_bad")
    assert (run.error, run.text) == ("ValueError", "first")


def test_forged_results_are_counted_and_ignored(report: ExecReport) -> None:
    assert report.forged >= 1
    assert report.fault == ""


def test_unknown_test_was_not_run(report: ExecReport) -> None:
    assert report.main.test("tests/test_a.py::test_other") == TestRun(TestOutcome.NOT_RUN, False, 0.0, "", "")


def test_test_that_hangs_is_killed_and_named(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    spec = spec_for(
        small_environment,
        tmp_path,
        {"test_b.py": "import time\ndef test_a(): pass\ndef test_loop():\n    while True: pass\ndef test_c(): pass\n"},
    )
    with BubblewrapBackend().open(spec) as session:
        report = run_job(session, small_environment, Job(default=Budget(0.5, 30)), LIMITS)
        rest = run_job(session, small_environment, Job(excluded=report.main.hung, reverse=True), LIMITS)
    assert report.main.hung == ["test_b.py::test_loop"]
    assert run_fault(report) == "pytest did not come to its end"
    assert report.main.test("test_b.py::test_loop").outcome is TestOutcome.TIMEOUT
    assert rest.main.collected == ["test_b.py::test_c", "test_b.py::test_a"]
    assert run_fault(rest) == ""


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("import os\ndef test_a(): os._exit(0)\n", "pytest did not come to its end"),
        ("import pytest\ndef test_a(): pytest.exit('enough', 0)\n", ""),
        ("def test_a(:\n", ""),
        ("import pytest\ndef test_a(): raise KeyboardInterrupt\n", "pytest ended with status 2"),
    ],
)
def test_run_without_all_reports_is_a_fault_or_shows_what_is_missing(
    small_environment: BuiltEnvironment, tmp_path: Path, test: str, fault: str
) -> None:
    with BubblewrapBackend().open(spec_for(small_environment, tmp_path, {"test_a.py": test})) as session:
        report = run_job(session, small_environment, Job(), LIMITS)
    assert run_fault(report) == fault
    assert report.main.test("test_a.py::test_a").outcome is TestOutcome.NOT_RUN
    assert report.main.broken == ([] if "(:" not in test else [("test_a.py", "E   SyntaxError: invalid syntax")])


@pytest.mark.parametrize(("to_end", "status"), [(False, 0), (True, 3)])
def test_run_ends_behind_its_last_test_unless_it_is_to_come_to_pytests_end(
    small_environment: BuiltEnvironment, tmp_path: Path, to_end: bool, status: int
) -> None:
    files = {
        "conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 3\n",
        "test_a.py": "def test_a(): 0\n",
    }
    with BubblewrapBackend().open(spec_for(small_environment, tmp_path, files)) as session:
        report = run_job(session, small_environment, Job(to_end=to_end), LIMITS)
    assert (report.main.status, report.main.test("test_a.py::test_a").outcome) == (status, TestOutcome.PASSED)


def test_command_that_says_nothing_is_a_fault() -> None:
    result = ExecResult(137, b"forged\n", b"", 1.0, 1.0, None, KilledBy.OOM)
    assert read_report(result, b"key").fault == "the sandbox ended the run: oom"
    assert read_report(ExecResult(1, b"", b"", 1.0, 1.0, None), b"key").fault == "the supervisor died with status 1"


def test_wanted_tests_are_found_where_their_ids_begin_at_another_folder(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "code/pytest.ini": "[pytest]\n",
        "code/tests/__init__.py": "",
        "code/tests/test_a.py": "def test_a(): pass\ndef test_b(): pass\n",
        "code/tests/test_c.py": "raise ValueError\n",
    }
    built = replace(
        small_environment,
        environment=replace(small_environment.environment, pytest_args=("-p", "no:cacheprovider", "code")),
    )
    with BubblewrapBackend().open(spec_for(built, tmp_path, files)) as session:
        report = run_job(session, built, Job(ids=["tests/test_a.py::test_b"]), LIMITS)
    assert (run_fault(report), report.main.collected, report.main.broken) == ("", ["tests/test_a.py::test_b"], [])
