"""Candidate search and verification side by side: our exact join, MinHash LSH as its users write it, brute force.

    python -m bench.dedup [--rows 10000] [--seed 0]

Input: different functions of the running Python's standard library and installed packages, docstrings removed, as
token sets of the shipped tokenizer. All contestants read the same sets; each runs in a process of its own, and its
CPU seconds (all threads) leave out starting Python and reading the sets. Peak memory is the process's, libraries
included.
"""

import argparse
import ast
import json
import random
import resource
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup.jaccard import TokenSets, reaches
from dedup.run import encode_sets
from dedup.tokens import load_tokenizer

THRESHOLD = Fraction(7, 10)  # the data contract's
NUM_PERM = 128  # datasketch's default
RENSA_BANDS = 16  # the setting of rensa's own benchmark
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


def read_functions(count: int, seed: int) -> list[str]:
    """Return `count` different functions (fewer if there are no more) from installed files in a seeded order."""
    bases = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    files = sorted({path for base in bases for path in base.rglob("*.py")})
    random.Random(seed).shuffle(files)
    found: dict[str, None] = {}
    for path in files:
        if len(found) >= count:
            break
        try:
            source = path.read_text(encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except (SyntaxError, ValueError, OSError):
            continue  # test data of the standard library holds files that are no Python
        found.update(dict.fromkeys(functions_of(tree, source)))
    return list(found)[:count]


def functions_of(tree: ast.Module, source: str) -> Iterator[str]:
    """Yield functions and methods with their indentation and docstring removed."""
    lines = source.split("\n")
    scopes: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    for scope in scopes:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                kept = lines[node.lineno - 1 : node.end_lineno]
                first = node.body[0]
                if ast.get_docstring(node, clean=False) is not None and first.end_lineno is not None:
                    kept = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno : node.end_lineno]
                yield textwrap.dedent("\n".join(kept))


def exact_join(sets: TokenSets) -> PairArray:
    """Run the project's join."""
    from dedup.near import find_near_duplicates

    found = find_near_duplicates(sets, THRESHOLD, min_distinct=1, max_listed=sys.maxsize)
    return np.column_stack([found.pairs.left, found.pairs.right])


def datasketch(sets: TokenSets) -> PairArray:
    """Run MinHashLSH with its default number of permutations."""
    from dedup.minhash import minhash_candidates

    return np.array(minhash_candidates(sets, float(THRESHOLD), NUM_PERM), np.int64).reshape(-1, 2)


def rensa(sets: TokenSets) -> PairArray:
    """Run rensa's RMinHashLSH."""
    from rensa import RMinHash, RMinHashLSH  # type: ignore[import-untyped]  # rensa ships no types

    tokens = [[str(token) for token in ids.tolist()] for ids in np.split(sets.ids, sets.offsets[1:-1])]
    signatures = RMinHash.from_token_sets(tokens, NUM_PERM, 1)
    index = RMinHashLSH(float(THRESHOLD), NUM_PERM, RENSA_BANDS)
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
    "exact join": exact_join,
    "datasketch": datasketch,
    "rensa": rensa,
    "brute force": brute_force,
}


def run_contestant(name: str, folder: Path) -> None:
    """Child process: read the sets, run one contestant, write its pairs and figures."""
    stored = np.load(folder / "sets.npz")
    sets = TokenSets(stored["offsets"], stored["ids"], int(stored["vocab_size"]))
    few = sets.take(np.arange(min(10, len(sets.sizes))))
    CONTESTANTS[name](few)  # imports and first calls are no part of the figure
    before = time.process_time()
    pairs = CONTESTANTS[name](sets)
    seconds = time.process_time() - before
    np.save(folder / "pairs.npy", pairs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
    (folder / "figures.json").write_text(json.dumps({"seconds": seconds, "peak_mb": peak}))


def measure(name: str, folder: Path) -> Outcome:
    """Run one contestant in a process of its own."""
    command = [sys.executable, "-m", "bench.dedup", "--contestant", name, "--folder", str(folder)]
    subprocess.run(command, check=True)
    figures = json.loads((folder / "figures.json").read_text())
    pairs = {(int(left), int(right)) for left, right in np.load(folder / "pairs.npy")}
    return Outcome(name, figures["seconds"], figures["peak_mb"], pairs)


def report(outcomes: Sequence[Outcome], n_rows: int) -> str:
    """Return the table of results: recall and precision against brute force, speed relative to the exact join."""
    truth = next(outcome.pairs for outcome in outcomes if outcome.name == "brute force")
    ours = next(outcome.seconds for outcome in outcomes if outcome.name == "exact join")
    lines = [f"{'':12} {'CPU s':>8} {'rows/s':>9} {'recall':>7} {'precision':>9} {'peak MB':>8} {'CPU / ours':>10}"]
    for item in outcomes:
        right = len(item.pairs & truth)
        recall = right / len(truth) if truth else 1.0
        precision = right / len(item.pairs) if item.pairs else 1.0
        lines.append(
            f"{item.name:12} {item.seconds:8.2f} {n_rows / item.seconds:9.0f} {recall:7.4f} {precision:9.4f} "
            f"{item.peak_mb:8.0f} {item.seconds / ours:10.1f}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all contestants; exit code 1 when the exact join differs from brute force."""
    parser = argparse.ArgumentParser(description="Duplicate search side by side.")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.contestant is not None:
        run_contestant(options.contestant, options.folder)
        return 0
    texts = read_functions(options.rows, options.seed)
    tokenizer = load_tokenizer()
    before = time.process_time()
    sets = encode_sets(texts, tokenizer)
    seconds = time.process_time() - before
    print(
        f"{len(texts)} functions, {len(sets.ids) / len(texts):.1f} distinct tokens each, tokenised in {seconds:.2f} s"
    )
    names = [name for name in CONTESTANTS if name != "rensa" or find_spec("rensa") is not None]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "sets.npz", offsets=sets.offsets, ids=sets.ids, vocab_size=sets.vocab_size)
        outcomes = [measure(name, Path(folder)) for name in names]
    print(report(outcomes, len(texts)))
    found = {outcome.name: outcome.pairs for outcome in outcomes}
    return 0 if found["exact join"] == found["brute force"] else 1


if __name__ == "__main__":
    sys.exit(main())
