"""Grouping pairs one by one in compiled code, for clusters whose number of pairs is the square of their size.

Clusters are a forest of disjoint sets (Tarjan, JACM 1975; path halving: Tarjan, van Leeuwen, JACM 1984). A root is its
tree's smallest position, so that the result does not depend on the order of pairs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.compiled import compiled
from dedup.jaccard import Ints, Pairs

_Columns = tuple[Ints, Ints, Ints]


class Grouping(NamedTuple):
    """What is known of each set from the pairs so far; changed in place. All arrays have shape (n_sets,)."""

    parent: Ints
    """A smaller position of the same cluster; a cluster's smallest one is its own parent."""
    weight: Ints
    """For each smallest position the number of sets of its cluster; of no meaning for others."""
    similarity: npt.NDArray[np.float64]
    """Highest similarity to any partner."""
    partner: Ints
    """The smallest partner at that similarity."""


def absorb(pairs: Pairs, sizes: Ints, max_listed: int, into: Grouping) -> Pairs:
    """Take pairs in; return those that may have to be listed: inside clusters of at most `max_listed` sets so far."""
    listed = np.empty(len(pairs.left), np.int64)
    count = _absorb((pairs.left, pairs.right, pairs.common), sizes, max_listed, into, listed)
    listed = listed[:count]
    return Pairs(pairs.left[listed], pairs.right[listed], pairs.common[listed])


@compiled
def _absorb(pairs: _Columns, sizes: Ints, max_listed: int, into: Grouping, listed: Ints) -> int:
    """Write the places of pairs to list; return their number."""
    left, right, common = pairs
    count = 0
    for number in range(len(left)):
        a, b, shared = left[number], right[number], common[number]
        _note_best(a, b, shared / (sizes[a] + sizes[b] - shared), into)
        if into.weight[_unite(a, b, into)] <= max_listed:
            listed[count] = number
            count += 1
    return count


@compiled
def _note_best(a: int, b: int, value: float, into: Grouping) -> None:
    """Keep the pair's similarity for each set that has no better partner."""
    if value > into.similarity[a] or (value == into.similarity[a] and b < into.partner[a]):
        into.similarity[a], into.partner[a] = value, b
    if value > into.similarity[b] or (value == into.similarity[b] and a < into.partner[b]):
        into.similarity[b], into.partner[b] = value, a


@compiled
def _unite(a: int, b: int, into: Grouping) -> int:
    """Make the clusters of two sets one; return its smallest position."""
    one, other = _root(a, into.parent), _root(b, into.parent)
    if one == other:
        return one
    low, high = min(one, other), max(one, other)
    into.parent[high] = low
    into.weight[low] += into.weight[high]
    return low


@compiled
def _root(position: int, parent: Ints) -> int:
    """Return the smallest position of a set's cluster; paths to it become half as long."""
    while parent[position] != position:
        parent[position] = parent[parent[position]]
        position = parent[position]
    return position
