"""Sizes of the intersections of many pairs of sets, in compiled code."""

import numpy as np

from dedup.compiled import compiled
from dedup.jaccard import Ints, TokenSets
from dedup.ordered import Ids


def count_overlaps(sets: TokenSets, left: Ints, right: Ints) -> Ints:
    """Return the number of ids that both sets of each pair hold, given by their positions."""
    common = np.empty(len(left), np.int64)
    _count(sets.offsets, sets.ids, (left, right), common)
    return common


@compiled
def _count(offsets: Ints, ids: Ids, pairs: tuple[Ints, Ints], common: Ints) -> None:
    """Walk through both sets of each pair side by side."""
    left, right = pairs
    for number in range(len(left)):
        one, one_end = offsets[left[number]], offsets[left[number] + 1]
        other, other_end = offsets[right[number]], offsets[right[number] + 1]
        count = 0
        while one < one_end and other < other_end:
            a, b = ids[one], ids[other]
            count += a == b
            one += a <= b
            other += b <= a
        common[number] = count
