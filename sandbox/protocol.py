"""What a sandbox is: the one interface that every backend fulfils.

Paths inside are the same for every backend, so that nothing of the host shows in results: the repository's tree is
`/w/src` (private writable layer over a read-only original), its environment `/w/env`, files handed in below `/w/in`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from schemas.execution import ExecResult

SOURCE = "/w/src"
ENVIRONMENT = "/w/env"
HANDED_IN = "/w/in"


class Network(StrEnum):
    """What a command may reach."""

    OFF = "off"
    """Its own loopback only."""
    INDEX = "index"
    """The package index; for the resolver alone, which runs no code of a repository."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one command and everything it starts."""

    wall_seconds: float = 300.0
    """Elapsed time."""
    memory_bytes: int = 2 << 30
    """Memory of the whole tree, files in its temporary folders included."""
    pids: int = 256
    """Processes and threads."""
    cpus: float = 1.0
    """Share of the machine: 0.3 lets it have 30% of one processor."""
    disk_bytes: int = 1 << 30
    """What it may write."""
    output_bytes: int = 4 << 20
    """Standard output and error, each; more is dropped from the front."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder or file of the host that is visible inside."""

    host: Path
    """Where it is; must exist."""
    inside: str
    """Absolute path inside."""
    writable: bool = False
    """Whether commands may change it; only for folders made for that."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A sandbox for one repository."""

    source: Path | None = None
    """Tree that appears at `/w/src`; commands may write to it, the original never changes."""
    binds: tuple[Bind, ...] = ()
    """What else is visible, the environment and interpreter among it."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of commands; nothing of the host's is inherited."""
    limits: Limits = field(default_factory=Limits)
    """Limits where a command names none of its own."""


class Session(Protocol):
    """An open sandbox. What commands write to `/w/src` and `/tmp` stays until `reset`."""

    def exec(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        network: Network = Network.OFF,
    ) -> ExecResult:
        """Run a command in `/w/src` to its end, then end whatever it left running.

        `files` are written first: absolute paths inside (`/w/in/...`, `/w/src/...`) to contents. `env` is added to the
        sandbox's. SandboxError when the sandbox itself fails.
        """
        ...

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file below `/w/src` or `/tmp` as commands left it, its first bytes; null when there is none."""
        ...

    def reset(self) -> None:
        """Drop everything that was written."""
        ...


class Talk(Protocol):
    """A running command that answers requests."""

    def ask(self, request: bytes, end: bytes, limits: Limits) -> ExecResult | None:
        """Return what it printed up to and with `end`; None when it gave no answer, and is of no use any more."""
        ...


@runtime_checkable
class Talker(Protocol):
    """A session that can run such commands."""

    def talk(self, argv: Sequence[str], *, files: Mapping[str, bytes], limits: Limits) -> AbstractContextManager[Talk]:
        """Run a command that answers requests for as long as the context is open; nothing else runs meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can promise on this machine (`postquem doctor`)."""

    backend: str
    """Name of the backend."""
    usable: bool
    """A real command ran in it just now."""
    version: str
    """Version of the tool or engine."""
    enforced: tuple[str, ...]
    """What was seen to hold, of: network, memory, pids, cpu, disk, wall, read_only, environment."""
    missing: Mapping[str, str]
    """What it cannot promise here, and why."""
    cgroup: str
    """`v2`, `v1` or `none`."""
    start_seconds: float
    """Time of a command that does nothing."""

    @property
    def isolation(self) -> str:
        """Return how rows name the isolation: `bubblewrap+cgroup-v1`, or `unsafe-local`, which is none."""
        if self.backend == "unsafe-local":
            return self.backend
        return f"{self.backend}+{'rlimits' if self.cgroup == 'none' else f'cgroup-{self.cgroup}'}"


class Backend(Protocol):
    """A kind of sandbox."""

    name: str

    def probe(self) -> Capabilities:
        """Try what this machine can do, by running commands."""
        ...

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Session]:
        """Open a sandbox; leaving it ends every process and removes what was written."""
        ...
