"""What a duplicate search found, as the columns of the lake's tables: what stays, what goes and why, pairs, clusters.

Row ids are handled by their rank among all row ids, so that numbers are sorted and compared instead of texts.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dedup.clusters import NearDuplicates
from dedup.columns import Texts
from dedup.jaccard import Ints, TokenSets, exact_threshold, order_of
from dedup.names import join_texts, number_texts
from dedup.near import Removals, explain_removals, list_pairs
from dedup.policies import exclusions
from schemas.arrow import schema_of
from schemas.comparisons import DescribedCluster
from schemas.config import DedupConfig
from schemas.records import DuplicatePair, StageReport
from schemas.references import Keep
from schemas.texts import TextRows

EXACT_STAGE, NEAR_STAGE = "dedup_exact", "dedup_near"


def duplicate_reason(stage: str) -> str:
    """Return why a row left at a stage."""
    return "near_duplicate" if stage == NEAR_STAGE else "exact_duplicate"


@dataclass(frozen=True, slots=True)
class Findings:
    """What stays, what goes and why. Nothing in it depends on the order of rows, but for `kept`, which names rows."""

    kept: Ints
    """Rows that go on, in order of their row ids."""
    excluded: pa.Table
    """Every other row (Exclusion; `exact_duplicate`, `near_duplicate`): by stage, then row id."""
    pairs: pa.Table
    """Every removed exact duplicate with the equal row it goes back to, and every near pair among the rows that
    differ, sorted by the two row ids (DuplicatePair). In a cluster of more than `clusters.MAX_LISTED_CLUSTER` differing
    rows only near pairs that prove a removal: a row with its keeper, if at the threshold, and with its most similar
    row."""
    clusters: pa.Table
    """Connected components of pairs, sorted by keeper (DescribedCluster)."""
    members: Ints
    """Row of each member of each cluster, in their order."""
    reports: tuple[StageReport, StageReport]
    """Accounts of the stages `dedup_exact` and `dedup_near`; digest, version and times are the caller's."""


@dataclass(frozen=True, slots=True)
class Named:
    """Rows and texts by the rank of their row ids."""

    ids: TextRows
    """All row ids, sorted."""
    row: Ints
    """Row of each rank."""
    of_text: Ints
    """Rank of each text's first row."""
    keeper: Ints
    """Rank of the row that stays first of each text's cluster."""
    repeated: Ints
    """Ranks of the rows whose text an earlier row has, in keeper order."""
    repeats: Ints
    """Number of the text of each of them."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of ranks, columns; ascending."""

    left: Ints
    right: Ints
    jaccard: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    keeper: Ints


@dataclass(frozen=True, slots=True)
class _Gone:
    """Rows that go, columns: their rank, stage and detail."""

    row: Ints
    near: npt.NDArray[np.bool_]
    detail: pa.Array


def describe(
    rows: pa.Table, texts: Texts, sets: TokenSets, near: NearDuplicates, config: DedupConfig
) -> Findings:  # fmt: skip
    """Return what the search over rows found; `rows` have the columns repo and commit_id, `sets` are those of the
    distinct texts."""
    named = name_rows(texts, near)
    removals = explain_removals(sets, near, exact_threshold(config.threshold))
    pairs = _pairs(named, sets, near, removals)
    clusters = _Clusters.of(named)
    gone = _removed(named, near, removals, _CLUSTER if config.keep is Keep.NONE else _KEEPER)
    kept = np.sort(named.of_text[near.keeper == np.arange(len(near.keeper))])
    if config.keep is Keep.NONE:
        kept = np.setdiff1d(kept, clusters.keeper, assume_unique=True)
        gone = _with_keepers(named, gone, pairs, clusters.keeper)
    n_rows, n_near = len(named.ids), int(gone.near.sum())
    n_exact = len(gone.row) - n_near
    return Findings(
        named.row[kept],
        _exclusions(named, gone),
        _pairs_table(named, pairs),
        clusters.table(rows, named, config),
        named.row[clusters.members],
        (_report(EXACT_STAGE, n_rows, n_exact), _report(NEAR_STAGE, n_rows - n_exact, n_near)),
    )


def _report(stage: str, rows_in: int, n_gone: int) -> StageReport:
    return StageReport(stage, "all", rows_in, rows_in - n_gone, {duplicate_reason(stage): n_gone} if n_gone else {})


def name_rows(texts: Texts, near: NearDuplicates) -> Named:
    """Return rows and texts by the rank of their row ids."""
    row = np.empty(len(texts.order), np.int64)
    row[texts.rank] = texts.order
    first, by_place = texts.first, texts.rank
    of_text = by_place[first]
    later = np.ones(len(row), np.bool_)
    later[first] = False
    return Named(
        texts.ids,
        row,
        of_text,
        of_text[near.keeper],
        by_place[later],
        texts.text[later],
    )


def _pairs(named: Named, sets: TokenSets, near: NearDuplicates, removals: Removals) -> _Pairs:
    """Return the pairs to record."""
    left, right, jaccard = list_pairs(sets, near, removals)
    first = named.of_text[named.repeats]
    one = np.concatenate([named.repeated, named.of_text[left]])
    other = np.concatenate([first, named.of_text[right]])
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = order_of(low * len(named.ids) + high)
    exact = np.arange(len(one)) < len(first)
    similarity = np.concatenate([np.ones(len(first)), jaccard])
    keeper = np.concatenate([named.keeper[named.repeats], named.keeper[left]])
    return _Pairs(low[order], high[order], similarity[order], exact[order], keeper[order])


def _pairs_table(named: Named, pairs: _Pairs) -> pa.Table:
    """Return the table of pairs; row ids stay numbers until they are written."""
    plain = schema_of(DuplicatePair)
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [item.with_type(kind) if item.type == pa.string() else item for item in plain], plain.metadata
    )  # fmt: skip
    left, right, keeper = (
        pa.DictionaryArray.from_arrays(pa.array(ranks, pa.int32()), named.ids.texts)
        for ranks in (pairs.left, pairs.right, pairs.keeper)
    )
    return pa.table([left, right, pa.array(pairs.jaccard), pa.array(pairs.exact), keeper], schema)


_KEEPER, _CLUSTER = "keeper=", "cluster="


def _removed(named: Named, near: NearDuplicates, removals: Removals, label: str) -> _Gone:
    """Return the rows that go, each with its evidence; the keeper named is one that stays to the end."""
    similarity = np.ones(len(near.keeper))
    similarity[removals.position] = removals.jaccard
    via = np.flatnonzero(~removals.direct)
    through = near.keeper[named.repeats] != named.repeats  # the equal row goes as well
    exact = _details(
        named, label, (named.keeper[named.repeats], similarity[named.repeats]), through,
        (named.of_text[named.repeats][through], np.ones(int(through.sum()))),
    )  # fmt: skip
    other = _details(
        named, label, (named.keeper[removals.position], removals.jaccard), ~removals.direct,
        (named.of_text[removals.partner[via]], removals.partner_jaccard[via]),
    )  # fmt: skip
    row = np.concatenate([named.repeated, named.of_text[removals.position]])
    return _Gone(row, np.arange(len(row)) >= len(named.repeated), pa.concat_arrays([exact, other]))


def _details(
    named: Named,
    label: str,
    keeper: tuple[Ints, npt.NDArray[np.float64]],
    has_via: npt.NDArray[np.bool_],
    via: tuple[Ints, npt.NDArray[np.float64]],
) -> pa.Array:
    """Return `keeper=K jaccard=J`, where another row stands between ` via=V jaccard=J` behind it."""
    if not len(has_via):
        return pa.array([], pa.string())
    place = np.where(has_via, np.cumsum(has_via), 0)
    between = pa.concat_arrays([pa.array([""], pa.string()), _joined(" via=", named, *via)])
    return join_texts(_joined(label, named, *keeper), between.take(pa.array(place)))


def _joined(label: str, named: Named, row: Ints, similarity: npt.NDArray[np.float64]) -> pa.Array:
    """Return `<label><row id> jaccard=<similarity>`."""
    return join_texts(label, named.ids.take(row), " jaccard=", number_texts(similarity))


def _with_keepers(named: Named, gone: _Gone, pairs: _Pairs, keepers: Ints) -> _Gone:
    """Return the rows that go with the clusters' keepers among them.

    A keeper that other rows equal leaves at the exact stage, any other at the near stage; its detail names its most
    similar listed partner, an exact one first, of equals that with the smallest row id.
    """
    one, other = np.concatenate([pairs.left, pairs.right]), np.concatenate([pairs.right, pairs.left])
    jaccard, exact = np.tile(pairs.jaccard, 2), np.tile(pairs.exact, 2)
    chosen = np.flatnonzero(np.isin(one, keepers))
    chosen = chosen[np.lexsort((other[chosen], -jaccard[chosen], ~exact[chosen], one[chosen]))]
    chosen = chosen[np.flatnonzero(np.diff(one[chosen], prepend=-1))]
    via = _joined(" via=", named, other[chosen], jaccard[chosen])
    detail = join_texts(_CLUSTER, named.ids.take(one[chosen]), via)
    return _Gone(
        np.concatenate([gone.row, one[chosen]]),
        np.concatenate([gone.near, ~exact[chosen]]),
        pa.concat_arrays([gone.detail, detail]),
    )


def _exclusions(named: Named, gone: _Gone) -> pa.Table:
    order = order_of(gone.row + len(named.ids) * gone.near)
    near = pa.array(gone.near[order])
    columns = {
        "row_id": named.ids.take(gone.row[order]),
        "stage": pc.if_else(near, NEAR_STAGE, EXACT_STAGE),
        "reason": pc.if_else(near, duplicate_reason(NEAR_STAGE), duplicate_reason(EXACT_STAGE)),
        "detail": gone.detail.take(pa.array(order)),
    }
    return exclusions(columns)


@dataclass(frozen=True, slots=True)
class _Clusters:
    """Clusters of two rows and more."""

    keeper: Ints
    """Rank of each cluster's keeper, ascending."""
    starts: Ints
    """Start of each cluster's members, shape (n_clusters + 1,)."""
    members: Ints
    """Ranks of all members, ascending in each cluster."""

    @staticmethod
    def of(named: Named) -> "_Clusters":
        """Return the clusters of rows: those that differ by their texts' keepers, equal ones by their text's."""
        keeper = np.empty(len(named.ids), np.int64)
        keeper[named.of_text] = named.keeper
        keeper[named.repeated] = named.keeper[named.repeats]
        size = np.bincount(keeper, minlength=len(keeper))
        several = np.flatnonzero(size > 1)
        members = np.flatnonzero(size[keeper] > 1)
        members = members[order_of(keeper[members] * len(keeper) + members)]
        return _Clusters(several, np.concatenate([[0], np.cumsum(size[several])]), members)

    def table(self, rows: pa.Table, named: Named, config: DedupConfig) -> pa.Table:
        """Return the clusters with what their members have in common."""
        size, count = np.diff(self.starts), len(self.keeper)
        cluster = np.repeat(np.arange(count), size)
        repo, commit = (_numbered(rows.column(name), named.row[self.members]) for name in ("repo", "commit_id"))
        n_repos = _count_distinct(cluster, repo, count)
        n_commits = _count_distinct(cluster, repo * (commit.max(initial=0) + 1) + commit, count)
        keeper = named.ids.take(self.keeper)
        none = pa.nulls(count, pa.string())
        members = pa.ListArray.from_arrays(pa.array(self.starts, pa.int32()), named.ids.take(self.members))
        columns = [
            keeper,
            none if config.keep is Keep.NONE else keeper,
            members.cast(schema_of(DescribedCluster).field("members").type),
            pa.array(size),
            pa.array(n_repos),
            pa.array(n_repos > 1),
            pa.array(n_commits),
            pa.nulls(count, pa.int64()),  # dedup.authors
            pa.array(np.full(count, config.threshold)),
        ]
        return pa.table(columns, schema_of(DescribedCluster))


def _numbered(column: pa.ChunkedArray, rows: Ints) -> Ints:
    """Return a number for each row's value; equal values have equal numbers."""
    values = column.combine_chunks().dictionary_encode()
    numbers: Ints = values.indices.to_numpy().astype(np.int64)[rows]
    return numbers


def _count_distinct(group: Ints, value: Ints, n_groups: int) -> Ints:
    """Return the number of distinct values of each group."""
    width = int(value.max(initial=0)) + 1
    keys = np.sort(group * width + value)  # np.unique hashes integers, which takes ten times longer
    return np.bincount(keys[np.flatnonzero(np.diff(keys, prepend=-1))] // width, minlength=n_groups)
