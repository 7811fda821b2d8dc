"""Control groups of this machine, version 2 or 1: limits and counters of a whole process tree.

Two levels, by session and by command: files that a command leaves in memory stay charged to the session's group when
the command's own group goes, and each command's counters start at zero.
"""

import contextlib
import functools
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.backends.owners import PREFIX, is_orphan, owned_name
from sandbox.protocol import Limits
from schemas.errors import SandboxError

# Length of one period of the processor's share, in microseconds: the kernel's own default.
_PERIOD = 100_000
# The smallest share that the kernel takes, in microseconds.
_LEAST_QUOTA = 1_000
_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct")
_NEEDED_V2 = frozenset({"cpu", "memory", "pids"})
_END_SECONDS = 10.0
_DELEGATE = "run under `systemd-run --user --scope -p Delegate=yes`, or as root"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command used."""

    out_of_memory: bool = False
    out_of_pids: bool = False
    cpu_seconds: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where this process may make groups: by controller in version 1, one folder in version 2."""

    version: str
    """`v2`, `v1` or `none`."""
    parents: Mapping[str, Path] = field(default_factory=dict)
    why_not: str = ""
    """Why there are none, and what to do."""


class Group:
    """The groups of one session."""

    def __init__(self, cgroups: Cgroups, name: str) -> None:
        self.cgroups = cgroups
        self.session = {controller: parent / name for controller, parent in cgroups.parents.items()}
        self.run = {controller: folder / "run" for controller, folder in self.session.items()}

    @property
    def folders(self) -> list[str]:
        """Return every folder that this session may leave behind, inner ones first."""
        return [str(folder) for folder in (*self.run.values(), *self.session.values())]

    @property
    def join(self) -> list[str]:
        """Return the files to which a process writes 0 to become a member."""
        return [str(folder / "cgroup.procs") for folder in self.run.values()]

    def open(self) -> None:
        """Make the session's groups."""
        for folder in self.session.values():
            _make(folder)
            if self.cgroups.version == "v2":
                _write(folder / "cgroup.subtree_control", "+cpu +memory +pids")

    def start(self, limits: Limits) -> None:
        """Make the groups of a command with its limits."""
        for folder in self.run.values():
            _make(folder)
        if self.cgroups.version == "v2":
            session, run = self.session["v2"], self.run["v2"]
            _write(session / "memory.max", str(limits.memory_bytes))
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                _write(session / "memory.swap.max", "0")
            _write(run / "pids.max", str(limits.pids))
        elif self.cgroups.version == "v1":
            self._limit_memory_v1(limits.memory_bytes)
            _write(self.run["pids"] / "pids.max", str(limits.pids))
        self.share(limits.cpus)

    def share(self, cpus: float) -> None:
        """Set a command's share of the processor, also while it runs."""
        quota = max(_LEAST_QUOTA, int(cpus * _PERIOD))
        if self.cgroups.version == "v2":
            _write(self.run["v2"] / "cpu.max", f"{quota} {_PERIOD}")
        elif self.cgroups.version == "v1":
            _write(self.run["cpu"] / "cpu.cfs_period_us", str(_PERIOD))
            _write(self.run["cpu"] / "cpu.cfs_quota_us", str(quota))

    def _limit_memory_v1(self, size: int) -> None:
        """Limit memory and, with it, memory and swap together, which may never be the smaller."""
        session = self.session["memory"]
        both = session / "memory.memsw.limit_in_bytes"
        if both.exists():
            _write(both, "-1")
        try:
            _write(session / "memory.limit_in_bytes", str(size))
        except OSError as error:
            raise SandboxError(f"files that commands left take more than the {size} bytes of memory allowed") from error
        if both.exists():
            _write(both, str(size))
        else:
            _write(session / "memory.swappiness", "0")

    def stop(self) -> Usage:
        """End what is left of a command, remove its groups and return what it used."""
        if self.cgroups.version == "none":
            return Usage()
        self.end()
        usage = self.usage()
        for folder in self.run.values():
            _remove(folder)
        return usage

    def end(self) -> None:
        """Kill every process of the command."""
        folder = next(iter(self.run.values()))
        deadline = time.monotonic() + _END_SECONDS
        with contextlib.suppress(OSError):  # cgroup.kill: Linux 5.14 and version 2 only
            _write(folder / "cgroup.kill", "1")
        while members := _members(folder):
            for member in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(member), signal.SIGKILL)
            if time.monotonic() > deadline:
                raise SandboxError(f"processes {', '.join(members)} do not end")
            time.sleep(0.005)

    def usage(self) -> Usage:
        """Return what a command has used so far."""
        if self.cgroups.version == "none":
            return Usage()
        if self.cgroups.version == "v2":
            run = self.run["v2"]
            peak = run / "memory.peak"
            return Usage(
                out_of_memory=_counter(run / "memory.events", "oom_kill") > 0,
                out_of_pids=_counter(run / "pids.events", "max") > 0,
                cpu_seconds=_counter(run / "cpu.stat", "usage_usec") / 1e6,
                memory_bytes=int(peak.read_text(encoding="ascii")) if peak.exists() else None,  # Linux 5.19
            )
        return Usage(
            out_of_memory=_counter(self.run["memory"] / "memory.oom_control", "oom_kill") > 0,
            out_of_pids=_counter(self.run["pids"] / "pids.events", "max") > 0,
            cpu_seconds=int((self.run["cpuacct"] / "cpuacct.usage").read_text(encoding="ascii")) / 1e9,
            memory_bytes=int((self.run["memory"] / "memory.max_usage_in_bytes").read_text(encoding="ascii")),
        )

    def close(self) -> None:
        """End what a command left when its holder was killed, and remove the session's groups."""
        if any(folder.exists() for folder in self.run.values()):
            self.end()
        for folder in (*self.run.values(), *self.session.values()):
            _remove(folder)


def remove_leftovers(cgroups: Cgroups) -> None:
    """End and remove groups whose session is gone: its owner and its holder were killed."""
    for controller, parent in cgroups.parents.items():
        for folder in parent.glob(f"{PREFIX}*"):
            if is_orphan(folder.name):
                group = Group(Cgroups(cgroups.version, {controller: parent}), folder.name)
                with contextlib.suppress(OSError):  # another run is at it
                    group.close()


@functools.cache
def find_cgroups() -> Cgroups:
    """Return where groups can be made, by making one."""
    mounts, own = _mounts(), _own_groups()
    why = "no control groups are mounted"
    if "v2" in mounts:
        try:
            return Cgroups("v2", {"v2": _parent_v2(mounts["v2"], own.get("v2", "/"))})
        except OSError as error:
            why = f"control groups of version 2 are not delegated to this process ({error}): {_DELEGATE}"
    try:
        parents = {name: _parent_v1(mounts[name], own[name]) for name in _CONTROLLERS}
    except KeyError as error:
        return Cgroups("none", why_not=why if "v2" in mounts else f"no control group of {error.args[0]} is mounted")
    except OSError as error:
        return Cgroups("none", why_not=f"control groups of version 1 may not be made by this process: {error}")
    return Cgroups("v1", parents)


def _parent_v1(mount: tuple[Path, str], own: str) -> Path:
    """Return this process's own group, so that limits that were set for us hold for our groups too."""
    folder = _folder(mount, own)
    trial = folder / owned_name()
    _make(trial)
    _remove(trial)
    return folder


def _parent_v2(mount: tuple[Path, str], own: str) -> Path:
    """Return a folder whose groups may have the controllers; OSError when there is none.

    A group with processes in it cannot hand controllers down. Root takes the top, which is exempt, or in a container
    moves the processes of the group into one below it; so do others whose own group was delegated to them.
    """
    candidates = [_folder(mount, own)]
    if os.getuid() == 0:
        candidates.insert(0, mount[0])
    failure: OSError | None = None
    for folder in candidates:
        try:
            if missing := _NEEDED_V2 - set((folder / "cgroup.controllers").read_text(encoding="ascii").split()):
                raise OSError(f"{folder} has no controller {', '.join(sorted(missing))}")
            if not set((folder / "cgroup.subtree_control").read_text(encoding="ascii").split()) >= _NEEDED_V2:
                _hand_down(folder)
            _parent_v1((folder, "/"), "/")
        except OSError as error:
            failure = error
        else:
            return folder
    raise failure or OSError("no control group")


def _hand_down(folder: Path) -> None:
    try:
        _write(folder / "cgroup.subtree_control", "+cpu +memory +pids")
    except OSError:
        leaf = folder / "postquem"
        _make(leaf)
        for member in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):
                _write(leaf / "cgroup.procs", member)
        _write(folder / "cgroup.subtree_control", "+cpu +memory +pids")


def _mounts() -> dict[str, tuple[Path, str]]:
    """Return mount point and root of each hierarchy: by controller in version 1, as `v2` in version 2."""
    found: dict[str, tuple[Path, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = before.split()[3:5]
        if kind == "cgroup2":
            found["v2"] = (Path(point), root)
        elif kind == "cgroup":
            found.update({name: (Path(point), root) for name in options.split(",") if name in _CONTROLLERS})
    return found


def _own_groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        number, names, path = line.split(":", 2)
        found.update(dict.fromkeys(names.split(",") if number != "0" else ["v2"], path))
    return found


def _folder(mount: tuple[Path, str], own: str) -> Path:
    point, root = mount
    return point / own.removeprefix(root if root != "/" else "").lstrip("/")


def _make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def _remove(folder: Path) -> None:
    """Remove a group; the kernel may need a moment to forget its last process."""
    deadline = time.monotonic() + _END_SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _members(folder: Path) -> list[str]:
    """Return the processes of a group; none when it is gone."""
    try:
        return (folder / "cgroup.procs").read_text(encoding="ascii").split()
    except OSError:
        return []


def _write(file: Path, text: str) -> None:
    """Write without creating: a file that is not there is an interface that the kernel does not have."""
    at = os.open(file, os.O_WRONLY)
    try:
        os.write(at, text.encode())
    finally:
        os.close(at)


def _counter(file: Path, name: str) -> int:
    """Return a counter of a file of lines `name number`."""
    for line in file.read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
