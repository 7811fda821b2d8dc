"""The ledger: which work is done.

A unit of work is one stage over one partition. Its key hashes everything its outputs depend on, its JSON sidecar is
written after its files, so the sidecar's existence with that key means done. Nothing else is state.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from schemas.arrow import SCHEMA_VERSION
from schemas.config import digest_of
from schemas.errors import PipelineError
from schemas.records import StageReport
from warehouse.tables import (
    TEMPORARY_PREFIX,
    TEXTS,
    FileEntry,
    Packing,
    file_entry,
    read_table,
    write_table,
    write_text,
)

UNITS_FOLDER = "_units"
# Longer components are cut: 255 bytes is the limit of ext4, APFS and NTFS, and suffixes need room.
_MAX_COMPONENT = 100
# `~` is no clean character, so a hashed name can never equal a clean one.
_CLEAN = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_UNCLEAN_CHARACTER = re.compile(r"[^a-z0-9._-]")
_RESERVED_SUFFIXES = (".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Unit:
    """Finished work of one stage over one partition."""

    stage: str
    """Name of the stage."""
    partition: str
    """owner/name of the repository, or `all` for a global stage."""
    key: str
    """`unit_key` of the stage, its parameters and inputs."""
    files: dict[str, tuple[FileEntry, ...]]
    """Files by table name; paths are relative to the tables folder."""
    reports: tuple[StageReport, ...] = ()
    """What became of every row."""
    valid_until: datetime | None = field(default=None)
    """From this moment on the unit is stale; null when it never is."""
    family: str = ""
    """`unit_key` without the inputs that grow: what an earlier unit of the same family holds can be built upon."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the outputs, whatever key made them; the next stage's input digest."""
        return self.digest_of_tables(self.files)

    def digest_of_tables(self, tables: Iterable[str]) -> str:
        """Return the SHA-256 of some of the outputs: what the next stage reads, where others hold what was measured."""
        lines = [f"{table} {entry.sha256}\n" for table in sorted(tables) for entry in self.files[table]]
        return sha256("".join(lines).encode()).hexdigest()


def unit_key(stage: str, stage_version: str, parameters: object, input_digests: Sequence[str]) -> str:
    """Return the SHA-256 of all that a unit's outputs depend on.

    `parameters` is a configuration dataclass or plain JSON values; the order of `input_digests` counts.
    """
    return digest_of(stage, stage_version, SCHEMA_VERSION, digest_of(parameters), list(input_digests))


def partition_path(partition: str) -> str:
    """Return a relative path that is safe on every file system, different for every partition.

    Components of lower-case letters, digits, `.`, `_`, `-` stay; others are cleaned and get `~` and a hash, so that
    names which differ only by case, by `..` or by Unicode form never meet.
    """
    return "/".join(_component(part) for part in partition.split("/"))


def _component(part: str) -> str:
    if len(part) <= _MAX_COMPONENT and _CLEAN.fullmatch(part) and not part.endswith((".", *_RESERVED_SUFFIXES)):
        return part
    digest = sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return _UNCLEAN_CHARACTER.sub("_", part.lower())[:_MAX_COMPONENT].lstrip(".") + f"~{digest}"


class Ledger:
    """Finds and records units below a workspace's tables folder; one writer at a time (see `warehouse.lock`)."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, stage: str, partition: str, key: str, now: datetime) -> Unit | None:
        """Return the unit when it is done: same key, not stale at `now`, all files there with their size."""
        unit = self.former(stage, partition)
        if unit is None or unit.key != key:
            return None
        return None if unit.valid_until is not None and now >= unit.valid_until else unit

    def former(self, stage: str, partition: str) -> Unit | None:
        """Return the current unit whatever its key and age, None when there is none or a file of it is missing."""
        unit = self._load(self._sidecar(stage, partition))
        if unit is None or (unit.stage, unit.partition) != (stage, partition):
            return None
        return None if self.verify(unit, deep=False) else unit

    def write(
        self, table_name: str, partition: str, key: str, table: pa.Table, packing: Packing = TEXTS
    ) -> FileEntry:  # fmt: skip
        """Write a table's file of a unit and return its entry for `Unit.files`."""
        path = self.root / partition_path(table_name) / partition_path(partition) / f"{key[:16]}.parquet"
        return write_table(path, table, self.root, packing)

    def read(
        self, unit: Unit, table_name: str, columns: Sequence[str] | None = None, numbered: Sequence[str] = ()
    ) -> pa.Table:
        """Return one table of a unit, or some of its columns, those `numbered` as dictionaries.

        Raise PipelineError when it has none of that name or a file is damaged.
        """
        if not unit.files.get(table_name):
            raise PipelineError(f"{unit.stage} over {unit.partition} has no table {table_name}; known: {[*unit.files]}")
        paths = [self.root / entry.path for entry in unit.files[table_name]]
        return pa.concat_tables([read_table(path, columns, numbered) for path in paths])

    def discard(self, unit: Unit) -> None:
        """Delete the files of a unit that was never recorded: notes that one step left for the next."""
        for path in _paths(unit):
            (self.root / path).unlink(missing_ok=True)

    def record(self, unit: Unit) -> None:
        """Make a unit the current one of its stage and partition, then delete what the former one alone used.

        Raises PipelineError when a listed file is missing or of another size: then nothing is recorded.
        """
        problems = self.verify(unit, deep=False)
        if problems:
            raise PipelineError(
                f"cannot record {unit.stage} over {unit.partition}: {'; '.join(problems)}; run the same command again"
            )
        sidecar = self._sidecar(unit.stage, unit.partition)
        former = self._load(sidecar)
        write_text(sidecar, json.dumps(_to_json(unit), indent=1, ensure_ascii=True) + "\n")
        if former is not None:
            current = set(_paths(unit))
            for path in _paths(former):
                if path not in current:
                    (self.root / path).unlink(missing_ok=True)

    def units(self) -> list[Unit]:
        """Return every current unit, ordered by stage and partition; unreadable sidecars count as not done."""
        found = (self._load(path) for path in (self.root / UNITS_FOLDER).rglob("*.json"))
        return sorted((unit for unit in found if unit is not None), key=lambda unit: (unit.stage, unit.partition))

    def verify(self, unit: Unit, deep: bool = True) -> list[str]:
        """Return what is wrong with a unit's files: existence and size, with `deep` their SHA-256 too."""
        problems = []
        for table in sorted(unit.files):
            for entry in unit.files[table]:
                problem = self._problem(entry, deep)
                if problem:
                    problems.append(f"{self.root / entry.path} {problem}")
        return problems

    def sweep(self) -> list[str]:
        """Delete temporary files, unreadable sidecars and files of no unit; return their relative paths, sorted.

        Only for the holder of the workspace lock: another run's unrecorded files would look like leftovers.
        """
        used = {path for unit in self.units() for path in _paths(unit)}
        removed = []
        for path in sorted(path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()):
            relative = path.relative_to(self.root).as_posix()
            is_sidecar = relative.startswith(f"{UNITS_FOLDER}/") and path.suffix == ".json"
            leftover = path.name.startswith(TEMPORARY_PREFIX)
            leftover = leftover or (is_sidecar and self._load(path) is None)
            leftover = leftover or (path.suffix == ".parquet" and relative not in used)
            if leftover:
                path.unlink(missing_ok=True)
                removed.append(relative)
        return removed

    def _sidecar(self, stage: str, partition: str) -> Path:
        return self.root / UNITS_FOLDER / partition_path(stage) / f"{partition_path(partition)}.json"

    def _problem(self, entry: FileEntry, deep: bool) -> str | None:
        path = self.root / entry.path
        if not path.is_file():
            return "is missing"
        if path.stat().st_size != entry.bytes:
            return f"has {path.stat().st_size} bytes instead of {entry.bytes}"
        if deep and file_entry(path, self.root).sha256 != entry.sha256:
            return "has other contents than recorded"
        return None

    def _load(self, sidecar: Path) -> Unit | None:
        """Return the unit of a sidecar; None when there is none or it is damaged, which means: not done."""
        try:
            return _from_json(json.loads(sidecar.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, PipelineError):
            return None


def _paths(unit: Unit) -> list[str]:
    return [entry.path for entries in unit.files.values() for entry in entries]


def _to_json(unit: Unit) -> dict[str, Any]:
    plain = asdict(unit)
    plain["valid_until"] = _moment_text(unit.valid_until)
    for report, values in zip(unit.reports, plain["reports"], strict=True):
        values["started_at"] = _moment_text(report.started_at)
        values["finished_at"] = _moment_text(report.finished_at)
    return plain


def _from_json(plain: dict[str, Any]) -> Unit:
    files = {table: tuple(FileEntry(**entry) for entry in entries) for table, entries in plain["files"].items()}
    reports = tuple(
        StageReport(
            **{**values, "started_at": _moment(values["started_at"]), "finished_at": _moment(values["finished_at"])}
        )
        for values in plain["reports"]
    )
    until, family = _moment(plain["valid_until"]), plain.get("family", "")
    return Unit(plain["stage"], plain["partition"], plain["key"], files, reports, until, family)


def _moment_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
