"""Seeded sampling of a testbed to its size, with a cap on every repository's share."""

from collections import Counter
from collections.abc import Sequence

from schemas.config import TestbedsConfig
from schemas.records import DataPoint, Exclusion
from testbeds.order import draw


def sample_rows(
    rows: Sequence[DataPoint], testbed: str, config: TestbedsConfig
) -> tuple[list[DataPoint], dict[str, Exclusion]]:
    """Return the sampled rows and, by row id, an exclusion for every other row.

    Rows are taken in the order of `draw(seed, testbed, row_id)`, whatever the order they come in; a row whose
    repository has its share already is passed over (`repo_cap`), and all rows after the testbed is full are
    `not_sampled`. The sample has exactly min(size, sum over repositories of min(rows, max_per_repo)) rows.
    Both results keep the input's order.
    """
    ranked = sorted(rows, key=lambda row: (draw(config.seed, f"sample {testbed}", row.row_id), row.row_id))
    per_repo: Counter[str] = Counter()
    excluded: dict[str, Exclusion] = {}
    taken = 0
    for row in ranked:
        if taken == config.size:
            excluded[row.row_id] = _exclusion(row, testbed, "not_sampled", f"sample of {config.size} is full")
        elif per_repo[row.repo] == config.max_per_repo:
            excluded[row.row_id] = _exclusion(row, testbed, "repo_cap", f"{config.max_per_repo} rows of {row.repo}")
        else:
            per_repo[row.repo] += 1
            taken += 1
    sample = [row for row in rows if row.row_id not in excluded]
    return sample, {row.row_id: excluded[row.row_id] for row in rows if row.row_id in excluded}


def _exclusion(row: DataPoint, testbed: str, reason: str, detail: str) -> Exclusion:
    return Exclusion(row.row_id, f"testbed_{testbed}", reason, detail)
