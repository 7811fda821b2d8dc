"""The compiled join in pieces: ranges of probes, compared by threads here or by processes elsewhere.

The partition is a range of probes in ascending order of size. Any process that holds the same sets prepares the same
join and can compare any range; the pairs of all ranges are the pairs of the whole, whatever the ranges and workers.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dedup.jaccard import Ints, Pairs, TokenSets, ceil_ratio, rank_ids
from dedup.ppjoin import (
    Bounds,
    Found,
    Index,
    Ordered,
    Postings,
    Scratch,
    Side,
    build_index,
    count_ids,
    order_sets,
    probe_range,
)

_RANGES = 64  # ranges of one join: even work for a few cores, small beside the fixed cost of one
_MIN_FOUND = 2**16  # pairs of one block at least: 1.5 MiB of buffers
_BATCH_IDS = 8_000_000  # ids of the probing side that are ordered at once: about 50 MB


@dataclass(frozen=True, slots=True)
class Join:
    """A join ready to be run range by range."""

    probes: Ordered
    """The sets that are looked up."""
    index: Index
    """Where they are looked up; over the probes themselves in a join within one collection."""
    bounds: Bounds
    """What the filters compare with."""
    within: bool
    """Both sides are one collection."""

    @property
    def n_probes(self) -> int:
        """Return the number of probes; ranges lie in 0 to n_probes."""
        return len(self.probes.position)


def prepare_within(sets: TokenSets, threshold: Fraction, min_distinct: int) -> Join:
    """Return the join of a collection with itself."""
    numerator, denominator = threshold.numerator, threshold.denominator
    rank = rank_ids(count_ids(sets))
    ordered = order_sets(sets, rank, min_distinct)
    sizes = ordered.sizes
    # A probe meets only sets that are not longer: their index prefixes may be shorter (dedup.candidates).
    prefixes = _prefixes(sizes, ceil_ratio(2 * numerator, sizes, numerator + denominator))
    index = build_index(ordered, prefixes, sets.vocab_size)
    low = np.searchsorted(sizes, ceil_ratio(numerator, sizes, denominator))
    bounds = _bounds((low, np.arange(len(sizes))), sizes, sizes, threshold)
    return Join(ordered, index, bounds, within=True)


@dataclass(frozen=True, slots=True)
class Target:
    """A collection prepared to be looked into by any other."""

    index: Index
    """Inverted index of prefixes that serve shorter and longer probes."""
    rank: Ints
    """Rank of each id: rarest in this collection first."""
    threshold: Fraction
    """The threshold."""
    min_distinct: int
    """Smaller sets are in no pair."""


def prepare_target(sets: TokenSets, threshold: Fraction, min_distinct: int) -> Target:
    """Return a collection indexed for `prepare_between`."""
    rank = rank_ids(count_ids(sets))
    ordered = order_sets(sets, rank, min_distinct)
    sizes = ordered.sizes
    prefixes = _prefixes(sizes, ceil_ratio(threshold.numerator, sizes, threshold.denominator))
    return Target(build_index(ordered, prefixes, sets.vocab_size), rank, threshold, min_distinct)


def prepare_between(probes: TokenSets, target: Target) -> Join:
    """Return the join of a collection with an indexed one."""
    numerator, denominator = target.threshold.numerator, target.threshold.denominator
    ordered = order_sets(probes, target.rank, target.min_distinct)
    sizes, indexed = ordered.sizes, target.index.sets.sizes
    low = np.searchsorted(indexed, ceil_ratio(numerator, sizes, denominator))
    high = np.searchsorted(indexed, sizes * denominator // numerator, side="right")
    return Join(ordered, target.index, _bounds((low, high), sizes, indexed, target.threshold), within=False)


def join_batches(
    rows: TokenSets, references: TokenSets, threshold: Fraction, min_distinct: int, threads: int | None = None
) -> Iterator[Pairs]:
    """Yield blocks of all pairs (position in `rows`, position in `references`); the smaller side is indexed."""
    swapped = len(rows.ids) < len(references.ids)
    probes, indexed = (references, rows) if swapped else (rows, references)
    target = prepare_target(indexed, threshold, min_distinct)
    for start, batch in _batches(probes):
        for pairs in join_all(prepare_between(batch, target), threads):
            probe, other = pairs.left + start, pairs.right
            yield Pairs(other, probe, pairs.common) if swapped else Pairs(probe, other, pairs.common)


def ranges(n_probes: int, count: int) -> list[tuple[int, int]]:
    """Return `count` consecutive ranges (fewer if there are fewer probes) that cover all probes."""
    bounds = sorted({n_probes * number // count for number in range(count + 1)})
    return list(pairwise(bounds))


def join_partition(join: Join, start: int, stop: int) -> Iterator[Pairs]:
    """Yield blocks of all pairs of the probes in a range.

    Within one collection left < right; between two, left is the probe's position and right the indexed set's.
    """
    walk = _Pass(join)
    walk.assign(start, stop)
    while not walk.done:
        yield walk.advance()


def join_share(join: Join, part: int, n_parts: int) -> Iterator[Pairs]:
    """Yield blocks of all pairs of one of `n_parts` shares: every `n_parts`-th of many ranges of probes.

    Cost grows with the size of the probes, which ascends; so shares cost about the same. All shares together have every
    pair once.
    """
    walk = _Pass(join)
    for start, stop in ranges(join.n_probes, _RANGES * n_parts)[part::n_parts]:
        walk.assign(start, stop)
        while not walk.done:
            yield walk.advance()


def join_all(join: Join, threads: int | None = None) -> Iterator[Pairs]:
    """Yield the blocks of all probes in order of their ranges; threads (default: all cores) run ahead of the reader.

    Each holds buffers of one block, so memory does not grow with the number of pairs.
    """
    n_threads = threads or os.cpu_count() or 1
    todo = deque(ranges(join.n_probes, _RANGES))
    idle = [_Pass(join) for _ in range(min(n_threads + 1, len(todo)))]
    with ThreadPoolExecutor(n_threads) as pool:
        running = deque[tuple[_Pass, Future[Pairs]]]()
        while todo or running:
            while todo and idle:
                walk = idle.pop()
                walk.assign(*todo.popleft())
                running.append((walk, pool.submit(walk.advance)))
            walk, future = running.popleft()
            pairs = future.result()
            if walk.done:
                idle.append(walk)
            else:
                running.appendleft((walk, pool.submit(walk.advance)))
            if len(pairs.left):
                yield pairs


class _Pass:
    """Working memory that walks through ranges of probes, each behind the one before."""

    def __init__(self, join: Join) -> None:
        n_indexed = len(join.index.sets.position)
        n_found = max(_MIN_FOUND, n_indexed)
        vocab_size = len(join.index.starts) - 1
        self._join = join
        self._scratch = Scratch(
            join.index.starts[:-1].copy(), np.full(n_indexed, -1, np.int32), np.zeros(vocab_size, np.uint8)
        )
        self._found = Found(*(np.empty(n_found, np.int64) for _ in range(3)))
        self._next = self._stop = 0

    @property
    def done(self) -> bool:
        """Return whether the range is done."""
        return self._next >= self._stop

    def assign(self, start: int, stop: int) -> None:
        """Take a range of probes."""
        self._next, self._stop = start, stop

    def advance(self) -> Pairs:
        """Return the pairs of as many probes as the buffers hold."""
        join = self._join
        postings = Postings(join.index.starts, join.index.entries, join.index.places)
        sides = (_side(join.probes), _side(join.index.sets))
        self._next, count = probe_range(
            (self._next, self._stop), sides, postings, join.bounds, self._scratch, self._found
        )
        left, right, common = (column[:count] for column in self._found)
        if join.within:
            return Pairs(np.minimum(left, right), np.maximum(left, right), common.copy())
        return Pairs(left.copy(), right.copy(), common.copy())


def _side(sets: Ordered) -> Side:
    return Side(sets.position, sets.offsets, sets.ranks, sets.bits, sets.frequent, sets.others)


def _prefixes(sizes: Ints, overlap: Ints) -> Ints:
    """Return the number of rarest ids of which one must be shared for an overlap."""
    prefixes: Ints = np.minimum(sizes - overlap + 1, sizes)
    return prefixes


def _bounds(window: tuple[Ints, Ints], sizes: Ints, indexed: Ints, threshold: Fraction) -> Bounds:
    """Return the bounds of probes of the given sizes; their prefixes suffice for shorter and longer partners."""
    numerator, denominator = threshold.numerator, threshold.denominator
    prefixes = _prefixes(sizes, ceil_ratio(numerator, sizes, denominator))
    largest = (int(sizes[-1]) if len(sizes) else 0) + (int(indexed[-1]) if len(indexed) else 0)
    needed = ceil_ratio(numerator, np.arange(largest + 1), numerator + denominator)
    low, high = window
    return Bounds(*(column.astype(np.int32) for column in (low, high, prefixes, needed)))


def _batches(sets: TokenSets) -> Iterator[tuple[int, TokenSets]]:
    """Yield consecutive sets with the position of their first, about `_BATCH_IDS` ids at a time."""
    start, n_sets = 0, len(sets.sizes)
    while start < n_sets:
        limit = sets.offsets[start] + _BATCH_IDS
        stop = max(start + 1, int(np.searchsorted(sets.offsets, limit, side="right")) - 1)
        offsets = sets.offsets[start : stop + 1]
        yield start, TokenSets(offsets - offsets[0], sets.ids[offsets[0] : offsets[-1]], sets.vocab_size)
        start = stop
