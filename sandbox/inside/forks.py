"""The fork server: pytest after its collection, of which every mock gets a copy of its own."""

from __future__ import annotations

import gc
import mmap
import os
import shutil
import struct
import sys
import tempfile
import warnings
from typing import Any

import pytest

from .mutate import CannotPatchError, LiveFunctions
from .plugin import Reporter, first_line
from .processes import adopt_orphans, children, end_children
from .tracing import Places
from .wire import Sender

MAX_SKIPPED = 3  # tests of one job that may hang or crash before it is given up
# Free space of a session below this share of what it was at the start: what a job wrote would disturb the next.
MIN_FREE = 0.5


class Progress:
    """The number of the test that a child is at, where its parent can read it after its death."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 8)

    def set(self, number: int) -> None:
        """Note that a test begins."""
        self.memory[:] = struct.pack("q", number)

    def get(self) -> int:
        """Return the last test that began."""
        number: int = struct.unpack("q", self.memory[:])[0]
        return number


def fork() -> int:
    """Fork; a warning about threads must not become an error of the tests' own filters."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def free_space() -> dict[str, int]:
    """Return the free bytes of the places that tests write to."""
    found = {}
    for place in (os.getcwd(), tempfile.gettempdir()):
        status = os.statvfs(place)
        found[place] = status.f_bavail * status.f_frsize
    return found


class Jobs:
    """Runs jobs one after the other, each in children of this process, and says how each ended."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.progress = Progress()
        self.space = free_space()
        self.temporary = tempfile.gettempdir()
        self.known = frozenset(children(os.getpid()))
        adopt_orphans()

    def full(self) -> bool:
        """Tell whether what was written so far would disturb further jobs."""
        return any(free < MIN_FREE * self.space.get(place, 0) for place, free in free_space().items())

    def attempt(self, number: int, run: Any, count: int) -> int:  # noqa: ANN401 - run(sender, first test)
        """Run one job in as many children as it needs; return how many tests were skipped.

        `run` runs the tests from a number on. A child that ends early was killed or crashed in the test of its
        progress: the next one goes on behind that.
        """
        first = skipped = 0
        while True:
            self.progress.set(-1)
            folder = os.path.join(self.temporary, f"job-{number}")
            os.makedirs(folder, exist_ok=True)
            pid = fork()
            if pid == 0:
                self._child(number, run, first, folder)
            status = os.waitpid(pid, 0)[1]
            left = end_children(self.known)
            shutil.rmtree(folder, ignore_errors=True)
            at = self.progress.get()
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            self.sender.send({"t": "ended", "job": number, "code": code, "at": at, "left": left, "full": self.full()})
            if code == 0 or at < first or at + 1 >= count or skipped == MAX_SKIPPED:
                return skipped
            skipped += 1
            first = at + 1

    def _child(self, number: int, run: Any, first: int, folder: str) -> None:  # noqa: ANN401 - see attempt
        """Run a job's tests in this process, and end it without any clean-up of the parent's."""
        code = 70  # our own failure (sysexits.h, EX_SOFTWARE)
        try:
            os.setsid()
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            sender = self.sender.stream_of(f"{number}.{first}")
            sender.send({"t": "job", "job": number, "pid": os.getpid()})
            code = run(sender, first)
        except BaseException as error:  # noqa: BLE001 - reported, and nothing may run behind it in this copy
            sender.send({"t": "abort", "job": number, "error": type(error).__name__, "text": first_line(error)})
        finally:
            os._exit(code)


class ForkServer:
    """Takes the place of pytest's run loop: judges mocks instead of running the collected tests."""

    def __init__(self, sender: Sender, job: dict[str, Any], places: Places, reporter: Reporter) -> None:
        self.sender = sender
        self.jobs: list[dict[str, Any]] = job["jobs"]
        self.ids: list[str] = job["tests"]
        self.places = places
        self.reporter = reporter

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every job; stops when a job has left its mark on the sandbox."""
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            items.setdefault(item.nodeid, []).append(item)
        live = LiveFunctions(self.places)
        gc.collect()
        gc.freeze()
        jobs = Jobs(self.sender)
        self.sender.send({"t": "ready"})
        for job in self.jobs:
            wanted = [item for number in job["ids"] for item in items.get(self.ids[number], ())]

            def run(sender: Sender, first: int, job: dict[str, Any] = job, wanted: list[pytest.Item] = wanted) -> int:
                return self._run(sender, job, wanted, first, live, jobs.progress)

            jobs.attempt(job["number"], run, len(wanted))
            if jobs.full():
                self.sender.send({"t": "full", "job": job["number"]})
                break
        return True

    def _run(
        self,
        sender: Sender,
        job: dict[str, Any],
        items: list[pytest.Item],
        first: int,
        live: LiveFunctions,
        progress: Progress,
    ) -> int:
        """Patch this process and run tests in it; 0 when every one was run, or the first failure was enough."""
        self.reporter.sender = sender
        patch = None
        if job.get("key"):
            try:
                patch = live.patch(tuple(job["key"]), job["body"])
            except (CannotPatchError, SyntaxError, ValueError) as error:
                sender.send({"t": "unpatched", "job": job["number"], "text": first_line(error)})
                return 0
        for number in range(first, len(items)):
            progress.set(number)
            item = items[number]
            following = items[number + 1] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if job.get("stop") and self.reporter.failed:
                break
        if patch is not None and patch.count == 0:
            sender.send({"t": "unpatched", "job": job["number"], "text": "no live function has this code"})
        sender.send({"t": "done", "job": job["number"]})
        return 0
