"""The funnel: what became of every row, stage by stage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from schemas.arrow import to_table
from schemas.errors import PipelineError
from schemas.records import StageReport


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One stage over all its partitions."""

    stage: str
    """Name of the stage."""
    rows_in: int
    """Rows the stage was given."""
    rows_out: int
    """Rows it handed on."""
    excluded_by_reason: dict[str, int]
    """Rows left out, by reason, sorted by reason."""

    @property
    def excluded(self) -> int:
        """Return the number of rows left out for any reason."""
        return sum(self.excluded_by_reason.values())


def combine_reports(reports: Sequence[StageReport]) -> list[FunnelRow]:
    """Return one row per stage, summed over partitions, in the order in which the stages first appear.

    Raises PipelineError when a stage reports a partition twice or a stage's rows do not add up.
    """
    seen: set[tuple[str, str]] = set()
    stages: dict[str, list[StageReport]] = {}
    for report in reports:
        if (report.stage, report.partition) in seen:
            raise PipelineError(f"stage {report.stage} reported {report.partition} twice; please report this as a bug")
        seen.add((report.stage, report.partition))
        stages.setdefault(report.stage, []).append(report)
    return [_sum(stage, parts) for stage, parts in stages.items()]


def _sum(stage: str, parts: Sequence[StageReport]) -> FunnelRow:
    reasons: Counter[str] = Counter()
    for part in parts:
        reasons.update(part.excluded_by_reason)
    row = FunnelRow(
        stage, sum(part.rows_in for part in parts), sum(part.rows_out for part in parts), dict(sorted(reasons.items()))
    )
    if row.rows_in != row.rows_out + row.excluded:
        raise PipelineError(
            f"stage {stage} does not add up: {row.rows_in} rows in, {row.rows_out} out and {row.excluded} excluded; "
            "please report this as a bug"
        )
    return row


def funnel_table(funnel: Sequence[FunnelRow]) -> pa.Table:
    """Return the funnel as a table in the given order."""
    return to_table(funnel, FunnelRow)
