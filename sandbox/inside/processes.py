"""Processes of a sandbox: what they cost, and ending all that one left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator

# prctl(2) of Linux.
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


def _prctl(option: int, value: int) -> bool:
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False  # no Linux: nothing that tested code could open, or no such protection


def hide() -> bool:
    """Keep other processes of this user from opening our descriptors and memory; False where that cannot be done."""
    return _prctl(_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Become the parent of whatever our descendants leave behind."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat behind the name: state, parent, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].split()


def cpu_seconds(pid: int) -> float | None:
    """Return user and system time of a process and its ended children; None when it cannot be told."""
    fields = _stat(pid)
    return None if fields is None else sum(int(field) for field in fields[11:15]) / _TICKS


def children(parent: int) -> Iterator[int]:
    """Yield the children of a process, ended ones too until they are collected."""
    try:
        for thread in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                yield from map(int, file.read().split())
    except OSError:  # a kernel without such lists: look at every process
        for name in os.listdir("/proc"):
            fields = _stat(int(name)) if name.isdigit() else None
            if fields is not None and int(fields[1]) == parent:
                yield int(name)


def kill(pid: int) -> None:
    """Kill a process, if it still is there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def end_children(known: frozenset[int]) -> int:
    """Kill all children but the known ones, those that are handed to us meanwhile too, and return how many."""
    killed: set[int] = set()
    deadline = time.monotonic() + 5  # a process in an uninterruptible wait must not stop everything
    while time.monotonic() < deadline:
        rest = [pid for pid in children(os.getpid()) if pid not in known]
        if not rest:
            break
        for pid in rest:
            kill(pid)
            killed.add(pid)
        for pid in rest:
            wait(pid)
        time.sleep(0.002)
    return len(killed)


def wait(pid: int) -> None:
    """Collect a child if it has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def reap() -> dict[int, int]:
    """Collect ended children; return their wait statuses by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
