"""What stays of a cluster of duplicates, and what a cluster is like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dedup.exact import STAGE as EXACT_STAGE
from dedup.result import NEAR_STAGE, DedupResult
from schemas.comparisons import DescribedCluster
from schemas.config import DedupConfig
from schemas.records import DuplicateCluster, DuplicatePair, Exclusion, StageReport, count_reasons
from schemas.references import Keep

_KEEPER, _CLUSTER = "keeper=", "cluster="


def drop_whole_clusters(result: DedupResult) -> DedupResult:
    """Return the result without the clusters' keepers: of rows that are duplicates of one another none stays.

    A keeper that other rows equal leaves at the exact stage, any other at the near stage. Details name the cluster
    instead of a keeper, a keeper's detail its most similar listed partner as `via=`.
    """
    best = _best_partners(result.pairs)
    excluded = [replace(item, detail=_without_keeper(item.detail)) for item in result.excluded]
    for cluster in result.clusters:
        keeper = cluster.cluster_id
        pair = best[keeper]
        stage, reason = (EXACT_STAGE, "exact_duplicate") if pair.exact else (NEAR_STAGE, "near_duplicate")
        other = pair.row_id_b if pair.row_id_a == keeper else pair.row_id_a
        excluded.append(Exclusion(keeper, stage, reason, f"{_CLUSTER}{keeper} via={other} jaccard={pair.jaccard}"))
    by_stage = {
        stage: sorted((item for item in excluded if item.stage == stage), key=lambda item: item.row_id)
        for stage in (EXACT_STAGE, NEAR_STAGE)
    }
    gone = {cluster.cluster_id for cluster in result.clusters}
    exact, near = result.reports
    left = exact.rows_in - len(by_stage[EXACT_STAGE])
    return replace(
        result,
        kept_ids=[row_id for row_id in result.kept_ids if row_id not in gone],
        excluded=by_stage[EXACT_STAGE] + by_stage[NEAR_STAGE],
        reports=(
            _report(exact, exact.rows_in, left, by_stage[EXACT_STAGE]),
            _report(near, left, left - len(by_stage[NEAR_STAGE]), by_stage[NEAR_STAGE]),
        ),
    )


def _report(report: StageReport, rows_in: int, rows_out: int, excluded: Sequence[Exclusion]) -> StageReport:
    return replace(report, rows_in=rows_in, rows_out=rows_out, excluded_by_reason=count_reasons(excluded))


def _without_keeper(detail: str) -> str:
    return _CLUSTER + detail.removeprefix(_KEEPER) if detail.startswith(_KEEPER) else detail


def _best_partners(pairs: Sequence[DuplicatePair]) -> dict[str, DuplicatePair]:
    """Return each row's most similar listed pair, an exact one first; of equals the first in the pairs' order."""
    best: dict[str, DuplicatePair] = {}
    for pair in pairs:
        for row_id in (pair.row_id_a, pair.row_id_b):
            if row_id not in best or (pair.exact, pair.jaccard) > (best[row_id].exact, best[row_id].jaccard):
                best[row_id] = pair
    return best


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row comes from."""

    repo: str
    """owner/name."""
    commit_id: str
    """The commit that brought it."""


def describe_clusters(
    clusters: Sequence[DuplicateCluster], origins: Mapping[str, Origin], config: DedupConfig
) -> list[DescribedCluster]:
    """Return the clusters with what their members have in common, in the given order."""
    described = []
    for cluster in clusters:
        members = [origins[row_id] for row_id in cluster.members]
        repos = {member.repo for member in members}
        described.append(
            DescribedCluster(
                cluster_id=cluster.cluster_id,
                keeper=None if config.keep is Keep.NONE else cluster.cluster_id,
                members=cluster.members,
                size=len(members),
                n_repos=len(repos),
                cross_repository=len(repos) > 1,
                n_commits=len({(member.repo, member.commit_id) for member in members}),
                threshold=config.threshold,
            )
        )
    return described
