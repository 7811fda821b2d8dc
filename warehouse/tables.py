"""Parquet files, written whole or not at all, and read with a clear error.

A file is written under a temporary name in its own folder, fsynced, renamed, and the folder is fsynced: a killed run
leaves a temporary file at most, never half a table. The bytes depend on the rows and the schema alone.
"""

import errno
import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.arrow import from_table, schema_of, to_table
from schemas.errors import PipelineError
from schemas.texts import TextRows

TEMPORARY_PREFIX = ".tmp-"
# 50,000-row groups: the measured balance of time, size and scan speed (design notes, "Storage").
ROW_GROUP_ROWS = 50_000
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Packing:
    """How the values of a table are packed."""

    level: int
    """Compression level of zstd."""
    repeating: tuple[str, ...] | None
    """Columns whose values are listed once and numbered, since they repeat; null for all."""
    statistics: bool
    """Whether each row group says the smallest and largest value of its columns."""


# zstd level 3 is the measured balance as well.
TEXTS = Packing(3, None, statistics=True)
# Hashes and numbers become no smaller than at level 1 and in lists, which take three times as long (docs/adr/0006); of
# hashes nearly every row group has all from the smallest to the largest.
NUMBERS = Packing(1, ("stage", "reason", "novelty", "reference", "role", "change", "threshold"), statistics=False)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A finished file as ledger and manifest list it."""

    path: str
    """Path relative to the folder that lists it, with forward slashes."""
    rows: int | None
    """Rows of the table; null for a file that is no table."""
    sha256: str
    """SHA-256 of the file's bytes, hexadecimal."""
    bytes: int
    """Size of the file in bytes."""


def file_entry(path: Path, root: Path, rows: int | None = None) -> FileEntry:
    """Return the entry of a finished file below `root`."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(path.relative_to(root).as_posix(), rows, digest, path.stat().st_size)


def write_table(
    path: Path, table: pa.Table, root: Path | None = None, packing: Packing = TEXTS
) -> FileEntry:  # fmt: skip
    """Write a table to `path` atomically and return its entry, relative to `root` (default: the file's folder).

    Raises PipelineError when the disk is full, the folder is not writable or the rows do not fit the schema; then
    neither `path` nor a temporary file is left behind, and an older file at `path` is unharmed.
    """
    write_atomically(path, lambda temporary: _write_parquet(temporary, table, packing))
    return file_entry(path, root or path.parent, table.num_rows)


def write_rows(path: Path, rows: Sequence[Any], row_type: type, root: Path | None = None) -> FileEntry:
    """Write rows of one dataclass with its explicit schema; see `write_table`."""
    try:
        table = to_table(rows, row_type)
    except (UnicodeEncodeError, pa.ArrowException, OverflowError) as error:
        raise PipelineError(
            f"cannot write {path}: a row does not fit the columns of {row_type.__name__} ({error}); "
            "please report this as a bug"
        ) from error
    return write_table(path, table, root)


def read_table(path: Path, columns: Sequence[str] | None = None, numbered: Sequence[str] = ()) -> pa.Table:
    """Return the table of one file, or some of its columns; raise PipelineError when it is missing or damaged.

    Columns of texts among `numbered` come as dictionaries, which costs least where texts repeat.
    """
    try:
        # ParquetFile, not pq.read_table: that one would turn a folder named `a=b` into a column.
        with pq.ParquetFile(path, read_dictionary=list(numbered), page_checksum_verification=True) as file:
            return file.read(None if columns is None else list(columns))
    except FileNotFoundError:
        raise PipelineError(f"{path} is missing; run the same command again to make it anew") from None
    except (OSError, pa.ArrowException) as error:
        raise PipelineError(
            f"{path} cannot be read ({_one_line(error)}); "
            f"remove it (rm {shlex.quote(str(path))}) and run again to make it anew"
        ) from error


def read_rows(path: Path, row_type: type) -> list[Any]:
    """Return the rows of one file; raise PipelineError when it is missing, damaged or of another schema."""
    table = read_table(path)
    expected = schema_of(row_type)
    if not table.schema.equals(expected) or table.schema.metadata != expected.metadata:
        raise PipelineError(
            f"{path} holds other columns than {row_type.__name__} has now; "
            f"remove it (rm {shlex.quote(str(path))}) and run again"
        )
    return list(from_table(table, row_type))


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, line ends as given; raises as `write_table` does."""
    write_atomically(path, lambda temporary: _write_bytes(temporary, text.encode("utf-8")))


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then fsync and rename it; raises as `write_table` does."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    with explain_os_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            fsync(temporary)
            temporary.replace(path)
            fsync(path.parent)
        except BaseException:  # Ctrl-C included: whatever stopped the write, no half file may stay
            with suppress(OSError):
                temporary.unlink()
            raise


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn what the file system or Arrow says while writing `path` into a PipelineError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            message = f"cannot write {path}: the disk is full; free space and run again, finished work is kept"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = f"cannot write {path}: permission denied; make {path.parent} writable and run again"
        else:
            message = f"cannot write {path}: {_one_line(error)}; see to it and run again, finished work is kept"
        raise PipelineError(message) from error
    except pa.ArrowException as error:
        raise PipelineError(
            f"cannot write {path}: the rows do not fit the columns ({_one_line(error)}); please report this as a bug"
        ) from error


def fsync(path: Path) -> None:
    """Force a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_parquet(path: Path, table: pa.Table, packing: Packing) -> None:
    """Write row groups of one chunk each: chunk borders of the input must not show in the bytes.

    An empty table gets no row group at all, since `datasets` stumbles over a row group without rows. Columns that
    name their values by numbers (dictionaries) are written as the values themselves.
    """
    options = {
        "compression": "zstd",
        "compression_level": packing.level,
        "use_dictionary": True if packing.repeating is None else list(packing.repeating),
        "write_page_checksum": True,
        "write_statistics": packing.statistics,
    }
    numbered = [place for place, kind in enumerate(table.schema.types) if pa.types.is_dictionary(kind)]
    values = {place: _listed_texts(table.column(place)) for place in numbered}
    schema = _plain_schema(table.schema) if numbered else table.schema
    with pq.ParquetWriter(path, schema, **options) as writer:
        for start in range(0, table.num_rows, ROW_GROUP_ROWS):
            part = table.slice(start, ROW_GROUP_ROWS)
            for place, texts in values.items():
                if texts is not None:
                    column = texts.take(part.column(place).chunk(0).indices.to_numpy())
                    part = part.set_column(place, schema.field(place), column)
            part = part.cast(schema) if numbered else part
            writer.write_table(part.combine_chunks(), row_group_size=ROW_GROUP_ROWS)


def _listed_texts(column: pa.ChunkedArray) -> TextRows | None:
    """Return the texts that a dictionary lists; None where Arrow is to look them up."""
    if column.num_chunks != 1 or column.null_count or column.type.value_type != pa.string():
        return None
    texts = column.chunk(0).dictionary
    return None if texts.null_count else TextRows(texts)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the types of a dictionary's values instead of dictionaries."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _one_line(error: Exception) -> str:
    """Return the first line of a message; Arrow appends several."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
