"""Token sets put in order for the compiled join: ids by rarity, bitmaps, the inverted index of prefixes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.compiled import compiled, popcount
from dedup.jaccard import TokenSets

WORDS = 4  # 64-bit words of each of a set's bitmaps; see docs/adr/0006
_MAX_SIZE = 2**31 - 1  # sets are smaller; a tiny threshold would allow partners of more
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bitmaps = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int32] | npt.NDArray[np.uint16]
Ranks = npt.NDArray[np.uint16] | npt.NDArray[np.int32]


# numba compiles functions of named tuples, not of dataclasses.
class Ordered(NamedTuple):
    """Sets in ascending order of size, ids replaced by their rank: rarest first."""

    position: Int64s
    """Position of each set in the collection it comes from."""
    offsets: Int64s
    """Start of each set in `ranks`, shape (n_sets + 1,)."""
    ranks: Ranks
    """Ranks of the ids of all sets, ascending in each."""
    bits: Bitmaps
    """Bitmap of each set, shape (n_sets, 4)."""
    frequent: Bitmaps
    """One bit for each of the 256 highest ranks, shape (n_sets, 4)."""
    others: Int32s
    """Number of each set's ids that have no such bit."""


class Marks(NamedTuple):
    """Working memory that puts the ranks of one set in order: all 0, before and after."""

    words: Bitmaps
    """One bit for each rank, shape (n_ranks / 64,)."""
    filled: Bitmaps
    """One bit for each of `words` that is not 0."""


class Postings(NamedTuple):
    """Inverted index of the sets' prefixes."""

    starts: Int64s
    """Start of each rank's postings, shape (n_ranks + 1,)."""
    entries: Int32s
    """Number of the set, ascending for one rank."""
    places: Int32s
    """Place of the rank in that set."""
    longest: Int32s
    """Size of the largest probe that the set can still reach the threshold with when this is its first common id."""
    smaller: Int32s
    """Number of indexed sets below each size, shape (largest size + 2,)."""


@dataclass(frozen=True, slots=True)
class Index:
    """Sets and the inverted index of their prefixes."""

    sets: Ordered
    """The sets."""
    postings: Postings
    """The index."""


def count_ids(sets: TokenSets) -> Int64s:
    """Return the number of sets that hold each id, shape (vocab_size,)."""
    frequency = np.zeros(sets.vocab_size, np.int64)
    _count_ids(sets.ids, frequency)
    return frequency


def by_size(sets: TokenSets, min_distinct: int) -> Int64s:
    """Return the positions of the sets of at least `min_distinct` ids and one, in ascending order of size."""
    compared = np.flatnonzero(sets.sizes >= max(min_distinct, 1))
    sizes = sets.sizes[compared]
    narrow = sizes.astype(np.uint16) if sizes.max(initial=0) < 2**16 else sizes  # NumPy sorts two bytes by counting
    order: Int64s = compared[np.argsort(narrow, kind="stable")]
    return order


def narrow_rank(rank: Int64s) -> Ranks:
    """Return the rank of each id in as few bytes as it needs, raised so that the last is that of `count_ranks`.

    So the 256 highest, one bit each, are the last words of one bit for each rank.
    """
    n_ranks = count_ranks(len(rank))
    raised = rank + (n_ranks - len(rank))
    return raised.astype(np.uint16) if n_ranks <= 2**16 else raised.astype(np.int32)


@compiled
def count_ranks(vocab_size: int) -> int:
    """Return the number of ranks that so many ids have: a multiple of the bits of a bitmap."""
    width = 64 * WORDS
    return -(-max(vocab_size, 1) // width) * width


def order_sets(sets: TokenSets, rank: Int64s, min_distinct: int) -> Ordered:
    """Return the sets of at least `min_distinct` ids and one in ascending order of size, with bitmaps."""
    position = by_size(sets, min_distinct)
    offsets = np.zeros(len(position) + 1, np.int64)
    np.cumsum(sets.sizes[position], out=offsets[1:])
    narrow = narrow_rank(rank)
    ranks = np.empty(offsets[-1], narrow.dtype)
    bits, frequent = (np.zeros((len(position), WORDS), np.uint64) for _ in range(2))
    ordered = Ordered(position, offsets, ranks, bits, frequent, np.zeros(len(position), np.int32))
    _translate(sets.offsets, sets.ids, narrow, ordered)
    return ordered


def build_index(ordered: Ordered, prefixes: Int64s, ratio: tuple[int, int], n_ranks: int) -> Index:
    """Return the inverted index of the first `prefixes` ids of each set, for the threshold `ratio`."""
    sizes = np.diff(ordered.offsets)
    starts = np.zeros(n_ranks + 1, np.int64)
    entries, places, longest = (np.empty(int(prefixes.sum()), np.int32) for _ in range(3))
    smaller = np.searchsorted(sizes, np.arange(sizes[-1] + 2 if len(sizes) else 2)).astype(np.int32)
    postings = Postings(starts, entries, places, longest, smaller)
    _fill(ordered.offsets, ordered.ranks, prefixes, ratio, postings)
    return Index(ordered, postings)


@compiled
def _count_ids(ids: Ids, frequency: Int64s) -> None:
    """Add 1 for each id; np.bincount would first copy all ids into eight bytes each."""
    for place in range(len(ids)):
        frequency[ids[place]] += 1


@compiled
def _translate(offsets: Int64s, ids: Ids, rank: Ranks, out: Ordered) -> None:
    """Write the ranks of the sets at the positions of `out`, ascending, and their bitmaps."""
    marks = new_marks(rank)
    ranks = np.empty(len(rank), rank.dtype)
    for number in range(len(out.position)):
        start, stop = out.offsets[number], out.offsets[number + 1]
        begin = offsets[out.position[number]]
        for place in range(stop - start):
            ranks[place] = rank[ids[begin + place]]
        frequent = out.frequent[number]
        put_in_order(ranks[: stop - start], stop - start, marks, out.ranks[start:stop], out.bits[number], frequent)
        others = stop - start
        for word in frequent:
            others -= np.int64(popcount(word))  # type: ignore[call-arg]  # numba passes the context
        out.others[number] = others


@compiled
def new_marks(rank: Ranks) -> Marks:
    """Return the working memory that ranks from `narrow_rank` need."""
    n_words = count_ranks(len(rank)) // 64
    return Marks(np.zeros(n_words, np.uint64), np.zeros((n_words + 63) // 64, np.uint64))


@compiled
def put_in_order(ranks: Ranks, count: int, marks: Marks, lowest: Ranks, bits: Bitmaps, frequent: Bitmaps) -> None:
    """Write the `count` lowest of different ranks, ascending, and the bitmaps of them all.

    By one bit for each rank; only the words that hold one are looked at.
    """
    one, last = np.uint64(1), np.uint64(63)
    for value in ranks:
        bit = np.uint64(value)
        word = bit >> np.uint64(6)
        marks.words[word] |= one << (bit & last)
        marks.filled[word >> np.uint64(6)] |= one << (word & last)
    frequent[:] = marks.words[len(marks.words) - WORDS :]
    bits[:] = 0
    done = 0
    for group in range(len(marks.filled)):
        filled = marks.filled[group]
        marks.filled[group] = 0
        while filled:
            number = 64 * group + _lowest_bit(filled)
            filled &= filled - one
            present = marks.words[number]
            marks.words[number] = 0
            bits[number % WORDS] ^= present
            while present and done < count:
                lowest[done] = 64 * number + _lowest_bit(present)
                done += 1
                present &= present - one


@compiled
def _lowest_bit(word: np.uint64) -> np.int64:
    """Return the number of the lowest bit that is set."""
    return np.int64(popcount((word ^ (word & (word - np.uint64(1)))) - np.uint64(1)))  # type: ignore[call-arg]  # as above


@compiled
def _fill(offsets: Int64s, ranks: Ranks, prefixes: Int64s, ratio: tuple[int, int], out: Postings) -> None:
    """Fill the inverted index by counting."""
    numerator, denominator = ratio
    for number in range(len(prefixes)):
        for place in range(prefixes[number]):
            out.starts[ranks[offsets[number] + place] + 1] += 1
    for rank in range(len(out.starts) - 1):
        out.starts[rank + 1] += out.starts[rank]
    free = out.starts[:-1].copy()
    for number in range(len(prefixes)):
        size = offsets[number + 1] - offsets[number]
        for place in range(prefixes[number]):
            rank = ranks[offsets[number] + place]
            out.entries[free[rank]] = number
            out.places[free[rank]] = place
            out.longest[free[rank]] = min(partner_limit(size, place, numerator, denominator), _MAX_SIZE)
            free[rank] += 1


@compiled
def partner_limit(size: int, place: int, numerator: int, denominator: int) -> int:
    """Return the size of the largest set that can reach the threshold with a set of this size of which the ids before
    `place` are not shared: size - place >= t / (1 + t) * (size + other)."""
    return (denominator * size - (numerator + denominator) * place) // numerator
