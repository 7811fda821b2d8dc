"""Runs tests with a changed file on disk, in processes that have not imported anything of the tested tree."""

from __future__ import annotations

import importlib
import os
from typing import Any

from .suite import run
from .wire import Sender

# Seconds since 1970, far from any file's own time: byte code cached for one text must never fit another.
_TIMES = 1_000_000_000


class Changed:
    """A file that has another content for a while."""

    def __init__(self, path: str, content: bytes, number: int) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.original = file.read()
        self.status = os.stat(path)
        os.chmod(path, self.status.st_mode | 0o600)
        self._write(content)
        os.utime(path, (_TIMES + number, _TIMES + number))

    def _write(self, content: bytes) -> None:
        with open(self.path, "wb") as file:
            file.write(content)

    def restore(self) -> None:
        """Bring the original content, time and mode back."""
        self._write(self.original)
        os.utime(self.path, ns=(self.status.st_atime_ns, self.status.st_mtime_ns))
        os.chmod(self.path, self.status.st_mode)


def preload() -> None:
    """Import pytest and the plugins it always has: what every run would import before anything of the tree."""
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


def serve(sender: Sender, job: dict[str, Any]) -> int:
    """Run every job of the list with its file changed, each in a fork of this process."""
    preload()
    from .forks import Jobs

    jobs = Jobs(sender)
    sender.send({"t": "ready"})
    for one in job["jobs"]:
        ids = [job["tests"][number] for number in one["ids"]]
        changed = None
        if one.get("path"):
            with open(os.path.join(job["folder"], one["content"]), "rb") as file:
                changed = Changed(one["path"], file.read(), one["number"])

        def run_tests(child: Sender, first: int, one: dict[str, Any] = one, ids: list[str] = ids) -> int:
            numbers = {id_: number for number, id_ in enumerate(ids)}
            run(
                child,
                {"args": job["args"], "ids": ids[first:], "stop": one.get("stop")},
                started=lambda id_: jobs.progress.set(numbers.get(id_, -1)),
            )
            child.send({"t": "done", "job": one["number"]})
            return 0

        try:
            jobs.attempt(one["number"], run_tests, len(ids))
        finally:
            if changed is not None:
                changed.restore()
        if jobs.full():
            sender.send({"t": "full", "job": one["number"]})
            break
    return 0
