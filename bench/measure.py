"""Measure a function in a process of its own: CPU seconds with its children, wall seconds, peak memory."""

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run cost."""

    name: str
    """Who ran."""
    result: int
    """What the function returned: how many things it found."""
    cpu: float
    """CPU seconds, user and system, children included."""
    wall: float
    """Wall seconds."""
    peak_mib: float
    """Largest resident set of the process or one of its children, MiB."""


def measure(name: str, function: Callable[..., int], *args: Any) -> Measurement | None:  # noqa: ANN401 - passed through
    """Run function(*args) in a fresh process and return its cost; None when it failed (it printed why)."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, function, args))
    process.start()
    sender.close()
    try:
        result, cpu, wall, peak = receiver.recv()
    except EOFError:
        print(f"  {name:>12}: failed on this input, see its error above")
        return None
    process.join()
    return Measurement(name, result, cpu, wall, peak)


def own_cpu() -> float:
    """Return the CPU seconds of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _run(sender: Connection, function: Callable[..., int], args: Sequence[Any]) -> None:
    started = time.perf_counter()
    result = function(*args)
    wall = time.perf_counter() - started
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    sender.send((result, cpu, wall, max(own.ru_maxrss, children.ru_maxrss) / 1024))


def tree_usage() -> tuple[float, float]:
    """Return CPU seconds of this process and all that live below it, and the sum of their peak memories, MiB.

    For a pool whose workers are children of a fork server, which no parent's account has. Linux only.
    """
    parents = {}
    for name in (path.name for path in Path("/proc").iterdir() if path.name.isdigit()):
        fields = _stat(name)
        if fields:
            parents[name] = fields[1]
    below, found = {str(os.getpid())}, 0
    while found < len(below):
        found = len(below)
        below |= {name for name, parent in parents.items() if parent in below}
    ticks = sum(sum(int(value) for value in (_stat(name) or ["0"] * 14)[11:13]) for name in below)
    return ticks / os.sysconf("SC_CLK_TCK"), sum(_peak(name) for name in below)


def _stat(name: str) -> list[str]:
    """Return a process's state, parent and further fields of proc(5), nothing when it is gone."""
    try:
        return Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
    except OSError:
        return []


def _peak(name: str) -> float:
    try:
        lines = Path(f"/proc/{name}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
