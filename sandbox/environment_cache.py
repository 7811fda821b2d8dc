"""Keeps built environments and downloaded packages below the workspace, between runs and among processes.

    environments/built/<key>/      one environment, complete: record.json, env/, and source/ where its build made files
    environments/building/<key>/   one that is being built, or that a killed run left
    environments/locks/<key>       exclusively locked while it is built or removed, shared while it is used
    environments/uv/               uv's cache

All of it can be deleted while nothing runs.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.environment import Hold

_RECORD = "record.json"
_SIZE = "size"
_UV_LOCK = "uv"
# Downloads get half of the room: each is there twice, in uv's cache and as a copy in an environment.
_UV_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Entry:
    """The place of one environment."""

    key: str
    """What it is made from, as a digest."""
    folder: Path
    """Where it is or will be."""
    building: Path
    """Where it is made."""

    def read(self) -> dict[str, Any] | None:
        """Return its record; null when there is none."""
        try:
            record: dict[str, Any] = json.loads((self.folder / _RECORD).read_bytes())
        except (OSError, ValueError):
            return None
        os.utime(self.folder / _RECORD)
        return record

    def start(self) -> Path:
        """Return the empty folder to build in."""
        shutil.rmtree(self.building, ignore_errors=True)
        self.building.mkdir(parents=True)
        return self.building

    def finish(self, record: dict[str, Any]) -> None:
        """Put what was built in its place, whole."""
        (self.building / _SIZE).write_text(str(size_of(self.building)), encoding="ascii")
        (self.building / _RECORD).write_text(json.dumps(record, sort_keys=True), encoding="utf-8")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.building.rename(self.folder)


@dataclass(frozen=True, slots=True)
class Found:
    """What was built under a key."""

    record: dict[str, Any]
    """What its builder wrote of it."""
    folder: Path
    """Where it is."""
    hold: Hold
    """Keeps it there."""


class EnvironmentCache:
    """The folder `environments/` of a workspace."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root.resolve()
        self.max_bytes = max_bytes

    @property
    def uv(self) -> Path:
        """Return uv's cache folder."""
        return self.root / "uv"

    def find(self, key: str) -> Found | None:
        """Return what was built under a key, held; null when nothing was. Waits while another process builds it."""
        descriptor = self._lock(key, fcntl.LOCK_SH)
        record = self._entry(key).read()
        if record is None:
            os.close(descriptor)
            return None
        return Found(record, self._entry(key).folder, Hold(descriptor))

    @contextmanager
    def making(self, key: str) -> Iterator[Entry]:
        """Yield the place of an environment, for this process alone, with uv's cache held.

        Another process may have been quicker: its record is there then. What is not finished is removed.
        """
        self._sweep()
        descriptor = self._lock(key, fcntl.LOCK_EX)
        packages = self._lock(_UV_LOCK, fcntl.LOCK_SH)
        entry = self._entry(key)
        try:
            yield entry
        finally:
            shutil.rmtree(entry.building, ignore_errors=True)
            os.close(packages)
            os.close(descriptor)

    def _entry(self, key: str) -> Entry:
        return Entry(key, self.root / "built" / key, self.root / "building" / key)

    def _lock(self, name: str, how: int) -> int:
        """Return a descriptor of a lock file that was locked; BlockingIOError with LOCK_NB when another has it."""
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, how)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _sweep(self) -> None:
        """Remove what killed runs left."""
        for left in sorted((self.root / "building").glob("*")):
            self._remove(left.name, left)

    def _remove(self, lock: str, folder: Path) -> bool:
        """Remove a folder unless another process uses it."""
        try:
            descriptor = self._lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
        return True

    def evict(self) -> list[str]:
        """Remove the least recently used environments until the rest fits; return their keys.

        uv's cache goes as a whole when it has grown over its half. What another process uses stays.
        """
        if self.uv.is_dir() and size_of(self.uv) > self.max_bytes * _UV_SHARE:
            self._remove(_UV_LOCK, self.uv)
        entries = []
        for folder in sorted((self.root / "built").glob("*")):
            with suppress(OSError, ValueError):
                size = int((folder / _SIZE).read_text(encoding="ascii"))
                entries.append(((folder / _RECORD).stat().st_mtime_ns, folder, size))
        total = sum(size for _, _, size in entries)
        removed = []
        for _, folder, size in sorted(entries):
            if total <= self.max_bytes * (1 - _UV_SHARE):
                break
            if self._remove(folder.name, folder):
                total -= size
                removed.append(folder.name)
        return removed


def size_of(folder: Path) -> int:
    """Return the bytes on disk below a folder, links not followed; what vanishes meanwhile does not count."""
    total = 0
    stack = [os.fspath(folder)]
    while stack:
        with suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
