"""The duplicate search over columns: no row is a Python object, and a finished search can be extended by new rows."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dedup.clusters import NearDuplicates
from dedup.jaccard import Ints, TokenSets, exact_threshold
from dedup.names import number_digests, sort_texts
from dedup.near import Former, extend_near_duplicates, find_near_duplicates, finish_near_duplicates, search_part
from dedup.token_table import TokenTable
from schemas.config import DedupConfig
from schemas.errors import PipelineError
from schemas.texts import TextRows


@dataclass(frozen=True, slots=True)
class Texts:
    """The distinct texts of a token table's rows."""

    order: Ints
    """Rows of the table in keeper order: earliest committer date, then smallest row id."""
    text: Ints
    """Number of each row's text, rows in keeper order; texts are numbered as they first come up."""
    rank: Ints
    """Rank of each row's id among all row ids, rows in keeper order."""
    ids: TextRows
    """All row ids, sorted."""

    @property
    def first(self) -> Ints:
        """Return the place in `order` of each text's first row, the one that stays of all equal ones; ascending."""
        highest = np.maximum.accumulate(self.text)
        new = np.ones(len(highest), np.bool_)
        new[1:] = highest[1:] > highest[:-1]
        return np.flatnonzero(new)


@dataclass(frozen=True, slots=True)
class Search:
    """A finished search for near duplicates."""

    digest: pa.Array
    """SHA-256 of each distinct text, in keeper order of their first rows."""
    near: NearDuplicates
    """Near duplicates among the texts, by their numbers."""


def distinct_texts(tokens: TokenTable, committed: npt.NDArray[np.int64]) -> Texts:
    """Return the distinct texts of rows with the given committer dates, in microseconds since 1970.

    Raise PipelineError when a row id occurs twice: the result would depend on the order of rows.
    """
    ids = TextRows(tokens.row_id.combine_chunks())
    by_id = sort_texts(ids.texts)
    _check_ids(ids.take(by_id.alike))
    order = by_id.order[np.argsort(committed[by_id.order], kind="stable")]
    rank = np.empty(len(order), np.int64)
    rank[by_id.order] = np.arange(len(order))
    number = number_digests(tokens.digest.combine_chunks(), order)
    return Texts(order, number, rank[order], TextRows(ids.take(by_id.order)))


def _check_ids(ids: pa.Array) -> None:
    """Raise PipelineError for ids that occur more than once; equal ones are given one behind the other."""
    same = pc.equal(ids[1:], ids[:-1])
    if len(ids) > 1 and pc.any(same).as_py():
        repeated = pc.unique(ids[1:].filter(same))
        raise PipelineError(
            f"{len(repeated)} row ids occur more than once, the first is {repeated[0]}; "
            "give every data point once (is a repository named twice in [[sources]]?)"
        )


def placed_among(earlier: Search, digest: pa.Array) -> Former:
    """Return an earlier search with where each of its texts stands among the texts that are searched now."""
    n_same = _common_start(earlier.digest, digest)  # rows that came later leave the texts of earlier ones in place
    behind = pc.fill_null(pc.index_in(earlier.digest[n_same:], digest[n_same:]), -1).to_numpy().astype(np.int64)
    return Former(earlier.near, np.concatenate([np.arange(n_same), np.where(behind < 0, -1, behind + n_same)]))


def _common_start(one: pa.Array, other: pa.Array) -> int:
    """Return how many values at the start of both arrays are equal."""
    count = min(len(one), len(other))
    differing = pc.index(pc.equal(one[:count], other[:count]), value=False).as_py()
    return count if differing < 0 else int(differing)


def search_texts(
    sets: TokenSets, digest: pa.Array, config: DedupConfig, former: Former | None = None, threads: int | None = None
) -> Search:
    """Return the near duplicates among distinct texts, given in keeper order.

    With `former`, the result of the same configuration for other texts, only the pairs of new texts are looked for
    where that is possible (`dedup.near.extend_near_duplicates`). The result is the same.
    """
    threshold, floor = exact_threshold(config.threshold), config.min_distinct_tokens
    near = None
    if former is not None:
        near = extend_near_duplicates(sets, former, threshold, floor, threads=threads)
    return Search(digest, near or find_near_duplicates(sets, threshold, floor, threads=threads))


def search_share(sets: TokenSets, config: DedupConfig, part: int, n_parts: int) -> NearDuplicates:
    """Return what one of several processes finds of the near duplicates; `join_shares` puts the parts together."""
    return search_part(sets, exact_threshold(config.threshold), config.min_distinct_tokens, part, n_parts)


def join_shares(
    sets: TokenSets, digest: pa.Array, config: DedupConfig, shares: Iterable[NearDuplicates]
) -> Search:  # fmt: skip
    """Return the near duplicates among distinct texts from the shares of all processes."""
    return Search(digest, finish_near_duplicates(sets, config.min_distinct_tokens, shares))
