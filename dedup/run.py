"""The duplicate search as a whole: exact duplicates first, then near ones, over all repositories at once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from dedup.exact import STAGE as EXACT_STAGE
from dedup.exact import ExactResult, drop_exact_duplicates
from dedup.jaccard import TokenSets, exact_threshold
from dedup.keep import drop_whole_clusters
from dedup.near import Removal, explain_removals, find_near_duplicates, list_pairs
from dedup.result import NEAR_STAGE, DedupResult
from dedup.rows import DedupRow
from dedup.tokens import BpeTokenizer, load_tokenizer
from dedup.words import WordCache
from schemas.config import DedupConfig
from schemas.records import DuplicateCluster, DuplicatePair, Exclusion, StageReport, count_reasons
from schemas.references import Keep


def deduplicate(rows: Sequence[DedupRow], config: DedupConfig, tokenizer: BpeTokenizer | None = None) -> DedupResult:
    """Remove exact and near duplicates (data contract, "Duplicates"); of each cluster one keeper stays.

    With `keep = "none"` none stays. What reference sets have to say is decided before (`dedup.policies`).

    Similarity is the Jaccard similarity of the sets of BPE token ids, the threshold is inclusive, and every pair is
    decided with integers. Raise ConfigError for an unusable threshold, PipelineError for a row id given twice.
    """
    threshold = exact_threshold(config.threshold)
    exact = drop_exact_duplicates(rows)
    ids = [row.row_id for row in exact.rows]
    sets = encode_sets([row.text for row in exact.rows], tokenizer or load_tokenizer())
    near = find_near_duplicates(sets, threshold, config.min_distinct_tokens)
    removals = explain_removals(sets, near, threshold)
    final = {ids[position]: ids[keeper] for position, keeper in enumerate(near.keeper.tolist())}
    kept = sorted(row_id for row_id, keeper in final.items() if row_id == keeper)
    dropped_exact = _exact_exclusions(exact, {ids[item.position]: item for item in removals}, final)
    dropped_near = _near_exclusions(ids, removals)
    near_pairs = [
        _pair(ids[left], ids[right], jaccard, exact=False, keeper=final[ids[left]])
        for left, right, jaccard in list_pairs(sets, near, removals)
    ]
    exact_pairs = [_pair(gone, first, 1.0, exact=True, keeper=final[first]) for gone, first in exact.keeper_of.items()]
    result = DedupResult(
        kept_ids=kept,
        excluded=dropped_exact + dropped_near,
        pairs=sorted(exact_pairs + near_pairs, key=lambda pair: (pair.row_id_a, pair.row_id_b)),
        clusters=_clusters(exact.keeper_of, final),
        reports=(
            StageReport(EXACT_STAGE, "all", len(rows), len(ids), count_reasons(dropped_exact)),
            StageReport(NEAR_STAGE, "all", len(ids), len(kept), count_reasons(dropped_near)),
        ),
        n_near_pairs=near.n_pairs,
    )
    return drop_whole_clusters(result) if config.keep is Keep.NONE else result


def encode_sets(texts: Sequence[str], tokenizer: BpeTokenizer) -> TokenSets:
    """Return the set of token ids of each text; only the sets stay in memory."""
    return WordCache(tokenizer).encode_sets(texts)


def _exact_exclusions(
    exact: ExactResult, removal_of: Mapping[str, Removal], final: Mapping[str, str]
) -> list[Exclusion]:
    """Return the exclusions of the exact stage, sorted by row id; the keeper named is one that stays to the end."""
    excluded = list(exact.unusable)
    for gone, first in exact.keeper_of.items():
        detail = f"keeper={first} jaccard=1.0"
        if first in removal_of:
            detail = f"keeper={final[first]} jaccard={removal_of[first].jaccard} via={first} jaccard=1.0"
        excluded.append(Exclusion(gone, EXACT_STAGE, "exact_duplicate", detail))
    return sorted(excluded, key=lambda item: item.row_id)


def _near_exclusions(ids: Sequence[str], removals: Sequence[Removal]) -> list[Exclusion]:
    """Return the exclusions of the near stage, sorted by row id."""
    excluded = []
    for item in removals:
        detail = f"keeper={ids[item.keeper]} jaccard={item.jaccard}"
        if not item.direct:
            detail += f" via={ids[item.partner]} jaccard={item.partner_jaccard}"
        excluded.append(Exclusion(ids[item.position], NEAR_STAGE, "near_duplicate", detail))
    return sorted(excluded, key=lambda item: item.row_id)


def _pair(one: str, other: str, jaccard: float, *, exact: bool, keeper: str) -> DuplicatePair:
    """Return a pair with its row ids in order."""
    return DuplicatePair(min(one, other), max(one, other), jaccard, exact, keeper)


def _clusters(keeper_of: Mapping[str, str], final: Mapping[str, str]) -> list[DuplicateCluster]:
    """Return the clusters of two rows and more: rows that differ by their keeper, exact duplicates by their first."""
    members = defaultdict(list)
    for row_id, keeper in final.items():
        members[keeper].append(row_id)
    for gone, first in keeper_of.items():
        members[final[first]].append(gone)
    return [DuplicateCluster(keeper, tuple(sorted(ids))) for keeper, ids in sorted(members.items()) if len(ids) > 1]
