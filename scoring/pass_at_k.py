"""pass@k: the chance that one of k answers to a task passes, and how sure a mean over tasks is.

The estimator is that of Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374),
section 2.1: of n answers to a task c pass, so 1 - C(n-c, k) / C(n, k) is the unbiased estimate of pass@k. The mean over
tasks gets a confidence interval from standard errors clustered by repository (Miller 2024, "Adding Error Bars to
Evals", arXiv:2411.00640): tasks of one repository are alike, so they say less than as many independent ones. For few
clusters the variance is scaled by G / (G - 1) and Student's t with G - 1 degrees of freedom replaces the normal
distribution, as Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference", section VI, advise.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

# Two-sided; the convention of the benchmarks' reports.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Tally:
    """Answers to one task."""

    repo: str
    """Repository of the task; the cluster."""
    n: int
    """Answers that were judged."""
    c: int
    """Those of them that passed."""


@dataclass(frozen=True, slots=True)
class PassAtK:
    """pass@k of a set of tasks."""

    k: int
    """Answers that one may try."""
    value: float | None
    """Mean over the tasks, 0 to 1; null when no task has k judged answers."""
    low: float | None
    """Lower end of the 95% confidence interval; null when fewer than two repositories are there."""
    high: float | None
    """Its upper end."""
    n_tasks: int
    """Tasks with at least k judged answers; only these count."""
    n_repos: int
    """Their repositories."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of pass@k of a task, c of whose n answers pass. ValueError unless 1 <= k <= n."""
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@{k} needs at least {k} answers and 0 <= c <= n; n is {n}, c is {c}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def estimate(tallies: Iterable[Tally], k: int) -> PassAtK:
    """Return the mean of pass@k over the tasks with at least k answers, with its confidence interval."""
    groups: dict[str, list[float]] = {}
    for tally in sorted(tallies, key=lambda tally: (tally.repo, tally.n, tally.c)):
        if tally.n >= k:
            groups.setdefault(tally.repo, []).append(pass_at_k(tally.n, tally.c, k))
    n_tasks = sum(map(len, groups.values()))
    if not n_tasks:
        return PassAtK(k, None, None, None, 0, 0)
    mean = math.fsum(value for values in groups.values() for value in values) / n_tasks
    half = _half_width(list(groups.values()), mean)
    low, high = (None, None) if half is None else (max(0.0, mean - half), min(1.0, mean + half))
    return PassAtK(k, mean, low, high, n_tasks, len(groups))


def _half_width(groups: Sequence[Sequence[float]], mean: float) -> float | None:
    """Return half of the interval's width, null for a single cluster, which says nothing of others."""
    clusters = len(groups)
    if clusters < 2:
        return None
    n_tasks = sum(map(len, groups))
    sums = (math.fsum(value - mean for value in values) for values in groups)
    variance = clusters / (clusters - 1) * math.fsum(total * total for total in sums) / (n_tasks * n_tasks)
    return float(stdtrit(clusters - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
