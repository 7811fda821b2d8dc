"""What goes and what stays: rows that resemble reference sets, and what changed against earlier releases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dedup.jaccard import exact_threshold
from dedup.matches import best_matches
from dedup.names import constant, join_texts, number_texts
from dedup.token_table import TokenTable
from schemas.arrow import schema_of
from schemas.comparisons import Change, ReferenceMatch, ReferenceSet, ReleaseChange
from schemas.config import DedupConfig
from schemas.records import Exclusion
from schemas.references import Keep, Role

STAGE = "dedup_references"
_ABSENT = "no_data_point"  # why a row is gone that did not come as far as a data point


@dataclass(frozen=True, slots=True)
class Reference:
    """A set with its texts."""

    described: ReferenceSet
    """Its row."""
    texts: pa.Table
    """`reference_id` and `part` of its texts."""
    tokens: TokenTable
    """Their token sets."""


def match_references(
    rows: TokenTable, references: Iterable[Reference], config: DedupConfig, threads: int | None = None
) -> pa.Table:
    """Return, by row id, the most similar row of every set for each data point that resembles one (ReferenceMatch).

    Similar means equal texts or a Jaccard similarity of at least `config.threshold`; methods with fewer than
    `config.min_distinct_tokens` distinct tokens are compared for equality only. One set at a time is in memory.
    Column `excluded` follows `config.keep`: with `reference`, a row whose id an earlier release holds stays, whatever
    it resembles in earlier releases; all others go.
    """
    threshold, schema = exact_threshold(config.threshold), schema_of(ReferenceMatch)
    parts, released = [schema.empty_table()], [pa.array([], pa.string())]
    for reference in references:
        matches = best_matches(rows, reference.tokens, threshold, config.min_distinct_tokens, threads)
        if reference.described.role is Role.RELEASE and config.keep is Keep.REFERENCE:
            released += reference.texts.column("reference_id").chunks
        found, count = reference.texts.take(pa.array(matches.other)), len(matches.row)
        columns = {
            "row_id": rows.row_id.take(pa.array(matches.row)),
            "reference": constant(reference.described.reference, count),
            "role": constant(reference.described.role.value, count),
            "reference_id": found.column("reference_id"),
            "part": found.column("part"),
            "jaccard": pa.array(matches.jaccard),
            "exact": pa.array(matches.exact),
            "n_matches": pa.array(matches.n_matches),
            "excluded": pa.array(np.ones(count, np.bool_)),
        }
        parts.append(pa.table(columns, schema))
    found = pa.concat_tables(parts)
    held = pc.is_in(found.column("row_id"), pa.chunked_array(released))
    stays = pc.and_(pc.equal(found.column("role"), Role.RELEASE.value), held)
    found = found.set_column(found.num_columns - 1, schema.field("excluded"), pc.invert(stays))
    return found.sort_by([("row_id", "ascending"), ("reference", "ascending")])


def exclude_matches(matches: pa.Table) -> pa.Table:
    """Return an exclusion for each data point that goes, by row id: benchmarks before releases, then by similarity."""
    found = matches.filter(matches.column("excluded"))
    row = found.column("row_id").combine_chunks().dictionary_encode().indices.to_numpy()
    is_release = pc.not_equal(found.column("role"), Role.BENCHMARK.value).to_numpy()
    inexact = pc.invert(found.column("exact")).to_numpy()
    # Rows come by row id, and those of one row id by the set's name.
    order = np.lexsort((np.arange(len(row)), inexact, -found.column("jaccard").to_numpy(), is_release, row))
    best = found.take(pa.array(order[np.flatnonzero(np.diff(row[order], prepend=-1))]))
    benchmark = pc.equal(best.column("role"), Role.BENCHMARK.value)
    part = pc.if_else(best.column("part").is_null(), "", join_texts(" part=", pc.fill_null(best.column("part"), "")))
    similarity = number_texts(best.column("jaccard").to_numpy())
    columns = {
        "row_id": best.column("row_id"),
        "stage": constant(STAGE, best.num_rows),
        "reason": pc.if_else(benchmark, match_reason(Role.BENCHMARK), match_reason(Role.RELEASE)),
        "detail": join_texts(
            "set=", best.column("reference"), " row=", best.column("reference_id"), " jaccard=", similarity, part
        ),
    }
    return exclusions(columns)


def match_reason(role: Role) -> str:
    """Return why a row goes that resembles a set of this role."""
    return "in_reference" if role is Role.BENCHMARK else "in_earlier_release"


def exclusions(columns: dict[str, pa.Array]) -> pa.Table:
    """Return exclusions from the columns that the duplicate search fills."""
    schema, count = schema_of(Exclusion), len(columns["row_id"])
    others = {name: pa.nulls(count, schema.field(name).type) for name in schema.names if name not in columns}
    return pa.table({name: {**columns, **others}[name] for name in schema.names}, schema)


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """What an earlier release says of its rows."""

    name: str
    """Name of the release among the reference sets."""
    row_ids: pa.ChunkedArray
    """Row ids of its data points."""
    excluded: pa.Table
    """Exclusions of its duplicate search."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the data points."""

    kept: pa.Array
    """Row ids that stay."""
    excluded: pa.Table
    """Exclusions of the others: `row_id`, `reason` and `detail`."""
    keep: Keep
    """The policy."""


def release_changes(earlier: EarlierRelease, outcome: Outcome) -> pa.Table:
    """Return what changed against an earlier release, by row id (ReleaseChange).

    Rows of the earlier release are expected here, and so can be gone, with `keep = "reference"` only.
    """
    returned = earlier.excluded.filter(pc.is_in(earlier.excluded.column("row_id"), outcome.kept))
    parts = [_changes(earlier, Change.RETURNED, [returned.column(name) for name in ("row_id", "reason", "detail")])]
    if outcome.keep is Keep.REFERENCE:
        held = pc.unique(earlier.row_ids)
        gone = held.filter(pc.invert(pc.is_in(held, outcome.kept)))
        place = pc.index_in(gone, outcome.excluded.column("row_id").combine_chunks())
        why = [
            pc.fill_null(outcome.excluded.column(name).combine_chunks().take(place), value)
            for name, value in (("reason", _ABSENT), ("detail", ""))
        ]
        parts.append(_changes(earlier, Change.GONE, [gone, *why]))
    return pa.concat_tables(parts).sort_by([("row_id", "ascending"), ("change", "ascending")])


def no_changes() -> pa.Table:
    """Return the table of changes without a row."""
    return schema_of(ReleaseChange).empty_table()


def _changes(earlier: EarlierRelease, change: Change, columns: Sequence[pa.Array]) -> pa.Table:
    row_id, reason, detail = columns
    name, kind = (constant(value, len(row_id)) for value in (earlier.name, change.value))
    return pa.table([name, row_id, kind, reason, detail], schema_of(ReleaseChange))
