"""Candidate pairs that can reach a Jaccard threshold, for small collections: complete, nothing is left to chance.

The filters are those of set-similarity joins: length, prefix (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma,
Srikant, WWW 2007) and overlap bound (Xiao, Wang, Lin, Yu, WWW 2008, PPJoin). With t the threshold, x the longer and
y the shorter set, ids in one global order, rarest first:

- J(x, y) >= t  <=>  |x & y| >= a, where a = ceil(t / (1 + t) * (|x| + |y|));
- J(x, y) >= t  =>  |y| >= t * |x|;
- then the first |x| - ceil(t * |x|) + 1 ids of x and the first |y| - ceil(2t / (1 + t) * |y|) + 1 ids of y share one;
- whichever of the two prefixes ends first, all common ids up to its last are counted in the prefixes' common ids
  and the others lie in the rest of that set: |x & y| <= common prefix ids + length of that rest.

Common prefix ids of all pairs of a block are one product of sparse 0/1 matrices: nothing has to be compiled first.
`dedup.ppjoin` is the same search for large collections.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dedup.jaccard import Ints, TokenSets, ceil_ratio, rank_ids

if TYPE_CHECKING:
    from scipy import sparse

_BLOCK_PRODUCTS = 2_000_000  # id matches of one block, or of one row if it has more: about 100 MB


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """The rarest ids of each set, sets in ascending order of size."""

    matrix: "sparse.csr_array"
    """0/1 matrix of the prefixes' ids, shape (n_sets, vocab_size), columns in order of rarity."""
    last: npt.NDArray[np.int64]
    """Column of each prefix's last id, -1 for an empty one."""
    rest: npt.NDArray[np.int64]
    """Number of ids behind each prefix."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search for candidates that has not run yet."""

    by_size: npt.NDArray[np.int64]
    """Positions of the sets in ascending order of size."""
    sizes: npt.NDArray[np.int64]
    """Their sizes."""
    threshold: Fraction
    """The threshold that every pair's candidates must reach."""
    probe: _Prefixes
    """What is looked up of each set as the longer one."""
    index: _Prefixes
    """Where it is looked up: in each set as the shorter one."""

    @property
    def n_matches(self) -> int:
        """Return the number of id matches between prefixes, to which the cost is proportional."""
        frequency = np.bincount(self.index.matrix.indices, minlength=self.index.matrix.shape[1])
        return int(frequency[self.probe.matrix.indices].sum())


def prepare_search(sets: TokenSets, threshold: Fraction) -> Search:
    """Return a search among all sets, ready to run."""
    numerator, denominator = threshold.numerator, threshold.denominator
    by_size = np.argsort(sets.sizes, kind="stable")
    ordered = _rarest_first(sets, by_size)
    sizes = ordered.sizes
    probe = _prefixes(ordered, ceil_ratio(numerator, sizes, denominator))
    index = _prefixes(ordered, ceil_ratio(2 * numerator, sizes, numerator + denominator))
    return Search(by_size, sizes, threshold, probe, index)


def iter_candidates(search: Search) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks (longer, shorter) of positions that hold every pair at or above the threshold once.

    Of two sets of one size the later is called the longer. Empty sets are in no pair. Memory is bounded by the
    block, not by the number of pairs.
    """
    for longer, shorter in _iter_ordered(search):
        yield search.by_size[longer], search.by_size[shorter]


def _rarest_first(sets: TokenSets, by_size: npt.NDArray[np.int64]) -> TokenSets:
    """Return the sets in ascending order of size, ids replaced by their rank: rarest first, ties by id."""
    frequency = np.bincount(sets.ids, minlength=sets.vocab_size)
    rank = rank_ids(frequency)
    place = np.empty(len(by_size), np.int64)
    place[by_size] = np.arange(len(by_size))
    keys = np.repeat(place, sets.sizes) * sets.vocab_size + rank[sets.ids]
    keys.sort()
    offsets = np.zeros(len(by_size) + 1, np.int64)
    np.cumsum(sets.sizes[by_size], out=offsets[1:])
    return TokenSets(offsets, (keys % sets.vocab_size).astype(np.int32), sets.vocab_size)


def _prefixes(sets: TokenSets, overlap: npt.NDArray[np.int64]) -> _Prefixes:
    """Return the first |x| - overlap + 1 ids of each set, all of a set with fewer."""
    from scipy import sparse  # takes a third of a second to import

    sizes = sets.sizes
    lengths = np.minimum(sizes - overlap + 1, sizes)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    within = np.arange(len(sets.ids)) - np.repeat(sets.offsets[:-1], sizes)
    ids = sets.ids[within < np.repeat(lengths, sizes)]
    last = np.full(len(sizes), -1, np.int64)
    filled = lengths > 0
    last[filled] = ids[offsets[1:][filled] - 1]
    matrix = sparse.csr_array((np.ones(len(ids), np.int32), ids, offsets), shape=(len(sizes), sets.vocab_size))
    return _Prefixes(matrix, last, sizes - lengths)


def _iter_ordered(search: Search) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks (longer, shorter) of candidates among sets in ascending order of size; shorter < longer."""
    numerator, denominator = search.threshold.numerator, search.threshold.denominator
    sizes, probe, index = search.sizes, search.probe, search.index
    for start, stop in _blocks(probe, index):
        first = int(np.searchsorted(sizes, ceil_ratio(numerator, sizes[start : start + 1], denominator)[0]))
        # The product runs over the many shorter sets and looks their ids up in the block, whose inversion is cheap.
        found = (index.matrix[first:stop] @ probe.matrix[start:stop].T.tocsr()).tocoo()
        longer, shorter, common = found.col.astype(np.int64) + start, found.row.astype(np.int64) + first, found.data
        keep = (shorter < longer) & (sizes[shorter] * denominator >= numerator * sizes[longer])
        longer, shorter, common = longer[keep], shorter[keep], common[keep]
        needed = ceil_ratio(numerator, sizes[longer] + sizes[shorter], numerator + denominator)
        rest = np.where(probe.last[longer] <= index.last[shorter], probe.rest[longer], index.rest[shorter])
        keep = common + rest >= needed
        if keep.any():
            yield longer[keep], shorter[keep]


def _blocks(probe: _Prefixes, index: _Prefixes) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of rows whose products are bounded by `_BLOCK_PRODUCTS` plus one row's."""
    n_rows = len(probe.last)
    frequency = np.bincount(index.matrix.indices, minlength=probe.matrix.shape[1])
    matches = np.concatenate([[0], np.cumsum(frequency[probe.matrix.indices])])[probe.matrix.indptr]
    groups = matches[:-1] // _BLOCK_PRODUCTS
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), n_rows]
    for start, stop in pairwise(bounds):
        if start < stop:
            yield start, stop
