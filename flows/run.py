"""One run: its configuration, workspace, worker processes and clock, resolved once at the edge."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from flows.pool import Pool, WorkerPool
from flows.progress import RunProgress
from flows.versions import code_version
from schemas.config import Config, load_config
from warehouse.ledger import Ledger
from warehouse.lock import Workspace, lock_workspace, open_workspace


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
    pool: Pool
    """Worker processes, of this machine or of a Dask cluster."""
    progress: RunProgress
    """The terminal."""
    now: datetime
    """Time of the run, UTC: later dates are in the future."""

    @property
    def workers(self) -> int:
        """Return the number of items worked on at a time."""
        return self.pool.workers


@dataclass(frozen=True, slots=True)
class Computers:
    """Who computes."""

    workers: int
    """Processes of this machine."""
    dask: str | None = None
    """Address of a Dask scheduler whose workers compute instead."""


@contextmanager
def open_run(
    config_path: Path,
    workspace_path: Path,
    workers: int | None = None,
    dask: str | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Iterator[Run]:
    """Read the configuration, lock the workspace, sweep what a killed run left, start the pool.

    `dask` is the address of a Dask scheduler whose workers compute instead of processes of this machine.
    """
    config, base = load_config(config_path, overrides), config_path.resolve().parent
    computers = Computers(workers or os.cpu_count() or 1, dask)
    with open_run_of(config, base, workspace_path, computers, datetime.now(UTC)) as run:
        yield run


@contextmanager
def open_run_of(
    config: Config, base: Path, workspace_path: Path, computers: Computers, now: datetime
) -> Iterator[Run]:  # fmt: skip
    """Begin a run as `open_run` does, of a configuration that was read already, as if it were the time `now`."""
    workspace = open_workspace(workspace_path)
    with lock_workspace(workspace):
        ledger = Ledger(workspace.tables)
        ledger.sweep()
        shutil.rmtree(workspace.trees, ignore_errors=True)  # what a killed run was executing
        pool = _open_pool(computers, workspace)
        try:
            with RunProgress() as progress:
                yield Run(config, base, workspace, ledger, pool, progress, now)
        finally:
            pool.close()


def _open_pool(computers: Computers, workspace: Workspace) -> Pool:
    if computers.dask is None:
        return WorkerPool(computers.workers)
    from flows.dask_pool import DaskPool  # of the extra `dask`

    return DaskPool(computers.dask, workspace.root, code_version())
