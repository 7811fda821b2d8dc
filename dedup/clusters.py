"""Clusters: connected components of duplicate pairs, each with one keeper."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dedup.jaccard import Pairs, join_pairs

# A cluster of n sets has up to n * (n - 1) / 2 pairs: 32,640 at this size, 5 * 10**9 for 100,000 generated methods.
# The pairs of larger clusters are found and counted, but only those that prove a removal are listed.
MAX_LISTED_CLUSTER = 256
_LOGGED_PAIRS = 2_000_000  # pairs held before those of large clusters are dropped: about 50 MB
_UNSIEVED_PAIRS = 2_000_000  # pairs taken before pairs without news are sieved out by compiled code: half a second


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
    """A cluster's smallest position so far, for each set."""
    large: npt.NDArray[np.bool_]
    """The set's cluster is too large for its pairs to be listed."""
    similarity: npt.NDArray[np.float64]
    """Highest similarity of each set to any partner."""
    partner: npt.NDArray[np.int64]
    """The partner at that similarity."""
    pairs: list[Pairs] = field(default_factory=list)
    """Pairs not folded into labels yet, and pairs to list."""
    n_logged: int = 0
    """Number of pairs in `pairs`."""


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
    log = _start(len(sizes)) if earlier is None else _resume(earlier, max_listed, weights)
    plain = weights is None or bool((weights == 1).all())
    n_pairs, n_seen, limit = 0 if earlier is None else earlier.n_pairs, 0, _LOGGED_PAIRS
    for block in blocks:
        n_seen += len(block.left)
        n_pairs += len(block.left) if weights is None or plain else int(weights[block.left] @ weights[block.right])
        news = block if n_seen <= _UNSIEVED_PAIRS else _sieve(log, block, sizes)
        _note_partners(log, news, sizes)
        _append(log, news)
        if log.n_logged > limit:
            _fold(log, max_listed, weights)
            limit = max(_LOGGED_PAIRS, 2 * log.n_logged)
    _fold(log, max_listed, weights)
    partner = np.where(log.partner < len(sizes), log.partner, -1)
    return NearDuplicates(log.label, partner, log.similarity, _sorted(log.pairs), n_pairs)


def _start(n_sets: int) -> _Log:
    """Return the state without any pair."""
    return _Log(np.arange(n_sets), np.zeros(n_sets, np.bool_), np.full(n_sets, -1.0), np.full(n_sets, n_sets))


def _resume(earlier: NearDuplicates, max_listed: int, weights: npt.NDArray[np.int64] | None) -> _Log:
    """Return the state in which a result was reached."""
    n_sets = len(earlier.keeper)
    large = np.bincount(earlier.keeper, weights, minlength=n_sets)[earlier.keeper] > max_listed
    partner = np.where(earlier.partner >= 0, earlier.partner, n_sets)
    pairs = earlier.pairs
    return _Log(earlier.keeper, large, earlier.similarity.copy(), partner, [pairs], len(pairs.left))


def _sieve(log: _Log, block: Pairs, sizes: npt.NDArray[np.int64]) -> Pairs:
    """Leave out pairs inside a large cluster that are not more similar than their sets' best: most of its pairs."""
    from dedup.sieve import has_news  # numba takes a second to import

    news = has_news(block, sizes, (log.label, log.large), (log.similarity, log.partner))
    return Pairs(block.left[news], block.right[news], block.common[news])


def _append(log: _Log, block: Pairs) -> None:
    """Log the pairs that can still tell something: those not inside one cluster known to be large."""
    news = ~(log.large[block.left] & (log.label[block.left] == log.label[block.right]))
    log.pairs.append(Pairs(block.left[news], block.right[news], block.common[news]))
    log.n_logged += int(news.sum())


def _note_partners(log: _Log, block: Pairs, sizes: npt.NDArray[np.int64]) -> None:
    """Keep the highest similarity of each set and the smallest partner that has it.

    Floats decide exactly here: fractions of set sizes below 2**26 that differ give floats that differ.
    """
    similarity = block.common / (sizes[block.left] + sizes[block.right] - block.common)
    before = log.similarity.copy()
    np.maximum.at(log.similarity, block.left, similarity)
    np.maximum.at(log.similarity, block.right, similarity)
    log.partner[log.similarity > before] = len(sizes)
    for one, other in ((block.left, block.right), (block.right, block.left)):
        best = similarity == log.similarity[one]
        np.minimum.at(log.partner, one[best], other[best])


def _fold(log: _Log, max_listed: int, weights: npt.NDArray[np.int64] | None) -> None:
    """Bring the labels up to date and drop the pairs of clusters that are too large to be listed."""
    n_sets = len(log.label)
    pairs = join_pairs(log.pairs)
    left = np.concatenate([np.arange(n_sets), pairs.left])
    right = np.concatenate([log.label, pairs.right])
    graph = sparse.coo_array((np.ones(len(left), np.int8), (left, right)), shape=(n_sets, n_sets))
    component = connected_components(graph, directed=False)[1]
    smallest = np.full(n_sets, n_sets)
    np.minimum.at(smallest, component, np.arange(n_sets))
    log.label = smallest[component]
    log.large = (np.bincount(component, weights, minlength=n_sets) > max_listed)[component]
    listed = ~log.large[pairs.left]
    log.pairs = [Pairs(pairs.left[listed], pairs.right[listed], pairs.common[listed])]
    log.n_logged = int(listed.sum())


def _sorted(blocks: list[Pairs]) -> Pairs:
    """Return all pairs in ascending order of (left, right)."""
    pairs = join_pairs(blocks)
    order = np.lexsort((pairs.right, pairs.left))
    return Pairs(pairs.left[order], pairs.right[order], pairs.common[order])
