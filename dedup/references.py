"""Reference sets: known benchmarks and earlier releases, read from Parquet or JSONL, cut into texts to compare with."""

import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dedup.tokens import is_unicode
from features.docstrings import code_without_docstring
from miners.methods import dedent, find_methods
from miners.syntax import check_comment_runs, parse
from schemas.comparisons import ReferenceText
from schemas.errors import ConfigError, DataError
from schemas.records import Exclusion
from schemas.references import ReferenceConfig, Role

STAGE = "references"
RELEASE_DATA = "raw_data/test-*.parquet"
RELEASE_EXCLUSIONS = "exclusions/test-*.parquet"
# Reasons of exclusions that another state of the duplicate search can take back.
DUPLICATE_REASONS = frozenset({"exact_duplicate", "near_duplicate", "in_reference", "in_earlier_release"})
_KINDS = (".parquet", ".jsonl", ".jsonl.gz", ".ndjson", ".json")
_BATCH_ROWS = 10_000  # rows in memory at once: 50 MB of code at 5 kB a row

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReferenceFiles:
    """A configured set and the files that it is read from."""

    reference: ReferenceConfig
    """The set's configuration."""
    files: tuple[Path, ...]
    """Its files, sorted."""
    sha256: tuple[str, ...]
    """Digest of each file; of a release's last that of what it says of its exclusions."""

    @property
    def title(self) -> str:
        """Return the set's name."""
        return self.reference.title

    @property
    def identity(self) -> list[object]:
        """Return what the set's texts depend on: not where its files are."""
        plain = replace(self.reference, path=None, release=None, name=self.title, role=self.reference.kind)
        return [plain, [path.name for path in self.files], list(self.sha256)]


def locate(reference: ReferenceConfig, base: Path, workspace: Path) -> ReferenceFiles:
    """Find and hash the files of a set; raise ConfigError as `find_files` does or when one cannot be read."""
    files = find_files(reference, base, workspace)
    extra = sorted(files[0].parent.parent.glob(RELEASE_EXCLUSIONS)) if reference.release is not None else []
    try:
        digests = [file_digest(path) for path in files]
        if extra:
            digests.append(hashlib.sha256("".join(file_digest(path) for path in extra).encode()).hexdigest())
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror}; see to it") from error
    return ReferenceFiles(reference, tuple(files), tuple(digests))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_files(reference: ReferenceConfig, base: Path, workspace: Path) -> list[Path]:
    """Return the files of a set, sorted; `base` is the configuration's folder.

    Raises ConfigError that says what to do when there is none, or one of another kind.
    """
    if reference.release is not None:
        folder = workspace / Path(reference.release).expanduser()
        found = sorted(folder.glob(RELEASE_DATA))
        if not found:
            raise ConfigError(
                f"{folder} holds no release ({RELEASE_DATA}); correct `release` in [[dedup.references]], "
                "relative to the workspace or absolute"
            )
        return found
    named = base / Path(reference.path or "").expanduser()
    pattern = Path(os.path.abspath(named))  # noqa: PTH100 - resolve() follows links, whose names are the set's
    found = [pattern] if pattern.is_file() else sorted(_glob(pattern))
    if not found:
        raise ConfigError(f"{pattern} is no file and matches none; correct `path` in [[dedup.references]]")
    odd = [path for path in found if not path.name.lower().endswith(_KINDS)]
    if odd:
        raise ConfigError(f"{odd[0]} is of no known kind; reference sets are {', '.join(_KINDS)} files")
    return found


def _glob(pattern: Path) -> Iterator[Path]:
    """Yield the files that match an absolute pattern."""
    relative = pattern.relative_to(pattern.anchor)
    return (path for path in Path(pattern.anchor).glob(relative.as_posix()) if path.is_file())


@dataclass(frozen=True, slots=True)
class ReferenceData:
    """What a set's files hold."""

    texts: list[ReferenceText]
    """Texts to compare with, in the order of files and rows."""
    excluded: list[Exclusion]
    """Rows without text (`reference_not_text`) and lines that are no JSON object (`reference_line_invalid`)."""
    n_rows: int
    """Rows of the wanted language, the excluded ones among them."""
    n_other_language: int
    """Rows of another language."""
    earlier: list[Exclusion]
    """Of an earlier release, the exclusions that the duplicate search gave."""


def read_reference(reference: ReferenceConfig, files: Sequence[Path]) -> ReferenceData:
    """Read a set; raise ConfigError for a damaged file or a column that the files do not have."""
    texts: list[ReferenceText] = []
    excluded: list[Exclusion] = []
    n_rows = n_other = 0
    for path in files:
        for number, row in enumerate(_rows(reference, path)):
            if row is not None and not _is_wanted(reference, row):
                n_other += 1
                continue
            n_rows += 1
            row_id = _row_id(reference, path, number, row)
            code = None if row is None else _code(reference, row)
            if code is None:
                reason = "reference_line_invalid" if row is None else "reference_not_text"
                detail = "no JSON object" if row is None else f"no text in {', '.join(_columns(reference))}"
                excluded.append(Exclusion(f"{reference.title}:{row_id}", STAGE, reason, detail))
                continue
            parts = _release_text(code) if reference.kind is Role.RELEASE else split_code(code)
            texts.extend(ReferenceText(reference.title, row_id, part, text) for part, text in parts)
    earlier = _earlier(files[0].parent.parent) if reference.release is not None else []
    return ReferenceData(texts, excluded, n_rows, n_other, earlier)


def _earlier(release: Path) -> list[Exclusion]:
    """Return what the duplicate search of an earlier release left out, in the order of its files."""
    found = []
    for path in sorted(release.glob(RELEASE_EXCLUSIONS)):
        try:
            with pq.ParquetFile(path) as file:
                rows = file.read(columns=["row_id", "stage", "reason", "detail"]).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"{path} cannot be read ({error}); make that release again") from error
        found += [Exclusion(**row) for row in rows if row["reason"] in DUPLICATE_REASONS]
    return found


def _columns(reference: ReferenceConfig) -> tuple[str, ...]:
    return ("code",) if reference.release is not None else reference.columns


def _id_column(reference: ReferenceConfig) -> str | None:
    return "row_id" if reference.release is not None else reference.id


def _rows(reference: ReferenceConfig, path: Path) -> Iterator[Row | None]:
    """Yield a file's rows with the columns that are read; None for a line that is no JSON object."""
    named = (*_columns(reference), _id_column(reference), reference.language_column)
    columns = list(dict.fromkeys(name for name in named if name is not None))
    reader = _parquet_rows if path.name.lower().endswith(".parquet") else _json_rows
    try:
        yield from reader(path, columns)
    except (OSError, EOFError, pa.ArrowException, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); fetch it again or correct `path`") from error


def _missing(path: Path, missing: Sequence[str], known: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"{path} has no column {', '.join(missing)}; it has {', '.join(known)}; name others in [[dedup.references]]"
    )


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        known = file.schema_arrow.names
        missing = [name for name in columns if name not in known]
        if missing:
            raise _missing(path, missing, known)
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
            yield from batch.to_pylist()


def _json_rows(path: Path, columns: Sequence[str]) -> Iterator[Row | None]:
    """Yield the objects of a file with one a line; a column that no line has is an error, blank lines are no rows."""
    seen: set[str] = set()
    n_rows = 0
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            n_rows += 1
            if isinstance(row, dict):
                seen |= row.keys()
                yield row
            else:
                yield None
    missing = [name for name in columns if name not in seen]
    if n_rows and missing:
        raise _missing(path, missing, sorted(seen))


def _is_wanted(reference: ReferenceConfig, row: Row) -> bool:
    if reference.language_column is None:
        return True
    return str(row.get(reference.language_column)).casefold() == reference.language.casefold()


def _row_id(reference: ReferenceConfig, path: Path, number: int, row: Row | None) -> str:
    column = _id_column(reference)
    value = None if row is None or column is None else row.get(column)
    return f"{path.name}#{number}" if value is None else str(value)


def _code(reference: ReferenceConfig, row: Row) -> str | None:
    """Return a row's code; None when one of its columns is null, no text, or has no UTF-8 form."""
    values = [row.get(name) for name in _columns(reference)]
    texts = [value for value in values if isinstance(value, str) and is_unicode(value)]
    return "".join(texts) if len(texts) == len(values) and any(text.strip() for text in texts) else None


def _release_text(code: str) -> list[tuple[str | None, str]]:
    """Return a data point's code as data points are compared."""
    try:
        return [(None, code_without_docstring(code))]
    except DataError:
        return [(None, code)]


def split_code(code: str) -> list[tuple[str | None, str]]:
    """Return the texts of a benchmark's program: name and text of each method in it, else the whole text without name.

    Methods are those of the data contract (functions inside functions belong to them), each dedented and without its
    docstring, as data points are compared. Text between them is not compared.
    """
    source = code.encode("utf-8")
    try:
        check_comment_runs(source)
        spans = find_methods(source, parse(source))
    except DataError:
        spans = []
    parts: list[tuple[str | None, str]] = []
    for span in spans:
        text = source[span.start_byte : span.end_byte].decode("utf-8", "replace")
        try:
            text = dedent(source, span)
            text = code_without_docstring(text)
        except DataError:
            pass  # compared as far as it could be brought into the form of a data point
        parts.append((span.fun_name, text))
    return parts or [(None, code)]
