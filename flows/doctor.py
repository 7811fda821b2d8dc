"""`postquem doctor`: what this machine can do for `real_code`, tried by commands that mean harm."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from sandbox.backends import make_backend
from sandbox.backends.probing import unusable
from sandbox.interpreters import find_interpreters
from sandbox.protocol import Capabilities
from sandbox.uv import find_uv
from schemas.config import load_config
from schemas.errors import ConfigError
from schemas.execution import BackendName, RealCodeConfig


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found."""

    backends: tuple[Capabilities, ...]
    """Every backend, tried just now."""
    programs: Mapping[str, str]
    """Versions of the programs that are needed, empty where one is not there."""
    interpreters: Mapping[str, str]
    """Where the interpreters are that environments are built with, by version."""
    advice: str = ""
    """Why interpreters that the configuration names are not there."""

    @property
    def safe(self) -> bool:
        """Tell whether a backend that isolates what it runs can be used."""
        return any(found.usable and found.backend != BackendName.UNSAFE_LOCAL for found in self.backends)

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        backends = [{**asdict(found), "isolation": found.isolation} for found in self.backends]
        return {
            "safe": self.safe, "backends": backends, "programs": dict(self.programs),
            "interpreters": dict(self.interpreters), "advice": self.advice,
        }  # fmt: skip


def diagnose(config: RealCodeConfig) -> Diagnosis:
    """Try every backend, the container engine with the configuration's image."""
    backends = []
    for name in BackendName:
        try:
            backends.append(make_backend(name, config.image).probe())
        except ConfigError as error:
            backends.append(unusable(name.value, str(error)))
    try:
        found, advice = find_interpreters(config.pythons), ""
    except ConfigError as error:
        found, advice = [], str(error)
    interpreters = {interpreter.text: str(interpreter.home) for interpreter in found}
    return Diagnosis(tuple(backends), {"git": version_of("git"), "uv": _uv_version()}, interpreters, advice)


def _uv_version() -> str:
    try:
        return version_of(str(find_uv()))
    except ConfigError:
        return ""


def version_of(program: str) -> str:
    """Return the version that a program tells, the first word of its first line with a digit; empty without it."""
    path = shutil.which(program)
    if path is None:
        return ""
    told = subprocess.run((path, "--version"), capture_output=True, text=True, check=False).stdout.splitlines()
    words = [word for word in (told[0].split() if told else []) if word[0].isdecimal()]
    return words[0] if words else "?"


def print_doctor(config: Path | None, *, as_json: bool) -> bool:
    """Print what was found; return whether a safe backend can be used."""
    found = diagnose(load_config(config).real_code if config else RealCodeConfig())
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        show(Console(), found)
    return found.safe


def show(console: Console, found: Diagnosis) -> None:
    """Print tables for a reader."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("backend", "usable", "version", "limits by", "holds", "start"):
        table.add_column(title, overflow="fold")
    for backend in found.backends:
        groups = "rlimits" if backend.cgroup == "none" else f"cgroup {backend.cgroup}"
        row: Sequence[str] = (
            backend.backend, "yes" if backend.usable else "no", backend.version, groups if backend.usable else "",
            ", ".join(backend.enforced), f"{1000 * backend.start_seconds:.0f} ms" if backend.usable else "",
        )  # fmt: skip
        table.add_row(*row)
    console.print(table)
    for backend in found.backends:
        for what, why in backend.missing.items():
            name = backend.backend if what == "usable" else f"{backend.backend}, {what}"
            console.print(f"{name}: {why}", markup=False, highlight=False)
    for program, version in found.programs.items():
        console.print(f"{program}: {version or 'not found'}", markup=False, highlight=False)
    interpreters = ", ".join(found.interpreters) or found.advice or "none found"
    console.print(f"interpreters for environments: {interpreters}", markup=False, highlight=False)
    if found.safe:
        console.print("real_code can be built on this machine.")
    else:
        console.print("No backend on this machine isolates what it runs: real_code would need one.")
