"""No sandbox: commands run as the user who started Postquem, on the host's files and network. Only when asked for.

The tree is copied, the environment is clean, and every process is ended, by control groups where there are some. There
are no paths of its own: `/w/...` and `/tmp` in arguments, environment and files handed in below `/w/in` are rewritten
to the folders of the session. What an environment remembers of `/w/src` (an editable install) holds in that session
only.
"""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sandbox.backends.cgroups import find_cgroups
from sandbox.backends.held import SHELL, HeldSession, check_binds, remove_leftovers
from sandbox.backends.probing import probe_limits, unusable
from sandbox.protocol import HANDED_IN, SOURCE, Capabilities, Limits, Network, SandboxSpec
from schemas.errors import SandboxError

NAME = "unsafe-local"
_NOT_PROMISED = {
    "network": "commands reach the network of this machine",
    "read_only": "commands may change every file that you may change, also below the sandbox's own binds",
    "disk": "commands may fill the disk; only single files are limited",
    "host": "commands see the files, processes and services of this machine",
}
_ALONE = {
    "memory": "limited for each process, not for all together",
    "pids": "not limited: your own processes would count",
    "cpu": "no share of the processor can be set",
}


class UnsafeLocalSession(HeldSession):
    """A private copy of a tree, and commands in it."""

    def __init__(self, spec: SandboxSpec) -> None:
        super().__init__(spec)
        places = {SOURCE: "src", HANDED_IN: "disk/in", "/tmp": "disk/tmp"}  # noqa: S108 - inside
        self.paths = {inside: str(self.stage / folder) for inside, folder in places.items()}
        self.paths |= {bind.inside: str(bind.host.resolve()) for bind in spec.binds}
        names = "|".join(re.escape(name) for name in sorted(self.paths, key=len, reverse=True))
        self._path = re.compile(rf"(?<![\w./-])(?:{names})(?![\w.-])")

    def outside(self, text: str) -> str:
        """Return a text with the paths inside rewritten to those of the host."""
        return self._path.sub(lambda match: self.paths[match.group()], text)

    def setup(self) -> dict[str, Any]:
        """Return what the holder has to prepare."""
        return {"mounts": False}

    def command(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, network: Network) -> dict[str, Any]:
        """Return how the holder starts a command."""
        del limits, network
        temporary = {"TMPDIR": self.paths["/tmp"]}  # noqa: S108 - inside
        env = temporary | {name: self.outside(value) for name, value in env.items()}
        return {"options": [], "argv": [*SHELL, *map(self.outside, argv)], "env": env, "script": ""}

    def handed(self, data: bytes) -> bytes:
        """Return data with the paths inside rewritten to those of the host."""
        return self.outside(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class UnsafeLocalBackend:
    """Commands without a sandbox."""

    name = NAME

    def probe(self) -> Capabilities:
        """Try what holds all the same (Backend.probe)."""
        groups = find_cgroups()
        missing = _NOT_PROMISED | (_ALONE if groups.version == "none" else {})
        try:
            held, failed, seconds = probe_limits(self.open, frozenset(missing))
        except (SandboxError, OSError) as error:
            return unusable(self.name, str(error))
        return Capabilities(
            backend=self.name, usable=True, version=platform.release(), enforced=held,
            missing={name: missing.get(name, "was seen not to hold") for name in (*failed, "host")},
            cgroup=groups.version, start_seconds=seconds,
        )  # fmt: skip

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[UnsafeLocalSession]:
        """Open a private copy (Backend.open)."""
        check_binds(spec.binds)
        remove_leftovers()
        session = UnsafeLocalSession(spec)
        try:
            session.start()
            yield session
        finally:
            session.close()
