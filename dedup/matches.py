"""The most similar text of another set for each row: rows against old code and against reference sets."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from dedup.jaccard import Ints
from dedup.join import join_between
from dedup.token_table import TokenTable


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows that resemble a text of the other set, ascending, each with the text that resembles it most; columns."""

    row: Ints
    """Position of the row."""
    other: Ints
    """Position of the other text: the most similar one, an equal text before an equal set, the first of equals."""
    jaccard: npt.NDArray[np.float64]
    """Exact similarity of the two."""
    exact: npt.NDArray[np.bool_]
    """The texts are equal."""
    n_matches: Ints
    """Texts of the other set at or above the threshold; equal texts count each, of short rows they alone."""


@dataclass(slots=True)
class _Best:
    """State while pairs come in, by row."""

    similarity: npt.NDArray[np.float64]
    other: Ints
    count: Ints


def best_matches(
    rows: TokenTable, others: TokenTable, threshold: Fraction, min_distinct: int, threads: int | None = None
) -> Matches:
    """Return the best match of each row that has one.

    A pair matches when its texts are equal or, both having at least `min_distinct` distinct ids, when the Jaccard
    similarity of their token sets is at or above the threshold. `threads` (default: all cores) changes nothing else.
    """
    n_rows, n_others = len(rows.sets.sizes), len(others.sets.sizes)
    best = _Best(np.full(n_rows, -1.0), np.full(n_rows, n_others), np.zeros(n_rows, np.int64))
    for pairs in join_between(rows.sets, others.sets, threshold, min_distinct, threads):
        sizes = rows.sets.sizes[pairs.left] + others.sets.sizes[pairs.right]
        _note(best, pairs.left, pairs.right, pairs.common / (sizes - pairs.common), n_others)
    first, n_equal = _equal_texts(rows, others)
    exact = first >= 0
    row = np.flatnonzero(exact | (best.count > 0))
    return Matches(
        row,
        np.where(exact, first, best.other)[row],
        np.where(exact, 1.0, best.similarity)[row],
        exact[row],
        np.maximum(best.count, n_equal)[row],
    )


def _equal_texts(rows: TokenTable, others: TokenTable) -> tuple[Ints, Ints]:
    """Return for each row the first other text that equals it, -1 without one, and how many there are."""
    texts = others.digest.combine_chunks().dictionary_encode()
    distinct = texts.dictionary  # in order of first appearance
    number = texts.indices.to_numpy().astype(np.int64)
    first = np.full(len(distinct) + 1, -1)
    first[number[::-1]] = np.arange(len(number))[::-1]
    count = np.bincount(number, minlength=len(distinct) + 1)
    found: Ints = pc.index_in(rows.digest, distinct).combine_chunks().fill_null(-1).to_numpy().astype(np.int64)
    return first[found], count[found]


def _note(best: _Best, row: Ints, other: Ints, similarity: npt.NDArray[np.float64], n_others: int) -> None:
    """Keep each row's highest similarity and the first text that has it.

    Floats decide exactly here: fractions of set sizes below 2**26 that differ give floats that differ.
    """
    before = best.similarity.copy()
    np.maximum.at(best.similarity, row, similarity)
    best.other[best.similarity > before] = n_others
    top = similarity == best.similarity[row]
    np.minimum.at(best.other, row[top], other[top])
    np.add.at(best.count, row, 1)
