"""The whole duplicate search against brute force on real methods: pairs, similarities to the last bit, keepers.

    python -m bench.dedup_truth [--samples 5] [--rows 20000] [--real 100000] [--repo PATH ...]

Each sample is drawn anew from `--real` different functions of the running Python's standard library and installed
packages and of the heads of the given repositories; dates are drawn too. Brute force compares the token sets of every
two texts by full products and decides with fractions; it shares no filter with the join, and clusters are put together
by plain sets. Exit code 1 when anything differs.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.corpus import read_functions
from dedup.clusters import MAX_LISTED_CLUSTER
from dedup.columns import distinct_texts, search_texts
from dedup.evidence import Findings, describe
from dedup.jaccard import TokenSets, token_sets
from dedup.token_table import tokenise
from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig

_BLOCK_ROWS = 250  # rows compared with all others at once: 250 x 20,000 counts
CONFIG = DedupConfig()
Named = dict[tuple[str, str], float]


def true_pairs(sets: TokenSets) -> dict[tuple[int, int], float]:
    """Return all pairs of positions at or above the threshold with their similarity, by comparing each with each."""
    threshold, floor = Fraction(repr(CONFIG.threshold)), CONFIG.min_distinct_tokens
    matrix, sizes = sets.matrix(), sets.sizes
    transposed = matrix.T.tocsr()
    found: dict[tuple[int, int], float] = {}
    for start in range(0, len(sizes), _BLOCK_ROWS):
        block = (matrix[start : start + _BLOCK_ROWS] @ transposed).tocoo()
        left, right = block.row + start, block.col
        # Half of what the threshold asks for, so that the decision itself is left to fractions.
        few = (left < right) & (3 * block.data >= sizes[left] + sizes[right] - block.data)
        for one, other, common in zip(left[few].tolist(), right[few].tolist(), block.data[few].tolist(), strict=True):
            ratio = Fraction(common, int(sizes[one] + sizes[other]) - common)
            if ratio >= threshold and min(sizes[one], sizes[other]) >= floor:
                found[one, other] = float(ratio)
    return found


def true_clusters(n_rows: int, pairs: Sequence[tuple[int, int]]) -> list[set[int]]:
    """Return the cluster of each position."""
    cluster = [{position} for position in range(n_rows)]
    for one, other in pairs:
        if cluster[one] is not cluster[other]:
            small, large = sorted((cluster[one], cluster[other]), key=len)
            large |= small
            for position in small:
                cluster[position] = large
    return cluster


def check(texts: Sequence[str], seed: int) -> list[str]:
    """Return what is wrong with the search of one sample, and print what it was like."""
    tokenizer, draw = load_tokenizer(), random.Random(seed)
    ids = [f"{number:06}" for number in draw.sample(range(10**6), len(texts))]
    dates = np.array([draw.randrange(len(texts)) for _ in texts], np.int64)
    tokens = tokenise([(pa.array(ids), pa.array(texts))], tokenizer)
    order = distinct_texts(tokens, dates)
    distinct = tokens.take(order.order[order.first])
    near = search_texts(distinct.sets, distinct.digest.combine_chunks(), CONFIG).near
    rows = pa.table({"repo": tokens.row_id, "commit_id": tokens.row_id})
    found = describe(rows, order, distinct.sets, near, CONFIG)

    preferred = sorted(range(len(texts)), key=lambda row: (dates[row], ids[row]))
    sets = token_sets(tokenizer.encode_batch([texts[row] for row in preferred]), tokenizer.vocab_size)
    pairs = true_pairs(sets)
    clusters = true_clusters(len(texts), list(pairs))
    names = [ids[row] for row in preferred]
    kept = sorted(names[place] for place, cluster in enumerate(clusters) if place == min(cluster))
    large = sum(len(clusters[one]) > MAX_LISTED_CLUSTER for one, _ in pairs)
    print(
        f"sample {seed}: {len(texts)} methods, {len(pairs)} pairs ({large} in clusters of more than "
        f"{MAX_LISTED_CLUSTER}), {len(kept)} stay",
        flush=True,
    )
    problems = [] if near.n_pairs == len(pairs) else [f"{near.n_pairs} pairs instead of {len(pairs)}"]
    problems += [] if [ids[row] for row in found.kept.tolist()] == kept else ["other rows stay"]
    named = {_named(names[one], names[other]): similarity for (one, other), similarity in pairs.items()}
    wanted = {_named(names[one], names[other]) for one, other in pairs if len(clusters[one]) <= MAX_LISTED_CLUSTER}
    removed = {names[place] for place, cluster in enumerate(clusters) if place != min(cluster)}
    keepers = {names[place]: names[min(cluster)] for place, cluster in enumerate(clusters)}
    return problems + _compare_pairs(found, named, wanted, removed) + _compare_keepers(found, keepers)


def _compare_pairs(found: Findings, truth: Named, wanted: set[tuple[str, str]], removed: set[str]) -> list[str]:
    columns = [found.pairs.column(name).to_pylist() for name in ("row_id_a", "row_id_b", "jaccard")]
    listed = {(one, other): jaccard for one, other, jaccard in zip(*columns, strict=True)}
    problems = [f"{pair} is no pair" for pair in listed.keys() - truth.keys()]
    problems += [f"{pair} is missing" for pair in wanted - listed.keys()]
    problems += [f"{pair}: {listed[pair]!r}, not {truth[pair]!r}" for pair in listed.keys() & truth.keys()
                 if listed[pair] != truth[pair]]  # fmt: skip
    return problems + [f"no pair proves {row}" for row in removed - {row for pair in listed for row in pair}]


def _compare_keepers(found: Findings, keepers: dict[str, str]) -> list[str]:
    columns = [found.excluded.column(name).to_pylist() for name in ("row_id", "detail")]
    told = {row: detail.split()[0].removeprefix("keeper=") for row, detail in zip(*columns, strict=True)}
    problems = [
        f"{row} goes for {keeper}, not {keepers[row]}" for row, keeper in told.items() if keeper != keepers[row]
    ]
    clusters = found.clusters.select(["cluster_id", "members"]).to_pylist()
    members = {row: item["cluster_id"] for item in clusters for row in item["members"]}
    return problems + [
        f"{row} is in the cluster of {keeper}" for row, keeper in members.items() if keeper != keepers[row]
    ]


def _named(one: str, other: str) -> tuple[str, str]:
    return min(one, other), max(one, other)


def main() -> int:
    """Check all samples; exit code 1 when one differs from brute force."""
    parser = argparse.ArgumentParser(description="The duplicate search against brute force.")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="number of the first sample")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--real", type=int, default=100_000, help="different real functions to draw from")
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository; repeatable")
    options = parser.parse_args()
    functions = read_functions(options.real, 0, options.repo)
    failed = False
    for seed in range(options.first, options.first + options.samples):
        texts = random.Random(seed).sample(functions, min(options.rows, len(functions)))
        problems = check(texts, seed)
        print("\n".join(problems[:20]) if problems else "  pairs, similarities and keepers are those of brute force")
        failed |= bool(problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
