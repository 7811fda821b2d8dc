"""The releases that stand beside one another in a workspace: which came before, and which is the same."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from publishing.changes import Changes
from publishing.diff import Side, compare
from publishing.manifest import MANIFEST_NAME, Manifest, read_manifest
from schemas.errors import PipelineError
from schemas.versions import is_earlier
from warehouse.tables import file_entry

# What says nothing of the rows: names of the release itself, and files that are written from the rest.
_OWN = ("version", "config_digest", "files", "changes")


def find_changes(new: Side, releases: Path) -> Changes | None:
    """Return what changed since the release before a new one; null when there is none.

    The release before is the newest with the same name and an earlier version (`schemas.versions.is_earlier`). A
    release of the new one's own version and rows keeps what it says: which releases stand beside it may have changed.
    """
    standing = _read(releases / new.manifest.version)
    if standing is not None and _tables(standing.manifest) == _tables(new.manifest):
        return standing.manifest.changes
    version = new.manifest.version
    former = [side for side in _beside(releases, new.manifest) if is_earlier(side.manifest.version, version)]
    try:
        return compare(newest(former), new)[0] if former else None
    except PipelineError:
        return None  # the release before is damaged: nothing can be said of it, and this one does not depend on it


def same_release(folder: Path, releases: Path) -> Side | None:
    """Return the newest release of a new one's name when it was made from the same and has the same rows, else null."""
    new = Side(folder, read_manifest(folder / MANIFEST_NAME))
    beside = list(_beside(releases, new.manifest))
    if not beside:
        return None
    latest = newest(beside)
    return latest if _essence(latest.manifest) == _essence(new.manifest) and _is_whole(latest) else None


def _is_whole(side: Side) -> bool:
    """Tell whether every file of a release is as its manifest says."""
    paths = [(side.folder / entry.path, entry.sha256) for entry in side.manifest.files]
    return all(path.is_file() and file_entry(path, side.folder).sha256 == sha256 for path, sha256 in paths)


def newest(sides: list[Side]) -> Side:
    """Return the release with the latest version."""

    def order(one: Side, other: Side) -> int:
        versions = one.manifest.version, other.manifest.version
        return -1 if is_earlier(*versions) else int(is_earlier(*reversed(versions)))

    return max(sides, key=cmp_to_key(order))


def _beside(releases: Path, new: Manifest) -> Iterator[Side]:
    """Yield the finished releases of the same name, in the order of their folders' names."""
    for folder in sorted(releases.iterdir()):
        side = None if folder.name.startswith(".") else _read(folder)
        if side is not None and side.manifest.name == new.name:
            yield side


def _read(folder: Path) -> Side | None:
    try:
        return Side(folder, read_manifest(folder / MANIFEST_NAME))
    except PipelineError:
        return None  # no release, or one of a version that this program cannot read


def _tables(manifest: Manifest) -> list[tuple[str, str]]:
    return [(entry.path, entry.sha256) for entry in manifest.files if entry.rows is not None]


def _essence(manifest: Manifest) -> dict[str, Any]:
    """Return what a release was made from and the hashes of its rows."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(manifest)))
    del values["config"]["release"]["version"]
    return {name: value for name, value in values.items() if name not in _OWN} | {"tables": _tables(manifest)}
