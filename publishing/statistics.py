"""Numbers about a release's rows that the card shows: features, dates, who the code is by. Exact, so that every
machine writes the same."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from math import sqrt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from publishing.shards import read_shards

# Galeras' Table II (ICSME 2023) has mean and standard deviation of these, by testbed.
FEATURES = (
    "n_ast_nodes", "n_ast_levels", "n_ast_errors", "n_identifiers", "n_words", "vocab_size", "n_whitespaces",
    "token_count", "nloc", "complexity", "doc_n_words", "doc_vocab_size", "doc_n_whitespaces",
)  # fmt: skip
_MAX_MONTHS = 24  # lines of the table of cutoffs that are months; a longer window is told by quarters
_OTHERS = ("row_id", "repo", "license", "license_matches", "copyrights", "author_date", "committer_date")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation of a column."""

    mean: float
    """Arithmetic mean; 0 without rows."""
    std: float
    """Sample standard deviation, which divides by the number of rows less one; 0 below two rows."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The rows that are one repository's under one licence."""

    repo: str
    """owner/name."""
    license: str | None
    """SPDX expression, null when unknown."""
    rows: int
    """Distinct rows."""
    sources: tuple[str, ...]
    """Where the licence was found: paths of licence texts and metadata, `header` for the files' own, sorted."""
    copyrights: tuple[str, ...] = ()
    """Lines that name holders of the rows' copyright, sorted."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers about the rows."""

    features: dict[str, dict[str, Spread]]
    """Of every testbed, by testbed and column."""
    since: tuple[tuple[date, dict[str, int]], ...]
    """For first days of months or quarters, rows of every testbed with both dates on or after the day."""
    attributions: tuple[Attribution, ...]
    """Repositories and licences, sorted."""


def read_statistics(shards: Mapping[str, Sequence[Path]]) -> Statistics:
    """Return the numbers of a release's testbeds, given with their files."""
    tables = {name: read_shards(paths, [*_OTHERS, *FEATURES]) for name, paths in shards.items()}
    dates = {name: _earlier_dates(table) for name, table in tables.items()}
    days = list(_days([day for found in dates.values() for day in found]))
    return Statistics(
        features={
            name: {column: spread_of(table[column]) for column in FEATURES} for name, table in tables.items()
        },
        since=tuple((day, {name: sum(item >= day for item in found) for name, found in dates.items()}) for day in days),
        attributions=tuple(_attributions(tables)),
    )  # fmt: skip


def spread_of(column: pa.ChunkedArray) -> Spread:
    """Return mean and deviation of a column of whole numbers, from exact sums."""
    count, total = len(column), pc.sum(column).as_py() or 0
    squares = pc.sum(pc.multiply_checked(column, column)).as_py() or 0
    if not count:
        return Spread(0.0, 0.0)
    variance = (count * squares - total * total) / (count * (count - 1)) if count > 1 else 0.0
    return Spread(total / count, sqrt(variance))


def _earlier_dates(table: pa.Table) -> list[date]:
    """Return the day, UTC, of the earlier of each row's two dates."""
    pairs = zip(table["author_date"].to_pylist(), table["committer_date"].to_pylist(), strict=True)
    return [min(pair).astimezone(UTC).date() for pair in pairs]


def _days(found: Sequence[date]) -> Iterator[date]:
    """Yield the first day of every month, of a long time of every quarter, from the earliest date to the latest."""
    if not found:
        return
    first, last = min(found), max(found)
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    step = 1 if months <= _MAX_MONTHS else 3
    month = first.year * 12 + (first.month - 1) // step * step
    while month <= last.year * 12 + last.month - 1:
        yield date(month // 12, month % 12 + 1, 1)
        month += step


def _attributions(tables: Mapping[str, pa.Table]) -> Iterator[Attribution]:
    seen: set[str] = set()
    rows: Counter[tuple[str, str | None]] = Counter()
    sources: dict[tuple[str, str | None], set[str]] = {}
    holders: dict[tuple[str, str | None], set[str]] = {}
    for table in tables.values():
        columns = (table[name].to_pylist() for name in ("row_id", "repo", "license", "license_matches", "copyrights"))
        for row_id, repo, license, matches, lines in zip(*columns, strict=True):
            if row_id in seen:
                continue
            seen.add(row_id)
            rows[repo, license] += 1
            parts = (match.rpartition(": ") for match in matches)
            names = set((license or "").replace("(", " ").replace(")", " ").split())
            found = {where for where, _, name in parts if name in names}
            sources.setdefault((repo, license), set()).update(found)
            holders.setdefault((repo, license), set()).update(lines)
    for repo, license in sorted(rows, key=lambda key: (key[0], key[1] or "")):
        key = repo, license
        yield Attribution(repo, license, rows[key], tuple(sorted(sources[key])), tuple(sorted(holders[key])))
