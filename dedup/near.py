"""Near duplicates among token sets: the exact set-similarity join, clusters, and the evidence for each removal."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dedup.clusters import MAX_LISTED_CLUSTER, NearDuplicates, group_pairs
from dedup.equal import Groups, expand_pairs, group_equal
from dedup.jaccard import Ints, Pairs, TokenSets, count_common, join_pairs, reaches, similarity
from dedup.join import join_between, join_within


@dataclass(frozen=True, slots=True)
class Removal:
    """Why one set does not stay; positions of sets are their keeper order."""

    position: int
    """The set that goes."""
    keeper: int
    """The set that stays in its place."""
    jaccard: float
    """Similarity of the two."""
    partner: int
    """The most similar set in its cluster."""
    partner_jaccard: float
    """Similarity to that one, at or above the threshold."""
    direct: bool
    """The keeper itself is at or above the threshold; otherwise a chain of pairs leads to it."""


def find_near_duplicates(
    sets: TokenSets, threshold: Fraction, min_distinct: int, max_listed: int = MAX_LISTED_CLUSTER
) -> NearDuplicates:
    """Return pairs and clusters of all sets with at least `min_distinct` ids and similarity at or above the threshold.

    Sets are given in keeper order. Recall is 1 by construction, precision by verification (`dedup.join`).
    """
    groups = group_equal(sets, min_distinct)
    distinct = sets.take(groups.first)
    weights = groups.weights
    found = group_pairs(distinct.sizes, join_within(distinct, threshold, min_distinct), max_listed, weights)
    cluster_sizes = np.bincount(found.keeper, weights, minlength=len(weights))
    listed = cluster_sizes[found.keeper] <= max_listed
    return NearDuplicates(
        keeper=groups.first[found.keeper[groups.group]],
        partner=_partners(groups, found.partner),
        similarity=np.where(weights > 1, 1.0, found.similarity)[groups.group],
        pairs=expand_pairs(found.pairs, groups, distinct.sizes, listed),
        n_pairs=found.n_pairs + int((weights * (weights - 1) // 2).sum()),
    )


def extend_near_duplicates(
    sets: TokenSets,
    is_new: npt.NDArray[np.bool_],
    earlier: NearDuplicates,
    threshold: Fraction,
    min_distinct: int,
    max_listed: int = MAX_LISTED_CLUSTER,
) -> NearDuplicates:
    """Return what `find_near_duplicates` returns of all sets, given what it returned of those that are not new.

    Only the pairs of new sets are looked for. `sets` are in keeper order, old and new together; the old ones keep
    their order, so an old set's keeper changes only when a new set comes before it or connects its cluster to one
    whose keeper does. All other parameters must be those of the earlier search.
    """
    new, old = np.flatnonzero(is_new), np.flatnonzero(~is_new)
    blocks = _pairs_of_new(sets, new, is_new, threshold, min_distinct)
    return group_pairs(sets.sizes, blocks, max_listed, earlier=_moved(earlier, old, len(is_new)))


def _pairs_of_new(
    sets: TokenSets, new: Ints, is_new: npt.NDArray[np.bool_], threshold: Fraction, min_distinct: int
) -> Iterator[Pairs]:
    """Yield every pair with a new set once, left < right."""
    for pairs in join_between(sets, sets.take(new), threshold, min_distinct):
        one, other = pairs.left, new[pairs.right]
        once = ~is_new[one] | (one < other)
        one, other = one[once], other[once]
        yield Pairs(np.minimum(one, other), np.maximum(one, other), pairs.common[once])


def _moved(earlier: NearDuplicates, position: Ints, n_sets: int) -> NearDuplicates:
    """Return an earlier result among `n_sets` sets, its own at the given ascending positions and the others alone."""
    keeper, partner, similarity = np.arange(n_sets), np.full(n_sets, -1), np.full(n_sets, -1.0)
    keeper[position] = position[earlier.keeper]
    partner[position] = np.where(earlier.partner >= 0, position[earlier.partner], -1)
    similarity[position] = earlier.similarity
    pairs = Pairs(position[earlier.pairs.left], position[earlier.pairs.right], earlier.pairs.common)
    return NearDuplicates(keeper, partner, similarity, pairs, earlier.n_pairs)


def _partners(groups: Groups, partner: Ints) -> Ints:
    """Return each set's most similar partner, given that of its group: an equal set if there is one."""
    members, starts = groups.members()
    best = np.where(partner >= 0, groups.first[partner], -1)[groups.group]
    several = groups.weights > 1
    equal = several[groups.group]
    best[equal] = groups.first[groups.group[equal]]
    best[groups.first[several]] = members[starts[:-1][several] + 1]
    return best


def explain_removals(sets: TokenSets, near: NearDuplicates, threshold: Fraction) -> list[Removal]:
    """Return the evidence for each set that is not its cluster's keeper, in order of position."""
    gone = np.flatnonzero(near.keeper != np.arange(len(near.keeper)))
    keeper, partner = near.keeper[gone], near.partner[gone]
    to_keeper, to_partner = _similarities(sets, gone, keeper), _similarities(sets, gone, partner)
    common = join_pairs(count_common(sets, gone, keeper)).common
    direct = reaches(common, sets.sizes[gone] + sets.sizes[keeper], threshold)
    columns = (gone.tolist(), keeper.tolist(), to_keeper, partner.tolist(), to_partner, direct.tolist())
    return [Removal(*values) for values in zip(*columns, strict=True)]


def list_pairs(sets: TokenSets, near: NearDuplicates, removals: list[Removal]) -> list[tuple[int, int, float]]:
    """Return the pairs to record with their similarity, ascending: those of small clusters, and every removal's."""
    listed = set(zip(near.pairs.left.tolist(), near.pairs.right.tolist(), strict=True))
    for removal in removals:
        others = [removal.partner, removal.keeper] if removal.direct else [removal.partner]
        listed.update((min(removal.position, other), max(removal.position, other)) for other in others)
    ordered = sorted(listed)
    left, right = (np.array(side, np.int64) for side in (zip(*ordered, strict=True) if ordered else ((), ())))
    return [(a, b, jaccard) for (a, b), jaccard in zip(ordered, _similarities(sets, left, right), strict=True)]


def _similarities(sets: TokenSets, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> list[float]:
    """Return the similarity of each pair of positions."""
    pairs: Pairs = join_pairs(count_common(sets, left, right))
    sizes = sets.sizes
    columns = (pairs.common.tolist(), sizes[left].tolist(), sizes[right].tolist())
    return [similarity(*counts) for counts in zip(*columns, strict=True)]
