"""Runs tests with a changed file on disk, in processes that have not imported anything of the tested tree."""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .forks import GoOnError, Progress, Server, load
from .plugin import Reporter, Selection
from .tracing import Places, of_tree
from .wire import Sender

# Seconds since 1970, far from any file's own time: byte code cached for one text must never fit another.
_TIMES = 1_000_000_000


class FileChangedError(Exception):
    """Tests have changed the file that a mock is to stand in."""


@contextmanager
def changed_file(job: dict[str, Any], body: bytes, number: int) -> Iterator[None]:
    """Have another body in a file for a while; `number` makes the file's time unique."""
    path: str = job["path"]
    with open(path, "rb") as file:
        original = file.read()
    if hashlib.sha256(original).hexdigest() != job["digest"]:
        raise FileChangedError(path)
    status = os.stat(path)
    start, end = job["span"]
    os.chmod(path, status.st_mode | 0o600)
    owner = os.getpid()
    try:
        _write(path, original[:start] + body + original[end:])
        os.utime(path, (_TIMES + number, _TIMES + number))
        yield
    finally:
        if os.getpid() == owner:  # a child that is to see the mock leaves by here, too
            _write(path, original)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.chmod(path, status.st_mode)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def preload() -> None:
    """Import the plugins that pytest always has: what every run would import before anything of the tree."""
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


class FreshProcesses:
    """Runs tests in children that go on where pytest has loaded its plugins, and nothing of the tree.

    Where a plugin is of the tree, or loads something of it, they start pytest themselves (`bare`); where the tree has
    no conftest that pytest's configuration loads, they go on behind that (`configured`).
    """

    def __init__(
        self, sender: Sender, job: dict[str, Any], places: Places, selection: Selection, reporter: Reporter
    ) -> None:
        self.sender = sender
        self.job = job
        self.places = places
        self.selection = selection
        self.reporter = reporter
        self.bare = bool(job.get("bare"))
        self.configured = bool(job.get("configured"))
        self.changes = 0

    def share(self) -> None:
        """Import what every child would import from outside the tree; end where that brings something of it."""
        load(self.job.get("imports", ()))
        names = of_tree(self.places)
        if names:
            self.sender.send("early", text=", ".join(names))
            os._exit(0)

    def serve(self) -> None:
        """Run every job, each in forks of this process, and end it; returns in a fork that is to run tests."""
        gc.collect()
        gc.freeze()
        try:
            Server(self.sender, self, self.job["tests"]).serve(self.job["jobs"])
        except GoOnError:
            return
        self.sender.send("exit", status=0)
        os._exit(0)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Iterator[None]:
        """Become the server, before every other plugin does its part of this hook."""
        self.start()
        yield

    def start(self) -> None:
        """Become the server where pytest has loaded its plugins, if not before or behind that."""
        if not self.bare and not self.configured:
            self.share()
            self.serve()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[None]:
        """Become the server where pytest has its configuration and no conftest of the tree was there to be loaded."""
        if not self.bare and self.configured:
            self.share()
            self.serve()
        yield

    @contextmanager
    def changed(self, job: dict[str, Any], variant: dict[str, Any] | None) -> Iterator[None]:
        """Have the mock on disk."""
        if variant is None:
            yield
            return
        self.changes += 1
        with changed_file(job, variant["body"].encode("ascii"), self.changes):
            yield

    def run(
        self,
        sender: Sender,
        progress: Progress,
        job: dict[str, Any],
        variant: dict[str, Any] | None,
        ids: list[str],
        stop: bool,
    ) -> None:
        """Choose the tests and let pytest go on."""
        del job, variant
        self.sender.assume(sender)
        self.reporter.attach(self.sender, progress)
        self.reporter.stop = stop
        self.selection.choose(ids)
        raise GoOnError
