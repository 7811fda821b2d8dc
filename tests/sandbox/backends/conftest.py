"""Sandboxes of every kind, and a small tree to run commands in."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.backends import open_backend
from sandbox.protocol import Backend, Limits, SandboxSpec, Session
from schemas.execution import BackendName, RealCodeConfig

# What a command that does nothing wrong never comes near.
LIMITS = Limits(wall_seconds=20, memory_bytes=256 << 20, pids=64, disk_bytes=32 << 20, output_bytes=64 << 10)


@pytest.fixture(scope="session")
def bubblewrap() -> Backend:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    return open_backend(RealCodeConfig(backend=BackendName.BUBBLEWRAP))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a folder, a file, a script and a symbolic link that leads out of it."""
    folder = tmp_path / "tree"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.txt").write_text("original\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "outside").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def session(bubblewrap: Backend, tree: Path) -> Iterator[Session]:
    spec = SandboxSpec(source=tree, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, limits=LIMITS)
    with bubblewrap.open(spec) as opened:
        yield opened
