"""Collects a tree's tests in a sandbox, to see whether an environment is any good."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.environment import PYTHON
from sandbox.protocol import HANDED_IN, SOURCE, Backend, Limits, SandboxSpec
from sandbox.uv import REASONS, excerpt
from schemas.errors import DataError
from schemas.execution import KilledBy, RealCodeConfig

_SCRIPT = Path(__file__).with_name("inside") / "collect.py"
_OUT = "/tmp/postquem-collected.json"  # noqa: S108 - a path inside
_MAX_REPORT = 64 << 20
# Collection imports every test module once (execution.md: 1.5 to 6 s for the largest that were tried).
COLLECT_SECONDS = 120.0
_NETWORK_ERRORS = frozenset(
    {"gaierror", "ConnectionError", "ConnectionRefusedError", "ConnectError", "NewConnectionError", "URLError"}
)
_DISPLAY_ERRORS = frozenset({"TclError", "DisplayConnectionError", "NoSuchDisplayException"})


@dataclass(frozen=True, slots=True)
class CollectError:
    """A module, folder or the start itself that could not be collected."""

    node: str
    """Node id of the collector, empty for the start."""
    path: str
    """Its path inside, empty for the start."""
    types: tuple[str, ...]
    """Types of the exception and its causes."""
    missing: str | None
    """Module that could not be found."""
    variable: str | None
    """Environment variable that was not there."""
    message: str
    """First line of the innermost cause."""

    @property
    def reason(self) -> str:
        """Return the reason of the closed list."""
        if self.missing is not None:
            return "dependency_missing"
        if self.variable is not None:
            return "needs_env_secret"
        if _NETWORK_ERRORS.intersection(self.types):
            return "needs_network"
        if _DISPLAY_ERRORS.intersection(self.types):
            return "needs_display"
        return "collection_error"


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection gave."""

    ids: tuple[str, ...]
    """Node ids in pytest's order."""
    errors: tuple[CollectError, ...]
    """What could not be collected; the start itself comes first."""
    started: bool
    """pytest began to collect."""
    copies: tuple[str, ...]
    """Modules of the project that are imported from a copy instead of the tree."""
    log: str
    """End of pytest's own output."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the modules that could not be found, sorted."""
        return tuple(sorted({error.missing for error in self.errors if error.missing}))


def collect(
    backend: Backend,
    spec: SandboxSpec,
    arguments: Sequence[str],
    project: tuple[str | None, Sequence[str]],
    limits: Limits,
) -> Collected:
    """Collect once; `project` is its name and the folders of its code. DataError when a limit or a crash ended it."""
    name, roots = project
    request = {"arguments": list(arguments), "out": _OUT, "name": name, "roots": list(roots)}
    files = {f"{HANDED_IN}/request.json": json.dumps(request).encode(), f"{HANDED_IN}/collect.py": _SCRIPT.read_bytes()}
    with backend.open(spec) as session:
        result = session.exec((PYTHON, f"{HANDED_IN}/collect.py"), files=files, limits=limits)
        data = session.read(_OUT, _MAX_REPORT)
    if result.killed_by is not KilledBy.NONE:
        raise DataError(REASONS[result.killed_by], f"collecting the tests: {excerpt(result)}")
    try:
        report = json.loads(data or b"")
        return _read(report, excerpt(result))
    except (ValueError, KeyError, TypeError):
        detail = excerpt(result) or f"the interpreter ended with exit code {result.returncode}"
        raise DataError("collection_error", detail) from None


def _read(report: Mapping[str, Any], log: str) -> Collected:
    errors = [_error(item) for item in report["errors"]]
    start = report["start"]
    if start is not None:
        errors.insert(0, _error({"node": "", "path": "", **start}))
    return Collected(tuple(report["ids"]), tuple(errors), start is None, tuple(report["copies"]), log)


def _error(item: Mapping[str, Any]) -> CollectError:
    path = item["path"]
    return CollectError(
        item["node"],
        path.removeprefix(f"{SOURCE}/") if path.startswith(f"{SOURCE}/") else "",
        tuple(item["types"]),
        item["missing"],
        item["variable"],
        item["message"],
    )


def collect_limits(config: RealCodeConfig, left: float) -> Limits:
    """Return the limits of a collection."""
    return Limits(min(COLLECT_SECONDS, left), config.memory_mib << 20, config.pids, 1.0, config.disk_mib << 20)
