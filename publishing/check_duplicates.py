"""The check that no two rows of a release are duplicates: exact, every pair."""

from dedup.jaccard import exact_threshold
from dedup.join import join_within
from dedup.tokens import load_tokenizer
from dedup.words import WordCache
from features.docstrings import code_without_docstring
from publishing.checking import CheckResult, Fault, Release
from publishing.manifest import MANIFEST_NAME
from schemas.errors import DataError
from schemas.references import Keep

_MAX_NAMED = 1_000  # pairs that are named; a release of copies has millions


def check_duplicates(release: Release) -> CheckResult:
    """Compare all distinct rows with one another: none equal, none at or above the threshold of the configuration.

    Similarity is what docs/deduplication.md defines, computed with the shipped tokenizer, which must be the release's.
    """
    dedup, tokenizer = release.config.dedup, load_tokenizer()
    if tokenizer.sha256 != release.manifest.tokenizer_sha256:
        text = f"the tokenizer is {release.manifest.tokenizer_sha256}; this program has {tokenizer.sha256}"
        return CheckResult("duplicates", 0, (Fault(MANIFEST_NAME, text),))
    ids, where, texts = _distinct_rows(release)
    faults = []
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        earlier = first.setdefault(text, place)
        if earlier != place:
            faults.append(Fault(where[place], f"equals {ids[earlier]}, docstring apart", ids[place]))
    kept = sorted(first.values())
    sets = WordCache(tokenizer).encode_sets([texts[place] for place in kept])
    n_pairs = 0
    for pairs in join_within(sets, exact_threshold(dedup.threshold), dedup.min_distinct_tokens):
        unions = sets.sizes[pairs.left] + sets.sizes[pairs.right] - pairs.common
        n_pairs += len(pairs.left)
        for left, right, similarity in zip(pairs.left, pairs.right, pairs.common / unions, strict=True):
            if len(faults) < _MAX_NAMED:
                one, other = kept[int(left)], kept[int(right)]
                faults.append(Fault(where[other], f"similar to {ids[one]}: {similarity}", ids[other]))
    note = f"{n_pairs:,} pairs, of which {_MAX_NAMED:,} are named" if n_pairs > _MAX_NAMED else ""
    if faults and dedup.keep is Keep.REFERENCE:
        note = 'with dedup.keep = "reference" rows that an earlier release holds stay, whatever they resemble'
    return CheckResult("duplicates", len(ids), tuple(faults), note)


def _distinct_rows(release: Release) -> tuple[list[str], list[str], list[str]]:
    """Return row id, config and code without docstring of every row once."""
    ids, where, texts = list[str](), list[str](), list[str]()
    seen: set[str] = set()
    for name, table in release.testbeds.items():
        for row_id, code in zip(table["row_id"].to_pylist(), table["code"].to_pylist(), strict=True):
            if row_id not in seen:
                seen.add(row_id)
                ids.append(row_id)
                where.append(name)
                texts.append(_cut(code))
    return ids, where, texts


def _cut(code: str) -> str:
    """Return code without its docstring; what is no definition on its own is compared as it stands."""
    try:
        return code_without_docstring(code)
    except DataError:
        return code
