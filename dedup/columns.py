"""The duplicate search over columns: no row is a Python object, and a finished search can be extended by new rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dedup.clusters import NearDuplicates
from dedup.jaccard import Ints, exact_threshold
from dedup.near import extend_near_duplicates, find_near_duplicates
from dedup.token_table import TokenTable
from schemas.config import DedupConfig


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Exact and near duplicates of a token table's rows."""

    order: Ints
    """Rows of the table in keeper order: earliest committer date, then smallest row id."""
    text: Ints
    """Number of each row's text, rows in keeper order; texts are numbered as they first come up."""
    first: Ints
    """Place in `order` of each text's first row, the one that stays of all equal ones; ascending."""
    digest: pa.Array
    """SHA-256 of each text."""
    near: NearDuplicates
    """Near duplicates among the texts, by their numbers."""
    extended: bool
    """An earlier search was extended; False when all pairs were looked for."""

    def kept(self) -> Ints:
        """Return the rows that stay, in keeper order."""
        keepers = np.flatnonzero(self.near.keeper == np.arange(len(self.first)))
        return self.order[self.first[keepers]]


def find_duplicates(
    tokens: TokenTable, committed: npt.NDArray[np.int64], config: DedupConfig, earlier: Duplicates | None = None
) -> Duplicates:
    """Return the duplicates of all rows; `committed` are their committer dates in microseconds since 1970.

    With `earlier`, the result of the same configuration for some of the rows, only the pairs of new texts are looked
    for. The result is the same. Where a new row takes the first place of an old text and so changes the order of old
    texts, all pairs are looked for.
    """
    order = _keeper_order(tokens, committed)
    digest = tokens.digest.take(pa.array(order)).combine_chunks()
    text = digest.dictionary_encode().indices.to_numpy().astype(np.int64)
    first = _first_places(text)
    digests = digest.take(pa.array(first))
    sets = tokens.sets.take(order[first])
    threshold, floor = exact_threshold(config.threshold), config.min_distinct_tokens
    is_new = None if earlier is None else _new_texts(earlier.digest, digests)
    if earlier is None or is_new is None:
        near = find_near_duplicates(sets, threshold, floor)
    else:
        near = extend_near_duplicates(sets, is_new, earlier.near, threshold, floor)
    return Duplicates(order, text, first, digests, near, is_new is not None)


def _keeper_order(tokens: TokenTable, committed: npt.NDArray[np.int64]) -> Ints:
    table = pa.table({"date": committed, "row_id": tokens.row_id})
    order: Ints = pc.sort_indices(table, [("date", "ascending"), ("row_id", "ascending")]).to_numpy().astype(np.int64)
    return order


def _first_places(text: Ints) -> Ints:
    """Return the place where each number comes up first; numbers are given in that order."""
    highest = np.maximum.accumulate(text)
    new = np.ones(len(text), np.bool_)
    new[1:] = highest[1:] > highest[:-1]
    return np.flatnonzero(new)


def _new_texts(earlier: pa.Array, digests: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which texts are new, None when earlier ones are gone or stand in another order."""
    place = pc.index_in(earlier, digests)
    places = place.fill_null(-1).to_numpy()
    if place.null_count or (np.diff(places) <= 0).any():
        return None
    is_new = np.ones(len(digests), np.bool_)
    is_new[places] = False
    return is_new
