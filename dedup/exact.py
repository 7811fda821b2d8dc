"""Exact duplicates: methods with equal token sequences."""

from collections.abc import Sequence
from dataclasses import dataclass

from dedup.rows import DedupRow, in_keeper_order
from dedup.tokens import is_unicode
from schemas.records import Exclusion

STAGE = "dedup_exact"


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Rows that differ from one another, and where the others went."""

    rows: list[DedupRow]
    """The first of each group of equal rows, in keeper order."""
    keeper_of: dict[str, str]
    """Row id of each removed duplicate -> row id of the equal row that stays."""
    unusable: list[Exclusion]
    """Rows whose text has no UTF-8 form (`lone_surrogate`)."""


def drop_exact_duplicates(rows: Sequence[DedupRow]) -> ExactResult:
    """Keep the first of all rows with the same token sequence: earliest committer date, then smallest row id.

    The tokenizer is lossless, so equal token sequences are equal texts: the texts are compared and nothing has to
    be tokenised for it.
    """
    kept: dict[str, DedupRow] = {}
    keeper_of: dict[str, str] = {}
    unusable: list[Exclusion] = []
    for row in in_keeper_order(rows):
        if not is_unicode(row.text):
            unusable.append(Exclusion(row.row_id, STAGE, "lone_surrogate", "the text has no UTF-8 form"))
            continue
        first = kept.setdefault(row.text, row)
        if first is not row:
            keeper_of[row.row_id] = first.row_id
    return ExactResult(list(kept.values()), keeper_of, unusable)
