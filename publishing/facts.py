"""What a release folder really holds, read back from its Parquet files: the card says this, not what was intended."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from publishing.examples import SHOWN, Example, find_example
from publishing.shards import EXCLUSIONS, config_order, read_shards
from publishing.shares import FLAGS, READ_COLUMNS, ConfigShares, Shares, config_shares, count_flags, flags
from publishing.statistics import Statistics, read_statistics
from schemas.errors import PipelineError
from warehouse.tables import read_table

UNKNOWN_LICENSE = "unknown"
# Configs that ask for no answer: every row of the others stands in `raw_data` too.
_WITHOUT_ANSWER = frozenset({"raw_data", "raw_data_docstring"})
_FACT_COLUMNS = (
    "row_id", "repo", "license", "language", "novelty", "doc_language", "author_date", "committer_date"
)  # fmt: skip
_UTC = pa.timestamp("us", tz="UTC")


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
    last_committer_date: datetime | None
    """Latest committer date; null without rows."""
    shares: Shares
    """Rows with traits that matter to a user."""
    by_config: dict[str, ConfigShares]
    """Origin and overlap of each testbed's rows."""
    raw_by_repo: dict[str, int]
    """Rows of `raw_data` of each repository, by name; of all configs together when there is no `raw_data`."""
    examples: tuple[Example, ...]
    """A row of each testbed that the card shows, in the order of the configs."""
    statistics: Statistics
    """Features, dates, and who the code is by."""


def read_facts(folder: Path) -> ReleaseFacts:
    """Return the facts of a release folder; raise PipelineError when a file is damaged or schemas differ."""
    configs = read_configs(folder)
    names = [config.name for config in configs if config.name != EXCLUSIONS]
    rows = _distinct_rows(folder, names)
    dates = [column for name in ("author_date", "committer_date") for column in (rows[name],) if rows.num_rows]
    repos = {name: _repo_of_rows(folder, name) for name in names}
    by_repo = _count(rows["repo"])
    return ReleaseFacts(
        configs=configs,
        rows=rows.num_rows,
        by_license=_most_first(_count(pc.fill_null(rows["license"], UNKNOWN_LICENSE))),
        by_repo=by_repo,
        by_novelty=_count(rows["novelty"]),
        by_language=_count(rows["language"]),
        by_doc_language=_most_first(_count(rows["doc_language"].drop_null())),
        first_date=min((pc.min(column).as_py() for column in dates), default=None),
        last_date=max((pc.max(column).as_py() for column in dates), default=None),
        last_committer_date=pc.max(rows["committer_date"]).as_py(),
        shares=count_flags(rows),
        by_config=config_shares(repos, [name for name in names if name not in _WITHOUT_ANSWER]),
        raw_by_repo=dict(sorted(Counter(repos["raw_data"].values()).items())) if "raw_data" in repos else by_repo,
        examples=_examples(folder, [name for name in names if name in SHOWN]),
        statistics=read_statistics({name: shards_of(folder, name) for name in names}),
    )


def read_configs(folder: Path) -> tuple[ConfigFacts, ...]:
    """Return the configs of a release folder in the contract's order; raise PipelineError as `read_facts` does."""
    names = config_order(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("test-*.parquet")))
    return tuple(_config_facts(folder, name) for name in names)


def shards_of(folder: Path, config: str) -> list[Path]:
    """Return a config's Parquet files in order."""
    return sorted((folder / config).glob("test-*.parquet"))


def read_columns(folder: Path, config: str, columns: Sequence[str]) -> pa.Table:
    """Return some columns of all rows of a config; raise PipelineError when a file is damaged."""
    return read_shards(shards_of(folder, config), columns)


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


def _distinct_rows(folder: Path, names: Sequence[str]) -> pa.Table:
    """Return the fact columns and flags of every row once, whatever testbeds it stands in."""
    columns = [
        *(pa.field(name, _UTC if name.endswith("_date") else pa.string()) for name in _FACT_COLUMNS),
        *(pa.field(name, pa.bool_()) for name in FLAGS),
    ]
    tables = [pa.schema(columns).empty_table()]
    for name in names:
        table = read_columns(folder, name, sorted({*_FACT_COLUMNS, *READ_COLUMNS}))
        values = {column: table[column] for column in _FACT_COLUMNS} | flags(table)
        tables.append(pa.table(values).cast(pa.schema(columns)))
    names_of_columns = [column.name for column in columns]
    return pa.concat_tables(tables).group_by(names_of_columns).aggregate([])


def _repo_of_rows(folder: Path, name: str) -> dict[str, str]:
    """Return the repository of each row of a config by row id."""
    table = read_columns(folder, name, ["row_id", "repo"])
    return dict(zip(table["row_id"].to_pylist(), table["repo"].to_pylist(), strict=True))


def _examples(folder: Path, names: Sequence[str]) -> tuple[Example, ...]:
    """Return a row of each config that has one to show, from different repositories where they have them."""
    examples: list[Example] = []
    for name in names:
        example = find_example(name, shards_of(folder, name), [earlier.repo for earlier in examples])
        if example is not None:
            examples.append(example)
    return tuple(examples)


def _count(column: pa.ChunkedArray) -> dict[str, int]:
    """Return the number of rows of each value, ordered by value."""
    return dict(sorted((item["values"], item["counts"]) for item in pc.value_counts(column).to_pylist()))


def _most_first(counts: dict[str, int]) -> dict[str, int]:
    """Return counts from the largest on, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
