"""Set-similarity joins: every pair of sets at or above a Jaccard threshold, with the size of its intersection.

`join_within` compares a collection with itself, `join_between` two collections. Both are exact: no pair is missed
(`dedup.candidates`), and every pair is decided with integers (`dedup.jaccard`).
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dedup.candidates import iter_candidates
from dedup.jaccard import Pairs, TokenSets, join_sets, verify


def join_within(sets: TokenSets, threshold: Fraction, min_distinct: int) -> Iterator[Pairs]:
    """Yield blocks of all pairs of positions, left < right, with Jaccard similarity at or above the threshold.

    Sets with fewer than `min_distinct` ids, and empty ones, are in no pair. No pair comes twice; memory is bounded by
    the block, not by the number of pairs.
    """
    compared = np.flatnonzero(sets.sizes >= max(min_distinct, 1))
    for longer, shorter in iter_candidates(sets.take(compared), threshold):
        for pairs in verify(sets, compared[longer], compared[shorter], threshold):
            yield Pairs(np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right), pairs.common)


def join_between(rows: TokenSets, references: TokenSets, threshold: Fraction, min_distinct: int) -> Iterator[Pairs]:
    """Yield blocks of all pairs (position in `rows`, position in `references`) at or above the threshold.

    Sets with fewer than `min_distinct` ids, and empty ones, are in no pair. No pair comes twice. Both collections
    must come from one tokenizer.
    """
    n_rows = len(rows.sizes)
    for pairs in join_within(join_sets([rows, references], rows.vocab_size), threshold, min_distinct):
        across = (pairs.left < n_rows) & (pairs.right >= n_rows)
        if across.any():
            yield Pairs(pairs.left[across], pairs.right[across] - n_rows, pairs.common[across])
