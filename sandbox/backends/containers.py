"""One container of a Docker-compatible engine, and commands in it."""

import contextlib
import resource
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sandbox.backends.capture import FLOOD, Tail
from sandbox.backends.cgroups import Usage
from sandbox.backends.held import OPEN_FILES, PAGE
from sandbox.holder.places import most_files
from sandbox.protocol import SOURCE, Limits
from schemas.errors import SandboxError

# The SDK's APIClient; docker publishes no types.
Api: TypeAlias = Any
# The first process below the engine's init, which takes in orphans: it ends every other process when told to, and says
# so. It needs no new process for that nor for waiting (at an input that stays open): a fork bomb leaves none to be had.
_FIRST = "trap 'kill -9 -1; echo ended' USR1; while :; do read -r line; done"
_FIRST_PIDS = 2
# Counters of the container: version 1 first, then version 2 of control groups; and what is left of its file systems.
_COUNTERS = """
cd /sys/fs/cgroup && for f in memory/memory.oom_control pids/pids.events cpuacct/cpuacct.usage \
  memory/memory.max_usage_in_bytes memory.events pids.events cpu.stat memory.peak; do
  [ -r $f ] && while read -r a b; do echo "$f $a $b"; done < $f
done
stat -f -c 'bytes %n %a
files %n %d' /w/src /tmp /dev/shm
"""
_PERIOD = 100_000
_LEAST_QUOTA = 1_000
# Frames of a stream without a terminal (Docker Engine API, "Attach to a container, Stream format").
_FRAME = struct.Struct(">BxxxI")
_STDERR = 2
# How often a silent command is looked at: the engine keeps a stream open while an orphan holds it.
_LOOK_SECONDS = 0.25
_END_SECONDS = 10.0
# Copying a large tree into the container.
_SCRIPT_SECONDS = 300.0
_MANY = 65_536


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command in a container did."""

    returncode: int
    ended: str
    """`done`, `timeout` or `flood`."""
    tails: tuple[Tail, Tail]
    wall_seconds: float


@dataclass(slots=True)
class Counters:
    """Readings of a container's counters."""

    values: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Counters":
        """Read what the container printed."""
        values = {}
        for line in text.splitlines():
            *name, value = line.split()
            if value.isdecimal():
                values[" ".join(name)] = int(value)
        return cls(values)

    def __bool__(self) -> bool:
        """Tell whether anything was read."""
        return bool(self.values)

    def first(self, *names: str) -> int | None:
        """Return the first of these counters that there is."""
        return next((self.values[name] for name in names if name in self.values), None)

    def usage_since(self, before: "Counters") -> Usage:
        """Return what was used between two readings; the peak only when it was reached in between."""

        def grown(*names: str) -> int:
            return (self.first(*names) or 0) - (before.first(*names) or 0)

        peak = self.first("memory.peak", "memory/memory.max_usage_in_bytes")
        known = peak is not None and peak > (before.first("memory.peak", "memory/memory.max_usage_in_bytes") or 0)
        nanoseconds = grown("cpuacct/cpuacct.usage")
        return Usage(
            out_of_memory=grown("memory.events oom_kill", "memory/memory.oom_control oom_kill") > 0,
            out_of_pids=grown("pids.events max", "pids/pids.events max") > 0,
            cpu_seconds=nanoseconds / 1e9 if nanoseconds else grown("cpu.stat usage_usec") / 1e6,
            memory_bytes=peak if known else None,
        )

    @property
    def disk_full(self) -> bool:
        """Tell whether nothing more could be written to one of the file systems."""
        return any(value == 0 for name, value in self.values.items() if name.startswith(("bytes ", "files ")))


def settings(limits: Limits, user: str, network: str, profile: str | None) -> dict[str, Any]:
    """Return what a container may do (arguments of HostConfig)."""
    from docker.types import Ulimit

    identity = ",".join(f"{key}={value}" for key, value in zip(("uid", "gid"), user.split(":"), strict=True))
    writable = f"rw,exec,nosuid,nodev,size={limits.disk_bytes},nr_inodes={most_files(limits.disk_bytes)}"
    most = {"nofile": (resource.RLIMIT_NOFILE, OPEN_FILES), "nproc": (resource.RLIMIT_NPROC, _MANY)}
    ulimits = [
        Ulimit(name=name, soft=_at_most(number, limit), hard=_at_most(number, limit))
        for name, (number, limit) in most.items()
    ]
    most_bytes = limits.disk_bytes + PAGE
    ulimits += [Ulimit(name=name, soft=size, hard=size) for name, size in (("core", 0), ("fsize", most_bytes))]
    security = ["no-new-privileges", *([f"seccomp={profile}"] if profile else [])]
    return {
        "network_mode": network, "read_only": True, "cap_drop": ["ALL"], "security_opt": security,
        "ipc_mode": "private", "init": True, "shm_size": limits.disk_bytes, "ulimits": ulimits,
        "log_config": {"type": "none"},
        "tmpfs": {"/tmp": f"{writable},mode=1777", SOURCE: f"{writable},mode=755,{identity}"},  # noqa: S108 - inside
        "mem_limit": limits.memory_bytes, "memswap_limit": limits.memory_bytes, "cpu_period": _PERIOD,
        "cpu_quota": quota(limits), "pids_limit": limits.pids + _FIRST_PIDS, "oom_kill_disable": False,
    }  # fmt: skip


def quota(limits: Limits) -> int:
    """Return the share of a processor in microseconds of each period."""
    return max(_LEAST_QUOTA, int(limits.cpus * _PERIOD))


def _at_most(number: int, limit: int) -> int:
    """Return a limit that this process may hand on: an engine without the right to raise limits fails otherwise."""
    hard = resource.getrlimit(number)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


class Container:
    """A container whose first process only waits."""

    def __init__(self, api: Api, address: str, name: str, limits: Limits) -> None:
        self.api = api
        self.address = address
        self.name = name
        self.limits = limits
        self.disk_bytes = limits.disk_bytes
        self.read = Counters()
        self.told: socket.socket | None = None

    def start(self, image: str, user: str, labels: Mapping[str, str], host: Mapping[str, Any]) -> None:
        """Create and start it; `host` is what it may do (`settings`)."""
        self.api.create_container(
            image, command=["/bin/sh", "-c", _FIRST], entrypoint=[], name=self.name, stdin_open=True,
            hostname="postquem" if host["network_mode"] == "none" else None, labels=labels, working_dir=SOURCE,
            host_config=self.api.create_host_config(**host), user=user,
        )  # fmt: skip
        path = f"/v{self.api.api_version}/containers/{self.name}/attach?stream=1&stdout=1"
        self.told, _ = _hijack(self.address, path, b"")
        self.api.start(self.name)

    def limit(self, limits: Limits) -> None:
        """Give the container other limits."""
        if limits.disk_bytes < self.disk_bytes:
            raise SandboxError("the backend docker limits the disk of a session, not further for one of its commands")
        changed = {"memory_bytes", "cpus", "pids"}
        if all(getattr(limits, name) == getattr(self.limits, name) for name in changed):
            return
        # The SDK's update knows no limit of processes; the request is the same (ContainerUpdate).
        answer = self.api.post(
            f"{self.api.base_url}/v{self.api.api_version}/containers/{self.name}/update",
            json={
                "Memory": limits.memory_bytes, "MemorySwap": limits.memory_bytes, "CpuPeriod": _PERIOD,
                "CpuQuota": quota(limits), "PidsLimit": limits.pids + _FIRST_PIDS,
            },
        )  # fmt: skip
        if not answer.ok:
            raise SandboxError(f"the engine cannot change limits: {answer.text.strip()}")
        self.limits = limits

    def run(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits) -> Finished:
        """Run a command to its end or until its time is over, then end everything that it started."""
        words = [f"{name}={value}" for name, value in env.items()]
        command = ["/bin/sh", "-c", 'exec env -i "$@"', "sh", *words, *argv]
        tails = (Tail(limits.output_bytes), Tail(limits.output_bytes))
        started = time.monotonic()
        identity = self.api.exec_create(self.name, command, workdir=SOURCE)["Id"]
        path = f"/v{self.api.api_version}/exec/{identity}/start"
        stream, first = _hijack(self.address, path, b'{"Detach": false, "Tty": false}')
        with stream:
            follower = _Follower(self.api, identity, stream, tails, first)
            ended = follower.follow(limits.wall_seconds, FLOOD * limits.output_bytes)
            wall = time.monotonic() - started
            if ended != "done":
                self.end_all()
                if follower.follow(_END_SECONDS, None) != "done":
                    self.api.kill(self.name)
                    raise SandboxError("the command did not end; the engine killed its container")
        return Finished(follower.returncode(), ended, tails, wall)

    def end_all(self) -> None:
        """Have the first process end every other."""
        self.api.kill(self.name, "USR1")
        if self.told is None:
            raise SandboxError("the container was not started")
        self.told.settimeout(_END_SECONDS)
        told = b""
        while b"ended\n" not in told:
            data = self.told.recv(1 << 16)
            if not data:
                raise SandboxError("the container's first process is gone")
            told += data

    def script(self, text: str, *arguments: str, output_bytes: int = 1 << 16) -> Finished:
        """Run a script of ours."""
        limits = Limits(wall_seconds=_SCRIPT_SECONDS, output_bytes=max(1, output_bytes))
        return self.run(("sh", "-c", text, "sh", *arguments), {"PATH": "/usr/bin:/bin"}, limits)

    def finish(self) -> tuple[Usage, bool]:
        """End what a command left running; return what was used since the last call, and whether the disk is full."""
        self.end_all()
        deadline = time.monotonic() + _END_SECONDS
        while True:
            try:
                printed = self.script(_COUNTERS).tails[0].value().decode()
            except SandboxError:
                printed = ""
            if now := Counters.parse(printed):
                break
            if time.monotonic() > deadline:
                raise SandboxError("the processes of a command do not end")
            time.sleep(0.1)  # those just killed still hold all the numbers there are
        before, self.read = self.read, now
        return now.usage_since(before), now.disk_full

    def remove(self) -> None:
        """Kill and remove it."""
        from docker.errors import NotFound

        if self.told is not None:
            self.told.close()
        with contextlib.suppress(NotFound):  # it could not be made
            self.api.remove_container(self.name, force=True, v=True)


def _hijack(address: str, path: str, body: bytes) -> tuple[socket.socket, bytes]:
    """Attach to a container or start a prepared command; return the connection and the first bytes of the stream.

    The SDK hands out the connection too, but without what it had read ahead, and keeps it open (Docker Engine API,
    "Attach to a container", "Start an exec instance").
    """
    head = (
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
    )
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.connect(address.removeprefix("unix://"))
        stream.sendall(head.encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = stream.recv(1 << 16)
            if not data:
                raise SandboxError(f"the engine did not start the command: {answer.decode(errors='replace')}")
            answer += data
        header, _, first = answer.partition(b"\r\n\r\n")
        if header.split()[1] not in {b"101", b"200"}:
            raise SandboxError(f"the engine did not start the command: {answer.decode(errors='replace')[-600:]}")
    except BaseException:
        stream.close()
        raise
    return stream, first


class _Follower:
    """Reads the output of a command in a container."""

    def __init__(self, api: Api, identity: str, stream: socket.socket, tails: tuple[Tail, Tail], first: bytes) -> None:
        self.api = api
        self.identity = identity
        self.stream = stream
        self.tails = tails
        self.pending = b""
        self._add(first)

    def follow(self, seconds: float, most: int | None) -> str:
        """Read until the command ended (`done`), time is over (`timeout`) or too much was printed (`flood`)."""
        deadline = time.monotonic() + seconds
        silent = 0
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.stream], [], [], min(left, _LOOK_SECONDS))[0]:
                if not self._read():
                    return "done"
                silent = 0
            elif not self.api.exec_inspect(self.identity)["Running"]:
                silent += 1
                if silent > 1:
                    return "done"
            if most is not None and sum(tail.total for tail in self.tails) > most:
                return "flood"
        return "timeout"

    def _read(self) -> bool:
        data = self.stream.recv(1 << 16)
        self._add(data)
        return bool(data)

    def _add(self, data: bytes) -> None:
        self.pending += data
        while len(self.pending) >= _FRAME.size:
            kind, size = _FRAME.unpack_from(self.pending)
            if len(self.pending) < _FRAME.size + size:
                break
            self.tails[kind == _STDERR].add(self.pending[_FRAME.size : _FRAME.size + size])
            self.pending = self.pending[_FRAME.size + size :]

    def returncode(self) -> int:
        """Return the exit code; the engine learns of it shortly after the stream ended."""
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline:
            state = self.api.exec_inspect(self.identity)
            if not state["Running"]:
                return int(state["ExitCode"])
            time.sleep(0.01)
        raise SandboxError("the engine does not tell how the command ended")
