"""Equal token sets collapsed to one, so that the join compares each set once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup.jaccard import Ints, Pairs, TokenSets, chunks

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd (Knuth, TAOCP 3, 6.4): spreads consecutive ids


@dataclass(frozen=True, slots=True)
class Groups:
    """Sets grouped by equality; groups in ascending order of their first set."""

    first: Ints
    """Position of each group's first set, ascending, shape (n_groups,)."""
    group: Ints
    """Number of each set's group, shape (n_sets,)."""

    @property
    def weights(self) -> Ints:
        """Return the number of sets of each group."""
        return np.bincount(self.group, minlength=len(self.first))

    def members(self) -> tuple[Ints, Ints]:
        """Return all positions, group by group and ascending in each, and where each group starts among them."""
        starts = np.zeros(len(self.first) + 1, np.int64)
        np.cumsum(self.weights, out=starts[1:])
        return np.argsort(self.group, kind="stable"), starts


def group_equal(sets: TokenSets, min_distinct: int) -> Groups:
    """Group equal sets; those with fewer than `min_distinct` ids, and empty ones, stay alone.

    Digests propose and the ids themselves decide. Two different sets with one digest, which is not expected to
    occur, would at worst keep equal sets apart, and the join finds those as pairs.
    """
    n_sets = len(sets.sizes)
    compared = np.flatnonzero(sets.sizes >= max(min_distinct, 1))
    digest, sizes = _digests(sets)[compared], sets.sizes[compared]
    order = compared[np.lexsort((compared, digest, sizes))]
    digest, sizes = _sorted_with(order, compared, digest), sets.sizes[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (digest[1:] != digest[:-1]) | (sizes[1:] != sizes[:-1])
    leader = np.arange(n_sets)
    leader[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    follows = np.flatnonzero(leader != np.arange(n_sets))
    unequal = follows[~_equal(sets, follows, leader[follows])]
    leader[unequal] = unequal
    leads = leader == np.arange(n_sets)
    return Groups(np.flatnonzero(leads), (np.cumsum(leads) - 1)[leader])


def expand_pairs(pairs: Pairs, groups: Groups, sizes: Ints, listed: npt.NDArray[np.bool_]) -> Pairs:
    """Return the pairs of sets that pairs of groups stand for, and those within each group that is `listed`.

    `sizes` are those of the groups' sets. Ascending by (left, right).
    """
    members, starts = groups.members()
    weights = groups.weights
    inside = np.flatnonzero(listed & (weights > 1))
    one = np.concatenate([pairs.left, inside])
    other = np.concatenate([pairs.right, inside])
    common = np.concatenate([pairs.common, sizes[inside]])
    count = weights[one] * weights[other]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    width = np.repeat(weights[other], count)
    left = members[np.repeat(starts[one], count) + within // width]
    right = members[np.repeat(starts[other], count) + within % width]
    # A group meets itself both ways round, and each set itself; two groups meet once.
    wanted = (left < right) | (np.repeat(one, count) != np.repeat(other, count))
    left, right = np.minimum(left, right)[wanted], np.maximum(left, right)[wanted]
    order = np.lexsort((right, left))
    return Pairs(left[order], right[order], np.repeat(common, count)[wanted][order])


def _digests(sets: TokenSets) -> npt.NDArray[np.uint64]:
    """Return a digest of each set: the sum of its ids' scattered values, 0 for an empty one."""
    values = (np.arange(1, sets.vocab_size + 1, dtype=np.uint64)) * _MIX
    values ^= values >> np.uint64(29)
    values *= _MIX
    digests = np.zeros(len(sets.sizes), np.uint64)
    filled = np.flatnonzero(sets.sizes)
    for chunk in chunks(sets.sizes[filled]):
        starts = sets.offsets[filled[chunk]]
        end = sets.offsets[filled[chunk.stop - 1] + 1]
        digests[filled[chunk]] = np.add.reduceat(values[sets.ids[starts[0] : end]], starts - starts[0])
    return digests


def _sorted_with(order: Ints, compared: Ints, digest: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the digests, given for the ascending positions `compared`, in the order of `order`."""
    return digest[np.searchsorted(compared, order)]


def _equal(sets: TokenSets, one: Ints, other: Ints) -> npt.NDArray[np.bool_]:
    """Return whether the sets of each pair, which have the same size above zero, hold the same ids."""
    equal = np.zeros(len(one), np.bool_)
    for chunk in chunks(sets.sizes[one]):
        left, right = sets.take(one[chunk]), sets.take(other[chunk])
        equal[chunk] = np.logical_and.reduceat(left.ids == right.ids, left.offsets[:-1])
    return equal
