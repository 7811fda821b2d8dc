"""Sandboxes of every kind, and a small tree to run commands in.

A session is shared by the tests of a module, which start from `reset`; opening one is what takes the time.
"""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.backends import open_backend
from sandbox.backends.cgroups import find_cgroups
from sandbox.protocol import Backend, Bind, Limits, SandboxSpec, Session
from schemas.execution import BackendName, ExecResult, RealCodeConfig
from tests.sandbox.backends.engine import SharedEngine

# What a command that does nothing wrong never comes near.
LIMITS = Limits(wall_seconds=20, memory_bytes=256 << 20, pids=64, disk_bytes=32 << 20, output_bytes=64 << 10)
PYTHON = "/w/python/bin/python3"
# An interpreter with a shared library looks for it where it was installed.
PYTHON_ENV = {"LD_LIBRARY_PATH": "/w/python/lib"}
ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}

everywhere = pytest.mark.parametrize("box", ["bubblewrap", "docker", "unsafe-local"], indirect=True)
contained = pytest.mark.parametrize("box", ["bubblewrap", "docker"], indirect=True)


@dataclass(frozen=True)
class Box:
    """A backend and what its sandboxes need to run the tests' interpreter."""

    backend: Backend
    binds: tuple[Bind, ...]

    def spec(self, tree: Path | None = None, *binds: Bind, limits: Limits = LIMITS) -> SandboxSpec:
        return SandboxSpec(source=tree, binds=(*self.binds, *binds), env=ENV, limits=limits)


@pytest.fixture(scope="session")
def interpreter() -> Bind:
    return Bind(Path(sys.base_prefix), "/w/python")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start an engine where none answers, and import an image into it."""
    base = tmp_path_factory.getbasetemp()
    engine = SharedEngine(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
    try:
        socket, image = engine.enter()
    except OSError as error:
        pytest.skip(f"no container engine can be had: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", socket)
        yield image
    engine.leave()


@functools.cache
def why_no_bubblewrap() -> str:
    """Return why this machine can run no sandbox of bubblewrap's, by the simplest one; empty when it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    simplest = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    for command in [["unshare", "--mount", "true"], simplest] if os.getuid() == 0 else [simplest]:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            return f"bubblewrap cannot work here: {result.stderr.strip()}"
    return ""


@pytest.fixture(scope="module")
def box(request: pytest.FixtureRequest, interpreter: Bind) -> Box:
    name = BackendName(request.param)
    if name is BackendName.BUBBLEWRAP and (why := why_no_bubblewrap()):
        pytest.skip(why)
    image = request.getfixturevalue("image") if name is BackendName.DOCKER else ""
    return Box(open_backend(RealCodeConfig(backend=name, image=image)), (interpreter,))


@pytest.fixture
def groups(box: Box) -> None:
    """Skip where nothing limits a whole process tree: a bomb would do harm. What holds then is tested apart."""
    found = find_cgroups()
    if found.version == "none" and box.backend.name != "docker":
        pytest.skip(f"no control groups: {found.why_not}")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with a folder, a file, a script and a symbolic link that leads out of it."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "pkg").mkdir()
    (folder / "pkg" / "a.txt").write_text("original\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "outside").symlink_to("/etc/passwd")
    return folder


@pytest.fixture(scope="module")
def opened(box: Box, tree: Path) -> Iterator[Session]:
    with box.backend.open(box.spec(tree)) as session:
        yield session


@pytest.fixture
def session(opened: Session) -> Session:
    opened.reset()
    return opened


def sh(session: Session, script: str, **options: object) -> tuple[int, str, str]:
    result = session.exec(("sh", "-c", script), **options)  # type: ignore[arg-type]
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def python(session: Session, script: str, *arguments: str, limits: Limits | None = None) -> ExecResult:
    return session.exec((PYTHON, "-I", "-c", script, *arguments), env=PYTHON_ENV, limits=limits)


def running() -> dict[int, tuple[int, str]]:
    """Return the parent and the command line of every process of this machine."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                found[int(folder.name)] = (parent, " ".join(words).strip())
    return found
