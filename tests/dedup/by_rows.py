"""The duplicate search row by row, as tests state it: plain rows in, plain rows out, the columns in between."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from dedup import copied, policies
from dedup.columns import Search, distinct_texts, placed_among, search_texts
from dedup.copied import Described
from dedup.evidence import Findings, describe
from dedup.matches import best_matches
from dedup.token_table import TokenTable, tokenise
from dedup.tokens import load_tokenizer
from schemas.arrow import from_table, to_table
from schemas.comparisons import (
    DescribedCluster,
    OldCopy,
    OldMethod,
    ReferenceMatch,
    ReferenceSet,
    ReferenceText,
    ReleaseChange,
)
from schemas.config import DedupConfig
from schemas.records import DuplicateCluster, DuplicatePair, Exclusion, Novelty, StageReport
from schemas.references import Keep

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DedupRow:
    """One method to compare with all others."""

    row_id: str
    committer_date: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row comes from."""

    repo: str
    commit_id: str


@dataclass(frozen=True, slots=True)
class DedupResult:
    """What stays, what goes and why."""

    kept_ids: list[str]
    excluded: list[Exclusion]
    pairs: list[DuplicatePair]
    clusters: list[DuplicateCluster]
    reports: tuple[StageReport, StageReport]
    n_near_pairs: int
    described: list[DescribedCluster]


def tokens_of(texts: Sequence[str], ids: Sequence[str] | None = None) -> TokenTable:
    """Return the token table of texts."""
    names = pa.array(ids if ids is not None else [str(number) for number in range(len(texts))], pa.string())
    return tokenise([(names, pa.array(texts, pa.string()))], load_tokenizer())


def dates_of(rows: Sequence[DedupRow]) -> np.ndarray:
    """Return the committer dates in microseconds since 1970."""
    return np.array([(row.committer_date - _EPOCH) // timedelta(microseconds=1) for row in rows], np.int64)


def in_keeper_order(rows: Sequence[DedupRow]) -> list[DedupRow]:
    """Return rows as they are preferred, by the words of the data contract."""
    return sorted(rows, key=lambda row: (row.committer_date, row.row_id))


def search_rows(
    rows: Sequence[DedupRow],
    config: DedupConfig,
    earlier: Search | None = None,
    origins: Mapping[str, Origin] | None = None,
) -> tuple[Search, Findings]:
    """Return what the search finds, going on from an earlier one if there is one."""
    tokens = tokens_of([row.text for row in rows], [row.row_id for row in rows])
    texts = distinct_texts(tokens, dates_of(rows))
    distinct = tokens.take(texts.order[texts.first])
    digest = distinct.digest.combine_chunks()
    former = None if earlier is None else placed_among(earlier, digest)
    found = search_texts(distinct.sets, digest, config, former)
    known = origins or {}
    places = [known.get(row.row_id, Origin("o/n", "c")) for row in rows]
    columns = {
        "repo": pa.array([place.repo for place in places], pa.string()),
        "commit_id": pa.array([place.commit_id for place in places], pa.string()),
    }
    return found, describe(pa.table(columns), texts, distinct.sets, found.near, config)


def deduplicate(
    rows: Sequence[DedupRow], config: DedupConfig, origins: Mapping[str, Origin] | None = None
) -> DedupResult:
    """Remove exact and near duplicates (data contract, "Duplicates")."""
    search, found = search_rows(rows, config, origins=origins)
    described = list(from_table(found.clusters, DescribedCluster))
    pairs = found.pairs.cast(to_table([], DuplicatePair).schema)
    return DedupResult(
        [rows[place].row_id for place in found.kept.tolist()],
        list(from_table(found.excluded, Exclusion)),
        list(from_table(pairs, DuplicatePair)),
        [DuplicateCluster(item.cluster_id, item.members) for item in described],
        found.reports,
        search.near.n_pairs,
        described,
    )


@dataclass(frozen=True, slots=True)
class Match:
    """A row and the text of the other set that resembles it most."""

    row: int
    other: int
    jaccard: float
    exact: bool
    n_matches: int


def match_texts(rows: Sequence[str], others: Sequence[str], threshold: Any, min_distinct: int) -> list[Match]:  # noqa: ANN401 - a fraction
    """Return the best match of each text that has one."""
    found = best_matches(tokens_of(rows), tokens_of(others), threshold, min_distinct)
    columns = (found.row, found.other, found.jaccard, found.exact, found.n_matches)
    return [Match(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class NewMethod:
    """What is compared of a data point."""

    row_id: str
    repo: str
    novelty: Novelty
    text: str


def _new_table(rows: Sequence[NewMethod]) -> pa.Table:
    columns = {name: pa.array([str(getattr(row, name)) for row in rows], pa.string()) for name in copied.NEW_COLUMNS}
    return pa.table(columns)


def find_copies(
    rows: Sequence[NewMethod], old: Iterable[Sequence[OldMethod]], config: DedupConfig
) -> list[OldCopy]:  # fmt: skip
    """Return the rows that resemble an old method."""
    new = Described(_new_table(rows), tokens_of([row.text for row in rows], [row.row_id for row in rows]))
    parts = (Described(to_table(part, OldMethod), tokens_of([item.text for item in part])) for part in old)
    return copied.find_copies(new, parts, config)


def exclude_copies(
    rows: Sequence[NewMethod], copies: Sequence[OldCopy], wanted: Sequence[Novelty]
) -> list[Exclusion]:  # fmt: skip
    """Return an exclusion for every row whose class is not wanted."""
    return copied.exclude_copies(_new_table(rows), copies, wanted)


@dataclass(frozen=True, slots=True)
class Reference:
    """A set with its texts."""

    described: ReferenceSet
    texts: Sequence[ReferenceText]

    def columns(self) -> policies.Reference:
        """Return the set as columns."""
        table = to_table(self.texts, ReferenceText)
        return policies.Reference(self.described, table, tokens_of([item.text for item in self.texts]))


def match_references(
    rows: Sequence[DedupRow], references: Iterable[Reference], config: DedupConfig
) -> list[ReferenceMatch]:
    """Return the most similar row of every set for each data point that resembles one."""
    tokens = tokens_of([row.text for row in rows], [row.row_id for row in rows])
    found = policies.match_references(tokens, (item.columns() for item in references), config)
    return list(from_table(found, ReferenceMatch))


def exclude_matches(matches: Sequence[ReferenceMatch]) -> list[Exclusion]:
    """Return an exclusion for each data point that goes."""
    return list(from_table(policies.exclude_matches(to_table(matches, ReferenceMatch)), Exclusion))


def release_changes(
    reference: Reference,
    earlier: Sequence[Exclusion],
    kept_ids: set[str],
    excluded: Mapping[str, Exclusion],
    keep: Keep,
) -> list[ReleaseChange]:
    """Return what changed against an earlier release."""
    ids = pa.chunked_array([[item.reference_id for item in reference.texts]], pa.string())
    release = policies.EarlierRelease(reference.described.reference, ids, to_table(earlier, Exclusion))
    gone = to_table(list(excluded.values()), Exclusion)
    outcome = policies.Outcome(pa.array(sorted(kept_ids), pa.string()), gone, keep)
    return list(from_table(policies.release_changes(release, outcome), ReleaseChange))
