"""Sessions whose commands a holder process starts (sandbox.holder): what bubblewrap and unsafe-local share."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.backends import cgroups
from sandbox.backends.capture import Capture
from sandbox.backends.owners import PREFIX, is_orphan, owned_name
from sandbox.backends.talks import Talk
from sandbox.holder.wire import HEADER, receive
from sandbox.protocol import HANDED_IN, SOURCE, Bind, Limits, Network, SandboxSpec
from schemas.errors import SandboxError
from schemas.execution import ExecResult, KilledBy

# Appended, so that no package can take the place of a module of the standard library.
_HOLDER = "import sys; sys.path.append(sys.argv[1]); from sandbox.holder.main import main; main(int(sys.argv[2]))"
_ROOT = Path(__file__).resolve().parents[2]
# What the holder needs to clean up; it never waits for anything but processes that it just killed.
_END_SECONDS = 20.0
# Runs the command; a shell tells a missing command (127) from one that may not run (126).
SHELL = ("/bin/sh", "-c", 'exec "$@"', "sh")
_KILLED = 137
# A single file may be a little larger than the disk, so that it is the disk that is seen to be full.
PAGE = 4_096
# Open files of a process: the same on every machine, since test suites close or poll all there may be.
OPEN_FILES = 4_096
# Preparing the largest trees; and what ending a command may take beyond its time.
_PATIENCE_SECONDS = 600.0
_KILL_SECONDS = 60.0
# What is not promised without control groups, and what holds instead.
ALONE = {
    "memory": "limited for each process, not for all together, and running out of it is not told apart",
    "cpu": "no share of the processor can be set",
}


def writable_place(inside: str) -> tuple[str, str]:
    """Return the holder's folder and the path in it of a path inside that commands may write to."""
    for prefix, folder in ((SOURCE, "src"), (HANDED_IN, "disk/in"), ("/tmp", "disk/tmp")):  # noqa: S108 - inside
        if PurePosixPath(inside).is_relative_to(prefix) and inside != prefix:
            return folder, str(PurePosixPath(inside).relative_to(prefix))
    raise SandboxError(f"{inside} is not below {SOURCE}, {HANDED_IN} or /tmp")


class HeldSession:
    """An open sandbox; subclasses say how the holder prepares it and how a command starts."""

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        name = owned_name()
        self.stage = stages() / name
        self.group = cgroups.Group(cgroups.find_cgroups(), name)
        self.connection, self._theirs = socket.socketpair()
        self.process: subprocess.Popen[bytes] | None = None

    def setup(self) -> dict[str, Any]:
        """Return what the holder has to prepare."""
        raise NotImplementedError

    def own_rlimits(self, limits: Limits) -> dict[str, int]:
        """Return further limits of every process by itself."""
        del limits
        return {}

    def command(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, network: Network) -> dict[str, Any]:
        """Return how the holder starts a command."""
        raise NotImplementedError

    @contextlib.contextmanager
    def filters(self) -> Iterator[list[int]]:
        """Yield open files that bubblewrap reads filters of system calls from."""
        yield []

    def start(self) -> None:
        """Start the holder and have it prepare everything."""
        self.stage.mkdir(mode=0o700)
        self.group.open()
        with self._theirs as theirs:
            self.process = subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", _HOLDER, str(_ROOT), str(theirs.fileno())),
                pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={},
                start_new_session=True,
            )  # fmt: skip
        source = str(self.spec.source.resolve()) if self.spec.source else None
        self.ask(
            {
                "op": "setup", "stage": str(self.stage), "groups": self.group.folders, "source": source,
                "disk_bytes": self.spec.limits.disk_bytes, **self.setup(),
            }
        )  # fmt: skip

    def ask(self, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        """Send a request and return the answer."""
        with _holder_gone():
            self.connection.settimeout(_PATIENCE_SECONDS)
            self._send(request, data)
            return self._answer()

    def _send(self, request: dict[str, Any], data: bytes = b"", descriptors: Sequence[int] = ()) -> None:
        body = json.dumps(request).encode()
        socket.send_fds(self.connection, [HEADER.pack(len(body))], list(descriptors))
        self.connection.sendall(body + data)

    def _answer(self) -> dict[str, Any]:
        size = HEADER.unpack(receive(self.connection, HEADER.size))[0]
        answer: dict[str, Any] = json.loads(receive(self.connection, size))
        if "error" in answer:
            raise SandboxError(f"the sandbox failed: {answer['error']}")
        return answer

    def exec(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        network: Network = Network.OFF,
    ) -> ExecResult:
        """Run a command (Session.exec)."""
        self._put(files or {})
        limits = limits or self.spec.limits
        request = self._begin(argv, {**self.spec.env, **(env or {})}, limits, network)
        capture = Capture(limits.output_bytes)
        try:
            with _holder_gone():
                answer, ended, wall = self._run(request, capture, limits)
            return result(answer, capture, ended, wall, self.group.stop())
        finally:
            capture.close()

    def handed(self, data: bytes) -> bytes:
        """Return what commands get of data that is handed in."""
        return data

    def _put(self, files: Mapping[str, bytes]) -> None:
        for path, given in files.items():
            root, relative = writable_place(path)
            data = self.handed(given) if path.startswith(f"{HANDED_IN}/") else given
            self.ask({"op": "put", "root": root, "path": relative, "size": len(data)}, data)

    def _begin(
        self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, network: Network, *, reads: bool = False
    ) -> dict[str, Any]:
        """Set the limits of a command and return the request that starts it."""
        self.group.start(limits)
        return {
            "op": "exec", "join": self.group.join, "disk_bytes": limits.disk_bytes, "input": reads,
            "rlimits": rlimits(limits, self.group.cgroups.version) | self.own_rlimits(limits),
            **self.command(argv, env, limits, network),
        }  # fmt: skip

    @contextlib.contextmanager
    def talk(self, argv: Sequence[str], *, files: Mapping[str, bytes], limits: Limits) -> Iterator[Talk]:
        """Run a command that answers requests for as long as the context is open; nothing else runs meanwhile."""
        self._put(files)
        request = self._begin(argv, self.spec.env, limits, Network.OFF, reads=True)
        with contextlib.ExitStack() as stack:
            talk = Talk(self.group, self.connection.fileno(), limits, self.handed)
            stack.callback(talk.close)
            with self.filters() as filters:
                self._send(request, descriptors=[*talk.streams, *filters])
            talk.started()
            stack.callback(self._end_talk)
            yield talk

    def _end_talk(self) -> None:
        with _holder_gone():
            self.connection.settimeout(_KILL_SECONDS)
            self._send({"op": "kill"})
            self._answer()
            self.group.stop()

    def _run(self, request: dict[str, Any], capture: Capture, limits: Limits) -> tuple[dict[str, Any], str, float]:
        started = time.monotonic()
        with self.filters() as filters:
            self._send(request, descriptors=[*capture.writers, *filters])
        capture.close_writers()
        ended = capture.wait(self.connection.fileno(), limits.wall_seconds)
        if ended != "done":
            self.connection.settimeout(_KILL_SECONDS)
            self._send({"op": "kill"})
        answer = self._answer()
        wall = time.monotonic() - started
        capture.drain()
        return answer, ended, wall

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file that commands left (Session.read)."""
        root, relative = writable_place(path)
        size = self.ask({"op": "read", "root": root, "path": relative, "max_bytes": max_bytes})["size"]
        with _holder_gone():
            return None if size < 0 else receive(self.connection, size)

    def reset(self) -> None:
        """Drop everything that was written (Session.reset)."""
        self.ask({"op": "reset"})

    def close(self) -> None:
        """End everything and remove it."""
        self._theirs.close()
        self.connection.close()
        if self.process is not None:
            try:
                self.process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.group.close()
        shutil.rmtree(self.stage, ignore_errors=True)  # the holder did, unless it was killed


@contextlib.contextmanager
def _holder_gone() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        raise SandboxError(f"the sandbox's holder is gone: {error!r}") from error


def result(answer: Mapping[str, Any], capture: Capture, ended: str, wall: float, usage: cgroups.Usage) -> ExecResult:
    """Put together what is known about a command. A limit that was hit stands before the time-out that it led to."""
    out, errors = capture.tails
    if not answer["started"]:
        raise SandboxError(f"the sandbox did not start: {errors.value()[-600:].decode(errors='replace').strip()}")
    causes = {
        KilledBy.OOM: usage.out_of_memory,
        KilledBy.PIDS: usage.out_of_pids,
        KilledBy.DISK: answer["disk_full"],
        KilledBy.OUTPUT: ended == "flood" and answer["killed"],
        KilledBy.TIMEOUT: ended == "timeout" and answer["killed"],
    }
    return ExecResult(
        returncode=_KILLED if answer["killed"] else answer["returncode"], stdout=out.value(), stderr=errors.value(),
        wall_seconds=wall, memory_bytes=usage.memory_bytes, truncated=out.truncated or errors.truncated,
        cpu_seconds=answer["cpu_seconds"] if usage.cpu_seconds is None else usage.cpu_seconds,
        killed_by=next((cause for cause, hit in causes.items() if hit), KilledBy.NONE),
    )  # fmt: skip


def rlimits(limits: Limits, version: str) -> dict[str, int]:
    """Return the limits of every process by itself; where there are control groups, they limit the whole tree."""
    alone = {"RLIMIT_DATA": limits.memory_bytes} if version == "none" else {}
    return {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits.disk_bytes + PAGE, "RLIMIT_NOFILE": OPEN_FILES, **alone}


def stages() -> Path:
    """Return the folder of the sessions' folders: one that an unprivileged user can pass through."""
    return Path("/tmp" if os.getuid() == 0 else tempfile.gettempdir())  # noqa: S108 - folders of mode 700 in it


def remove_leftovers() -> None:
    """Remove what killed runs left: their folders, and groups with whatever still runs in them."""
    cgroups.remove_leftovers(cgroups.find_cgroups())
    for left in stages().glob(f"{PREFIX}*"):
        if is_orphan(left.name):
            shutil.rmtree(left, ignore_errors=True)  # its holder may be at it, or it is another user's


def check_binds(binds: Sequence[Bind]) -> None:
    """Refuse what cannot be bound."""
    for bind in binds:
        if not bind.host.exists():
            raise SandboxError(f"{bind.host} does not exist and cannot be bound at {bind.inside}")
        if bind.host.resolve() == Path("/"):
            raise SandboxError("the whole file system of the host is never bound")
