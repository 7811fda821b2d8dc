"""Jobs that share a supervisor and a start of pytest say what jobs by themselves say."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.environment import BuiltEnvironment
from sandbox.protocol import Limits, Session
from sandbox.reports import ExecReport, run_fault
from sandbox.runs import OUTPUT_BYTES, Budget, Job, ResidentSession, run_job
from schemas.execution import TestOutcome
from tests.sandbox.environments import spec_for

LIMITS = Limits(output_bytes=OUTPUT_BYTES, wall_seconds=60)
FILES = {
    "m.py": "def f():\n    return 1\n",
    "test_m.py": (
        "import m, os, pathlib, sys, time\n"
        "def test_f(): assert m.f() == 1\n"
        "def test_bad(): assert 0\n"
        "def test_seed(): assert os.environ['PYTHONHASHSEED'] == '0'\n"
        "def test_alone(): assert not os.path.exists('/tmp/left') or not alive(pathlib.Path('/tmp/left').read_text())\n"
        "def alive(pid): return os.path.exists('/proc/' + pid) and 'Z' not in open(f'/proc/{pid}/stat').read()\n"
        "def test_left():\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork():\n"
        "            os._exit(0)\n"
        "        time.sleep(600)\n"
        "    os.wait()\n"
        "    pid = [p for p in os.listdir('/proc') if p.isdecimal() and int(p) > os.getpid()][-1]\n"
        "    pathlib.Path('/tmp/left').write_text(pid)\n"
    ),
}


@contextmanager
def opened(built: BuiltEnvironment, folder: Path, files: dict[str, str]) -> Iterator[tuple[Session, ResidentSession]]:
    spec = spec_for(built, folder, files)
    with BubblewrapBackend().open(spec) as session, closing(ResidentSession(session, built)) as resident:
        yield session, resident


def told(report: ExecReport) -> object:
    """Return everything of a report but times and process numbers."""
    outcomes = {id_: (run.outcome, run.error, run.text) for id_, run in report.main.tests.items()}
    run = report.main
    entered = {key: sorted(ids) for key, ids in run.entered.items()}
    return outcomes, run.collected, run.status, entered, run.early, run.conftests, run.problems, report.fault


def test_jobs_say_the_same_in_forks_of_a_resident(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    jobs = [
        (Job(targets=[("m.py", "f", 1)], first=True), {"PYTHONHASHSEED": "0"}),
        (Job(reverse=True), {"PYTHONHASHSEED": "77"}),
        (Job(ids=["test_m.py::test_f", "test_m.py::test_bad"]), {}),
    ]
    with opened(small_environment, tmp_path, FILES) as (session, resident):
        together = [run_job(resident, small_environment, job, LIMITS, env=env) for job, env in jobs]
        assert (resident.talk is not None, resident.given_up) == (True, False)
        resident.reset()
        alone = [run_job(session, small_environment, job, LIMITS, env=env) for job, env in jobs]
    assert [told(report) for report in together] == [told(report) for report in alone]
    assert together[0].main.entered[(0, "call")] == ["test_m.py::test_f"]
    assert [together[n].main.test("test_m.py::test_seed").outcome for n in (0, 1)] == [
        TestOutcome.PASSED,
        TestOutcome.FAILED,
    ]
    assert all(0.01 < report.cpu_seconds < 10 for report in together)


def test_what_a_job_leaves_running_is_ended_before_the_next(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    left, alone = (Job(ids=[f"test_m.py::test_{name}"]) for name in ("left", "alone"))
    with opened(small_environment, tmp_path, FILES) as (_, resident):
        for env in ({}, {"TZ": "Asia/Kolkata"}):
            first = run_job(resident, small_environment, left, LIMITS, env=env)
            second = run_job(resident, small_environment, alone, LIMITS, env=env)
            assert [next(iter(run.main.tests.values())).outcome for run in (first, second)] == [TestOutcome.PASSED] * 2
        assert resident.talk is not None


@pytest.mark.parametrize(
    ("files", "hung", "fault"),
    [
        (
            {"test_m.py": "def test_a():\n    while True: pass\n"},
            ["test_m.py::test_a"],
            "pytest did not come to its end",
        ),
        ({"pytest.ini": "[pytest]\naddopts = -p m\n", "m.py": "", "test_m.py": "def test_a(): pass\n"}, [], ""),
    ],
)
def test_what_is_not_told_whole_is_told_by_a_job_by_itself(
    small_environment: BuiltEnvironment, tmp_path: Path, files: dict[str, str], hung: list[str], fault: str
) -> None:
    job = Job(ids=["test_m.py::test_a"], default=Budget(0.5, 30))
    with opened(small_environment, tmp_path, files) as (session, resident):
        report = run_job(resident, small_environment, job, LIMITS)
        assert (resident.talk, resident.given_up) == (None, True)
        assert run_job(resident, small_environment, Job(ids=[]), LIMITS).main.status == 5
        by_itself = run_job(session, small_environment, job, LIMITS)
    assert (report.main.hung, by_itself.main.hung) == (hung, hung)
    assert (run_fault(by_itself), report.main.early) == (fault or run_fault(report), "m.py" in files)


def test_resident_that_tests_have_killed_is_started_again(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {"test_m.py": "import os\ndef test_a(): os.kill(os.getppid(), 9)\ndef test_b(): pass\n"}
    with opened(small_environment, tmp_path, files) as (_, resident):
        first, second = (run_job(resident, small_environment, Job(), LIMITS) for _ in range(2))
        assert (resident.talk is not None, resident.given_up) == (True, False)
    assert told(first) == told(second)
    assert [run.outcome for run in second.main.tests.values()] == [TestOutcome.PASSED] * 2


def test_other_limits_of_memory_are_no_residents_own(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    with opened(small_environment, tmp_path, FILES) as (_, resident):
        job = Job(ids=["test_m.py::test_f"])
        run_job(resident, small_environment, job, LIMITS)
        talk = resident.talk
        run_job(resident, small_environment, job, replace(LIMITS, wall_seconds=30, cpus=0.5))
        assert resident.talk is talk is not None
        assert run_job(resident, small_environment, job, replace(LIMITS, pids=60)).main.status == 0
        assert resident.talk is None
