"""What an environment is: the packages and the interpreter that a repository's tests run with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sandbox.protocol import Bind
from schemas.execution import Environment

PYTHON_HOME = "/w/python"
"""Where an interpreter's prefix appears inside, so that an environment has the same bytes on every machine."""


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
    """`read`, `interpreter 3.12`, `lock`, `install`, `metadata`, `project`, `collect` ..."""
    ok: bool
    """It did what it should."""
    seconds: float
    """Elapsed time."""
    detail: str = ""
    """What it found, or the end of its log."""


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """An environment that stands ready on this machine. A SandboxSpec needs its `binds` and `env`."""

    environment: Environment
    """How it was built; released with the row."""
    binds: tuple[Bind, ...]
    """The environment (`/w/env`) and the interpreter's prefix, read-only."""
    env: Mapping[str, str]
    """Variables of every command that uses it, PATH and PYTHONHASHSEED among them."""
    python: str
    """Its interpreter, a path inside: `/w/env/bin/python`."""
    collected: tuple[str, ...] = ()
    """Node ids that the collection of the tree gave, in pytest's order."""
    stages: tuple[Stage, ...] = field(default=(), compare=False)
    """What was done, in order; empty when the environment came from the cache."""
