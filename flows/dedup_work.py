"""The duplicate search in worker processes: token sets, comparison with old code and reference sets, the search.

Everything is read, compared and written by columns; no data point is a Python object for longer than its text is cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dedup import copied, policies
from dedup.authors import count_authors
from dedup.columns import Search, Texts, distinct_texts, join_shares, placed_among, search_share, search_texts
from dedup.copied import Described
from dedup.evidence import Findings, describe
from dedup.near import Former
from dedup.state import near_from_arrow, near_to_arrow, search_from_arrow, search_to_arrow
from dedup.token_table import TokenTable, join_tables, tokenise, tokens_from_arrow, tokens_to_arrow
from dedup.tokens import load_tokenizer
from features.docstrings import code_without_docstring
from flows.memory import kept_memory
from flows.work import Job, account, finish
from schemas.arrow import from_table, schema_of
from schemas.comparisons import OldCopy, ReferenceSet
from schemas.config import Config
from schemas.errors import DataError
from schemas.records import DataPoint, Exclusion, Novelty, StageReport, UniqueRow
from schemas.references import Role
from schemas.texts import TextRows
from warehouse.ledger import Ledger, Unit
from warehouse.tables import NUMBERS

_BATCH_ROWS = 20_000  # texts that are Python strings at once
# Below this many token ids one process searches: every further one has to load the compiled join and to order all sets,
# about as long as joining 150,000 methods of 67 ids takes (docs/adr/0006).
SHARED_IDS = 10_000_000

TokenUnits = Mapping[str, Unit]
"""Units of the stage `tokens` by the key of the unit that the texts come from."""


@dataclass(frozen=True, slots=True)
class DedupInputs:
    """What the deduplication is given."""

    points: tuple[Unit, ...]
    """Feature units of all repositories."""
    compared: tuple[Unit, ...]
    """Comparisons with old code; what they exclude does not take part."""
    references: tuple[Unit, ...]
    """Reference sets, in the order of the configuration."""
    clones: tuple[tuple[str, Path], ...] = ()
    """Git directories by owner/name, to tell authors apart; what a commit says cannot change, so no key has them."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a search may be shared."""

    threads: int
    """Threads that search in one process."""
    shares: int
    """Processes that share a large search; 1 where the threads of one reach all cores."""
    from_ids: int
    """Token ids from which on processes share it."""


@dataclass(frozen=True, slots=True)
class DedupPlan:
    """A search that several processes are to share."""

    notes: Unit
    """Tables `reference_matches`, `rows` (places of the rows in all data points, in keeper order, the numbers of their
    texts and the ranks of their row ids; beside them all row ids, sorted) and `texts` (token sets of the distinct
    texts). Never recorded."""
    n_compared: int
    """Rows that were compared with the reference sets."""


@dataclass(frozen=True, slots=True)
class Started:
    """A search that was done at once, or is to be shared."""

    outcome: Unit | DedupPlan
    """The finished unit, or what is to be shared."""
    n_texts: int
    """Distinct texts."""
    n_new: int | None
    """Those of them that the former search had not; null when the search started anew."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is searched, and what the reference sets said before."""

    place: npt.NDArray[np.int64]
    """Places of the rows in all data points, in keeper order."""
    text: npt.NDArray[np.int64]
    """Numbers of their texts."""
    rank: npt.NDArray[np.int64]
    """Ranks of their row ids."""
    ids: TextRows
    """All row ids, sorted."""
    texts: TokenTable
    """Token sets of the distinct texts."""
    matches: pa.Table
    """What resembles a reference set (ReferenceMatch)."""
    n_compared: int
    """Rows that were compared with the reference sets."""


def tokens(job: Job, source: Unit, before: Sequence[Unit]) -> Unit:
    """Make the token sets of the texts of a unit of the stage `features`, `cutoff` or `references`: table tokens.

    `before` are units of token sets, a data point's those of its earlier unit; what they have is not tokenised again.
    """
    started = datetime.now(UTC)
    ledger, tokenizer = Ledger(job.tables), load_tokenizer()
    tables = [tokens_from_arrow(ledger.read(unit, "tokens"), tokenizer) for unit in before]
    known = join_tables(tables, tokenizer) if tables else None
    if source.stage == "features":
        table = _tokens_of_points(ledger.read(source, "data_points", ["row_id", "code"]), known)
    else:
        name, columns = _TEXTS[source.stage]
        rows = ledger.read(source, name, [*columns, "text"])
        ids = pc.binary_join_element_wise(*(rows.column(item).cast(pa.string()) for item in columns), ":")
        table = tokenise(_batches(ids, rows.column("text")), tokenizer, known)
    return finish(job, started, {"tokens": tokens_to_arrow(table)}, [], packing=NUMBERS)


# Table of a stage that holds texts, and the columns that together are a text's id.
_TEXTS = {"cutoff": ("old_methods", ("blob_id", "start_byte")), "references": ("reference_texts", ("reference_id",))}


def _tokens_of_points(points: pa.Table, known: TokenTable | None) -> TokenTable:
    """Return the token sets of data points; a row id stands for its code, so known rows are not even cut."""
    tokenizer = load_tokenizer()
    if known is None:
        return tokenise(_cut_texts(points), tokenizer)
    place = pc.fill_null(pc.index_in(points.column("row_id"), known.row_id.combine_chunks()), -1).to_numpy()
    fresh = tokenise(_cut_texts(points.filter(pa.array(place < 0))), tokenizer, known)
    place = np.where(place < 0, len(known.sets.sizes) + np.cumsum(place < 0) - 1, place).astype(np.int64)
    return join_tables([known, fresh], tokenizer).take(place)


def _cut_texts(points: pa.Table) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield batches of row ids and codes without their docstrings."""
    for ids, codes in _batches(points.column("row_id"), points.column("code")):
        yield ids, pa.array([_cut(code) for code in codes.to_pylist()], pa.string())


def _cut(code: str) -> str:
    """Return code without its docstring; what is no definition on its own is compared as it stands, as old code is."""
    try:
        return code_without_docstring(code)
    except DataError:
        return code


def _batches(ids: pa.ChunkedArray, texts: pa.ChunkedArray) -> Iterator[tuple[pa.Array, pa.Array]]:
    for batch in pa.table([ids, texts], ["id", "text"]).to_batches(max_chunksize=_BATCH_ROWS):
        yield batch.column("id"), batch.column("text")


def compare(
    job: Job, points: Sequence[Unit], cutoffs: Sequence[Unit], token_units: TokenUnits, threads: int
) -> Unit:  # fmt: skip
    """Compare data points with the methods of trees at the cutoff: tables copied_old, exclusions."""
    started = datetime.now(UTC)
    ledger, config = Ledger(job.tables), job.config
    new = Described(_points(ledger, points, copied.NEW_COLUMNS), _read_tokens(ledger, points, token_units))
    old = (
        Described(ledger.read(unit, "old_methods", copied.OLD_COLUMNS), _read_tokens(ledger, [unit], token_units))
        for unit in cutoffs
    )
    copies = copied.find_copies(new, old, config.dedup, threads)
    excluded = copied.exclude_copies(new.rows, copies, config.features.novelty)
    rows_in = new.rows.num_rows
    report = account(replace(job, stage=copied.STAGE), rows_in, rows_in - len(excluded), excluded)
    return finish(job, started, {"copied_old": (OldCopy, copies), "exclusions": (Exclusion, excluded)}, [report])


@kept_memory()
def start_dedup(
    job: Job, inputs: DedupInputs, token_units: TokenUnits, former: Unit | None, sharing: Sharing
) -> Started:  # fmt: skip
    """Remove what reference sets hold and duplicates over all repositories, or leave notes for several processes.

    `former` is an earlier search of the same configuration, by the same code. Tables unique_rows, reference_matches,
    release_changes, duplicates, duplicate_clusters, exclusions; compared_texts and similar_texts, from which a later
    search goes on.
    """
    started = datetime.now(UTC)
    given = _prepare(job, inputs, token_units, sharing.threads)
    digest, n_texts = given.texts.digest.combine_chunks(), len(given.texts.sets.sizes)
    earlier, n_new = (None, n_texts) if former is None else _read_search(job, former, digest)
    # Going on costs less than starting anew when most texts were compared with one another already.
    earlier = earlier if 2 * n_new <= n_texts else None
    if earlier is None and sharing.shares > 1 and len(given.texts.sets.ids) >= sharing.from_ids:
        return Started(_leave_notes(job, given), n_texts, None)
    search = search_texts(given.texts.sets, digest, job.config.dedup, earlier, sharing.threads)
    return Started(_write(job, started, inputs, given, search), n_texts, None if earlier is None else n_new)


def _prepare(job: Job, inputs: DedupInputs, token_units: TokenUnits, threads: int) -> _Prepared:
    """Compare the data points with the reference sets and tell the distinct texts of those that are left."""
    ledger = Ledger(job.tables)
    tokens = _read_tokens(ledger, inputs.points, token_units)
    place, tokens = _without(np.arange(len(tokens.sets.sizes)), tokens, _left_out(ledger, inputs))
    n_compared = len(place)
    sets = (_reference(ledger, unit, token_units) for unit in inputs.references)
    matches = policies.match_references(tokens, sets, job.config.dedup, threads)
    place, tokens = _without(place, tokens, policies.exclude_matches(matches).column("row_id"))
    texts = distinct_texts(tokens, _dates(ledger, inputs.points)[place])
    distinct = tokens.take(texts.order[texts.first])
    return _Prepared(place[texts.order], texts.text, texts.rank, texts.ids, distinct, matches, n_compared)


def _read_search(job: Job, former: Unit, digest: pa.Array) -> tuple[Former, int]:
    """Return an earlier search and how many of the texts it did not have."""
    ledger = Ledger(job.tables)
    tables = (ledger.read(former, name) for name in ("compared_texts", "similar_texts"))
    earlier = placed_among(search_from_arrow(*tables), digest)
    return earlier, len(digest) - int((earlier.place >= 0).sum())


def _leave_notes(job: Job, given: _Prepared) -> DedupPlan:
    notes = {
        "reference_matches": given.matches,
        "rows": pa.table({"place": given.place, "text": given.text, "rank": given.rank, "sorted_id": given.ids.texts}),
        "texts": tokens_to_arrow(given.texts),
    }
    job = replace(job, stage="dedup_plan")
    return DedupPlan(finish(job, datetime.now(UTC), notes, [], packing=NUMBERS), given.n_compared)


def dedup_share(job: Job, plan: DedupPlan, part: int, n_parts: int) -> Unit:
    """Do one of several shares of a search: tables `near` and `near_pairs`. Never recorded."""
    ledger = Ledger(job.tables)
    texts = tokens_from_arrow(ledger.read(plan.notes, "texts"), load_tokenizer())
    near, pairs = near_to_arrow(search_share(texts.sets, job.config.dedup, part, n_parts))
    share = replace(job, stage="dedup_share", partition=f"{part}-of-{n_parts}")
    return finish(share, datetime.now(UTC), {"near": near, "near_pairs": pairs}, [], packing=NUMBERS)


@kept_memory()
def finish_dedup(job: Job, inputs: DedupInputs, plan: DedupPlan, shares: Sequence[Unit]) -> Unit:
    """Put the shares of a search together; the tables of `start_dedup`."""
    started = datetime.now(UTC)
    ledger = Ledger(job.tables)
    rows = ledger.read(plan.notes, "rows")
    texts = tokens_from_arrow(ledger.read(plan.notes, "texts"), load_tokenizer())
    place, text, rank = (rows.column(name).to_numpy() for name in ("place", "text", "rank"))
    ids = TextRows(rows.column("sorted_id").combine_chunks())
    given = _Prepared(place, text, rank, ids, texts, ledger.read(plan.notes, "reference_matches"), plan.n_compared)
    parts = (near_from_arrow(ledger.read(unit, "near"), ledger.read(unit, "near_pairs")) for unit in shares)
    search = join_shares(texts.sets, texts.digest.combine_chunks(), job.config.dedup, parts)
    return _write(job, started, inputs, given, search)


def _write(job: Job, started: datetime, inputs: DedupInputs, given: _Prepared, search: Search) -> Unit:
    """Write what a search found."""
    ledger, config = Ledger(job.tables), job.config.dedup
    numbered = ("repo", "commit_id", "novelty")
    points = _points(ledger, inputs.points, numbered, numbered).take(pa.array(given.place))
    order = Texts(np.arange(points.num_rows), given.text, given.rank, given.ids)
    found = describe(points, order, given.texts.sets, search.near, config)
    matched = policies.exclude_matches(given.matches)
    excluded = pa.concat_tables([matched, found.excluded])
    novelty = points.column("novelty").take(pa.array(found.kept))
    kept = pa.table({"row_id": given.ids.take(given.rank[found.kept]), "novelty": novelty})
    members = points.select(["repo", "commit_id"]).take(pa.array(found.members))
    state, pairs = search_to_arrow(search)
    tables = {
        "unique_rows": _unique_rows(ledger, inputs, kept),
        "reference_matches": given.matches,
        "release_changes": _changes(ledger, inputs, kept, excluded, job.config),
        "duplicates": found.pairs,
        "duplicate_clusters": count_authors(found.clusters, members, dict(inputs.clones)),
        "exclusions": excluded,
        "compared_texts": state,
        "similar_texts": pairs,
    }
    return finish(
        job, started, tables, _reports(inputs, given.n_compared, matched, found), packing=NUMBERS
    )  # fmt: skip


def _reports(inputs: DedupInputs, n_compared: int, matched: pa.Table, found: Findings) -> list[StageReport]:
    if not inputs.references:
        return list(found.reports)
    counts = sorted(
        (item["values"], item["counts"]) for item in matched.column("reason").value_counts().to_pylist()
    )  # fmt: skip
    n_left = n_compared - matched.num_rows
    return [StageReport(policies.STAGE, "all", n_compared, n_left, dict(counts)), *found.reports]


def _unique_rows(ledger: Ledger, inputs: DedupInputs, kept: pa.Table) -> pa.Table:
    """Return the rows that stay with their class, now that copies of old code are known."""
    copies = [ledger.read(unit, "copied_old", ["row_id"]).column("row_id") for unit in inputs.compared]
    is_copy = pc.is_in(kept.column("row_id"), _joined(copies))
    novelty = pc.if_else(is_copy, Novelty.COPIED_OLD.value, kept.column("novelty").cast(pa.string()))
    return pa.table([kept.column("row_id"), novelty], schema_of(UniqueRow))


def _changes(ledger: Ledger, inputs: DedupInputs, kept: pa.Table, excluded: pa.Table, config: Config) -> pa.Table:
    """Return what changed against the earlier releases among the reference sets, set by set."""
    before = [ledger.read(unit, "exclusions") for unit in inputs.compared]
    outcome = policies.Outcome(
        kept.column("row_id").combine_chunks(), pa.concat_tables([*before, excluded]), config.dedup.keep
    )
    found = [policies.no_changes()]
    for unit in inputs.references:
        [described] = from_table(ledger.read(unit, "reference_sets"), ReferenceSet)
        if described.role is Role.RELEASE:
            ids = ledger.read(unit, "reference_texts", ["reference_id"]).column("reference_id")
            earlier = policies.EarlierRelease(described.reference, ids, ledger.read(unit, "earlier_exclusions"))
            found.append(policies.release_changes(earlier, outcome))
    return pa.concat_tables(found)


def _points(
    ledger: Ledger, units: Sequence[Unit], columns: Sequence[str], numbered: Sequence[str] = ()
) -> pa.Table:  # fmt: skip
    """Return columns of data points, those `numbered` as dictionaries, since their texts repeat."""
    if not units:  # without a single usable repository, but the columns are wanted all the same
        return schema_of(DataPoint).empty_table().select(columns)
    tables = [ledger.read(unit, "data_points", columns, numbered) for unit in units]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _dates(ledger: Ledger, units: Sequence[Unit]) -> npt.NDArray[np.int64]:
    dates: npt.NDArray[np.int64] = (
        _points(ledger, units, ["committer_date"]).column("committer_date").cast(pa.int64()).to_numpy()
    )
    return dates


def _read_tokens(ledger: Ledger, units: Sequence[Unit], token_units: TokenUnits) -> TokenTable:
    tokenizer = load_tokenizer()
    tables = (ledger.read(token_units[unit.key], "tokens") for unit in units)
    return join_tables([tokens_from_arrow(table, tokenizer) for table in tables], tokenizer)


def _reference(ledger: Ledger, unit: Unit, token_units: TokenUnits) -> policies.Reference:
    [described] = from_table(ledger.read(unit, "reference_sets"), ReferenceSet)
    texts = ledger.read(unit, "reference_texts", ["reference_id", "part"])
    return policies.Reference(described, texts, _read_tokens(ledger, [unit], token_units))


def _left_out(ledger: Ledger, inputs: DedupInputs) -> pa.ChunkedArray:
    """Return the row ids that comparisons with old code excluded."""
    return _joined([ledger.read(unit, "exclusions", ["row_id"]).column("row_id") for unit in inputs.compared])


def _without(
    place: npt.NDArray[np.int64], tokens: TokenTable, gone: pa.ChunkedArray
) -> tuple[npt.NDArray[np.int64], TokenTable]:
    """Return the rows, by their places and with their token sets, whose row ids are not among those that are gone."""
    if not len(gone):
        return place, tokens
    left = np.flatnonzero(~pc.is_in(tokens.row_id, gone).to_numpy())
    return place[left], tokens.take(left)


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
