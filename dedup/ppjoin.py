"""The set-similarity join compiled to machine code: PPJoin with a bitmap filter, for collections of any size.

The same filters as in `dedup.candidates` (length, prefix, position; Xiao, Wang, Lin, Yu, WWW 2008), applied posting by
posting, then the bitmap filter (Sandes, Teodoro, Melo, IPM 2020): each set is folded into 256 bits by toggling bit
`rank % 256` of each id, so |x ^ y| >= popcount(bits(x) ^ bits(y)) and a pair whose bits differ too much cannot have
the overlap it needs. What is left is counted: the 256 most frequent ids, to which most of a set's belong, have a bit
each, so those in common are popcount(frequent(x) & frequent(y)); the others are looked up one by one in a table of the
probe's ids.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.compiled import compiled, popcount
from dedup.jaccard import TokenSets

_WORDS = 4  # 64-bit words of each of a set's bitmaps; see docs/adr/0006
_SORTED_WORDS = 8  # words looked through for each rank that is sorted by bits: beyond, comparing is as quick
_Int64s = npt.NDArray[np.int64]
_Bitmaps = npt.NDArray[np.uint64]
_Int32s = npt.NDArray[np.int32]
_Ids = npt.NDArray[np.int32] | npt.NDArray[np.uint16]
_Ranks = npt.NDArray[np.uint16] | npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Ordered:
    """Sets in ascending order of size, ids replaced by their rank: rarest first."""

    position: _Int64s
    """Position of each set in the collection it comes from."""
    offsets: _Int64s
    """Start of each set in `ranks`, shape (n_sets + 1,)."""
    ranks: _Ranks
    """Ranks of the ids of all sets, ascending in each."""
    bits: npt.NDArray[np.uint64]
    """Bitmap of each set, shape (n_sets, 4)."""
    frequent: npt.NDArray[np.uint64]
    """One bit for each of the 256 highest ranks, shape (n_sets, 4)."""
    others: _Int32s
    """Number of each set's ids that have no such bit."""

    @property
    def sizes(self) -> _Int64s:
        """Return the number of ids of each set, ascending."""
        return np.diff(self.offsets)


@dataclass(frozen=True, slots=True)
class Index:
    """Inverted index of the sets' prefixes."""

    sets: Ordered
    """The sets."""
    starts: _Int64s
    """Start of each rank's postings, shape (vocab_size + 1,)."""
    entries: _Int32s
    """Number of the set in `sets`, ascending for one rank."""
    places: _Int32s
    """Place of the rank in that set."""


# numba compiles functions of named tuples, not of dataclasses: what goes into compiled code is repeated as such.
class Side(NamedTuple):
    """One side of a join: sets as in `Ordered`."""

    position: _Int64s
    offsets: _Int64s
    ranks: _Ranks
    bits: npt.NDArray[np.uint64]
    frequent: npt.NDArray[np.uint64]
    others: _Int32s


class Postings(NamedTuple):
    """Inverted index as in `Index`."""

    starts: _Int64s
    entries: _Int32s
    places: _Int32s


class Bounds(NamedTuple):
    """What the filters compare with, for each probe; `needed` for each sum of two sizes."""

    low: _Int32s
    """First set of the index that is long enough."""
    high: _Int32s
    """First set of the index, from `low` on, that is not to be compared."""
    prefixes: _Int32s
    """Number of rarest ids of which one must be shared."""
    needed: _Int32s
    """Smallest overlap that reaches the threshold."""


class Scratch(NamedTuple):
    """Working memory of one pass over ascending probes."""

    cursor: _Int64s
    """First posting of each rank that some later probe may need."""
    seen: _Int32s
    """Last probe that each set of the index was compared with."""
    member: npt.NDArray[np.uint8]
    """1 for each rank of the current probe."""


class Found(NamedTuple):
    """Buffers of results as positions in the two collections; a pass stops before one could overflow."""

    left: _Int64s
    right: _Int64s
    common: _Int64s


def count_ids(sets: TokenSets) -> _Int64s:
    """Return the number of sets that hold each id, shape (vocab_size,)."""
    frequency = np.zeros(sets.vocab_size, np.int64)
    _count_ids(sets.ids, frequency)
    return frequency


def order_sets(sets: TokenSets, rank: _Int64s, min_distinct: int) -> Ordered:
    """Return the sets of at least `min_distinct` ids and one in ascending order of size, with bitmaps."""
    compared = np.flatnonzero(sets.sizes >= max(min_distinct, 1))
    position = compared[np.argsort(sets.sizes[compared], kind="stable")]
    offsets = np.zeros(len(position) + 1, np.int64)
    np.cumsum(sets.sizes[position], out=offsets[1:])
    narrow = rank.astype(np.uint16) if sets.vocab_size <= 2**16 else rank.astype(np.int32)
    ranks = np.empty(offsets[-1], narrow.dtype)
    bits, frequent = (np.zeros((len(position), _WORDS), np.uint64) for _ in range(2))
    side = Side(position, offsets, ranks, bits, frequent, np.zeros(len(position), np.int32))
    _translate(sets.offsets, sets.ids, narrow, side)
    return Ordered(*side)


def build_index(ordered: Ordered, prefixes: _Int64s, vocab_size: int) -> Index:
    """Return the inverted index of the first `prefixes` ids of each set."""
    starts = np.zeros(vocab_size + 1, np.int64)
    entries = np.empty(int(prefixes.sum()), np.int32)
    places = np.empty(len(entries), np.int32)
    _fill(ordered.offsets, ordered.ranks, prefixes, starts, entries, places)
    return Index(ordered, starts, entries, places)


@compiled
def _count_ids(ids: _Ids, frequency: _Int64s) -> None:
    """Add 1 for each id; np.bincount would first copy all ids into eight bytes each."""
    for place in range(len(ids)):
        frequency[ids[place]] += 1


@compiled
def _translate(offsets: _Int64s, ids: _Ids, rank: _Ranks, out: Side) -> None:
    """Write the ranks of the sets at the positions of a side, ascending, and their bitmaps."""
    width = np.uint64(64 * out.bits.shape[1])
    first_frequent = len(rank) - np.int64(width)
    present = np.zeros((len(rank) + 63) // 64, np.uint64)
    for number in range(len(out.position)):
        start, stop = out.offsets[number], out.offsets[number + 1]
        begin = offsets[out.position[number]]
        for place in range(stop - start):
            out.ranks[start + place] = rank[ids[begin + place]]
        _sort(out.ranks[start:stop], present)
        for place in range(start, stop):
            bit = np.uint64(out.ranks[place]) % width
            word, mask = bit >> np.uint64(6), np.uint64(1) << (bit & np.uint64(63))
            out.bits[number, word] ^= mask
            # 256 consecutive ranks have 256 different remainders.
            if out.ranks[place] >= first_frequent:
                out.frequent[number, word] |= mask
            else:
                out.others[number] += 1


@compiled
def _sort(ranks: _Ranks, present: npt.NDArray[np.uint64]) -> None:
    """Sort different ranks in place by one bit for each; `present` is all 0, before and after."""
    if len(present) > _SORTED_WORDS * len(ranks):
        ranks.sort()
        return
    for value in ranks:
        bit = np.uint64(value)
        present[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    count = 0
    for number in range(len(present)):
        word = present[number]
        while word:
            rest = word & (word - np.uint64(1))
            ranks[count] = 64 * number + np.int64(popcount((word ^ rest) - np.uint64(1)))  # type: ignore[call-arg]  # as below
            count += 1
            word = rest
        present[number] = 0


@compiled
def _fill(
    offsets: _Int64s, ranks: _Ranks, prefixes: _Int64s, starts: _Int64s, entries: _Int32s, places: _Int32s
) -> None:
    """Fill the inverted index by counting."""
    for number in range(len(prefixes)):
        for place in range(prefixes[number]):
            starts[ranks[offsets[number] + place] + 1] += 1
    for rank in range(len(starts) - 1):
        starts[rank + 1] += starts[rank]
    free = starts[:-1].copy()
    for number in range(len(prefixes)):
        for place in range(prefixes[number]):
            rank = ranks[offsets[number] + place]
            entries[free[rank]] = number
            places[free[rank]] = place
            free[rank] += 1


@compiled
def probe_range(
    span: tuple[int, int], sides: tuple[Side, Side], postings: Postings, bounds: Bounds, scratch: Scratch, found: Found
) -> tuple[int, int]:
    """Write all pairs of the probes in a range; return the first probe not done and the number of pairs.

    A probe is done whole or not at all: the buffers must hold as many pairs as the index has sets.
    """
    probes, _ = sides
    n_found = 0
    for probe in range(span[0], span[1]):
        if n_found + bounds.high[probe] - bounds.low[probe] > len(found.left):
            return probe, n_found
        begin, end = probes.offsets[probe], probes.offsets[probe + 1]
        for place in range(begin, end):
            scratch.member[probes.ranks[place]] = 1
        n_found = _probe_one(probe, n_found, sides, (postings, bounds), scratch, found)
        for place in range(begin, end):
            scratch.member[probes.ranks[place]] = 0
    return span[1], n_found


@compiled
def _probe_one(
    probe: int,
    n_found: int,
    sides: tuple[Side, Side],
    filters: tuple[Postings, Bounds],
    scratch: Scratch,
    found: Found,
) -> int:
    """Write the pairs of one probe behind the first `n_found`; return their number then."""
    probes, index = sides
    postings, bounds = filters
    begin = probes.offsets[probe]
    size = probes.offsets[probe + 1] - begin
    low, high = bounds.low[probe], bounds.high[probe]
    unseen = high - low
    for place in range(bounds.prefixes[probe]):
        if unseen <= 0:
            break
        rank = probes.ranks[begin + place]
        for posting in range(_first_posting(rank, low, postings, scratch), postings.starts[rank + 1]):
            other = postings.entries[posting]
            if other >= high:
                break
            if scratch.seen[other] == probe:
                continue
            other_place = np.int64(postings.places[posting])
            other_begin = index.offsets[other]
            other_size = index.offsets[other + 1] - other_begin
            needed = bounds.needed[size + other_size]
            # Nothing in common before these two places, or an earlier posting of this pair would have failed as well.
            if min(size - place, other_size - other_place) < needed:
                continue
            scratch.seen[other] = probe
            unseen -= 1
            if size + other_size - _n_differing(probes.bits, probe, index.bits, other) < 2 * needed:
                continue
            common = _n_shared(probes.frequent, probe, index.frequent, other)
            rest = (other_begin + other_place, other_begin + index.others[other])
            common += _count(index.ranks, rest, scratch.member, needed - common)
            if common >= needed:
                found.left[n_found] = probes.position[probe]
                found.right[n_found] = index.position[other]
                found.common[n_found] = common
                n_found += 1
    return n_found


@compiled
def _n_differing(one: _Bitmaps, number: int, others: _Bitmaps, other: int) -> np.int64:
    """Return the number of bits in which two bitmaps differ."""
    count = np.int64(0)
    for word in range(_WORDS):
        count += np.int64(popcount(one[number, word] ^ others[other, word]))  # type: ignore[call-arg]  # numba passes the context
    return count


@compiled
def _n_shared(one: _Bitmaps, number: int, others: _Bitmaps, other: int) -> np.int64:
    """Return the number of bits that are set in both of two bitmaps."""
    count = np.int64(0)
    for word in range(_WORDS):
        count += np.int64(popcount(one[number, word] & others[other, word]))  # type: ignore[call-arg]  # as above
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
def _count(ranks: _Ranks, span: tuple[int, int], member: npt.NDArray[np.uint8], needed: int) -> int:
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
