"""Clusters: connected components of duplicate pairs, each with one keeper."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dedup.jaccard import Pairs, join_pairs, order_of

# A cluster of n sets has up to n * (n - 1) / 2 pairs: 32,640 at this size, 5 * 10**9 for 100,000 generated methods.
# The pairs of larger clusters are found and counted, but only those that prove a removal are listed.
MAX_LISTED_CLUSTER = 256
_LOGGED_PAIRS = 2_000_000  # pairs held before those of large clusters are dropped: about 50 MB
_PLAIN_PAIRS = 2_000_000  # pairs grouped by NumPy before compiled code, which takes a second to load, takes over


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """All pairs at or above the threshold, by position of the sets; the position is the keeper order."""

    keeper: npt.NDArray[np.int64]
    """Position of each set's keeper: the smallest position of its cluster, shape (n_sets,)."""
    partner: npt.NDArray[np.int64]
    """Position of each set's most similar partner, the smallest of equals; -1 for a set in no pair."""
    similarity: npt.NDArray[np.float64]
    """Jaccard similarity to the partner; -1.0 for a set in no pair."""
    pairs: Pairs
    """The pairs inside clusters of at most `max_listed` sets, in ascending order of (left, right)."""
    n_pairs: int
    """Number of all pairs, listed or not."""


@dataclass(slots=True)
class _Log:
    """State while pairs come in."""

    label: npt.NDArray[np.int64]
    """A smaller position of each set's cluster, or its own; clusters are these links and `pairs`."""
    weight: npt.NDArray[np.int64]
    """For each cluster's smallest position the number of sets in it."""
    similarity: npt.NDArray[np.float64]
    """Highest similarity of each set to any partner."""
    partner: npt.NDArray[np.int64]
    """The partner at that similarity."""
    pairs: list[Pairs] = field(default_factory=list)
    """Pairs not folded into labels yet, and pairs to list."""
    n_logged: int = 0
    """Number of pairs in `pairs`."""

    def append(self, pairs: Pairs) -> None:
        """Log pairs."""
        self.pairs.append(pairs)
        self.n_logged += len(pairs.left)


def group_pairs(
    sizes: npt.NDArray[np.int64],
    blocks: Iterable[Pairs],
    max_listed: int = MAX_LISTED_CLUSTER,
    weights: npt.NDArray[np.int64] | None = None,
    earlier: NearDuplicates | None = None,
) -> NearDuplicates:
    """Return clusters, most similar partners and pairs of sets with the given sizes, from verified pairs.

    A set may stand for several equal ones, `weights` of them: they count in `n_pairs` and in a cluster's size.
    In each pair left is smaller than right, and no pair comes twice. Memory is bounded by the number of sets times
    `max_listed`, not by the number of pairs. The result does not depend on the order of pairs; `earlier`, the result
    of other pairs of the same sets and the same `max_listed`, is gone on from.
    """
    weights = np.ones(len(sizes), np.int64) if weights is None else weights
    log = _start(weights) if earlier is None else _resume(earlier, weights)
    plain = bool((weights == 1).all())
    n_pairs, n_seen = 0 if earlier is None else earlier.n_pairs, 0
    limit = max(_LOGGED_PAIRS, 2 * log.n_logged)
    for block in blocks:
        few = n_seen + len(block.left) <= _PLAIN_PAIRS
        if not few and n_seen <= _PLAIN_PAIRS:
            _fold(log, max_listed, weights)
        n_seen += len(block.left)
        n_pairs += len(block.left) if plain else int(weights[block.left] @ weights[block.right])
        _take_few(log, block, sizes) if few else _take_many(log, block, sizes, max_listed)
        if log.n_logged > limit:
            _fold(log, max_listed, weights)
            limit = max(_LOGGED_PAIRS, 2 * log.n_logged)
    _fold(log, max_listed, weights)
    partner = np.where(log.partner < len(sizes), log.partner, -1)
    return NearDuplicates(log.label, partner, log.similarity, _sorted(log.pairs, len(sizes)), n_pairs)


def merge_duplicates(
    parts: Iterable[NearDuplicates], weights: npt.NDArray[np.int64], max_listed: int = MAX_LISTED_CLUSTER
) -> NearDuplicates:
    """Return what all pairs give from what each of several shares of the pairs gave; their order does not matter.

    A pair that all pairs list was listed by its share: clusters only grow.
    """
    log, n_pairs = _start(weights), 0
    n_sets = len(weights)
    for part in parts:
        partner = np.where(part.partner >= 0, part.partner, n_sets)
        better = (part.similarity > log.similarity) | ((part.similarity == log.similarity) & (partner < log.partner))
        log.similarity[better], log.partner[better] = part.similarity[better], partner[better]
        linked = np.flatnonzero(part.keeper != np.arange(n_sets))
        _unite(log, linked, part.keeper[linked])
        log.append(part.pairs)
        n_pairs += part.n_pairs
    _fold(log, max_listed, weights)
    partner = np.where(log.partner < n_sets, log.partner, -1)
    return NearDuplicates(log.label, partner, log.similarity, _sorted(log.pairs, n_sets), n_pairs)


def _start(weights: npt.NDArray[np.int64]) -> _Log:
    """Return the state without any pair."""
    n_sets = len(weights)
    return _Log(np.arange(n_sets), weights.copy(), np.full(n_sets, -1.0), np.full(n_sets, n_sets))


def _resume(earlier: NearDuplicates, weights: npt.NDArray[np.int64]) -> _Log:
    """Return the state in which a result was reached."""
    n_sets = len(earlier.keeper)
    partner = np.where(earlier.partner >= 0, earlier.partner, n_sets)
    log = _Log(earlier.keeper.copy(), _cluster_weights(earlier.keeper, weights), earlier.similarity.copy(), partner)
    log.append(earlier.pairs)
    return log


def _take_few(log: _Log, block: Pairs, sizes: npt.NDArray[np.int64]) -> None:
    """Take a block in; clusters are brought up to date later."""
    _note_partners(log, block, sizes)
    log.append(block)


def _take_many(log: _Log, block: Pairs, sizes: npt.NDArray[np.int64], max_listed: int) -> None:
    """Take a block in and bring the clusters up to date pair by pair, so that pairs of large ones are never held."""
    from dedup.sieve import Grouping, absorb  # numba takes a second to import

    log.append(absorb(block, sizes, max_listed, Grouping(log.label, log.weight, log.similarity, log.partner)))


def _note_partners(log: _Log, block: Pairs, sizes: npt.NDArray[np.int64]) -> None:
    """Keep the highest similarity of each set and the smallest partner that has it.

    Floats decide exactly here: fractions of set sizes below 2**26 that differ give floats that differ.
    """
    similarity = block.common / (sizes[block.left] + sizes[block.right] - block.common)
    touched = np.concatenate([block.left, block.right])
    before = log.similarity[touched]
    np.maximum.at(log.similarity, block.left, similarity)
    np.maximum.at(log.similarity, block.right, similarity)
    log.partner[touched[log.similarity[touched] > before]] = len(sizes)
    for one, other in ((block.left, block.right), (block.right, block.left)):
        best = similarity == log.similarity[one]
        np.minimum.at(log.partner, one[best], other[best])


def _fold(log: _Log, max_listed: int, weights: npt.NDArray[np.int64]) -> None:
    """Make each label its cluster's smallest position and drop the pairs of clusters too large to be listed."""
    pairs = join_pairs(log.pairs)
    _unite(log, pairs.left, pairs.right)
    log.weight = _cluster_weights(log.label, weights)
    listed = log.weight[log.label[pairs.left]] <= max_listed
    log.pairs, log.n_logged = [], 0
    log.append(Pairs(pairs.left[listed], pairs.right[listed], pairs.common[listed]))


def _unite(log: _Log, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> None:
    """Make the clusters of each of these links one, and each label its cluster's smallest position."""
    label = _flat(log.label)
    one, other = label[one], label[other]
    apart = one != other
    clusters, place = np.unique(np.concatenate([one[apart], other[apart]]), return_inverse=True)
    left, right = np.split(place.reshape(-1), 2)
    smallest = np.arange(len(clusters))
    while len(left):
        np.minimum.at(smallest, np.maximum(left, right), np.minimum(left, right))
        smallest = _flat(smallest)
        left, right = smallest[left], smallest[right]
        apart = left != right
        left, right = left[apart], right[apart]
    now = np.arange(len(label))
    now[clusters] = clusters[smallest]
    log.label = now[label]


def _flat(label: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return labels that lead to the smallest position at once; half as many steps are left each time."""
    while True:
        further = label[label]
        if np.array_equal(further, label):
            return label
        label = further


def _cluster_weights(label: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the sum of the weights of each cluster, at its label; 0 elsewhere."""
    total = np.zeros(len(label), np.int64)
    np.add.at(total, label, weights)
    return total


def _sorted(blocks: list[Pairs], n_sets: int) -> Pairs:
    """Return all pairs, which differ, in ascending order of (left, right)."""
    pairs = join_pairs(blocks)
    order = order_of(pairs.left * n_sets + pairs.right)  # one number for a pair, below 2**63 up to 3 * 10**9 sets
    return Pairs(pairs.left[order], pairs.right[order], pairs.common[order])
