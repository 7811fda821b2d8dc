"""Which Python interpreters there are, and which one a repository's tests get."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from sandbox.environment import PYTHON_HOME
from sandbox.protocol import Backend, Bind, SandboxSpec
from schemas.errors import ConfigError

# First releases: PEP 596, 619, 664, 693, 719 and 745 (https://devguide.python.org/versions/).
RELEASED = {
    (3, 9): date(2020, 10, 5),
    (3, 10): date(2021, 10, 4),
    (3, 11): date(2022, 10, 24),
    (3, 12): date(2023, 10, 2),
    (3, 13): date(2024, 10, 7),
    (3, 14): date(2025, 10, 7),
}
# An interpreter is used once wheels of most packages are there for it; execution.md measured this rule.
_SETTLED_DAYS = 365
_PROBE_SECONDS = 20
_PROBE = (
    "import sys, sysconfig, venv, json; "
    "print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), sys.base_prefix, "
    "[sysconfig.get_config_var(name) for name in ('Py_ENABLE_SHARED', 'LIBDIR', 'INSTSONAME')]]))"
)
_SYSTEM = ("/usr", "/usr/local")
_NAMES = frozenset(f"python{major}.{minor}" for major, minor in RELEASED)

Minor = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A CPython that ran on this machine, or in the image that sandboxes are made from."""

    version: tuple[int, int, int]
    """Its version."""
    home: Path
    """Its prefix: on the host, or in the image."""
    library: Path | None = None
    """Shared library on the host that its executable looks for at this very place, null without one."""
    of_image: bool = False
    """It belongs to the image."""

    @property
    def minor(self) -> Minor:
        """Return major and minor version."""
        return self.version[:2]

    @property
    def text(self) -> str:
        """Return the version as text."""
        return ".".join(str(number) for number in self.version)

    @property
    def stays(self) -> bool:
        """Say whether it has the same path inside: sandboxes show /usr."""
        return self.of_image or str(self.home) in _SYSTEM

    @property
    def inside(self) -> str:
        """Return its path inside."""
        home = str(self.home) if self.stays else PYTHON_HOME
        return f"{home}/bin/python{self.minor[0]}.{self.minor[1]}"

    @property
    def binds(self) -> tuple[Bind, ...]:
        """Return what must be visible for it.

        The library of a shared build is looked for at the path it was built for, whatever the prefix; a variable for
        the loader would not reach programs that tests start with an environment of their own.
        """
        if self.stays:
            return ()
        library = () if self.library is None else (Bind(self.library, str(self.library)),)
        return (Bind(self.home, PYTHON_HOME), *library)


def choose(found: Iterable[Interpreter], requires_python: str, commit_date: datetime) -> list[Interpreter]:
    """Return the interpreters to try, the best first; empty when none is admitted.

    The first is the newest one that had been out for a year at the commit, then its neighbours by distance, the newer
    of two at the same distance first; none that came out after the commit unless there is no other. Of several patch
    releases of one version the newest is taken.
    """
    best: dict[Minor, Interpreter] = {}
    for interpreter in sorted(found, key=lambda item: item.version):
        if interpreter.minor in RELEASED and admits(requires_python, interpreter.version):
            best[interpreter.minor] = interpreter
    minors = sorted(best)
    if not minors:
        return []
    day = commit_date.date()
    settled = [minor for minor in minors if (day - RELEASED[minor]).days >= _SETTLED_DAYS]
    first = minors.index(settled[-1] if settled else minors[0])
    order = sorted(range(len(minors)), key=lambda index: (RELEASED[minors[index]] > day, abs(index - first), -index))
    return [best[minors[index]] for index in order]


def admits(requires_python: str, version: Sequence[int]) -> bool:
    """Say whether a specifier admits a version; one that is malformed admits all."""
    try:
        return SpecifierSet(requires_python).contains(Version(".".join(map(str, version))), prereleases=True)
    except InvalidSpecifier:
        return True


def find_interpreters(configured: Sequence[str] = ()) -> list[Interpreter]:
    """Return the interpreters of this machine that run, by version.

    Looked for on PATH, among those of uv and pyenv, and in /usr; each candidate is run, and one that does not run is
    left out. `configured` paths come instead of the search; versions in it (`3.12`) choose from what the search finds.
    Raises ConfigError when a configured one is not there.
    """
    paths = [Path(item) for item in configured if "/" in item]
    versions = [item for item in configured if "/" not in item]
    found = [_must_run(path) for path in paths]
    if versions or not configured:
        searched = _search()
        found += [item for item in searched if not versions or any(_matches(item, version) for version in versions)]
        for version in versions:
            if not any(_matches(item, version) for item in searched):
                known = ", ".join(item.text for item in searched) or "none"
                raise ConfigError(f"real_code.pythons: no Python {version} that runs was found; found: {known}")
    return sorted(set(found), key=_order)


def _order(interpreter: Interpreter) -> tuple[tuple[int, int, int], str]:
    return interpreter.version, str(interpreter.home)


def _matches(interpreter: Interpreter, version: str) -> bool:
    return interpreter.text == version or interpreter.text.startswith(version.rstrip(".") + ".")


def _must_run(path: Path) -> Interpreter:
    interpreter = probe(path)
    if interpreter is None:
        raise ConfigError(f"real_code.pythons: {path} does not run as a CPython with the module venv")
    return interpreter


@cache
def _search() -> tuple[Interpreter, ...]:
    """Return every interpreter that the usual places have, once for each prefix."""
    found: dict[Path, Interpreter] = {}
    for candidate in _candidates():
        if not any(candidate.is_relative_to(home / "bin") for home in found if str(home) not in _SYSTEM):
            interpreter = probe(candidate)
            if interpreter is not None:
                found[interpreter.home] = interpreter
    return tuple(sorted(found.values(), key=_order))


def _candidates() -> Iterator[Path]:
    """Yield executables `python3.N` of version managers, the system and PATH, each real file once."""
    home = Path(os.environ.get("HOME") or "/nonexistent")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    folders = [*sorted(managed.glob("*/bin")), *sorted((pyenv / "versions").glob("*/bin"))]
    folders += [Path(home) / "bin" for home in _SYSTEM]
    folders += [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part.startswith("/")]
    seen = set[Path]()
    for folder in folders:
        for path in sorted(folder.glob("python3.*")):
            if path.name in _NAMES and os.access(path, os.X_OK) and path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def probe(path: Path) -> Interpreter | None:
    """Run an interpreter and return what it is; null when it does not run or is no CPython with `venv`."""
    try:
        done = subprocess.run(
            [str(path), "-I", "-c", _PROBE],
            capture_output=True,
            timeout=_PROBE_SECONDS,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.defpath, "HOME": "/nonexistent"},
            check=False,
        )
        implementation, version, prefix, (shared, folder, name) = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if implementation != "cpython":
        return None
    home = Path(prefix).resolve()
    major, minor, patch = version
    library = Path(folder) / name if shared and folder and name else None
    if library is not None and not library.is_file():
        library = None
    runs_there = (home / "bin" / f"python{major}.{minor}").exists()
    return Interpreter((major, minor, patch), home, library) if runs_there else None


def find_in_image(backend: Backend) -> list[Interpreter]:
    """Return the interpreters of the image that a backend's sandboxes are made from, by version."""
    names = " ".join(sorted(_NAMES))
    script = f'for name in {names}; do "$name" -I -c "$1" 2>/dev/null; done; true'
    env = {"PATH": "/opt/python/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
    with backend.open(SandboxSpec(env=env)) as session:
        output = session.exec(("/bin/sh", "-c", script, "sh", _PROBE)).stdout
    found = []
    for line in output.splitlines():
        implementation, (major, minor, patch), prefix, _ = json.loads(line)
        if implementation == "cpython":
            found.append(Interpreter((major, minor, patch), Path(prefix), of_image=True))
    return sorted(set(found), key=_order)
