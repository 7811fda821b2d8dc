"""Prove every task of a release's real_code again, by plain pytest in an environment built anew on an empty cache.

    python -m tools.reprove RELEASE --workspace FOLDER [--repo OWNER/NAME ...]

It takes from the pipeline the sandbox, the clones of a workspace and the building of a recorded environment, and
nothing of what proves or scores: here pytest gets the recorded arguments and node ids in a process of its own, and says
by its own hooks what each test did. Of every task must hold: all of PASS_TO_PASS pass with the file as the commit has
it; with each recorded mock in place of the body some of them fail in set-up or call; those that fail with every mock
are FAIL_TO_PASS. A test on which the record and such a run do not agree meets every mock by itself, which decides: in
company it may fail, or pass, because of what others left when the mock broke them. Ends with 1 when a task differs.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from miners.places import clone_folder
from sandbox.backends import open_backend
from sandbox.build import rebuild_environment
from sandbox.environment import BuiltEnvironment
from sandbox.exported import exported
from sandbox.protocol import Limits, SandboxSpec, Session
from schemas.errors import DataError
from schemas.execution import MockResult, RealCode, RealCodeConfig
from scoring.release import TaskRelease, read_release

# A mock whose tests have not ended by then, or in four times what the original took for all tests and ten seconds,
# hangs; the tests that have failed before count.
RUN_SECONDS = 120.0
JOBS, OUT = "/w/in/jobs.json", "/tmp/reproved.jsonl"
# One process for each run, forked from one that has imported pytest and nothing else.
RUNNER = """
import json, os, signal, sys, time, pytest

class Told:
    def __init__(self, out):
        self.out = out
    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" or report.when == "call":
            self.out.write(json.dumps([report.nodeid, report.when, report.outcome]) + "\\n")
            self.out.flush()

def child(job, name):
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, os.getcwd())
    # Only the original leaves byte code: a mock has a later time, so that none of it is taken for the mock's.
    sys.dont_write_bytecode = bool(job["path"])
    with open(name, "w") as out:
        # No trace of a failure is read: to lay out hundreds of them costs more than their tests.
        code = int(pytest.main([*job["args"], "--tb=no", *job["ids"]], plugins=[Told(out)]))
        out.write(json.dumps(["", "exit", code]) + "\\n")
    os._exit(0)

with open(sys.argv[1]) as file:
    jobs = json.load(file)
with open(sys.argv[2], "w") as told:
    most = float("inf")
    for number, job in enumerate(jobs):
        name = "/tmp/reproving"
        original = None
        if job["path"]:
            with open(job["path"], "rb") as file:
                original = file.read()
            with open(job["path"], "wb") as file:
                file.write(job["text"].encode("utf-8"))
        pid = os.fork()
        if pid == 0:
            try:
                child(job, name)
            finally:
                os._exit(70)
        began = time.monotonic()
        end = began + min(job["seconds"], most)
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(0.005)
        if original is not None:
            with open(job["path"], "wb") as file:
                file.write(original)
        else:
            most = 10 + 4 * (time.monotonic() - began)
        with open(name) as file:
            told.write(json.dumps({"number": number, "records": [json.loads(line) for line in file]}) + "\\n")
        os.unlink(name)
"""


Settled = Mapping[tuple[str, str], bool]
"""By a task's row and a test: whether the test fails with every mock by itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of pytest said."""

    passed: frozenset[str]
    """Tests whose call passed and of which nothing failed."""
    failed: frozenset[str]
    """Tests that failed in set-up or call."""
    ended: bool
    """pytest came to its end, with tests run."""


def read_outcome(records: Sequence[Sequence[object]]) -> Outcome:
    """Return what the records of a run say."""
    failed = {str(id_) for id_, when, outcome in records if outcome == "failed" and when in ("setup", "call")}
    broken = {str(id_) for id_, _, outcome in records if outcome in ("failed", "skipped")}
    passed = {str(id_) for id_, when, outcome in records if when == "call" and outcome == "passed"}
    return Outcome(frozenset(passed - broken), frozenset(failed), any(when == "exit" for _, when, _ in records))


def run_jobs(session: Session, built: BuiltEnvironment, jobs: Sequence[object], limits: Limits) -> list[Outcome]:
    """Run jobs one after the other in a session; DataError when one is missing in the end."""
    files = {JOBS: json.dumps(jobs).encode(), "/w/in/reprove.py": RUNNER.encode()}
    result = session.exec((built.python, "/w/in/reprove.py", JOBS, OUT), files=files, limits=limits)
    lines = (session.read(OUT, 1 << 30) or b"").splitlines()
    if len(lines) != len(jobs):
        raise DataError("backend_error", f"{len(lines)} of {len(jobs)} runs: {result.stderr[-500:]!r}")
    return [read_outcome(json.loads(line)["records"]) for line in lines]


def make_jobs(tasks: Sequence[RealCode]) -> Iterator[dict[str, object]]:
    """Yield the runs of one tree: the original with the tests of all tasks, then every mock of every task."""
    everything = sorted({nodeid for task in tasks for nodeid in task.PASS_TO_PASS})
    args = tasks[0].environment.pytest_args
    yield {"args": args, "ids": everything, "path": "", "text": "", "seconds": 10 * RUN_SECONDS}
    for task in tasks:
        # What hangs with a mock must not keep those from running that are to fail.
        first = list(task.FAIL_TO_PASS)
        rest = [nodeid for nodeid in task.PASS_TO_PASS if nodeid not in task.FAIL_TO_PASS]
        for place, mock in enumerate(task.mocks):
            # Every other mock in the opposite order: what fails behind others alone is none of FAIL_TO_PASS.
            ids = [*first[::-1], *rest[::-1]] if place % 2 else [*first, *rest]
            yield _mocked(task, mock, ids)


def _mocked(task: RealCode, mock: MockResult, ids: Sequence[str]) -> dict[str, object]:
    """Return the run of tests with one of a task's mocks."""
    text = task.left_context + mock.body + task.right_context
    args = task.environment.pytest_args
    return {"args": args, "ids": list(ids), "path": task.path, "text": text, "seconds": RUN_SECONDS}


def _by_task(tasks: Sequence[RealCode], outcomes: Sequence[Outcome]) -> Iterator[tuple[RealCode, list[Outcome]]]:
    """Yield each task with the outcomes of its mocks, which are the next of `outcomes`."""
    rest = iter(outcomes)
    for task in tasks:
        yield task, list(islice(rest, len(task.mocks)))


def failing_with_every_mock(tasks: Sequence[RealCode], outcomes: Sequence[Outcome]) -> Iterator[frozenset[str]]:
    """Yield, for each task, the covering tests that failed with every mock; `outcomes` as `make_jobs` has them."""
    for task, mocked in _by_task(tasks, outcomes[1:]):
        yield frozenset(task.PASS_TO_PASS).intersection(*(outcome.failed for outcome in mocked))


def doubts(tasks: Sequence[RealCode], outcomes: Sequence[Outcome]) -> list[tuple[RealCode, str]]:
    """Return the tests on which record and runs do not agree."""
    found = zip(tasks, failing_with_every_mock(tasks, outcomes), strict=True)
    return [(task, nodeid) for task, every in found for nodeid in sorted(every ^ frozenset(task.FAIL_TO_PASS))]


def settle(session: Session, built: BuiltEnvironment, asked: Sequence[tuple[RealCode, str]], limits: Limits) -> Settled:
    """Return which of the tests in doubt fail with every mock by themselves."""
    jobs = [_mocked(task, mock, [nodeid]) for task, nodeid in asked for mock in task.mocks]
    outcomes = run_jobs(session, built, jobs, limits) if jobs else []
    runs = zip(asked, _by_task([task for task, _ in asked], outcomes), strict=True)
    return {
        (task.row_id, nodeid): all(nodeid in outcome.failed for outcome in mocked)
        for (task, nodeid), (_, mocked) in runs
    }


def complaints(
    tasks: Sequence[RealCode], outcomes: Sequence[Outcome], settled: Settled
) -> Iterator[tuple[RealCode, str]]:
    """Yield what differs from the record, by task."""
    original = outcomes[0]
    for task, mocked in _by_task(tasks, outcomes[1:]):
        wrong = sorted(set(task.PASS_TO_PASS) - original.passed)
        if wrong:
            yield task, f"does not pass on the original: {wrong[0]}"
        for mock, outcome in zip(task.mocks, mocked, strict=True):
            if not outcome.failed:
                yield task, f"nothing fails with {mock.kind.value}"
        for (row_id, nodeid), fails in settled.items():
            if row_id != task.row_id:
                continue
            if nodeid in task.FAIL_TO_PASS and not fails:
                yield task, f"in FAIL_TO_PASS, but does not fail with every mock: {nodeid}"
            if nodeid not in task.FAIL_TO_PASS and fails:
                yield task, f"fails with every mock, but is not in FAIL_TO_PASS: {nodeid}"


def reprove(release: TaskRelease, tasks: Sequence[RealCode], repos: Path, work: Path) -> list[tuple[RealCode, str]]:
    """Prove the tasks of one tree again; return what differs."""
    first, config = tasks[0], release.config
    backend = open_backend(config)
    git_dir = clone_folder(repos, release.homes[first.repo].host, first.repo)
    with exported(git_dir, first.repo, first.base_commit, work / "trees") as (tree, at):
        built = rebuild_environment(first.environment, tree, at, backend, config, work / "empty")
        jobs = list(make_jobs(tasks))
        with backend.open(SandboxSpec(built.source, built.binds, built.env, _limits(config, len(jobs)))) as session:
            outcomes = run_jobs(session, built, jobs, _limits(config, len(jobs)))
            asked = doubts(tasks, outcomes)
            settled = settle(session, built, asked, _limits(config, 3 * len(asked)))
            return list(complaints(tasks, outcomes, settled))


def _limits(config: RealCodeConfig, jobs: int) -> Limits:
    memory, disk = config.memory_mib << 20, config.disk_mib << 20
    return Limits((10 + jobs) * RUN_SECONDS, memory, config.pids, 1.0, disk)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove a release again; 1 when anything differs."""
    parser = argparse.ArgumentParser(description="Prove every task of a release's real_code again.")
    parser.add_argument("release", type=Path)
    parser.add_argument("--workspace", type=Path, required=True, help="folder whose repos/ has the clones")
    parser.add_argument("--repo", action="append", default=[], help="only this repository; may be repeated")
    options = parser.parse_args(arguments)
    release = read_release(options.release)
    trees: dict[str, list[RealCode]] = {}
    for task in release.tasks:
        if not options.repo or task.repo in options.repo:
            trees.setdefault(json.dumps([task.repo, task.base_commit, str(task.environment)]), []).append(task)
    total = bad = 0
    for tasks in trees.values():
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="reprove-") as work:
            found = reprove(release, tasks, options.workspace / "repos", Path(work))
        wrong = {task.instance_id for task, _ in found}
        total, bad = total + len(tasks), bad + len(wrong)
        print(f"{tasks[0].repo}: {len(tasks) - len(wrong)} of {len(tasks)} ({time.monotonic() - began:.0f} s)")
        for task, text in found:
            print(f"  {task.instance_id} {task.fun_name}: {text}")
        sys.stdout.flush()
    print(f"{total - bad} of {total} tasks proven again")
    return int(bad > 0 or total == 0)


if __name__ == "__main__":
    raise SystemExit(main())
