"""Seeded sampling of a testbed to its size, with a cap on every repository's share."""

from collections import Counter
from collections.abc import Sequence

from schemas.config import TestbedsConfig
from schemas.records import DataPoint, Exclusion
from testbeds.order import draw

# Reasons of rows that could have been in the sample.
SAMPLING_REASONS = frozenset({"not_sampled", "commit_cap", "repo_cap"})


def sample_rows(
    rows: Sequence[DataPoint], testbed: str, config: TestbedsConfig, *, per_commit: int | None = None
) -> tuple[list[DataPoint], dict[str, Exclusion]]:
    """Return the sampled rows and, by row id, an exclusion for every other row.

    Rows are taken in the order of `draw(seed, testbed, row_id)`, whatever the order they come in; a row whose
    commit (with `per_commit`) or repository has its share already is passed over (`commit_cap`, `repo_cap`), and all
    rows after the testbed is full are `not_sampled`. Without `per_commit` the sample has exactly min(size, sum over
    repositories of min(rows, max_per_repo)) rows.
    Both results keep the input's order.
    """
    ranked = sorted(rows, key=lambda row: (draw(config.seed, f"sample {testbed}", row.row_id), row.row_id))
    per_repo: Counter[str] = Counter()
    of_commit: Counter[tuple[str, str]] = Counter()
    excluded: dict[str, Exclusion] = {}
    taken = 0
    for row in ranked:
        if taken == config.size:
            excluded[row.row_id] = _exclusion(row, testbed, "not_sampled", f"sample of {config.size} is full")
        elif per_commit is not None and of_commit[row.repo, row.commit_id] == per_commit:
            excluded[row.row_id] = _exclusion(row, testbed, "commit_cap", f"{per_commit} rows of {row.commit_id}")
        elif per_repo[row.repo] == config.max_per_repo:
            excluded[row.row_id] = _exclusion(row, testbed, "repo_cap", f"{config.max_per_repo} rows of {row.repo}")
        else:
            per_repo[row.repo] += 1
            of_commit[row.repo, row.commit_id] += 1
            taken += 1
    sample = [row for row in rows if row.row_id not in excluded]
    return sample, {row.row_id: excluded[row.row_id] for row in rows if row.row_id in excluded}


def _exclusion(row: DataPoint, testbed: str, reason: str, detail: str) -> Exclusion:
    return Exclusion(row.row_id, f"testbed_{testbed}", reason, detail)
