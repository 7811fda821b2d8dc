"""The default backend: bubblewrap, which needs neither a daemon nor root where user namespaces are allowed."""

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.backends.capture import Capture
from sandbox.holder.wire import HEADER, receive
from sandbox.protocol import HANDED_IN, SOURCE, Bind, Capabilities, Limits, Network, SandboxSpec
from schemas.errors import ConfigError, SandboxError
from schemas.execution import ExecResult, KilledBy

PREFIX = "postquem-box-"
# The user inside. Any number that is not root; 1000 is the first user of most systems.
INSIDE_ID = 1000
# Root becomes this user before anything runs: in the range of systemd's dynamic users, which belong to no account
# (systemd, "Users, Groups, UIDs and GIDs on systemd Systems": 61184 to 65519).
UNPRIVILEGED_ID = 61_998
HOSTNAME = "postquem"
_ETC = {
    "passwd": f"root:x:0:0:root:/:/bin/sh\nuser:x:{INSIDE_ID}:{INSIDE_ID}::/tmp:/bin/sh\n",
    "group": f"root:x:0:\nuser:x:{INSIDE_ID}:\n",
    "hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {HOSTNAME}\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# What programs need of the host's /etc and what holds no secret: the linker's cache, Debian's links to compilers.
_HOST_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/mime.types")
_HOST_ETC_INDEX = ("/etc/resolv.conf", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls", "/etc/ca-certificates")
_USR_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Runs the command; unlike bubblewrap itself a shell tells a missing command (127) from one that may not run (126).
_SHELL = ("/bin/sh", "-c", 'exec "$@"', "sh")
# bubblewrap takes 9,000 arguments (its MAX_ARGS); longer commands stand in a script.
_MANY_ARGUMENTS = 4_000
_SCRIPT = "/etc/command"
_NOT_STARTED = 1
# Appended, so that no package can take the place of a module of the standard library.
_HOLDER = "import sys; sys.path.append(sys.argv[1]); from sandbox.holder.main import main; main(int(sys.argv[2]))"
_ROOT = Path(__file__).resolve().parents[2]
# What the holder needs to clean up; it never waits for anything but processes that it just killed.
_END_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a session's files are on the host; nothing of it can be seen but by the session's own processes."""

    stage: Path

    def host_path(self, inside: str) -> tuple[str, str]:
        """Return root folder and path in it of a path inside that commands may write to."""
        for prefix, folder in ((SOURCE, "src"), (HANDED_IN, "disk/in"), ("/tmp", "disk/tmp")):  # noqa: S108 - inside
            if PurePosixPath(inside).is_relative_to(prefix) and inside != prefix:
                return folder, str(PurePosixPath(inside).relative_to(prefix))
        raise SandboxError(f"{inside} is not below {SOURCE}, {HANDED_IN} or /tmp")


class BubblewrapSession:
    """An open sandbox."""

    def __init__(self, spec: SandboxSpec, program: str, stage: Path) -> None:
        self.spec = spec
        self.program = program
        self.layout = Layout(stage)
        ours, theirs = socket.socketpair()
        self.connection = ours
        with theirs:
            self.process = subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", _HOLDER, str(_ROOT), str(theirs.fileno())),
                pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={},
                start_new_session=True,
            )  # fmt: skip
        # Without the right to look into a folder nobody but root can name what is in it: root's holder binds first.
        self.staged = os.getuid() == 0
        binds = [(str(bind.host.resolve()), bind.writable) for bind in spec.binds] if self.staged else []
        self.ask(
            {
                "op": "setup", "stage": str(stage), "source": str(spec.source.resolve()) if spec.source else None,
                "uid": UNPRIVILEGED_ID, "disk_bytes": spec.limits.disk_bytes, "overlay": True, "etc": _ETC,
                "groups": [], "binds": binds,
            }
        )  # fmt: skip

    def ask(self, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        """Send a request and return the answer."""
        try:
            self.send(request, data)
            return self.answer()
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox's holder is gone: {error!r}") from error

    def send(self, request: dict[str, Any], data: bytes = b"", descriptors: Sequence[int] = ()) -> None:
        """Send a request, with bytes behind it or open files."""
        body = json.dumps(request).encode()
        socket.send_fds(self.connection, [HEADER.pack(len(body))], list(descriptors))
        self.connection.sendall(body + data)

    def answer(self) -> dict[str, Any]:
        """Receive an answer."""
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
        for path, data in (files or {}).items():
            root, relative = self.layout.host_path(path)
            self.ask({"op": "put", "root": root, "path": relative, "size": len(data)}, data)
        limits = limits or self.spec.limits
        script = f"exec {shlex.join(argv)}\n" if len(argv) > _MANY_ARGUMENTS else ""
        request = {
            "op": "exec", "options": self._options({**self.spec.env, **(env or {})}, network, bool(script)),
            "argv": ["/bin/sh", _SCRIPT] if script else [*_SHELL, *argv], "script": script, "join": [], "kill": [],
            "disk_bytes": limits.disk_bytes, "rlimits": rlimits(limits),
        }  # fmt: skip
        capture = Capture(limits.output_bytes)
        try:
            started = time.monotonic()
            self.send(request, descriptors=capture.writers)
            capture.close_writers()
            ended = capture.wait(self.connection.fileno(), limits.wall_seconds)
            if ended != "done":
                self.send({"op": "kill"})
            answer = self.answer()
            wall = time.monotonic() - started
            capture.drain()
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox's holder is gone: {error!r}") from error
        finally:
            capture.close()
        return self._result(answer, capture, ended, wall)

    def _result(self, answer: dict[str, Any], capture: Capture, ended: str, wall: float) -> ExecResult:
        out, errors = capture.tails
        if answer["reported"] is None and answer["returncode"] == _NOT_STARTED and not answer["killed"]:
            raise SandboxError(f"the sandbox did not start: {errors.value()[-600:].decode(errors='replace')}")
        killed_by = KilledBy.NONE
        if ended == "timeout" and answer["killed"]:
            killed_by = KilledBy.TIMEOUT
        elif ended == "flood" and answer["killed"]:
            killed_by = KilledBy.OUTPUT
        elif answer["disk_full"]:
            killed_by = KilledBy.DISK
        code = answer["returncode"]
        return ExecResult(
            returncode=128 - code if code < 0 else code, stdout=out.value(), stderr=errors.value(), wall_seconds=wall,
            cpu_seconds=answer["cpu_seconds"], memory_bytes=None, killed_by=killed_by,
            truncated=out.truncated or errors.truncated,
        )  # fmt: skip

    def _options(self, env: Mapping[str, str], network: Network, script: bool) -> list[str]:
        stage = self.layout.stage
        options = [
            self.program, "--unshare-all", "--unshare-user", "--uid", str(INSIDE_ID), "--gid", str(INSIDE_ID),
            "--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", HOSTNAME,
            "--clearenv", "--json-status-fd", "{status}",
        ]  # fmt: skip
        if network is Network.INDEX:
            options.append("--share-net")
        options += system_binds(network)
        for name in (*_ETC, "command") if script else _ETC:
            options += ["--ro-bind", f"{stage}/etc/{name}", f"/etc/{name}"]
        options += ["--proc", "/proc", "--dev", "/dev", "--bind", f"{stage}/disk/shm", "/dev/shm"]  # noqa: S108 - inside
        options += ["--remount-ro", "/dev"]
        options += ["--bind", f"{stage}/disk/tmp", "/tmp", "--bind", f"{stage}/src", SOURCE]  # noqa: S108 - inside
        options += ["--ro-bind", f"{stage}/disk/in", HANDED_IN]
        for number, bind in enumerate(self.spec.binds):
            host = f"{stage}/binds/{number}" if self.staged else str(bind.host.resolve())
            options += ["--bind" if bind.writable else "--ro-bind", host, bind.inside]
        options += ["--remount-ro", "/", "--chdir", SOURCE]
        for name, value in env.items():
            options += ["--setenv", name, value]
        return [*options, "--"]

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file that commands left (Session.read)."""
        root, relative = self.layout.host_path(path)
        size = self.ask({"op": "read", "root": root, "path": relative, "max_bytes": max_bytes})["size"]
        return None if size < 0 else receive(self.connection, size)

    def reset(self) -> None:
        """Drop everything that was written (Session.reset)."""
        self.ask({"op": "reset"})

    def close(self) -> None:
        """End everything."""
        self.connection.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def rlimits(limits: Limits) -> dict[str, int]:
    """Return the resource limits that hold for every process by itself."""
    return {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits.disk_bytes}


def system_binds(network: Network) -> list[str]:
    """Return bubblewrap's options for the part of the host that programs need: never the root, no user's files."""
    options = ["--ro-bind", "/usr", "/usr"]
    for link in _USR_LINKS:
        if Path(link).is_symlink():
            options += ["--symlink", str(Path(link).readlink()), link]
        else:
            options += ["--ro-bind-try", link, link]
    for path in _HOST_ETC + (_HOST_ETC_INDEX if network is Network.INDEX else ()):
        options += ["--ro-bind-try", path, path]
    return options


@contextmanager
def stage_folder() -> Iterator[Path]:
    """Yield an empty folder that is locked as long as a process of this session lives; remove those of dead ones."""
    parent = Path("/tmp" if os.getuid() == 0 else tempfile.gettempdir())  # noqa: S108 - a folder of mode 700 in it
    for left in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.rmdir()
            finally:
                os.close(lock)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        if folder.exists():
            break
        os.close(lock)
    try:
        yield folder
    finally:
        os.close(lock)
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()


class BubblewrapBackend:
    """Sandboxes by bubblewrap."""

    name = "bubblewrap"

    def __init__(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            raise ConfigError("no sandbox: install bubblewrap (Debian: apt-get install bubblewrap)")
        self.program = program

    def probe(self) -> Capabilities:
        """Try what this machine can do (Backend.probe)."""
        with self.open(SandboxSpec()) as session:
            started = time.monotonic()
            session.exec(("true",))
            seconds = time.monotonic() - started
        version = subprocess.run(
            (self.program, "--version"), capture_output=True, text=True, check=False
        ).stdout.split()
        return Capabilities(
            backend=self.name, usable=True, version=version[-1] if version else "", enforced=(), missing={},
            cgroup="none", start_seconds=seconds,
        )  # fmt: skip

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[BubblewrapSession]:
        """Open a sandbox (Backend.open)."""
        check_binds(spec.binds)
        with stage_folder() as stage:
            session = BubblewrapSession(spec, self.program, stage)
            try:
                yield session
            finally:
                session.close()


def check_binds(binds: Sequence[Bind]) -> None:
    """Refuse what cannot be bound or would hide the sandbox's own folders."""
    for bind in binds:
        if not bind.host.exists():
            raise SandboxError(f"{bind.host} does not exist and cannot be bound at {bind.inside}")
        if bind.host.resolve() == Path("/"):
            raise SandboxError("the whole file system of the host is never bound")
