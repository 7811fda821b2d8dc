"""A small real world for the flow tests: three repositories, a configuration, and the command as a user runs it."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.builders import RepoBuilder
from tests.flows.forked import ROOT, forked_commands

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
BEFORE = datetime(2023, 5, 1, 12, tzinfo=UTC)
AFTER = datetime(2024, 5, 1, 12, tzinfo=UTC)
LATER = datetime(2024, 6, 1, 12, tzinfo=UTC)

_TEMPLATE = '''def {name}_total(rows, rate, limit={limit}):
    """Return the sum of the {name} of all rows, each counted at most up to the limit."""
    total = 0
    for row in rows:
        {name} = row["{name}"] * rate
        if {name} > limit:
            {name} = limit
        total += {name}
    return total


def find_{name}(table, wanted):
    for position, entry in enumerate(table):
        if entry.{name} == wanted and not entry.hidden:
            return position, entry.{name}
    raise LookupError("no {name} of that kind: %r" % wanted)
'''


# Unlike the template, or all that comes later would be `copied_old`.
_OLD = b"""class Ledger:
    def close(self, day):
        if day in self.closed:
            raise ValueError(day)
        self.closed.add(day)
"""


def source_text(name: str, limit: int = 10) -> bytes:
    """Return a module with a documented and an undocumented function about `name`."""
    return _TEMPLATE.format(name=name, limit=limit).encode()


def make_repositories(folder: Path) -> dict[str, RepoBuilder]:
    """Build three repositories with commits before and after the cutoff, one of them with a merge."""
    builders = {}
    for name, words in (("alpha", ("cost", "weight")), ("beta", ("height", "volume")), ("gamma", ("speed", "cost"))):
        builder = RepoBuilder(folder / "acme" / f"{name}.git")
        first = builder.commit({"old.py": _OLD, "LICENSE": b"see pyproject"}, "Start", BEFORE)
        builder.commit(
            {f"{words[0]}.py": source_text(words[0])},
            f"Add the {words[0]} module with a total and a search, both needed for the monthly report of {name}",
            AFTER,
        )
        side = builder.commit({"side.py": source_text("colour")}, "Side", AFTER, parents=[first], branch="side")
        builder.commit(
            {f"{words[1]}.py": source_text(words[1], 20), "side.py": source_text("colour")},
            "Merge branch 'side'",
            LATER,
            parents=[builder.tips["main"], side],
        )
        builders[name] = builder
    return builders


def write_config(folder: Path, locations: Sequence[str], extra: str = "", version: str = "1.0") -> Path:
    """Write a configuration over the locations and return its path."""
    path = folder / "config.toml"
    path.write_text(
        f"[release]\nversion = {json.dumps(version)}\n[window]\nsince = 2024-01-01\n"
        f"[[sources]]\ngit = {json.dumps(list(locations))}\n{extra}",
        encoding="utf-8",
    )
    return path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the command did."""

    code: int
    stdout: str
    stderr: str

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads(self.stdout))


# Against hanging only: the quickstart takes under a minute on an idle machine, ten times as long on a busy one.
_TIMEOUT = 900


def postquem(*args: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Outcome:
    """Run the command in a process of its own: a fork (tests/flows/forked.py), if it needs no variable of Python's."""
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    if any(name.startswith("PYTHON") for name in env or {}):
        return new_process(*args, env=env, cwd=cwd)
    return Outcome(*forked_commands().run([*map(str, args)], whole, cwd, _TIMEOUT))


def new_process(*args: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Outcome:
    """Run the command in a new process, from `python` on."""
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def build(config: Path, workspace: Path, *args: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Run `postquem build --no-prefect --json`."""
    return postquem(
        "build", "--no-prefect", "--json", "--config", config, "--workspace", workspace, *args, env=env
    )  # fmt: skip


def fingerprints(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of a release."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
