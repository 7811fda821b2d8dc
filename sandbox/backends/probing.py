"""Tries what a sandbox keeps its promises about, by commands that break them (`postquem doctor`)."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from sandbox.protocol import Capabilities, Limits, SandboxSpec, Session
from schemas.execution import ExecResult, KilledBy

Open = Callable[[SandboxSpec], AbstractContextManager[Session]]

_PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_MIB = 1 << 20
# A command that does nothing is timed so many times; the median counts.
_STARTS = 5
_INTERFACES = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"


def _memory(session: Session) -> bool:
    result = session.exec(
        ("sh", "-c", "head -c 96M /dev/zero | tail -c 96M | wc -c; exit 0"), limits=Limits(20.0, 48 * _MIB)
    )
    return result.stdout.strip() != b"100663296"


def _pids(session: Session) -> bool:
    script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 9 & done; echo all"
    return session.exec(("sh", "-c", script), limits=Limits(5.0, pids=12)).stdout.strip() != b"all"


def _cpu(session: Session) -> bool:
    result = session.exec(("sh", "-c", "while :; do :; done"), limits=Limits(0.8, cpus=0.25))
    return 0 < result.cpu_seconds < 0.5


def _disk(open_session: Open) -> bool:
    script = "head -c 8M /dev/zero > {}/1; head -c 8M /dev/zero > {}/2; cat {}/1 {}/2 | wc -c"
    with open_session(SandboxSpec(env=_PATH, limits=Limits(20.0, disk_bytes=12 * _MIB))) as session:
        for folder in ("/tmp", "/w/src", "/dev/shm"):  # noqa: S108 - inside
            result = session.exec(("sh", "-c", script.replace("{}", folder)))
            session.reset()
            if int(result.stdout or b"0") > 12 * _MIB:
                return False
    return True


def _wall(session: Session) -> bool:
    result = session.exec(("sleep", "9"), limits=Limits(0.2))
    return result.killed_by is KilledBy.TIMEOUT and result.wall_seconds < 5


def _network(session: Session) -> bool:
    return session.exec(("sh", "-c", _INTERFACES)).stdout.split() == [b"lo"]


def _read_only(session: Session) -> bool:
    script = (
        "for f in /x /usr/x /etc/x /etc/passwd /w/x /w/in/x /dev/x; do (: >> $f) 2>/dev/null && echo $f; done; exit 0"
    )
    return session.exec(("sh", "-c", script)).stdout == b""


def _environment(session: Session) -> bool:
    names = {line.partition(b"=")[0] for line in session.exec(("env",)).stdout.splitlines()}
    return b"PATH" in names and names <= {b"PATH", b"PWD", b"TMPDIR"}


_PROBES: dict[str, Callable[[Session], bool]] = {
    "network": _network,
    "memory": _memory,
    "pids": _pids,
    "cpu": _cpu,
    "wall": _wall,
    "read_only": _read_only,
    "environment": _environment,
}


def probe_limits(
    open_session: Open, skip: frozenset[str] = frozenset()
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """Return which promises held, which did not, and the median time of a command that does nothing.

    Those in `skip` are not tried: a backend without a limit would do harm.
    """
    with open_session(SandboxSpec(env=_PATH)) as session:
        times = []
        for _ in range(_STARTS):
            started = time.monotonic()
            _succeed(session.exec(("true",)))
            times.append(time.monotonic() - started)
        held = [name for name, holds in _PROBES.items() if name not in skip and holds(session)]
    if "disk" not in skip and _disk(open_session):
        held.append("disk")
    failed = [name for name in (*_PROBES, "disk") if name not in held]
    return tuple(held), tuple(failed), sorted(times)[_STARTS // 2]


def _succeed(result: ExecResult) -> None:
    if result.returncode != 0:
        raise OSError(f"a command that does nothing failed: {result.stderr[-300:].decode(errors='replace')}")


def unusable(backend: str, why: str, version: str = "") -> Capabilities:
    """Return that a backend cannot be used, and why."""
    words = version.split()
    return Capabilities(
        backend=backend, usable=False, version=words[-1] if words else "", enforced=(), missing={"usable": why},
        cgroup="none", start_seconds=0.0,
    )  # fmt: skip
