"""A small environment for sandboxes in tests: the running Python and pytest, nothing else."""

import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

from sandbox.environment import BuiltEnvironment
from sandbox.protocol import Bind, SandboxSpec
from schemas.execution import Environment

PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def make_environment(folder: Path) -> BuiltEnvironment:
    """Make an environment in an empty folder: pytest and what it needs, from the packages that run this test."""
    site = folder / "site"
    for package in PACKAGES:
        found = distribution(package)
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(found.locate_file(file)), target)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return BuiltEnvironment(
        environment=Environment(
            python=version,
            lock="",
            index_date="",
            requirements=(),
            guessed=(),
            pytest_args=("-p", "no:cacheprovider"),
            isolation="bubblewrap",
        ),
        source=folder,
        binds=(Bind(folder, "/w/env"), Bind(Path(sys.base_prefix), "/w/python")),
        env={
            "PATH": "/w/python/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": "/w/python/lib",
            "PYTHONPATH": "/w/env/site",
            "PYTHONHASHSEED": "0",
            "HOME": "/tmp",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        },
        python=f"/w/python/bin/python{version}",
    )


def spec_for(built: BuiltEnvironment, source: Path, files: Mapping[str, str | bytes]) -> SandboxSpec:
    """Write a repository's files below `source` and return a sandbox for it."""
    for path, content in files.items():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return SandboxSpec(source=source, binds=built.binds, env=built.env)
