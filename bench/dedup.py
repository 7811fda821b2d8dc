"""The duplicate search side by side: our exact join, MinHash LSH as its users write it, brute force.

    python -m bench.dedup [--rows 10000] [--seed 0] [--repo PATH ...] [--grow 0]

Input: different functions of the running Python's standard library and installed packages and of the heads of the git
repositories given by --repo, docstrings removed, as token sets of the shipped tokenizer; --grow adds edited copies up
to that many texts. All contestants read the same sets, each in a process of its own. Their CPU seconds (all threads) go
from sets to pairs: starting Python, imports and reading the sets are left out. Peak memory is the process's, all of it.
Recall and precision are against brute force up to --truth rows, and above against the exact join, which is compared
with brute force on the first --truth rows.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.corpus import read_functions, with_near_duplicates
from bench.measure import measure, own_cpu
from dedup.jaccard import TokenSets, reaches
from dedup.tokens import load_tokenizer
from dedup.words import WordCache

THRESHOLD = Fraction(7, 10)  # the data contract's
NUM_PERM = 128  # datasketch's default
RENSA_BANDS = 16  # the setting of rensa's own benchmark
RENSA_FINE_BANDS = 32  # 4 rows each: recall .9997 in our measurements
BRUTE_FORCE_ROWS = 250  # rows compared with all others at once
PairArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one contestant did."""

    name: str
    """The contestant."""
    seconds: float
    """CPU seconds from token sets to pairs."""
    peak_mb: float
    """Peak resident memory of its process."""
    pairs: set[tuple[int, int]]
    """Pairs it returned."""


def exact_join(sets: TokenSets) -> PairArray:
    """Run the project's join."""
    from dedup.jaccard import join_pairs
    from dedup.join import join_within

    pairs = join_pairs(join_within(sets, THRESHOLD, min_distinct=1))
    return np.column_stack([pairs.left, pairs.right])


def datasketch(sets: TokenSets) -> PairArray:
    """Run MinHashLSH with its default number of permutations."""
    from dedup.minhash import minhash_candidates

    return np.array(minhash_candidates(sets, float(THRESHOLD), NUM_PERM), np.int64).reshape(-1, 2)


def rensa(sets: TokenSets) -> PairArray:
    """Run rensa's RMinHashLSH."""
    return _rensa(sets, RENSA_BANDS)


def rensa_verified(sets: TokenSets) -> PairArray:
    """Run rensa at bands that miss almost nothing, and verify its candidates exactly."""
    from dedup.jaccard import join_pairs, verify

    found = _rensa(sets, RENSA_FINE_BANDS)
    pairs = join_pairs(verify(sets, found[:, 0], found[:, 1], THRESHOLD))
    return np.column_stack([pairs.left, pairs.right])


def _rensa(sets: TokenSets, bands: int) -> PairArray:
    from rensa import RMinHash, RMinHashLSH  # type: ignore[import-untyped]  # rensa ships no types

    tokens = [[str(token) for token in ids.tolist()] for ids in np.split(sets.ids, sets.offsets[1:-1])]
    signatures = RMinHash.from_token_sets(tokens, NUM_PERM, 1)
    index = RMinHashLSH(float(THRESHOLD), NUM_PERM, bands)
    index.insert_many(signatures)
    found = [(other, row) for row, others in enumerate(index.query_all(signatures)) for other in others if other < row]
    return np.array(found, np.int64).reshape(-1, 2)


def brute_force(sets: TokenSets) -> PairArray:
    """Compare every set with every other by full products; shares no filter with the join."""
    matrix, sizes = sets.matrix(), sets.sizes
    transposed = matrix.T.tocsr()
    found = []
    for start in range(0, len(sizes), BRUTE_FORCE_ROWS):
        block = (matrix[start : start + BRUTE_FORCE_ROWS] @ transposed).tocoo()
        left, right = block.row.astype(np.int64) + start, block.col.astype(np.int64)
        passed = reaches(block.data, sizes[left] + sizes[right], THRESHOLD) & (left < right)
        found.append(np.column_stack([left[passed], right[passed]]))
    return np.concatenate(found)


CONTESTANTS: dict[str, Callable[[TokenSets], PairArray]] = {
    "datasketch": datasketch,
    "rensa": rensa,
    "rensa 32x4 + check": rensa_verified,
    "brute force": brute_force,
    "exact join": exact_join,
}


def run_contestant(name: str, folder: str, limit: int) -> int:
    """Run one contestant on the first `limit` sets of a folder in this process; write pairs and figures there."""
    stored = np.load(f"{folder}/sets.npz")
    sets = TokenSets(stored["offsets"], stored["ids"], int(stored["vocab_size"])).take(np.arange(limit))
    few = sets.take(np.arange(min(10, limit)))
    CONTESTANTS[name](few)  # imports and first calls are no part of the figure
    if name == "exact join":
        _load_compiled_join(few)
    before = own_cpu()
    pairs = CONTESTANTS[name](sets)
    np.savez(f"{folder}/found.npz", pairs=pairs, seconds=own_cpu() - before)
    return len(pairs)


def _load_compiled_join(sets: TokenSets) -> None:
    from dedup.partitions import join_all, prepare_within

    list(join_all(prepare_within(sets, THRESHOLD, 1)))


def contest(name: str, folder: Path, limit: int) -> Outcome | None:
    """Run one contestant in a process of its own; None when it failed."""
    cost = measure(name, run_contestant, name, str(folder), limit)
    if cost is None:
        return None
    stored = np.load(folder / "found.npz")
    pairs = {(int(left), int(right)) for left, right in stored["pairs"]}
    return Outcome(name, float(stored["seconds"]), cost.peak_mib, pairs)


def report(outcomes: Sequence[Outcome], n_rows: int, truth: set[tuple[int, int]]) -> str:
    """Return the table of results: recall and precision against the truth, speed relative to the exact join."""
    ours = next(outcome.seconds for outcome in outcomes if outcome.name == "exact join")
    lines = [f"{'':18} {'CPU s':>8} {'rows/s':>9} {'recall':>7} {'precision':>9} {'peak MB':>8} {'CPU / ours':>10}"]
    for item in outcomes:
        right = len(item.pairs & truth)
        recall = right / len(truth) if truth else 1.0
        precision = right / len(item.pairs) if item.pairs else 1.0
        lines.append(
            f"{item.name:18} {item.seconds:8.2f} {n_rows / item.seconds:9.0f} {recall:7.4f} {precision:9.4f} "
            f"{item.peak_mb:8.0f} {item.seconds / ours:10.1f}"
        )
    return "\n".join(lines)


def _tokenise(texts: Sequence[str], folder: Path) -> None:
    """Store the token sets of the texts and print what that cost."""
    tokenizer = load_tokenizer()
    before, started = own_cpu(), time.perf_counter()
    sets = WordCache(tokenizer).encode_sets(texts)
    seconds, wall = own_cpu() - before, time.perf_counter() - started
    np.savez(folder / "sets.npz", offsets=sets.offsets, ids=sets.ids, vocab_size=sets.vocab_size)
    print(
        f"{len(texts)} functions, {len(sets.ids) / max(len(texts), 1):.1f} distinct tokens each, "
        f"tokenised in {seconds:.2f} CPU s ({len(texts) / seconds:.0f} rows/s, {wall:.1f} s wall)"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Duplicate search side by side.")
    parser.add_argument("--rows", type=int, default=10_000, help="different real functions")
    parser.add_argument("--grow", type=int, default=0, help="add edited copies up to this many texts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository; repeatable")
    parser.add_argument("--truth", type=int, default=10_000, help="rows compared by brute force at most")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS), help="contestants")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all contestants; exit code 1 when the exact join differs from brute force or a contestant failed."""
    options = _options(arguments)
    texts = read_functions(options.rows, options.seed, options.repo)
    texts = with_near_duplicates(texts, max(options.grow, len(texts)), options.seed)
    n_checked = min(options.truth, len(texts))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _tokenise(texts, folder)
        checks = [contest(name, folder, n_checked) for name in ("brute force", "exact join")]
        brute, exact = checks[0], checks[1]
        if brute is None or exact is None:
            return 1
        print(f"first {n_checked} rows: {len(brute.pairs)} pairs by brute force, {len(exact.pairs)} by the exact join")
        whole = n_checked == len(texts)
        names = [name for name in CONTESTANTS if name in {*options.only, "exact join"} and _available(name)]
        found = [contest(name, folder, len(texts)) for name in names if whole or name != "brute force"]
    outcomes = [outcome for outcome in found if outcome is not None]
    truth = brute.pairs if whole else outcomes[-1].pairs
    print(report(outcomes, len(texts), truth))
    return 0 if exact.pairs == brute.pairs and len(outcomes) == len(found) else 1


def _available(name: str) -> bool:
    return not name.startswith("rensa") or find_spec("rensa") is not None


if __name__ == "__main__":
    sys.exit(main())
