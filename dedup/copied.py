"""Novelty class `copied_old`: brand-new methods that resemble a method of the tree at the cutoff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dedup.jaccard import exact_threshold
from dedup.matches import Matches, best_matches
from dedup.token_table import TokenTable
from schemas.comparisons import OldCopy
from schemas.config import DedupConfig
from schemas.records import Exclusion, Novelty

STAGE = "dedup_old"
NEW_COLUMNS = ("row_id", "repo", "novelty")
OLD_COLUMNS = ("repo", "commit_id", "path", "fun_name", "start_line")


@dataclass(frozen=True, slots=True)
class Described:
    """Texts and what is known of them, row by row."""

    rows: pa.Table
    """Columns `NEW_COLUMNS` of data points, or `OLD_COLUMNS` of old methods."""
    tokens: TokenTable
    """Token sets of their texts."""


def find_copies(
    new: Described, old: Iterable[Described], config: DedupConfig, threads: int | None = None
) -> list[OldCopy]:
    """Return the rows of class `added` that resemble an old method, each with the most similar one, by row id.

    `old` gives the old methods in parts, by repository, path and place; one part at a time is in memory. Similar means
    equal texts or a Jaccard similarity of at least `config.threshold`; methods with fewer than
    `config.min_distinct_tokens` distinct tokens are compared for equality only.
    """
    threshold = exact_threshold(config.threshold)
    added = np.flatnonzero(pc.equal(new.rows.column("novelty"), Novelty.ADDED.value).to_numpy())
    if not len(added):
        return []
    rows, tokens = new.rows.take(pa.array(added)), new.tokens.take(added)
    best: dict[int, OldCopy] = {}
    for part in old:
        matches = best_matches(tokens, part.tokens, threshold, config.min_distinct_tokens, threads)
        for position, copy in zip(matches.row.tolist(), _copies(rows, part.rows, matches), strict=True):
            earlier = best.get(position)
            if earlier is None or (copy.jaccard, copy.exact) > (earlier.jaccard, earlier.exact):
                best[position] = copy
    return sorted(best.values(), key=lambda item: item.row_id)


def _copies(rows: pa.Table, old: pa.Table, matches: Matches) -> list[OldCopy]:
    found = rows.select(["row_id", "repo"]).take(pa.array(matches.row))
    named = old.select(OLD_COLUMNS).take(pa.array(matches.other))
    columns = [
        *(column.to_pylist() for column in found.columns),
        matches.jaccard.tolist(),
        matches.exact.tolist(),
        *(column.to_pylist() for column in named.columns),
    ]
    return [OldCopy(*values) for values in zip(*columns, strict=True)]


def exclude_copies(rows: pa.Table, copies: Sequence[OldCopy], wanted: Sequence[Novelty]) -> list[Exclusion]:
    """Return an exclusion for every row whose class, now that copies are known, is not wanted; by row id.

    Only `added` splits in two: a copy is `copied_old` and goes on when that class is wanted, any other row of class
    `added` when `added` is. Rows of other classes were asked for by name and go on. `rows` have `NEW_COLUMNS`.
    """
    excluded = []
    if Novelty.COPIED_OLD not in wanted:
        excluded += [Exclusion(copy.row_id, STAGE, "copied_old", evidence(copy)) for copy in copies]
    if Novelty.ADDED not in wanted:
        is_copy = pc.is_in(rows.column("row_id"), pa.array([copy.row_id for copy in copies], pa.string()))
        others = rows.filter(pc.and_not(pc.equal(rows.column("novelty"), Novelty.ADDED.value), is_copy))
        excluded += [
            Exclusion(row_id, STAGE, "novelty_added", "resembles no old method")
            for row_id in others.column("row_id").to_pylist()
        ]
    return sorted(excluded, key=lambda item: item.row_id)


def evidence(copy: OldCopy) -> str:
    """Return what an exclusion says of a copy: `jaccard=J old=repo@commit:path:line name`."""
    place = f"{copy.old_repo}@{copy.old_commit_id}:{copy.old_path}:{copy.old_start_line}"
    return f"jaccard={copy.jaccard} old={place} {copy.old_fun_name}"
