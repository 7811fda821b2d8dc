"""Novelty class `copied_old`: brand-new methods that resemble a method of the tree at the cutoff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dedup.jaccard import exact_threshold
from dedup.matches import Match, best_matches, encode
from dedup.tokens import BpeTokenizer, load_tokenizer
from schemas.comparisons import OldCopy, OldMethod
from schemas.config import DedupConfig
from schemas.records import Exclusion, Novelty

STAGE = "dedup_old"


@dataclass(frozen=True, slots=True)
class NewMethod:
    """What is compared of a data point."""

    row_id: str
    """Its row id."""
    repo: str
    """owner/name."""
    novelty: Novelty
    """Class against the parent tree; only `added` methods are compared."""
    text: str
    """`code` without its docstring."""


def find_copies(
    rows: Sequence[NewMethod],
    old: Iterable[Sequence[OldMethod]],
    config: DedupConfig,
    tokenizer: BpeTokenizer | None = None,
) -> list[OldCopy]:
    """Return the rows of class `added` that resemble an old method, each with the most similar one, by row id.

    `old` gives the old methods in parts, by repository, path and place; one part at a time is in memory. Similar means
    equal texts or a Jaccard similarity of at least `config.threshold`; methods with fewer than
    `config.min_distinct_tokens` distinct tokens are compared for equality only.
    """
    compared = [row for row in rows if row.novelty is Novelty.ADDED]
    if not compared:
        return []
    threshold, model = exact_threshold(config.threshold), tokenizer or load_tokenizer()
    texts = encode([row.text for row in compared], model)
    best: dict[int, OldCopy] = {}
    for part in old:
        others = encode([item.text for item in part], model)
        for match in best_matches(texts, others, threshold, config.min_distinct_tokens):
            earlier = best.get(match.row)
            if earlier is None or (match.jaccard, match.exact) > (earlier.jaccard, earlier.exact):
                best[match.row] = _copy(compared[match.row], part[match.other], match)
    return sorted(best.values(), key=lambda item: item.row_id)


def _copy(row: NewMethod, old: OldMethod, match: Match) -> OldCopy:
    return OldCopy(
        row.row_id, row.repo, match.jaccard, match.exact,
        old.repo, old.commit_id, old.path, old.fun_name, old.start_line,
    )  # fmt: skip


def exclude_copies(rows: Sequence[NewMethod], copies: Sequence[OldCopy], wanted: Sequence[Novelty]) -> list[Exclusion]:
    """Return an exclusion for every row whose class, now that copies are known, is not wanted; by row id.

    Only `added` splits in two: a copy is `copied_old` and goes on when that class is wanted, any other row of class
    `added` when `added` is. Rows of other classes were asked for by name and go on.
    """
    by_id = {item.row_id: item for item in copies}
    excluded = []
    for row in rows:
        copy = by_id.get(row.row_id)
        if copy is not None and Novelty.COPIED_OLD not in wanted:
            excluded.append(Exclusion(row.row_id, STAGE, "copied_old", evidence(copy)))
        elif copy is None and row.novelty is Novelty.ADDED and Novelty.ADDED not in wanted:
            excluded.append(Exclusion(row.row_id, STAGE, "novelty_added", "resembles no old method"))
    return sorted(excluded, key=lambda item: item.row_id)


def evidence(copy: OldCopy) -> str:
    """Return what an exclusion says of a copy: `jaccard=J old=repo@commit:path:line name`."""
    place = f"{copy.old_repo}@{copy.old_commit_id}:{copy.old_path}:{copy.old_start_line}"
    return f"jaccard={copy.jaccard} old={place} {copy.old_fun_name}"
