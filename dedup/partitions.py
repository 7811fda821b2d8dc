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
from dedup.ordered import Index, Int32s, build_index, by_size, count_ids, count_ranks, narrow_rank, order_sets
from dedup.ppjoin import Found, Indexed, Limits, Scratch, Sets, probe_between, probe_within

_RANGES = 64  # ranges of one join: even work for a few cores, small beside the fixed cost of one
_MIN_FOUND = 2**16  # pairs of one block at least: 1.5 MiB of buffers


@dataclass(frozen=True, slots=True)
class Join:
    """A join ready to be run range by range."""

    index: Index
    """Where sets are looked up."""
    limits: Limits
    """What the filters compare with."""
    probes: Sets | None
    """The sets that are looked up; null in a join of a collection with itself."""

    @property
    def n_probes(self) -> int:
        """Return the number of probes; ranges lie in 0 to n_probes."""
        return len(self.index.sets.position if self.probes is None else self.probes.order)


def prepare_within(sets: TokenSets, threshold: Fraction, min_distinct: int) -> Join:
    """Return the join of a collection with itself."""
    numerator, denominator = threshold.numerator, threshold.denominator
    # A probe meets only sets that are not longer: their index prefixes may be shorter (dedup.candidates).
    index = _index(sets, rank_ids(count_ids(sets)), threshold, min_distinct, (2 * numerator, numerator + denominator))
    return Join(index, Limits(numerator, denominator, _needed(threshold, 2 * _largest(index))), None)


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
    ratio = (threshold.numerator, threshold.denominator)
    return Target(_index(sets, rank, threshold, min_distinct, ratio), rank, threshold, min_distinct)


def prepare_between(probes: TokenSets, target: Target) -> Join:
    """Return the join of a collection with an indexed one."""
    threshold = target.threshold
    order = by_size(probes, target.min_distinct)
    largest = int(probes.sizes[order[-1]]) if len(order) else 0
    limits = Limits(
        threshold.numerator, threshold.denominator, _needed(threshold, largest + _largest(target.index))
    )  # fmt: skip
    return Join(target.index, limits, Sets(order, probes.offsets, probes.ids, narrow_rank(target.rank)))


def join_sides(
    rows: TokenSets, references: TokenSets, threshold: Fraction, min_distinct: int, threads: int | None = None
) -> Iterator[Pairs]:
    """Yield blocks of all pairs (position in `rows`, position in `references`); the smaller side is indexed."""
    swapped = len(rows.ids) < len(references.ids)
    probes, indexed = (references, rows) if swapped else (rows, references)
    join = prepare_between(probes, prepare_target(indexed, threshold, min_distinct))
    for pairs in join_all(join, threads):
        yield Pairs(pairs.right, pairs.left, pairs.common) if swapped else pairs


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
        indexed = Indexed(join.index.sets, join.index.postings)
        n_indexed = len(indexed.sets.position)
        n_found = max(_MIN_FOUND, n_indexed)
        starts = indexed.postings.starts
        self._join, self._indexed = join, indexed
        self._scratch = Scratch(
            starts[:-1].copy(), np.full(n_indexed, -1, np.int32), np.zeros(len(starts) - 1, np.uint8)
        )  # fmt: skip
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
        span, probes = (self._next, self._stop), self._join.probes
        common = (self._indexed, self._join.limits, self._scratch, self._found)
        if probes is None:
            self._next, count = probe_within(span, *common)
        else:
            self._next, count = probe_between(span, probes, *common)
        left, right, overlap = (column[:count] for column in self._found)
        if probes is None:
            return Pairs(np.minimum(left, right), np.maximum(left, right), overlap.copy())
        return Pairs(left.copy(), right.copy(), overlap.copy())


def _index(sets: TokenSets, rank: Ints, threshold: Fraction, min_distinct: int, overlap: tuple[int, int]) -> Index:
    """Return the sets with the index of as many rarest ids of each as an overlap of that ratio asks for."""
    ordered = order_sets(sets, rank, min_distinct)
    sizes = np.diff(ordered.offsets)
    prefixes = np.minimum(sizes - ceil_ratio(overlap[0], sizes, overlap[1]) + 1, sizes)
    return build_index(ordered, prefixes, (threshold.numerator, threshold.denominator), count_ranks(sets.vocab_size))


def _largest(index: Index) -> int:
    """Return the size of the largest indexed set, 0 without one."""
    return len(index.postings.smaller) - 2


def _needed(threshold: Fraction, largest: int) -> Int32s:
    """Return the smallest overlap that reaches the threshold, for each sum of two sizes up to `largest`."""
    total = np.arange(largest + 1)
    return ceil_ratio(threshold.numerator, total, threshold.numerator + threshold.denominator).astype(np.int32)
