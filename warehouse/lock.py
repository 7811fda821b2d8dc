"""The workspace: its folders, and the lock that keeps two runs apart."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ConfigError
from warehouse.tables import TEMPORARY_PREFIX

LOCK_NAME = ".lock"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one workspace, absolute."""

    root: Path
    """The workspace itself."""
    repos: Path
    """Bare clones."""
    tables: Path
    """The lake: Parquet files and the ledger."""
    releases: Path
    """Finished releases, one folder each."""
    catalogue: Path
    """DuckDB file with views over the lake; can be deleted and rebuilt."""

    @property
    def environments(self) -> Path:
        """Return the folder of built environments and of the resolver's cache; can be deleted between runs."""
        return self.root / "environments"

    @property
    def trees(self) -> Path:
        """Return the folder of trees that are being executed; it is emptied when a run begins."""
        return self.root / "trees"


def open_workspace(path: Path) -> Workspace:
    """Create what is missing of a workspace and return its folders.

    Raises ConfigError when the path is a file, cannot be created or written, or has a `?` in it.
    """
    root = path.expanduser().absolute()
    if "?" in str(root):  # measured: DuckDB puts its write-ahead log's name in front of the first `?`
        raise ConfigError(f"{root} has a `?` in it, which DuckDB cannot open; choose another --workspace")
    workspace = Workspace(root, root / "repos", root / "tables", root / "releases", root / "postquem.duckdb")
    for folder in (root, workspace.repos, workspace.tables, workspace.releases):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ConfigError(
                f"{folder} cannot be a folder: a file is in the way; choose another --workspace"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot create the workspace folder {folder}: {error.strerror}; "
                "make its parent writable or choose another --workspace"
            ) from error
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise ConfigError(f"{folder} is not writable; change its permissions or choose another --workspace")
    return workspace


@contextmanager
def lock_workspace(workspace: Workspace) -> Iterator[None]:
    """Hold the workspace for one run; the kernel frees it when the process ends, however it ends.

    Raises ConfigError at once when another process holds it.
    """
    path = workspace.root / LOCK_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(
            f"cannot open {path}: {error.strerror}; make it writable or choose another --workspace"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise ConfigError(
                f"another run (pid {holder}) is using {workspace.root}; "
                "wait for it to end or choose another --workspace"
            ) from None
        for leftover in workspace.root.glob(f"{TEMPORARY_PREFIX}*"):  # a catalogue that a killed run was writing
            leftover.unlink(missing_ok=True)
        with suppress(OSError):  # a full disk: the pid only makes another run's message better
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
