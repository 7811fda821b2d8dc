"""A Docker engine for the tests: the one that answers, else dockerd started by hand; and an image without a registry.

The image is made of this machine's shell, some of its programs and their libraries; the interpreter is bound in.
"""

import contextlib
import ctypes
import fcntl
import io
import json
import os
import shutil
import signal
import socket as sockets
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException

from sandbox.uv import find_uv

PROGRAMS = (
    "cat", "chmod", "cp", "cut", "df", "dirname", "env", "false", "find", "getent", "grep", "head", "hostname", "id",
    "ln", "ls", "mkdir", "mkfifo", "mv", "od", "printf", "rm", "seq", "sh", "sleep", "stat", "tail", "touch", "tr",
    "true", "wc",
)  # fmt: skip
PREFIX = "postquem-engine-"
_START_SECONDS = 30


def libraries(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that programs and libraries load, the loader among them."""
    found = set()
    for file in files:
        listed = subprocess.run(("ldd", file), capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            name = line.split("=>")[-1].split()[0] if line.split("=>")[-1].split() else ""
            if name.startswith("/"):
                found.add(Path(name))
    return found


def root_archive() -> bytes:
    """Return the smallest root file system that the tests' commands run in, as a tar archive."""
    programs = {Path("/usr/bin") / name: Path(str(shutil.which(name))) for name in PROGRAMS}
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so"))
    ours = (Path(sys.executable).resolve(), find_uv())
    loaded = libraries([*(path.resolve() for path in programs.values()), *ours, *modules])
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for name in ("tmp", "proc", "sys", "dev", "etc", "w"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        archive.addfile(link)
        for inside, path in programs.items():
            archive.add(path.resolve(), str(inside).lstrip("/"))
        for path in sorted(loaded):
            if not path.is_relative_to(Path(sys.base_prefix)):
                archive.add(path.resolve(), str(path).lstrip("/"))
    return output.getvalue()


def answers(socket: str) -> bool:
    """Tell whether an engine answers at a socket."""
    with sockets.socket(sockets.AF_UNIX) as trial:
        try:
            trial.connect(socket.removeprefix("unix://"))
        except OSError:
            return False
    try:
        with contextlib.closing(docker.DockerClient(base_url=socket, timeout=5)) as client:
            return bool(client.ping())
    except DockerException:  # it is starting, or about to end
        return False


def _end_with_parent() -> None:
    """Have the kernel end the daemon should the tests be killed (PR_SET_PDEATHSIG of <linux/prctl.h>)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def start_engine(folder: Path) -> tuple[str, "subprocess.Popen[bytes]"]:
    """Start dockerd with its own folders and without a network; OSError with the reason when it cannot be."""
    program = shutil.which("dockerd")
    if program is None or os.getuid() != 0:
        raise OSError("dockerd is not installed" if program is None else "dockerd needs root")
    folder.mkdir(parents=True)
    socket = f"unix://{folder}/docker.sock"
    with (folder / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(
            (
                program, "--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid",
                "--host", socket, "--iptables=false", "--ip6tables=false", "--bridge=none",
            ),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_end_with_parent,
        )  # fmt: skip
    deadline = time.monotonic() + _START_SECONDS
    while not answers(socket):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            told = (folder / "dockerd.log").read_text().strip().rpartition("\n")[2]
            remove_engines()
            raise OSError(f"dockerd did not start: {told}")
        time.sleep(0.1)
    return socket, process


def remove_engines() -> None:
    """Remove the folders of engines that have ended, also of tests that were killed; dockerd leaves mounts in them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        running = folder / "pid"
        if running.exists() and Path("/proc", running.read_text().strip()).exists():
            continue
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in sorted((mount for mount in mounts if Path(mount).is_relative_to(folder)), reverse=True):
            subprocess.run(("umount", "--lazy", mount), check=True)
        shutil.rmtree(folder, ignore_errors=True)


def import_image(socket: str) -> str:
    """Import the small root and return the image's id."""
    with contextlib.closing(docker.DockerClient(base_url=socket)) as client:
        status = client.api.import_image_from_data(root_archive(), repository=f"postquem-tests-{os.getpid()}")
    return str(json.loads(status)["status"])


class SharedEngine:
    """One engine with one image for all processes of a test run, by a file that they lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "engine.json"
        self.process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[dict[str, Any]]:
        """Yield the shared state, and store what became of it."""
        with (self.folder / "engine.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads(self.state.read_text()) if self.state.exists() else {"users": 0}
            yield state
            self.state.write_text(json.dumps(state))

    def enter(self) -> tuple[str, str]:
        """Return socket and image, started and imported by whoever comes first."""
        with self.locked() as state:
            if state.get("failure"):
                raise OSError(state["failure"])
            if state["users"] == 0:
                try:
                    self._start(state)
                except OSError as error:
                    state["failure"] = str(error)
                    self.state.write_text(json.dumps(state))
                    raise
            state["users"] += 1
            return state["socket"], state["image"]

    def _start(self, state: dict[str, Any]) -> None:
        socket = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        if not answers(socket):
            remove_engines()
            socket, self.process = start_engine(Path(tempfile.gettempdir()) / f"{PREFIX}{os.getpid()}")
        state |= {"socket": socket, "image": import_image(socket), "starter": os.getpid()}

    def leave(self) -> None:
        """Stop the engine, or take the image away from it, when the last user is gone; the starter waits for that."""
        with self.locked() as state:
            state["users"] -= 1
            starter = state["starter"] == os.getpid()
        while starter:
            with self.locked() as state:
                if state["users"] == 0:
                    with contextlib.closing(docker.DockerClient(base_url=state["socket"])) as client:
                        client.images.remove(state["image"], force=True)
                    break
            time.sleep(0.1)
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            remove_engines()
