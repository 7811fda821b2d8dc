"""Jaccard similarity of token sets, decided with integers only.

Jaccard similarity of two sets is |intersection| / |union| (Jaccard 1901; Broder 1997 for near-duplicate texts).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.errors import ConfigError

if TYPE_CHECKING:
    from scipy import sparse

Ints = npt.NDArray[np.int64]

# Products of a denominator and a set size stay below 2**63: sizes are at most the vocabulary's (2**13) or any 2**31.
_MAX_DENOMINATOR = 10**9
_CHUNK_TOKENS = 2_000_000  # token ids gathered at once while pairs are verified: about 50 MB
# Counting a pair in a product of all sets of its block costs less than a tenth of counting it alone
# (docs/adr/0002): the product is taken when a tenth of its cells are wanted, the case of large clusters.
_DENSE = 10
_MAX_CELLS = 4_000_000  # cells of such a product: about 50 MB


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Sets of token ids in one array: set i is `ids[offsets[i]:offsets[i + 1]]`, ascending, without repetition."""

    offsets: npt.NDArray[np.int64]
    """Start of each set, shape (n_sets + 1,)."""
    ids: npt.NDArray[np.int32] | npt.NDArray[np.uint16]
    """Token ids of all sets."""
    vocab_size: int
    """All ids are below it."""

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of distinct ids of each set."""
        return np.diff(self.offsets)

    def take(self, positions: npt.NDArray[np.int64]) -> "TokenSets":
        """Return the sets at the given positions, in their order."""
        # As texts of bytes, which Arrow copies whole; NumPy would need the place of each id, eight bytes for two.
        kind, width, count = pa.large_binary(), self.ids.itemsize, len(positions)
        buffers = [None, pa.py_buffer(self.offsets * width), pa.py_buffer(np.ascontiguousarray(self.ids))]
        texts = pa.Array.from_buffers(kind, len(self.offsets) - 1, buffers).take(pa.array(positions))
        _, bounds, content = texts.buffers()
        offsets = np.frombuffer(bounds, np.int64, count + 1) // width if count else np.zeros(1, np.int64)
        ids = np.empty(0, self.ids.dtype)
        if content is not None:
            ids = np.frombuffer(content, self.ids.dtype, int(offsets[-1]))
        # Compiled functions are compiled once more for arrays that cannot be written.
        return TokenSets(offsets, ids if ids.flags.writeable else ids.copy(), self.vocab_size)

    def matrix(self) -> "sparse.csr_array":
        """Return the sets as the rows of a sparse 0/1 matrix of shape (n_sets, vocab_size)."""
        from scipy import sparse  # takes a third of a second to import

        ones = np.ones(len(self.ids), np.int32)
        ids = self.ids.astype(np.int32, copy=False)
        return sparse.csr_array((ones, ids, self.offsets), shape=(len(self.offsets) - 1, self.vocab_size))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of sets with what they have in common; three arrays of one shape."""

    left: Ints
    """Position of the one set."""
    right: Ints
    """Position of the other set."""
    common: Ints
    """Size of the intersection."""


def token_sets(sequences: Sequence[npt.NDArray[np.int32]], vocab_size: int) -> TokenSets:
    """Return the set of ids of each token sequence."""
    distinct = [np.unique(sequence) for sequence in sequences]
    offsets = np.zeros(len(distinct) + 1, np.int64)
    np.cumsum([len(ids) for ids in distinct], out=offsets[1:])
    ids = np.concatenate(distinct) if distinct else np.zeros(0, np.int32)
    return TokenSets(offsets, ids.astype(np.int32, copy=False), vocab_size)


def join_sets(parts: Iterable[TokenSets], vocab_size: int) -> TokenSets:
    """Return the sets of all parts, one part behind the other."""
    listed = list(parts)
    sizes = np.concatenate([np.zeros(1, np.int64), *(part.sizes for part in listed)])
    ids = np.concatenate([part.ids for part in listed]) if listed else np.zeros(0, np.int32)
    return TokenSets(np.cumsum(sizes), ids, vocab_size)


def exact_threshold(threshold: float) -> Fraction:
    """Return the decimal number that was written as a float, so that 0.7 means 7/10.

    Raise ConfigError when it is not in (0, 1] or has more than nine decimals.
    """
    ratio = Fraction(repr(float(threshold))) if np.isfinite(threshold) else Fraction(0)
    if not 0 < ratio <= 1:
        raise ConfigError(f"dedup.threshold must be above 0 and at most 1, not {threshold!r}")
    if ratio.denominator > _MAX_DENOMINATOR:
        raise ConfigError(f"dedup.threshold must have at most nine decimals, not {threshold!r}")
    return ratio


def ceil_ratio(numerator: int, sizes: Ints, denominator: int) -> Ints:
    """Return ceil(numerator * sizes / denominator) in integers."""
    return -(-numerator * sizes // denominator)


def rank_ids(frequency: Ints) -> Ints:
    """Return the rank of each id by its frequency: rarest first, ties by id."""
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    return rank


def order_of(keys: Ints) -> Ints:
    """Return the order of numbers of 0 and above, equal ones as they come."""
    n_bits = len(keys).bit_length()
    if int(keys.max(initial=0)).bit_length() + n_bits > 63:
        return np.argsort(keys, kind="stable")
    # Numbers alone are sorted five times as fast as their places, so each carries its place.
    carrying = keys << n_bits
    carrying |= np.arange(len(keys))
    carrying.sort()
    carrying &= (1 << n_bits) - 1
    return carrying


def similarity(common: int, size_a: int, size_b: int) -> float:
    """Return the Jaccard similarity as the nearest float; two empty sets are equal: 1.0."""
    union = size_a + size_b - common
    return common / union if union else 1.0


def verify(sets: TokenSets, left: Ints, right: Ints, threshold: Fraction) -> Iterator[Pairs]:
    """Yield, in chunks of bounded memory, the given pairs whose Jaccard similarity is at least the threshold."""
    for pairs in count_common(sets, left, right):
        passed = reaches(pairs.common, sets.sizes[pairs.left] + sets.sizes[pairs.right], threshold)
        yield Pairs(pairs.left[passed], pairs.right[passed], pairs.common[passed])


def reaches(common: Ints, total: Ints, threshold: Fraction) -> npt.NDArray[np.bool_]:
    """Return whether common / (total - common) >= threshold, total being the sum of both sizes; no division."""
    passed: npt.NDArray[np.bool_] = common * threshold.denominator >= threshold.numerator * (total - common)
    return passed


def count_common(sets: TokenSets, left: Ints, right: Ints) -> Iterator[Pairs]:
    """Yield the pairs in order with the sizes of their intersections, in chunks of bounded memory."""
    rows, row_of = _distinct(left, len(sets.sizes))
    columns, column_of = _distinct(right, len(sets.sizes))
    if len(left) and len(rows) * len(columns) <= min(_DENSE * len(left), _MAX_CELLS):
        table = _all_common(sets.take(rows).matrix(), sets.take(columns).matrix())
        yield Pairs(left, right, table[row_of, column_of].astype(np.int64))
        return
    for chunk in chunks(sets.sizes[left] + sets.sizes[right]):
        common = sets.take(left[chunk]).matrix().multiply(sets.take(right[chunk]).matrix()).sum(axis=1)
        yield Pairs(left[chunk], right[chunk], np.asarray(common, dtype=np.int64).reshape(-1))


def _distinct(positions: Ints, n_sets: int) -> tuple[Ints, Ints]:
    """Return the distinct positions, ascending, and the place of each position among them."""
    present = np.zeros(n_sets, np.bool_)
    present[positions] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[positions]


def _all_common(rows: "sparse.csr_array", columns: "sparse.csr_array") -> npt.NDArray[np.int32]:
    """Return the intersection sizes of all rows with all columns, shape (n_rows, n_columns)."""
    # The product runs over the larger side and looks ids up in the smaller one, whose inversion is cheap.
    if rows.shape[0] < columns.shape[0]:
        return _all_common(columns, rows).T
    table: npt.NDArray[np.int32] = (rows @ columns.T.tocsr()).toarray()
    return table


def join_pairs(blocks: Iterable[Pairs]) -> Pairs:
    """Return blocks of pairs as one."""
    columns = [(block.left, block.right, block.common) for block in blocks]
    if not columns:
        return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    left, right, common = zip(*columns, strict=True)
    return Pairs(np.concatenate(left), np.concatenate(right), np.concatenate(common))


def chunks(weights: npt.NDArray[np.int64]) -> Iterator[slice]:
    """Yield consecutive slices whose weights add up to about `_CHUNK_TOKENS` or which hold one element."""
    if not len(weights):
        return
    groups = np.cumsum(weights) // _CHUNK_TOKENS
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(weights)]
    for start, stop in pairwise(bounds):
        yield slice(start, stop)
