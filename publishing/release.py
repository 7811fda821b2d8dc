"""The release folder: built whole beside its place, checked, then renamed into it."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from publishing.card import render_card
from publishing.croissant import CROISSANT_NAME, render_croissant
from publishing.diff import Side
from publishing.facts import ReleaseFacts, read_facts
from publishing.harness.export import write_task_files
from publishing.header import CARD_NAME, check_card
from publishing.history import find_changes, same_release
from publishing.inputs import ReleaseInputs
from publishing.manifest import MANIFEST_NAME, make_manifest, private_paths, published_config
from publishing.notice import NOTICE_NAME, render_notice
from publishing.shards import EXCLUSIONS, config_order, write_shards
from schemas.arrow import from_table, to_table
from schemas.config import Config, WindowConfig, digest_of
from schemas.errors import ConfigError, PipelineError
from schemas.records import Exclusion
from warehouse.tables import FileEntry, explain_os_errors, file_entry, fsync, write_text

_TEMPORARY = ".tmp-"
_REPLACED = ".old-"


class ReleaseStatus(StrEnum):
    """What became of the folder."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A finished release."""

    folder: Path
    """The release's folder."""
    status: ReleaseStatus
    """Written for the first time, found unchanged, or replaced."""
    rows: dict[str, int]
    """Rows of every config, the exclusions included."""
    files: tuple[FileEntry, ...]
    """Every file, the manifest included, sorted by path."""


def write_release(inputs: ReleaseInputs, releases: Path, *, dated: bool = False) -> ReleaseResult:
    """Write `releases/<version>/`, or find that it is there already.

    `dated` says that the version is only the day's: when the newest release of this name was made from the same and
    has the same rows, that one stays and no other is written.

    The caller holds the workspace lock: leftovers of killed runs are removed. Raises ConfigError when another release
    of this version exists and `release.overwrite` is off, PipelineError when the disk is full or a check fails; the
    release that stands is unharmed by either.
    """
    target = releases / inputs.version
    with explain_os_errors(target):
        releases.mkdir(parents=True, exist_ok=True)
        recover(releases)
    building = releases / f"{_TEMPORARY}{inputs.version}-{os.getpid()}"
    try:
        files, rows = _build(inputs, building, releases)
        same = same_release(building, releases) if dated else None
        if same is not None:
            files = (*same.manifest.files, file_entry(same.folder / MANIFEST_NAME, same.folder))
            files = tuple(sorted(files, key=lambda entry: entry.path))
            return ReleaseResult(same.folder, ReleaseStatus.UNCHANGED, rows, files)
        status = _put_in_place(building, target, overwrite=inputs.config.release.overwrite)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return ReleaseResult(target, status, rows, files)


def check_release_free(config: Config, releases: Path) -> None:
    """Raise ConfigError when a release of this version stands there that was made with another configuration.

    Tells before hours of work what `write_release` would tell after them; new commits show only there.
    """
    manifest = _manifest_of(releases / config.release.version) if config.release.version else None
    if manifest is None or config.release.overwrite:
        return
    try:
        digest = json.loads(manifest)["config_digest"]
    except (ValueError, KeyError, TypeError):
        return  # a damaged manifest is no release; writing makes it good
    if digest != digest_of(published_config(config)):
        raise ConfigError(_taken(releases / config.release.version))


def _taken(target: Path) -> str:
    return (
        f"{target} holds another release; raise release.version in the configuration, "
        "or set release.overwrite = true to replace it"
    )


def recover(releases: Path) -> None:
    """Remove what killed runs left behind; put a release back whose replacement never arrived."""
    for path in sorted(releases.glob(f"{_REPLACED}*")):
        target = releases / path.name.removeprefix(_REPLACED)
        if target.exists():
            shutil.rmtree(path)
        else:
            path.rename(target)
    for path in sorted(releases.glob(f"{_TEMPORARY}*")):
        shutil.rmtree(path)


def _build(inputs: ReleaseInputs, folder: Path, releases: Path) -> tuple[tuple[FileEntry, ...], dict[str, int]]:
    """Fill a new folder with a whole, checked release; return its files and row counts."""
    workspace = releases.parent
    if EXCLUSIONS in inputs.tables:
        raise PipelineError(f"{EXCLUSIONS} is no testbed; please report this as a bug")
    inputs = _public(inputs, workspace)
    tables = {**inputs.tables, EXCLUSIONS: inputs.exclusions}
    names = config_order(tables)
    files = [entry for name in names for entry in write_shards(folder, name, tables[name])]
    rows = {name: tables[name].num_rows for name in names}
    row_ids = {name: table["row_id"].to_pylist() for name, table in inputs.tables.items()}
    files += write_task_files(folder, row_ids, inputs.config.testbeds.seed, inputs.version)
    facts = read_facts(folder)
    _check_window(facts, inputs.config.window)
    changes = inputs.changes
    if not inputs.again:
        changes = find_changes(Side(folder, make_manifest(inputs, rows, files)), releases)
    write_text(folder / NOTICE_NAME, render_notice(facts, make_manifest(inputs, rows, files)))
    files.append(file_entry(folder / NOTICE_NAME, folder))
    write_text(folder / CROISSANT_NAME, render_croissant(facts, make_manifest(inputs, rows, files)))
    files.append(file_entry(folder / CROISSANT_NAME, folder))
    write_text(folder / CARD_NAME, render_card(facts, make_manifest(inputs, rows, files, changes)))
    check_card(folder)
    files.append(file_entry(folder / CARD_NAME, folder))
    write_text(folder / MANIFEST_NAME, make_manifest(inputs, rows, files, changes).to_json())
    files.append(file_entry(folder / MANIFEST_NAME, folder))
    return tuple(sorted(files, key=lambda entry: entry.path)), rows


def _put_in_place(building: Path, target: Path, overwrite: bool) -> ReleaseStatus:
    """Rename a finished folder to its place unless the same contents stand there."""
    with explain_os_errors(target):
        if not target.exists():
            building.rename(target)
            fsync(target.parent)
            return ReleaseStatus.WRITTEN
        if _same_contents(building, target):
            return ReleaseStatus.UNCHANGED
        if not overwrite and _manifest_of(building) != _manifest_of(target):
            raise ConfigError(_taken(target))
        _replace(building, target)
        return ReleaseStatus.REPLACED


def _replace(building: Path, target: Path) -> None:
    """Swap a finished folder in; between the two renames `recover` would bring the former one back."""
    replaced = target.with_name(f"{_REPLACED}{target.name}")
    target.rename(replaced)
    try:
        building.rename(target)
    except BaseException:  # Ctrl-C included: the former release must stand again
        replaced.rename(target)
        raise
    fsync(target.parent)
    shutil.rmtree(replaced)


def _manifest_of(folder: Path) -> bytes | None:
    try:
        return (folder / MANIFEST_NAME).read_bytes()
    except OSError:
        return None


def _same_contents(first: Path, second: Path) -> bool:
    """Compare the manifests, and the files too: a release with a lost or damaged file is made good."""
    return _manifest_of(first) == _manifest_of(second) and _entries(first) == _entries(second)


def _entries(folder: Path) -> list[FileEntry]:
    return sorted(
        (file_entry(path, folder) for path in folder.rglob("*") if path.is_file()), key=lambda entry: entry.path
    )


def _check_window(facts: ReleaseFacts, window: WindowConfig) -> None:
    """Refuse rows outside the window: the card states that there are none."""
    if facts.first_date is None or facts.last_date is None:
        return
    if facts.first_date < window.since or (window.until is not None and facts.last_date >= window.until):
        raise PipelineError(
            f"rows are dated from {facts.first_date} to {facts.last_date}, outside the window; "
            "please report this as a bug"
        )


def _public(inputs: ReleaseInputs, workspace: Path) -> ReleaseInputs:
    """Return the inputs with the workspace's and sources' absolute paths replaced in all exclusions."""
    pairs = [(str(workspace.absolute()), "<workspace>"), *private_paths(inputs.config.sources)]
    unused = from_table(_without_paths(to_table(inputs.unused, Exclusion), pairs), Exclusion)
    return replace(inputs, exclusions=_without_paths(inputs.exclusions, pairs), unused=tuple(unused))


def _without_paths(table: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
    """Replace paths in details and, for sources that never got a name, in `row_id`."""
    for name in ("row_id", "detail"):
        index = table.schema.get_field_index(name)
        if index < 0:
            raise PipelineError(f"the exclusions have no column {name}; please report this as a bug")
        values = table.column(index)
        for private, public in sorted(pairs, key=lambda pair: -len(pair[0])):
            if private.strip("/~"):  # replacing a bare "/" would ruin every relative path
                values = pc.replace_substring(values, pattern=private, replacement=public)
        table = table.set_column(index, table.schema.field(index), values)
    return table
