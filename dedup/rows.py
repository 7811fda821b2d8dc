"""What the duplicate search is given: the few columns of a data point that it reads."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from schemas.errors import PipelineError


@dataclass(frozen=True, slots=True)
class DedupRow:
    """One method to compare with all others."""

    row_id: str
    """The data point's row id."""
    committer_date: datetime
    """Committer date, UTC; the earliest of a cluster is kept."""
    text: str
    """`code` without its docstring."""


def in_keeper_order(rows: Sequence[DedupRow]) -> list[DedupRow]:
    """Return rows as they are preferred: earliest committer date first, then smallest row id.

    Raise PipelineError when a row id occurs twice: the result would depend on the order of rows.
    """
    repeated = sorted(row_id for row_id, count in Counter(row.row_id for row in rows).items() if count > 1)
    if repeated:
        raise PipelineError(
            f"{len(repeated)} row ids occur more than once, the first is {repeated[0]}; "
            "give every data point once (is a repository named twice in [[sources]]?)"
        )
    return sorted(rows, key=lambda row: (row.committer_date, row.row_id))
