"""The most similar text of another set for each row: rows against old code and against reference sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dedup.jaccard import Ints, TokenSets
from dedup.join import join_between
from dedup.tokens import BpeTokenizer, is_unicode
from dedup.words import WordCache


@dataclass(frozen=True, slots=True)
class Match:
    """A row and the text of the other set that resembles it most."""

    row: int
    """Position of the row."""
    other: int
    """Position of the other text: the most similar one, an equal text before an equal set, the first of equals."""
    jaccard: float
    """Exact similarity of the two."""
    exact: bool
    """The texts are equal."""
    n_matches: int
    """Texts of the other set at or above the threshold; equal texts count each, of short rows they alone."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts with their token sets; one without a UTF-8 form has no tokens and matches nothing."""

    texts: tuple[str | None, ...]
    """The texts; null for one without a UTF-8 form."""
    sets: TokenSets
    """Their token sets."""


def encode(texts: Sequence[str], tokenizer: BpeTokenizer) -> Texts:
    """Return texts with their token sets."""
    usable = tuple(text if is_unicode(text) else None for text in texts)
    return Texts(usable, WordCache(tokenizer).encode_sets([text or "" for text in usable]))


@dataclass(slots=True)
class _Best:
    """State while pairs come in, by row."""

    similarity: npt.NDArray[np.float64]
    other: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]


def best_matches(rows: Texts, others: Texts, threshold: Fraction, min_distinct: int) -> list[Match]:
    """Return the best match of each row that has one, by row.

    A pair matches when its texts are equal or, both having at least `min_distinct` distinct ids, when the Jaccard
    similarity of their token sets is at or above the threshold.
    """
    n_rows, n_others = len(rows.texts), len(others.texts)
    best = _Best(np.full(n_rows, -1.0), np.full(n_rows, n_others), np.zeros(n_rows, np.int64))
    for pairs in join_between(rows.sets, others.sets, threshold, min_distinct):
        sizes = rows.sets.sizes[pairs.left] + others.sets.sizes[pairs.right]
        _note(best, pairs.left, pairs.right, pairs.common / (sizes - pairs.common), n_others)
    equal: dict[str, list[int]] = {}
    for position, text in enumerate(others.texts):
        if text is not None:
            equal.setdefault(text, []).append(position)
    matches = []
    for row, text in enumerate(rows.texts):
        same = equal.get(text, []) if text is not None else []
        if same:
            matches.append(Match(row, same[0], 1.0, True, max(int(best.count[row]), len(same))))
        elif best.count[row]:
            other, jaccard = int(best.other[row]), float(best.similarity[row])
            matches.append(Match(row, other, jaccard, False, int(best.count[row])))
    return matches


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
