"""What a release folder really holds, read back from its Parquet files: the card says this, not what was intended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from publishing.shards import EXCLUSIONS, config_order
from schemas.errors import PipelineError
from warehouse.tables import read_table

UNKNOWN_LICENSE = "unknown"
_FACT_COLUMNS = (
    "row_id", "repo", "license", "language", "novelty", "doc_language", "author_date", "committer_date"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One config's files."""

    name: str
    """Name of the config."""
    schema: pa.Schema
    """Schema that all its files share."""
    rows: int
    """Rows of all files."""
    num_bytes: int
    """Size of all rows in Arrow, as `datasets` counts it."""
    download_size: int
    """Size of all files in bytes."""


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What the card states about the rows; a row that stands in several configs counts once."""

    configs: tuple[ConfigFacts, ...]
    """Configs in the contract's order, exclusions last."""
    rows: int
    """Distinct rows of all testbeds."""
    by_license: dict[str, int]
    """Rows of each SPDX expression, most first; `UNKNOWN_LICENSE` counts rows without one."""
    by_repo: dict[str, int]
    """Rows of each repository, by name."""
    by_novelty: dict[str, int]
    """Rows of each novelty class, by name."""
    by_language: dict[str, int]
    """Rows of each programming language, by name."""
    by_doc_language: dict[str, int]
    """Rows with a docstring, by its natural language, most first."""
    first_date: datetime | None
    """Earliest author or committer date; null without rows."""
    last_date: datetime | None
    """Latest author or committer date; null without rows."""


def read_facts(folder: Path) -> ReleaseFacts:
    """Return the facts of a release folder; raise PipelineError when a file is damaged or schemas differ."""
    names = config_order(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("test-*.parquet")))
    configs = tuple(_config_facts(folder, name) for name in names)
    rows = _distinct_rows(folder, [config for config in configs if config.name != EXCLUSIONS])
    dates = [column for name in ("author_date", "committer_date") for column in (rows[name],) if rows.num_rows]
    return ReleaseFacts(
        configs=configs,
        rows=rows.num_rows,
        by_license=_most_first(_count(pc.fill_null(rows["license"], UNKNOWN_LICENSE))),
        by_repo=_count(rows["repo"]),
        by_novelty=_count(rows["novelty"]),
        by_language=_count(rows["language"]),
        by_doc_language=_most_first(_count(rows["doc_language"].drop_null())),
        first_date=min((pc.min(column).as_py() for column in dates), default=None),
        last_date=max((pc.max(column).as_py() for column in dates), default=None),
    )


def shards_of(folder: Path, config: str) -> list[Path]:
    """Return a config's Parquet files in order."""
    return sorted((folder / config).glob("test-*.parquet"))


def _config_facts(folder: Path, name: str) -> ConfigFacts:
    schema: pa.Schema | None = None
    rows = num_bytes = download_size = 0
    for path in shards_of(folder, name):
        table = read_table(path)
        if schema is not None and not table.schema.equals(schema, check_metadata=True):
            raise PipelineError(
                f"{path} has other columns than the first file of its config; remove the release folder"
            )
        schema = table.schema
        rows += table.num_rows
        num_bytes += table.nbytes
        download_size += path.stat().st_size
    if schema is None:
        raise PipelineError(f"{folder / name} has no Parquet file; remove the release folder and run again")
    return ConfigFacts(name, schema, rows, num_bytes, download_size)


def _distinct_rows(folder: Path, configs: Sequence[ConfigFacts]) -> pa.Table:
    """Return the fact columns of every row once, whatever testbeds it stands in."""
    empty = pa.schema(
        [
            pa.field(name, pa.timestamp("us", tz="UTC") if name.endswith("_date") else pa.string())
            for name in _FACT_COLUMNS
        ]
    )
    tables = [empty.empty_table()]
    for config in configs:
        for path in shards_of(folder, config.name):
            with pq.ParquetFile(path) as file:
                tables.append(file.read(columns=list(_FACT_COLUMNS)).select(_FACT_COLUMNS).cast(empty))
    return pa.concat_tables(tables).group_by(list(_FACT_COLUMNS)).aggregate([])


def _count(column: pa.ChunkedArray) -> dict[str, int]:
    """Return the number of rows of each value, ordered by value."""
    return dict(sorted((item["values"], item["counts"]) for item in pc.value_counts(column).to_pylist()))


def _most_first(counts: dict[str, int]) -> dict[str, int]:
    """Return counts from the largest on, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
