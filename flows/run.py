"""One run: its configuration, workspace, worker processes and clock, resolved once at the edge."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from flows.pool import WorkerPool
from flows.progress import RunProgress
from schemas.config import Config, load_config
from warehouse.ledger import Ledger
from warehouse.lock import Workspace, lock_workspace, open_workspace

_ROOT = Path(__file__).resolve().parent.parent
_DEDUP_LIBRARIES = ("tree-sitter", "tree-sitter-python", "tokenizers", "scipy", "numpy", "numba")
# Libraries whose version can change what a stage computes; a new version makes its results stale.
_STAGE_LIBRARIES = {
    "mine": ("tree-sitter", "tree-sitter-python", "identify", "packaging"),
    "features": ("tree-sitter", "tree-sitter-python", "py3langid"),
    "cutoff": ("tree-sitter", "tree-sitter-python"),
    "opt_out": (),
    "tokens": ("tree-sitter", "tree-sitter-python", "tokenizers"),
    "compare": _DEDUP_LIBRARIES,
    "references": ("tree-sitter", "tree-sitter-python", "pyarrow"),
    "dedup": _DEDUP_LIBRARIES,
    "real_code": ("tree-sitter", "tree-sitter-python", "packaging", "uv"),
    "testbeds": ("tree-sitter", "tree-sitter-python"),
    "score": ("tree-sitter", "tree-sitter-python", "packaging", "uv"),
}
_STAGE_PACKAGES = {
    "mine": ("schemas", "miners"),
    "features": ("schemas", "miners", "features"),
    "cutoff": ("schemas", "miners", "features"),
    "opt_out": ("schemas", "miners"),
    "tokens": ("schemas", "miners", "features", "dedup"),
    "compare": ("schemas", "miners", "features", "dedup"),
    "references": ("schemas", "miners", "features", "dedup"),
    "dedup": ("schemas", "miners", "features", "dedup"),
    "real_code": ("schemas", "miners", "features", "sandbox", "testbeds"),
    "testbeds": ("schemas", "miners", "features", "testbeds"),
    "score": ("schemas", "miners", "features", "sandbox", "scoring"),
}
_ALL_PACKAGES = ("schemas", "miners", "features", "dedup", "sandbox", "testbeds", "warehouse", "publishing")


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the steps of one run share."""

    config: Config
    """The resolved configuration."""
    base: Path
    """Folder of the configuration file; relative locations start here."""
    workspace: Workspace
    """Where everything is kept."""
    ledger: Ledger
    """What is done."""
    pool: WorkerPool
    """Worker processes."""
    progress: RunProgress
    """The terminal."""
    now: datetime
    """Time of the run, UTC: later dates are in the future."""

    @property
    def workers(self) -> int:
        """Return the number of items worked on at a time."""
        return self.pool.workers


@contextmanager
def open_run(config_path: Path, workspace_path: Path, workers: int | None = None) -> Iterator[Run]:
    """Read the configuration, lock the workspace, sweep what a killed run left, start the pool."""
    config, base = load_config(config_path), config_path.resolve().parent
    with open_run_of(config, base, workspace_path, workers, datetime.now(UTC)) as run:
        yield run


@contextmanager
def open_run_of(
    config: Config, base: Path, workspace_path: Path, workers: int | None, now: datetime
) -> Iterator[Run]:  # fmt: skip
    """Begin a run as `open_run` does, of a configuration that was read already, as if it were the time `now`."""
    workspace = open_workspace(workspace_path)
    with lock_workspace(workspace):
        ledger = Ledger(workspace.tables)
        ledger.sweep()
        shutil.rmtree(workspace.trees, ignore_errors=True)  # what a killed run was executing
        pool = WorkerPool(workers or os.cpu_count() or 1)
        try:
            with RunProgress() as progress:
                yield Run(config, base, workspace, ledger, pool, progress, now)
        finally:
            pool.close()


def stage_version(stage: str) -> str:
    """Return what computes a stage: digest of its sources, versions of its libraries and of Python."""
    libraries = [f"{name} {version(name)}" for name in _STAGE_LIBRARIES[stage]]
    return "; ".join([_digest_sources(_STAGE_PACKAGES[stage]), *libraries, f"python {python_version()}"])


def code_version() -> str:
    """Return the version of Postquem with the digest of its sources, such as 0.1.0+3f2a9c1b."""
    return f"{version('postquem')}+{_digest_sources(_ALL_PACKAGES)[:8]}"


@cache
def _digest_sources(packages: Sequence[str]) -> str:
    """Return the sha256 of the packages' source and data files; a changed helper makes results stale."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((_ROOT / package).rglob("*")):
            if path.suffix in (".py", ".json"):
                digest.update(f"{path.relative_to(_ROOT).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
