"""What goes and what stays: rows that resemble reference sets, and what changed against earlier releases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dedup.jaccard import exact_threshold
from dedup.matches import best_matches, encode
from dedup.rows import DedupRow
from dedup.tokens import BpeTokenizer, load_tokenizer
from schemas.comparisons import Change, ReferenceMatch, ReferenceSet, ReferenceText, ReleaseChange
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
    texts: Sequence[ReferenceText]
    """Its texts."""


def match_references(
    rows: Sequence[DedupRow],
    references: Iterable[Reference],
    config: DedupConfig,
    tokenizer: BpeTokenizer | None = None,
) -> list[ReferenceMatch]:
    """Return, by row id, the most similar row of every set for each data point that resembles one.

    Similar means equal texts or a Jaccard similarity of at least `config.threshold`; methods with fewer than
    `config.min_distinct_tokens` distinct tokens are compared for equality only. One set at a time is in memory.
    Column `excluded` follows `config.keep`: with `reference`, a row whose id an earlier release holds stays, whatever
    it resembles in earlier releases; all others go.
    """
    threshold, model = exact_threshold(config.threshold), tokenizer or load_tokenizer()
    found: list[ReferenceMatch] = []
    kept_ids: set[str] = set()
    encoded = None
    for reference in references:
        encoded = encoded or encode([row.text for row in rows], model)
        name, role = reference.described.reference, reference.described.role
        if role is Role.RELEASE and config.keep is Keep.REFERENCE:
            kept_ids |= {item.reference_id for item in reference.texts}
        others = encode([item.text for item in reference.texts], model)
        for match in best_matches(encoded, others, threshold, config.min_distinct_tokens):
            other = reference.texts[match.other]
            found.append(
                ReferenceMatch(
                    rows[match.row].row_id,
                    name,
                    role,
                    other.reference_id,
                    other.part,
                    match.jaccard,
                    match.exact,
                    match.n_matches,
                    True,
                )
            )
    decided = (
        replace(item, excluded=False) if item.role is Role.RELEASE and item.row_id in kept_ids else item
        for item in found
    )
    return sorted(decided, key=lambda item: (item.row_id, item.reference))


def exclude_matches(matches: Sequence[ReferenceMatch]) -> list[Exclusion]:
    """Return an exclusion for each data point that goes, by row id: benchmarks before releases, then by similarity."""
    best: dict[str, ReferenceMatch] = {}
    for item in matches:
        if item.excluded and (item.row_id not in best or _rank(item) < _rank(best[item.row_id])):
            best[item.row_id] = item
    return [_exclusion(item) for _, item in sorted(best.items())]


def _rank(item: ReferenceMatch) -> tuple[bool, float, bool, str]:
    return (item.role is not Role.BENCHMARK, -item.jaccard, not item.exact, item.reference)


def _exclusion(item: ReferenceMatch) -> Exclusion:
    reason = "in_reference" if item.role is Role.BENCHMARK else "in_earlier_release"
    detail = f"set={item.reference} row={item.reference_id} jaccard={item.jaccard}"
    return Exclusion(item.row_id, STAGE, reason, detail + (f" part={item.part}" if item.part is not None else ""))


def release_changes(
    reference: Reference,
    earlier: Iterable[Exclusion],
    kept_ids: set[str],
    excluded: Mapping[str, Exclusion],
    keep: Keep,
) -> list[ReleaseChange]:
    """Return what changed against an earlier release, by row id.

    `earlier` are the exclusions of its duplicate search, `kept_ids` what stays now, `excluded` what does not, with the
    reason. Rows of the earlier release are expected here, and so can be gone, with `keep = "reference"` only.
    """
    return sorted(_changes(reference, earlier, kept_ids, excluded, keep), key=lambda item: (item.row_id, item.change))


def _changes(
    reference: Reference,
    earlier: Iterable[Exclusion],
    kept_ids: set[str],
    excluded: Mapping[str, Exclusion],
    keep: Keep,
) -> Iterator[ReleaseChange]:
    name = reference.described.reference
    if keep is Keep.REFERENCE:
        for row_id in {item.reference_id for item in reference.texts} - kept_ids:
            why = excluded.get(row_id)
            reason, detail = (_ABSENT, "") if why is None else (why.reason, why.detail)
            yield ReleaseChange(name, row_id, Change.GONE, reason, detail)
    for item in earlier:
        if item.row_id in kept_ids:
            yield ReleaseChange(name, item.row_id, Change.RETURNED, item.reason, item.detail)
