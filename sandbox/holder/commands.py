"""Starts commands and ends everything that they started."""

import contextlib
import json
import os
import resource
import select
import signal
import time
from typing import Any

from sandbox.holder.mounts import enter_user_namespace, make_dumpable

# How long a killed process tree may take to go: milliseconds, more on a machine that swaps.
END_SECONDS = 10.0


def become(request: dict[str, Any], streams: list[int], passed: dict[int, str], owner: tuple[int, int] | None) -> None:
    """Turn this forked process into the command; `passed` are descriptors whose names stand in the options.

    `streams` are its output, its errors and, where it has one, its input.
    """
    os.setsid()
    os.umask(0o022)
    for file in request["join"]:
        at = os.open(file, os.O_WRONLY)
        os.write(at, b"0")
        os.close(at)
    if owner:
        os.setgroups([])
        os.setgid(owner[1])
        os.setuid(owner[0])
        make_dumpable()  # or /proc/self would belong to root
        if "RLIMIT_NPROC" in request["rlimits"]:
            enter_user_namespace()
    for name, value in request["rlimits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (limit, limit))
    output, errors, *given = streams
    silence = given[0] if given else os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((silence, 0), (output, 1), (errors, 2)):
        os.dup2(descriptor, number)
    names = {}
    for descriptor, name in passed.items():
        os.set_inheritable(descriptor, name in request["options"])
        names[name] = str(descriptor)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    options = [names.get(option, option) for option in request["options"]]
    argv = [os.fsencode(argument) for argument in (*options, *request["argv"])]
    os.execve(argv[0], argv, request["env"])  # noqa: S606 - this is what a sandbox is for


def report_of(status: int) -> dict[str, Any]:
    """Return what bubblewrap reported about the command, once it and the first process inside are gone.

    With the first process of a process namespace the kernel ends all others.
    """
    report: dict[str, Any] = {}
    with open(status, "rb") as stream:
        for line in stream:
            with contextlib.suppress(ValueError):
                report.update(json.loads(line))
    with contextlib.suppress(OSError, KeyError):
        first = os.pidfd_open(report["child-pid"])
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(first, signal.SIGKILL)
        select.select([first], [], [], END_SECONDS)
        os.close(first)
    return report


def end_children() -> None:
    """Kill every child of this process, those that it adopts as their parents end included."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        children = children_of(os.getpid())
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not children:
                return
        time.sleep(0.002)


def children_of(process: int) -> list[int]:
    """Return the children of a process."""
    return [child for child, (parent, _) in processes().items() if parent == process]


def cpu_seconds_of(process: int) -> float:
    """Return the processor time of a process and of its living and awaited descendants."""
    found = processes()
    members, ticks = [process], 0
    for member in members:  # grows while it is gone through
        ticks += found.get(member, (0, 0))[1]
        members += [child for child, (parent, _) in found.items() if parent == member]
    return ticks / os.sysconf("SC_CLK_TCK")


def processes() -> dict[int, tuple[int, int]]:
    """Return parent and processor time, in clock ticks, of every process (proc(5), stat, fields 4 and 14 to 17)."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                found[int(name)] = (int(fields[1]), sum(int(field) for field in fields[11:15]))
    return found
