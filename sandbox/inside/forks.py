"""Runs jobs in forks of this process: of pytest after its collection, or of a Python that has seen nothing yet."""

from __future__ import annotations

import importlib
import mmap
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from .processes import adopt_orphans, children, end_children
from .wire import Sender

MAX_SKIPPED = 3  # tests of one run that may hang or crash before it is given up
# Free space of a session below this share of what it was at the start: what a job wrote would disturb the next.
MIN_FREE = 0.5
FAILURE = 70
"""Exit status of a child that failed by our own fault (sysexits.h, EX_SOFTWARE)."""
VARIANTS = 8
"""Runs of one job at most; the run `place` of job `number` reports as `number * VARIANTS + place`."""
CONTROL = VARIANTS - 1
"""Place of the run without a mock."""
AGAIN = VARIANTS - 2
"""Place of a second run with the first mock, of tests that did not fail by its own exception."""
SAMPLE = VARIANTS - 3
"""Place of a second run with the last mock, of some tests of a long list, each by itself."""
SAMPLED = 3
"""Tests of that run at most."""
MOCK_ERROR = ("NotImplementedError", "mock")
"""Type and text of the exception that a mock raises."""
FOLDER = "job"
"""Folder of the temporary files of a run, the same for all: tests may print its path, and break lines by its length."""
_HEAD = 8


class Progress:
    """What a child did so far, where its parent can read it after its death: test it is at, tests that failed how."""

    def __init__(self, count: int) -> None:
        self.memory = mmap.mmap(-1, _HEAD + count + 1)
        self.numbers: dict[str, int] = {}

    def begin(self, ids: Sequence[str]) -> None:
        """Forget everything; the tests of the next run have these node ids."""
        self.numbers = {id_: number for number, id_ in enumerate(ids)}
        self.memory[: _HEAD + len(ids)] = struct.pack("q", -1) + bytes(len(ids))

    def started(self, id_: str) -> None:
        """Note that a test begins."""
        self.memory[:_HEAD] = struct.pack("q", self.numbers.get(id_, -1))

    def failed(self, id_: str, *, by_mock: bool) -> None:
        """Note that a test failed, and whether the mock's own exception reached it."""
        if id_ in self.numbers:
            place = _HEAD + self.numbers[id_]
            self.memory[place] = max(self.memory[place], 1 + by_mock)

    @property
    def at(self) -> int:
        """Return the number of the last test that began, -1 before the first."""
        number: int = struct.unpack("q", self.memory[:_HEAD])[0]
        return number

    @property
    def failures(self) -> dict[str, bool]:
        """Return the tests that failed, each with whether the mock's own exception reached it."""
        marks = {id_: self.memory[_HEAD + number] for id_, number in self.numbers.items()}
        return {id_: mark > 1 for id_, mark in marks.items() if mark}


class GoOnError(BaseException):
    """Leaves a server's loop, in a child that is to go on where the loop was entered."""


class Executor(Protocol):
    """What a run does, in the parent around it and in the child."""

    def changed(self, job: dict[str, Any], variant: dict[str, Any] | None) -> AbstractContextManager[None]:
        """Return what holds in the parent while the run goes on."""

    def run(
        self,
        sender: Sender,
        progress: Progress,
        job: dict[str, Any],
        variant: dict[str, Any] | None,
        ids: list[str],
        stop: bool,
    ) -> None:
        """Run tests in the child, without a mock or with one; or raise GoOnError for them to be run elsewhere."""


def spread(ids: list[str], parts: int) -> list[list[str]]:
    """Deal tests out to so many lists, each to its own; where there are more, to two, so that neighbours come apart."""
    parts = parts if len(ids) <= parts else min(parts, 2)
    return [ids[place::parts] for place in range(min(parts, len(ids)))]


def fork() -> int:
    """Fork; a warning about threads must not become an error of the tests' own filters."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def seed() -> None:
    """Give the usual generators a fixed state, so that tests which draw at random fail alike with a mock every time.

    The runs of the original do without: they are to find out which tests depend on what they draw.
    """
    random.seed(0)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(0)


def use_folder(folder: str) -> None:
    """Let temporary files of this process lie there from now on."""
    os.makedirs(folder, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def load(names: Iterable[str]) -> None:
    """Import what every child would import itself; it meets the same exception again where it asks for the module."""
    for name in names:
        with suppress(Exception, SystemExit):
            importlib.import_module(name)


def report_abort(sender: Sender, error: BaseException) -> None:
    """Tell what ended a run; whatever goes wrong with that, the process goes on to its end."""
    with suppress(Exception):
        sender.send("abort", error=type(error).__name__, text=str(error)[:300])


def free_space() -> dict[str, int]:
    """Return the free bytes of the places that tests write to."""
    found = {}
    for place in (os.getcwd(), tempfile.gettempdir()):
        status = os.statvfs(place)
        found[place] = status.f_bavail * status.f_frsize
    return found


class Server:
    """Runs jobs one after the other and says how each run ended."""

    def __init__(self, sender: Sender, executor: Executor, tests: Sequence[str]) -> None:
        self.sender = sender
        self.executor = executor
        self.tests = tests
        self.progress = Progress(len(tests))
        self.space = free_space()
        self.folder = os.path.join(tempfile.gettempdir(), FOLDER)
        self.known = frozenset(children(os.getpid()))
        self.controls: dict[tuple[str, ...], int] = {}
        adopt_orphans()

    def serve(self, jobs: Sequence[dict[str, Any]]) -> None:
        """Run every job; stops behind one that left the disk too full for others."""
        self.sender.send("ready")
        for job in jobs:
            self.judge(job)
            if any(free < MIN_FREE * self.space.get(place, 0) for place, free in free_space().items()):
                self.sender.send("full", job=job["number"])
                break

    def judge(self, job: dict[str, Any]) -> None:
        """Run a job's mocks as long as each is caught; then its tests without a mock, where the job asks for that.

        A mock is only run against the tests that failed with all mocks before it: the first with all in one child, the
        others with tests spread over several, so that a short list meets them one by one.
        """
        wanted = ids = [self.tests[number] for number in job["ids"]]
        base, parts = job["number"] * VARIANTS, job["spread"]
        thrown: dict[str, bool] = {}
        for place, variant in enumerate(job["variants"]):
            # By turns in both orders: what fails only behind what another test left would not fail again by itself.
            order = ids[::-1] if place % 2 else ids
            failed = self.attempt(base + place, job, variant, spread(order, parts if place else 1))
            if not failed:
                return
            thrown = thrown or failed
            ids = [id_ for id_ in ids if id_ in failed]
        if job["variants"]:
            late = [id_ for id_ in order if id_ in failed][parts:]
            self.doubt(job, [id_ for id_ in ids if id_ != wanted[0] and not thrown[id_]], late)
        if job.get("control"):
            first = self.controls.setdefault(tuple(wanted), base + CONTROL)
            if first == base + CONTROL:
                self.attempt(first, job, None, [wanted])
            else:
                self.sender.send("same", job=base + CONTROL, other=first)

    def doubt(self, job: dict[str, Any], unclear: list[str], late: list[str]) -> None:
        """Let tests that failed with every mock meet one again, where it is open whether they fail by themselves.

        With the first mock all were together: those may have failed behind others that its exception did not reach.
        With the last one of a list that was not dealt out one by one, where the job wants it, some that came late do.
        Of long lists only some are asked.
        """
        base, parts = job["number"] * VARIANTS, job["spread"]
        if unclear:
            step = -(-len(unclear) // parts)
            self.attempt(base + AGAIN, job, job["variants"][0], [[id_] for id_ in unclear[::step]])
        if job.get("sample") and late:
            self.attempt(base + SAMPLE, job, job["variants"][-1], [[id_] for id_ in late[:: -(-len(late) // SAMPLED)]])

    def attempt(
        self, number: int, job: dict[str, Any], variant: dict[str, Any] | None, groups: list[list[str]]
    ) -> dict[str, bool]:
        """Run groups of tests once, each in as many children as that needs; return those that failed, and how.

        A child that ends early was killed or crashed in the test it was at: the next one goes on behind that.
        """
        failures: dict[str, bool] = {}
        code = part = skipped = 0
        for group in groups:
            rest = group
            while rest and skipped <= MAX_SKIPPED:
                self.progress.begin(rest)
                try:
                    with self.executor.changed(job, variant):
                        code = self._in_child(f"{number}.{part}", job, variant, rest)
                except Exception as error:  # noqa: BLE001 - told; the next job may well succeed
                    self.sender.send("broke", job=number, text=f"{type(error).__name__} {error}"[:300])
                    return {}
                part += 1
                failures.update(self.progress.failures)
                at = self.progress.at
                if code == 0 or at < 0 or (failures and job.get("stop")):
                    break
                rest, skipped = rest[at + 1 :], skipped + 1
        self.sender.send("ended", job=number, code=code)
        return failures

    def _in_child(self, stream: str, job: dict[str, Any], variant: dict[str, Any] | None, ids: list[str]) -> int:
        """Run tests in one child and end whatever it leaves; return its exit status."""
        self._clear(stream)
        pid = fork()
        if pid == 0:
            sender = self.sender.stream_of(stream)
            stop = bool(job.get("stop"))
            self._child(sender, self.folder, lambda: self.executor.run(sender, self.progress, job, variant, ids, stop))
        status = os.waitpid(pid, 0)[1]
        end_children(self.known)
        self._clear(stream)
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

    def _clear(self, stream: str) -> None:
        """Remove the temporary files of a run; what resists goes out of the next one's sight."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if os.path.lexists(self.folder):
            os.rename(self.folder, f"{self.folder}-{stream}-{time.monotonic_ns()}")

    @staticmethod
    def _child(sender: Sender, folder: str, run: Callable[[], None]) -> None:
        """Run tests in this process, and end it without any clean-up of the parent's, or go on elsewhere."""
        code = FAILURE
        try:
            os.setsid()
            use_folder(folder)
            seed()
            sender.send("job", pid=os.getpid())
            run()
            sender.send("done")
            code = 0
        except GoOnError:
            raise
        except BaseException as error:  # noqa: BLE001 - reported, and nothing may run behind it in this copy
            report_abort(sender, error)
        os._exit(code)
