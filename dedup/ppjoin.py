"""The set-similarity join compiled to machine code: PPJoin with a bitmap filter, for collections of any size.

The same filters as in `dedup.candidates` (length, prefix, position; Xiao, Wang, Lin, Yu, WWW 2008), applied posting by
posting, then the bitmap filter (Sandes, Teodoro, Melo, IPM 2020): each set is folded into 256 bits by toggling bit
`rank % 256` of each id, so |x ^ y| >= popcount(bits(x) ^ bits(y)) and a pair whose bits differ too much cannot have
the overlap it needs. What is left is counted: the 256 most frequent ids, to which most of a set's belong, have a bit
each, so those in common are popcount(frequent(x) & frequent(y)); the others are looked up one by one in a table of the
probe's ids.

With t the threshold, a probe x whose ids before place i are not shared needs |x| - i >= t / (1 + t) * (|x| + |y|):
that bounds |y|, and in postings ascending by size it is where to stop. The same for y and its place bounds |x|; that
bound stands in the posting.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.compiled import compiled, popcount
from dedup.ordered import (
    WORDS,
    Bitmaps,
    Ids,
    Int32s,
    Int64s,
    Ordered,
    Postings,
    Ranks,
    new_marks,
    partner_limit,
    put_in_order,
)


class Indexed(NamedTuple):
    """What is looked into: sets and the inverted index of their prefixes."""

    sets: Ordered
    postings: Postings


class Limits(NamedTuple):
    """What the filters compare with."""

    numerator: int
    """Of the threshold."""
    denominator: int
    """Of the threshold."""
    needed: Int32s
    """Smallest overlap that reaches the threshold, for each sum of two sizes."""


class Scratch(NamedTuple):
    """Working memory of one pass over ascending probes."""

    cursor: Int64s
    """First posting of each rank that some later probe may need."""
    seen: Int32s
    """Last probe that each set of the index was compared with."""
    member: npt.NDArray[np.uint8]
    """1 for each rank of the current probe from its first count on; 0 before and after."""


class Found(NamedTuple):
    """Buffers of results as positions in the two collections; a pass stops before one could overflow."""

    left: Int64s
    right: Int64s
    common: Int64s


class Probe(NamedTuple):
    """One set that is looked up."""

    number: int
    """Its number among the probes."""
    position: int
    """Its position in the collection."""
    size: int
    """Number of its ids."""
    ranks: Ranks
    """Its rarest ranks at least, ascending."""
    members: Ranks
    """All its ranks in any order."""
    bits: Bitmaps
    """Its bitmap, shape (4,)."""
    frequent: Bitmaps
    """One bit for each of the 256 highest ranks, shape (4,)."""
    stop: int
    """First set of the index that it is not to be compared with."""


class Sets(NamedTuple):
    """Sets as in `TokenSets`, and the order in which they are looked up."""

    order: Int64s
    """Positions in ascending order of size."""
    offsets: Int64s
    ids: Ids
    rank: Ranks
    """Rank of each id in the index."""


@compiled
def probe_within(
    span: tuple[int, int], indexed: Indexed, limits: Limits, scratch: Scratch, found: Found
) -> tuple[int, int]:
    """Write the pairs of the sets in a range with those before them; return the first not done and the number of pairs.

    A set is done whole or not at all: the buffers must hold as many pairs as the index has sets.
    """
    sets, n_found = indexed.sets, 0
    for number in range(span[0], span[1]):
        begin, end = sets.offsets[number], sets.offsets[number + 1]
        ranks = sets.ranks[begin:end]
        if n_found + number - _window_start(end - begin, limits, indexed.postings) > len(found.left):
            return number, n_found
        bitmaps = (sets.bits[number], sets.frequent[number])
        probe = Probe(number, sets.position[number], end - begin, ranks, ranks, *bitmaps, number)
        n_found = _probe_one(probe, n_found, indexed, limits, scratch, found)
    return span[1], n_found


@compiled
def probe_between(
    span: tuple[int, int], sets: Sets, indexed: Indexed, limits: Limits, scratch: Scratch, found: Found
) -> tuple[int, int]:
    """As `probe_within`, for sets of another collection: each is put in order as it comes, and nothing kept of it."""
    n_found, n_indexed = 0, len(indexed.sets.position)
    marks = new_marks(sets.rank)
    bits, frequent = np.empty(WORDS, np.uint64), np.empty(WORDS, np.uint64)
    members, ranks = np.empty(len(sets.rank), sets.rank.dtype), np.empty(len(sets.rank), sets.rank.dtype)
    for number in range(span[0], span[1]):
        position = sets.order[number]
        begin, end = sets.offsets[position], sets.offsets[position + 1]
        size = end - begin
        low = _window_start(size, limits, indexed.postings)
        largest = partner_limit(size, 0, limits.numerator, limits.denominator)
        if n_found + _window_stop(largest, indexed.postings) - low > len(found.left):
            return number, n_found
        for place in range(size):
            members[place] = sets.rank[sets.ids[begin + place]]
        put_in_order(members[:size], _prefix(size, limits), marks, ranks, bits, frequent)
        probe = Probe(number, position, size, ranks, members[:size], bits, frequent, n_indexed)
        n_found = _probe_one(probe, n_found, indexed, limits, scratch, found)
    return span[1], n_found


@compiled
def _prefix(size: int, limits: Limits) -> int:
    """Return the number of rarest ids of a probe of which one must be shared with a set of any size."""
    return min(size + limits.numerator * size // -limits.denominator + 1, size)


@compiled
def _window_start(size: int, limits: Limits, postings: Postings) -> int:
    """Return the first set of the index that is long enough for a probe."""
    least = -(limits.numerator * size // -limits.denominator)
    start: int = postings.smaller[min(least, len(postings.smaller) - 1)]
    return start


@compiled
def _window_stop(largest: int, postings: Postings) -> int:
    """Return the first set of the index above a size."""
    stop: int = postings.smaller[min(largest + 1, len(postings.smaller) - 1)]
    return stop


@compiled
def _probe_one(probe: Probe, n_found: int, indexed: Indexed, limits: Limits, scratch: Scratch, found: Found) -> int:
    """Write the pairs of one probe behind the first `n_found`; return their number then."""
    (sets, postings), size = indexed, probe.size
    low = _window_start(size, limits, postings)
    longest = len(postings.smaller) - 1  # more than any indexed set has
    largest = min(partner_limit(size, 0, limits.numerator, limits.denominator), longest)
    unseen = min(_window_stop(largest, postings), probe.stop) - low
    marked = False
    for place in range(_prefix(size, limits)):
        if unseen <= 0:
            break
        # As partner_limit, which would divide once for each place.
        room = limits.denominator * size - (limits.numerator + limits.denominator) * place
        while limits.numerator * largest > room:
            largest -= 1
        high = min(_window_stop(largest, postings), probe.stop)
        rank = probe.ranks[place]
        for posting in range(_first_posting(rank, low, postings, scratch), postings.starts[rank + 1]):
            other = postings.entries[posting]
            if other >= high:
                break
            # Nothing in common before these two places, or an earlier posting of this pair would have failed as well.
            if postings.longest[posting] < size or scratch.seen[other] == probe.number:
                continue
            scratch.seen[other] = probe.number
            unseen -= 1
            other_begin = sets.offsets[other]
            total = size + sets.offsets[other + 1] - other_begin
            needed = limits.needed[total]
            if total - _n_differing(probe.bits, sets.bits, other) < 2 * needed:
                continue
            common = _n_shared(probe.frequent, sets.frequent, other)
            if not marked:  # not before a pair comes so far
                _mark(probe.members, scratch.member, 1)
                marked = True
            rest = (other_begin + postings.places[posting], other_begin + sets.others[other])
            common += _count(sets.ranks, rest, scratch.member, needed - common)
            if common >= needed:
                found.left[n_found] = probe.position
                found.right[n_found] = sets.position[other]
                found.common[n_found] = common
                n_found += 1
    if marked:
        _mark(probe.members, scratch.member, 0)
    return n_found


@compiled
def _mark(ranks: Ranks, member: npt.NDArray[np.uint8], value: int) -> None:
    """Write the value for each rank."""
    for rank in ranks:
        member[rank] = value


@compiled
def _n_differing(one: Bitmaps, others: Bitmaps, other: int) -> np.int64:
    """Return the number of bits in which two bitmaps differ."""
    count = np.int64(0)
    for word in range(WORDS):
        count += np.int64(popcount(one[word] ^ others[other, word]))  # type: ignore[call-arg]  # numba passes the context
    return count


@compiled
def _n_shared(one: Bitmaps, others: Bitmaps, other: int) -> np.int64:
    """Return the number of bits that are set in both of two bitmaps."""
    count = np.int64(0)
    for word in range(WORDS):
        count += np.int64(popcount(one[word] & others[other, word]))  # type: ignore[call-arg]  # as above
    return count


@compiled
def _first_posting(rank: int, low: int, postings: Postings, scratch: Scratch) -> np.int64:
    """Return the first posting of a rank whose set is long enough, for this and all later probes."""
    entry: np.int64 = scratch.cursor[rank]
    while entry < postings.starts[rank + 1] and postings.entries[entry] < low:
        entry += 1
    scratch.cursor[rank] = entry
    return entry


@compiled
def _count(ranks: Ranks, span: tuple[int, int], member: npt.NDArray[np.uint8], needed: int) -> int:
    """Return how many ranks in a span are members, or some number below `needed` when they cannot be so many."""
    common = 0
    start, end = span
    if start >= end:
        return 0
    while start < end and common + end - start >= needed:
        stop = min(start + 16, end)
        for place in range(start, stop):
            common += member[ranks[place]]
        start = stop
    return common if start == end else 0
