"""Near duplicates among token sets: the exact set-similarity join, clusters, and the evidence for each removal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np
import numpy.typing as npt

from dedup.clusters import MAX_LISTED_CLUSTER, NearDuplicates, group_pairs, merge_duplicates
from dedup.equal import Groups, expand_pairs, group_equal
from dedup.jaccard import Ints, Pairs, TokenSets, count_common, join_pairs, order_of, reaches
from dedup.join import MAX_PLAIN_IDS, join_between, join_within

Similarities = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Former:
    """A finished search of other sets."""

    near: NearDuplicates
    """What it found."""
    place: Ints
    """Where each of its sets stands now, -1 for one that is gone."""


@dataclass(frozen=True, slots=True)
class Removals:
    """Why sets do not stay, in order of position; columns. Positions of sets are their keeper order."""

    position: Ints
    """The set that goes."""
    keeper: Ints
    """The set that stays in its place."""
    jaccard: Similarities
    """Similarity of the two."""
    partner: Ints
    """The most similar set in its cluster."""
    partner_jaccard: Similarities
    """Similarity to that one, at or above the threshold."""
    direct: npt.NDArray[np.bool_]
    """The keeper itself is at or above the threshold; otherwise a chain of pairs leads to it."""


def find_near_duplicates(
    sets: TokenSets,
    threshold: Fraction,
    min_distinct: int,
    max_listed: int = MAX_LISTED_CLUSTER,
    threads: int | None = None,
) -> NearDuplicates:
    """Return pairs and clusters of all sets with at least `min_distinct` ids and similarity at or above the threshold.

    Sets are given in keeper order. Recall is 1 by construction, precision by verification (`dedup.join`).
    """
    groups = group_equal(sets, min_distinct)
    distinct = sets.take(groups.first)
    blocks = join_within(distinct, threshold, min_distinct, threads)
    return _expand(groups, sets, group_pairs(distinct.sizes, blocks, max_listed, groups.weights), max_listed)


def search_part(
    sets: TokenSets,
    threshold: Fraction,
    min_distinct: int,
    part: int,
    n_parts: int,
    max_listed: int = MAX_LISTED_CLUSTER,
) -> NearDuplicates:
    """Return one of `n_parts` shares of the search, in one thread: what its pairs give for the groups of equal sets.

    Memory does not grow with the number of pairs. `finish_near_duplicates` puts the shares together.
    """
    from dedup.partitions import join_share, prepare_within  # numba takes a second to import

    groups = group_equal(sets, min_distinct)
    distinct = sets.take(groups.first)
    blocks = join_share(prepare_within(distinct, threshold, min_distinct), part, n_parts)
    return group_pairs(distinct.sizes, blocks, max_listed, groups.weights)


def finish_near_duplicates(
    sets: TokenSets, min_distinct: int, shares: Iterable[NearDuplicates], max_listed: int = MAX_LISTED_CLUSTER
) -> NearDuplicates:
    """Return what `find_near_duplicates` returns, from all shares of the search whatever their number and order."""
    groups = group_equal(sets, min_distinct)
    return _expand(groups, sets, merge_duplicates(shares, groups.weights, max_listed), max_listed)


def _expand(groups: Groups, sets: TokenSets, found: NearDuplicates, max_listed: int) -> NearDuplicates:
    """Return the duplicates of sets from those of the groups of equal sets."""
    weights = groups.weights
    cluster_sizes = np.bincount(found.keeper, weights, minlength=len(weights))
    listed = cluster_sizes[found.keeper] <= max_listed
    return NearDuplicates(
        keeper=groups.first[found.keeper[groups.group]],
        partner=_partners(groups, found.partner),
        similarity=np.where(weights > 1, 1.0, found.similarity)[groups.group],
        pairs=expand_pairs(found.pairs, groups, sets.sizes[groups.first], listed),
        n_pairs=found.n_pairs + int((weights * (weights - 1) // 2).sum()),
    )


def extend_near_duplicates(
    sets: TokenSets,
    former: Former,
    threshold: Fraction,
    min_distinct: int,
    max_listed: int = MAX_LISTED_CLUSTER,
    threads: int | None = None,
) -> NearDuplicates | None:
    """Return what `find_near_duplicates` returns of all sets, given what it returned of other ones.

    `sets` are in keeper order. Only the pairs of those that the former search had not are looked for. All other
    parameters must be those of that search. Where sets are gone or stand in another order, the listed pairs of their
    clusters tell what is left; None is returned when they belong to a cluster whose pairs are not all listed.
    """
    n_sets, earlier, place = len(sets.sizes), former.near, former.place
    is_new = np.ones(n_sets, np.bool_)
    is_new[place[place >= 0]] = False
    blocks = _pairs_of_new(sets, np.flatnonzero(is_new), is_new, threshold, min_distinct, threads)
    if (place >= 0).all() and (np.diff(place) > 0).all():
        return group_pairs(sets.sizes, blocks, max_listed, earlier=_moved(earlier, place, n_sets))
    start = _large_clusters(earlier, place, n_sets, max_listed)
    if start is None:
        return None
    return group_pairs(sets.sizes, chain([_replaced(earlier.pairs, place)], blocks), max_listed, earlier=start)


def _large_clusters(
    earlier: NearDuplicates, place: Ints, n_sets: int, max_listed: int
) -> NearDuplicates | None:  # fmt: skip
    """Return the clusters whose pairs are not listed, all others dissolved; None when one of them has changed."""
    large = np.bincount(earlier.keeper, minlength=len(place))[earlier.keeper] > max_listed
    members = np.flatnonzero(large)
    members = members[np.argsort(earlier.keeper[members], kind="stable")]
    same_cluster = np.diff(earlier.keeper[members]) == 0
    if (place[members] < 0).any() or (same_cluster & (np.diff(place[members]) < 0)).any():
        return None
    keeper, partner, similarity = np.arange(n_sets), np.full(n_sets, -1), np.full(n_sets, -1.0)
    now = place[members]
    keeper[now], partner[now] = place[earlier.keeper[members]], place[earlier.partner[members]]
    similarity[now] = earlier.similarity[members]
    none = np.zeros(0, np.int64)
    return NearDuplicates(
        keeper, partner, similarity, Pairs(none, none, none), earlier.n_pairs - len(earlier.pairs.left)
    )


def _replaced(pairs: Pairs, place: Ints) -> Pairs:
    """Return pairs by the new places of their sets, without those of sets that are gone."""
    one, other = place[pairs.left], place[pairs.right]
    stays = (one >= 0) & (other >= 0)
    one, other = one[stays], other[stays]
    return Pairs(np.minimum(one, other), np.maximum(one, other), pairs.common[stays])


def _pairs_of_new(
    sets: TokenSets,
    new: Ints,
    is_new: npt.NDArray[np.bool_],
    threshold: Fraction,
    min_distinct: int,
    threads: int | None,
) -> Iterator[Pairs]:
    """Yield every pair with a new set once, left < right."""
    for pairs in join_between(sets, sets.take(new), threshold, min_distinct, threads):
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


def explain_removals(sets: TokenSets, near: NearDuplicates, threshold: Fraction) -> Removals:
    """Return the evidence for each set that is not its cluster's keeper."""
    gone = np.flatnonzero(near.keeper != np.arange(len(near.keeper)))
    keeper, partner = near.keeper[gone], near.partner[gone]
    common = _listed_common(near.pairs, keeper, gone, len(sets.sizes))
    unknown = np.flatnonzero((common < 0) & (partner != keeper))
    common[unknown] = _overlaps(sets, gone[unknown], keeper[unknown])
    total = sets.sizes[gone] + sets.sizes[keeper]
    by_partner = near.similarity[gone]
    jaccard = np.where(partner == keeper, by_partner, common / np.maximum(total - common, 1))
    direct = (partner == keeper) | reaches(common, total, threshold)
    return Removals(gone, keeper, jaccard, partner, by_partner, direct)


def _overlaps(sets: TokenSets, left: Ints, right: Ints) -> Ints:
    """Return the size of the intersection of each pair."""
    if len(sets.ids) <= MAX_PLAIN_IDS:  # above, the compiled code has joined them and is loaded
        return join_pairs(count_common(sets, left, right)).common
    from dedup.overlaps import count_overlaps  # numba takes a second to import

    return count_overlaps(sets, left, right)


def _listed_common(pairs: Pairs, left: Ints, right: Ints, n_sets: int) -> Ints:
    """Return the size of the intersection of pairs that are listed, -1 for others; left < right."""
    keys = pairs.left * n_sets + pairs.right
    wanted = left * n_sets + right
    order = order_of(wanted)  # near each other in memory, they are found three times as fast
    wanted = wanted[order]
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    common = np.full(len(wanted), -1)
    if len(keys):
        found = keys[place] == wanted
        common[order[found]] = pairs.common[place[found]]
    return common


def list_pairs(sets: TokenSets, near: NearDuplicates, removals: Removals) -> tuple[Ints, Ints, Similarities]:
    """Return the pairs to record with their similarity: those of small clusters, and every removal's; left < right."""
    n_sets, pairs = len(sets.sizes), near.pairs
    small = np.zeros(n_sets, np.bool_)  # each member of a cluster whose pairs are listed is in one of them
    small[pairs.left] = small[pairs.right] = True
    large = np.flatnonzero(~small[removals.position])
    direct = large[removals.direct[large]]
    one = np.concatenate([removals.position[large], removals.position[direct]])
    other = np.concatenate([removals.partner[large], removals.keeper[direct]])
    keys, place = np.unique(np.minimum(one, other) * n_sets + np.maximum(one, other), return_index=True)
    added = np.concatenate([removals.partner_jaccard[large], removals.jaccard[direct]])[place]
    listed = pairs.common / (sets.sizes[pairs.left] + sets.sizes[pairs.right] - pairs.common)
    return (
        np.concatenate([pairs.left, keys // n_sets]),
        np.concatenate([pairs.right, keys % n_sets]),
        np.concatenate([listed, added]),
    )
