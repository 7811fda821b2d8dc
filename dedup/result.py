"""What the duplicate search finds."""

from dataclasses import dataclass

from schemas.records import DuplicateCluster, DuplicatePair, Exclusion, StageReport

NEAR_STAGE = "dedup_near"


@dataclass(frozen=True, slots=True)
class DedupResult:
    """What stays, what goes and why. Every list has a total order that does not depend on the order of rows."""

    kept_ids: list[str]
    """Row ids that go on, sorted."""
    excluded: list[Exclusion]
    """Every other row (`exact_duplicate`, `near_duplicate`, `lone_surrogate`): by stage, then row id."""
    pairs: list[DuplicatePair]
    """Every removed exact duplicate with the equal row it goes back to, and every near pair among the rows that
    differ, sorted by the two row ids. In a cluster of more than `clusters.MAX_LISTED_CLUSTER` differing rows only
    near pairs that prove a removal: a row with its keeper, if at the threshold, and with its most similar row."""
    clusters: list[DuplicateCluster]
    """Connected components of pairs, sorted by keeper."""
    reports: tuple[StageReport, StageReport]
    """Accounts of the stages `dedup_exact` and `dedup_near`; digest, version and times are the caller's."""
    n_near_pairs: int
    """Number of all near pairs, those of large clusters included."""
