"""What an environment is: the packages and the interpreter that a repository's tests run with."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sandbox.protocol import ENVIRONMENT, SOURCE, Bind
from schemas.execution import Environment

PYTHON_HOME = "/w/python"
"""Where an interpreter's prefix appears inside, so that an environment has the same bytes on every machine."""
PYTHON = f"{ENVIRONMENT}/bin/python"
"""The environment's interpreter inside."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """Which commit's tree is to run."""

    repo: str
    """owner/name."""
    commit_id: str
    """The commit."""
    date: datetime
    """When it was committed, UTC: with an index cut, packages are those of that day."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of building, for a reader and the side table of times; not released."""

    name: str
    """`lock`, `install`, `build`, `compile`, `collect`, with the interpreter: `3.12: lock`."""
    ok: bool
    """It did what it should."""
    seconds: float
    """Elapsed time."""
    detail: str = ""
    """What it found, or the end of its log."""


class Hold:
    """A lock on a built environment, which keeps it from being removed as long as this object lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Become nothing in another process: the lock stays where it was taken."""
        return type(None), ()


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """An environment that stands ready on this machine. A SandboxSpec needs its `source`, `binds` and `env`."""

    environment: Environment
    """How it was built; released with the row."""
    source: Path
    """Tree to execute: the exported one, or a copy that also holds what its build made (compiled extensions)."""
    binds: tuple[Bind, ...]
    """The environment (`/w/env`) and the interpreter, read-only."""
    env: Mapping[str, str]
    """Variables of every command that uses it, PATH and PYTHONHASHSEED among them."""
    python: str = PYTHON
    """Its interpreter, a path inside."""
    collected: tuple[str, ...] = ()
    """Node ids of the tests that a run with `environment.pytest_args` collects, in pytest's order."""
    stages: tuple[Stage, ...] = field(default=(), compare=False)
    """What was done, in order; empty when the environment came from the cache."""
    hold: Hold | None = field(default=None, compare=False, repr=False)
    """Keeps the environment on disk."""


def run_variables(at: SourceCommit, python_path: Sequence[str]) -> dict[str, str]:
    """Return the variables of test runs: everything that tests commonly depend on has one value everywhere."""
    variables = {
        "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": ENVIRONMENT,
        "HOME": "/tmp",  # noqa: S108 - a path inside, the sandbox's own
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "80",
        "LINES": "24",
        "PYTHONHASHSEED": "0",
        # A file that is replaced within a second by one of the same size would run with the old byte code.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "SOURCE_DATE_EPOCH": str(int(at.date.timestamp())),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMEXPR_NUM_THREADS": "1",
    }
    if python_path:
        variables["PYTHONPATH"] = ":".join(SOURCE if path == "." else f"{SOURCE}/{path}" for path in python_path)
    return variables
