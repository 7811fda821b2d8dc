"""What the checks of a finished release share: the folder as it was read, and what a check found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from publishing.facts import ReleaseFacts, read_facts, shards_of
from publishing.manifest import MANIFEST_NAME, Manifest, read_manifest
from publishing.shards import EXCLUSIONS
from schemas.arrow import schema_of
from schemas.config import Config
from schemas.errors import ConfigError, PipelineError
from schemas.execution import RealCode
from schemas.records import Exclusion
from testbeds.build import ROW_TYPES
from warehouse.tables import read_table

# Row type of every config that a release can have.
TYPES: dict[str, type] = {**ROW_TYPES, "real_code": RealCode, EXCLUSIONS: Exclusion}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    where: str
    """The config or file."""
    text: str
    """What is wrong."""
    row_id: str | None = None
    """The row; null where none is at fault alone."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    name: str
    """Name of the check."""
    looked_at: int
    """Rows or files that were looked at."""
    faults: tuple[Fault, ...]
    """Everything that is wrong, in the order of the rows."""
    note: str = ""
    """Why something was not looked at; empty when everything was."""


@dataclass(frozen=True)
class Release:
    """A release folder that is looked at: what can be read is read once."""

    folder: Path
    """The folder."""
    manifest: Manifest
    """Its manifest."""
    config: Config
    """The configuration that the manifest holds."""
    code_version: str
    """Version of this program, with which the release's is compared."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Configs whose files cannot be read or have another schema, and why: only the check `schema` speaks of them."""

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """Return the rows of every config that can be read and has its schema, in the order of the files."""
        tables = {}
        for name in self.manifest.rows:
            row_type = TYPES.get(name)
            try:
                parts = [read_table(path) for path in shards_of(self.folder, name)]
                if row_type is None or not parts:
                    raise PipelineError("no config of this version" if row_type is None else "no Parquet file")
                for part in parts:
                    part.validate(full=True)
                    _require_schema(part, row_type)
            except (PipelineError, pa.ArrowException) as error:
                self.damaged[name] = self.explain(error)
                continue
            tables[name] = pa.concat_tables(parts)
        return tables

    @cached_property
    def facts(self) -> ReleaseFacts:
        """Return what the documents state about the rows, read from the files; raise PipelineError as `read_facts`."""
        return read_facts(self.folder)

    def explain(self, error: Exception) -> str:
        """Return an error's text, paths from the folder on, without the advice that is for a workspace."""
        return str(error).replace(f"{self.folder}/", "").partition("; remove ")[0]

    @property
    def testbeds(self) -> dict[str, pa.Table]:
        """Return `tables` without the exclusions."""
        return {name: table for name, table in self.tables.items() if name != EXCLUSIONS}


def _require_schema(table: pa.Table, row_type: type) -> None:
    """Raise PipelineError unless a table has the columns, types and metadata of a row type and no forbidden null."""
    expected = schema_of(row_type)
    for name in expected.names:
        if name not in table.column_names:
            raise PipelineError(f"column {name} of {row_type.__name__} is missing")
    for column in table.schema:
        index = expected.get_field_index(column.name)
        if index < 0:
            raise PipelineError(f"column {column.name} is none of {row_type.__name__}")
        if column.type != expected.field(index).type:
            raise PipelineError(f"column {column.name} has type {column.type}, not {expected.field(index).type}")
        if table[column.name].null_count and not expected.field(index).nullable:
            raise PipelineError(f"column {column.name} is null in {table[column.name].null_count} rows")
    if not table.schema.equals(expected) or table.schema.metadata != expected.metadata:
        raise PipelineError(f"the order of columns or the schema's metadata is not that of {row_type.__name__}")


def open_release(folder: Path, code_version: str) -> Release:
    """Return a release folder for checking; ConfigError when it is none or its manifest cannot be read."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; name a release, such as data/releases/2026.11.30")
    try:
        manifest = read_manifest(folder / MANIFEST_NAME)
        config = manifest.read_config()
    except PipelineError as error:
        raise ConfigError(f"{folder} cannot be checked: {error}") from None
    return Release(folder, manifest, config, code_version)


def row_faults(where: str, table: pa.Table, wrong: Sequence[int], text: str) -> list[Fault]:
    """Return a fault for each of the rows at the given places."""
    return [Fault(where, text, table["row_id"][place].as_py()) for place in wrong]
