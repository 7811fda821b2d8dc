"""Runs tests with a changed file on disk, in processes that have not imported anything of the tested tree."""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .forks import Progress, Server
from .suite import run
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
    try:
        _write(path, original[:start] + body + original[end:])
        os.utime(path, (_TIMES + number, _TIMES + number))
        yield
    finally:
        _write(path, original)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.chmod(path, status.st_mode)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def preload() -> None:
    """Import pytest and the plugins it always has: what every run would import before anything of the tree."""
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


class FreshProcesses:
    """Runs pytest from its start, in a child each."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.args: list[str] = job["args"]
        self.changes = 0

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
        """Run pytest in this process; what it would do behind its last test is left out."""
        del job, variant
        run(sender, {"args": self.args, "ids": ids, "stop": stop}, progress=progress, brief=True)


def serve(sender: Sender, job: dict[str, Any]) -> int:
    """Run every job of the list, each in forks of this process."""
    preload()
    gc.freeze()
    Server(sender, FreshProcesses(job), job["tests"]).serve(job["jobs"])
    return 0
