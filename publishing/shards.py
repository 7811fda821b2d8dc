"""Release tables as sorted Parquet shards."""

import re
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from schemas.config import ALL_TESTBEDS
from schemas.errors import PipelineError
from warehouse.tables import FileEntry, read_table, write_table

EXCLUSIONS = "exclusions"
# Shards of about 256 MB: few enough for one commit to a hub, small enough to fetch one (design notes, "Storage").
SHARD_BYTES = 256_000_000
_FIXED_WIDTH_BYTES = 8
_CONFIG_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ROW_ORDER = ("repo", "committer_date", "commit_id", "path", "start_byte", "row_id")
_EXCLUSION_ORDER = ("stage", "row_id", "reason", "detail")


def config_order(names: Iterable[str]) -> list[str]:
    """Return config names in the contract's order, unknown ones behind it by name, exclusions last."""
    rank = {name: index for index, name in enumerate(ALL_TESTBEDS)}
    return sorted(names, key=lambda name: (name == EXCLUSIONS, rank.get(name, len(rank)), name))


def order_of(config: str) -> tuple[str, ...]:
    """Return the columns that a config's rows are sorted by."""
    return _EXCLUSION_ORDER if config == EXCLUSIONS else _ROW_ORDER


def shard_pattern(config: str) -> str:
    """Return the card's pattern of a config's files."""
    return f"{config}/test-*.parquet"


def write_shards(folder: Path, config: str, table: pa.Table) -> list[FileEntry]:
    """Sort a config's rows by the total order and write its shards; paths in the entries start at `folder`.

    Raises PipelineError for an impossible config name, a column of the order that is missing, or a row id that
    occurs twice.
    """
    if not _CONFIG_NAME.fullmatch(config):
        raise PipelineError(f"{config!r} cannot name a config: use lower-case letters, digits and _")
    order = _total_order(config, table)
    wide = _wide(table)
    n_rows = max(1, ceil(table.num_rows / max(1, ceil(_data_bytes(table) / SHARD_BYTES))))
    n_shards = max(1, ceil(table.num_rows / n_rows))
    return [
        write_table(
            folder / config / f"test-{index:05d}-of-{n_shards:05d}.parquet",
            wide.take(order.slice(index * n_rows, n_rows)).cast(table.schema),
            folder,
        )
        for index in range(n_shards)
    ]


def read_shards(paths: Iterable[Path], columns: Sequence[str]) -> pa.Table:
    """Return some columns of all rows of a config, given by its files; raise PipelineError as `read_table`."""
    return pa.concat_tables([read_table(path, columns) for path in paths])


def _total_order(config: str, table: pa.Table) -> pa.Array:
    """Return the row numbers in the release's order."""
    order = order_of(config)
    missing = [name for name in order if name not in table.column_names]
    if missing:
        raise PipelineError(f"{config} has no column {', '.join(missing)}; please report this as a bug")
    if config != EXCLUSIONS and pc.count_distinct(table["row_id"]).as_py() != table.num_rows:
        raise PipelineError(f"{config} has a row id twice, so its rows have no order; please report this as a bug")
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in order])


def _wide(table: pa.Table) -> pa.Table:
    """Return the table in one chunk with 64-bit offsets: `take` joins chunks, which may pass 2 GB."""
    wide = [
        column.with_type(pa.large_string()) if pa.types.is_string(column.type) else column for column in table.schema
    ]
    return table.cast(pa.schema(wide, table.schema.metadata)).combine_chunks()


def _data_bytes(table: pa.Table) -> int:
    """Return the size of the values alone: unlike `nbytes` the same for every chunking of the same rows."""
    size = 0
    for column in table.columns:
        if pa.types.is_string(column.type):
            size += pc.sum(pc.binary_length(column)).as_py() or 0
        else:
            size += _FIXED_WIDTH_BYTES * table.num_rows
    return size
