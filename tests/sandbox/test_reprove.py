"""The script that proves a release's tasks again: what it takes for a proof, and what it complains of."""

from dataclasses import replace
from pathlib import Path

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.environment import BuiltEnvironment
from schemas.execution import MockKind, MockResult, Verdict
from tests.sandbox.environments import spec_for
from tests.scoring.tasks import make_task
from tools.reprove import Outcome, complaints, doubts, make_jobs, read_outcome, run_jobs, settle

SOURCE = b"def f(n):\n    return n + 1\n"
TESTS = """
import m, pytest, time
@pytest.mark.parametrize("n", [1, 2], ids=["a [b] c", "d::e"])
def test_f(n): assert m.f(n) == n + 1
def test_any(): m.f(1)
def test_endless():
    if m.f(1) is None: time.sleep(600)
"""
CAUGHT = ("test_m.py::test_f[a [b] c]", "test_m.py::test_f[d::e]")
REST = ("test_m.py::test_any", "test_m.py::test_endless")


def test_only_failures_in_set_up_or_call_are_failures() -> None:
    records = [["a", "call", "passed"], ["b", "setup", "failed"], ["c", "call", "passed"], ["c", "teardown", "failed"]]
    assert read_outcome(records) == Outcome(frozenset({"a"}), frozenset({"b"}), False)
    assert read_outcome([["", "exit", 0]]) == Outcome(frozenset(), frozenset(), True)


def test_what_differs_from_the_record_is_named(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    task = make_task(SOURCE, "m.py", "f", [*CAUGHT, *REST], small_environment.environment, FAIL_TO_PASS=CAUGHT)
    mocks = (*task.mocks, MockResult(MockKind.RAISE, "    raise ValueError", Verdict.CAUGHT, (*CAUGHT, *REST)))
    task = replace(task, mocks=mocks)
    wrong = replace(
        task,
        row_id="0" * 32,
        PASS_TO_PASS=(*CAUGHT, REST[0]),
        FAIL_TO_PASS=(CAUGHT[0], REST[0]),
        mocks=(replace(mocks[0], body="    n + 1"),),
    )
    same = replace(task, PASS_TO_PASS=(*task.PASS_TO_PASS, "test_m.py::gone"), FAIL_TO_PASS=(), mocks=())
    spec = spec_for(small_environment, tmp_path, {"m.py": SOURCE, "test_m.py": TESTS})
    tasks = [task, wrong, replace(same, mocks=(MockResult(MockKind.PASS, "    return n + 1", Verdict.CAUGHT, ()),))]
    jobs = list(make_jobs(tasks))
    jobs[0]["ids"] = [*CAUGHT, *REST]
    jobs[1]["seconds"] = 10.0  # enough for what comes before the test that hangs
    with BubblewrapBackend().open(spec) as session:
        outcomes = run_jobs(session, small_environment, jobs, spec.limits)
        settled = settle(session, small_environment, doubts(tasks, outcomes), spec.limits)
        left = session.read("/w/src/m.py", 1_000)
    assert left == SOURCE
    assert [outcome.ended for outcome in outcomes] == [True, False, True, True, True]
    assert [(found.row_id, text) for found, text in complaints(tasks, outcomes, settled)] == [
        (wrong.row_id, f"in FAIL_TO_PASS, but does not fail with every mock: {REST[0]}"),
        (wrong.row_id, f"fails with every mock, but is not in FAIL_TO_PASS: {CAUGHT[1]}"),
        (task.row_id, "does not pass on the original: test_m.py::gone"),
        (task.row_id, "nothing fails with pass"),
    ]


def test_a_test_in_doubt_is_asked_by_itself(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    tests = (
        "import m\nleft = []\n"
        "def test_f():\n    left.append(1)\n    assert m.f(1) == 2\n    left.clear()\n"
        "def test_behind():\n    m.f(1)\n    assert not left\n"
    )
    both = ("test_m.py::test_behind", "test_m.py::test_f")
    task = make_task(SOURCE, "m.py", "f", both, small_environment.environment, FAIL_TO_PASS=both[1:])
    missing = replace(task, row_id="0" * 32, FAIL_TO_PASS=())
    spec = spec_for(small_environment, tmp_path, {"m.py": SOURCE, "test_m.py": tests})
    tasks = [task, missing]
    with BubblewrapBackend().open(spec) as session:
        outcomes = run_jobs(session, small_environment, list(make_jobs(tasks)), spec.limits)
        asked = doubts(tasks, outcomes)
        settled = settle(session, small_environment, asked, spec.limits)
    assert asked == [(task, both[0]), (missing, both[1])]
    assert settled == {(task.row_id, both[0]): False, (missing.row_id, both[1]): True}
    assert [(found.row_id, text) for found, text in complaints(tasks, outcomes, settled)] == [
        (missing.row_id, f"fails with every mock, but is not in FAIL_TO_PASS: {both[1]}")
    ]
