"""The duplicate search end to end at scale, and the cost of adding rows to a finished search.

    python -m bench.dedup_scale [--rows 1000000] [--add 10000] [--real 300000] [--seed 0] [--repo PATH ...]

Input: `--real` different real functions (bench.corpus) and seeded edits of them, as a Parquet file of texts. One
process tokenises, searches and writes tokens and result; another reads them, adds the last rows and searches again.
CPU seconds are all of a process, start and imports included.
"""

import argparse
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.corpus import read_functions, with_near_duplicates
from bench.measure import measure
from dedup.columns import Duplicates, find_duplicates
from dedup.token_table import TokenTable, read_tokens, tokenise, write_tokens
from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig

_BATCH = 20_000


def search_all(folder: str, n_rows: int) -> int:
    """Tokenise the first rows of the folder's texts, search, write tokens and result; return the rows that stay."""
    tokens = tokenise(_texts(Path(folder), n_rows), load_tokenizer())
    _tell("tokenised")
    write_tokens(Path(folder) / "tokens.parquet", tokens)
    _tell("tokens written")
    found = find_duplicates(tokens, np.arange(n_rows), DedupConfig())
    _tell(f"searched: {found.near.n_pairs} pairs")
    (Path(folder) / "found.pickle").write_bytes(pickle.dumps(found))  # a file of this benchmark only
    return len(found.kept())


def search_added(folder: str, n_rows: int) -> int:
    """Read tokens and result, tokenise the rows behind them and extend the search; return the rows that stay."""
    earlier: Duplicates = pickle.loads((Path(folder) / "found.pickle").read_bytes())
    known = read_tokens(Path(folder) / "tokens.parquet", load_tokenizer().vocab_size)
    _tell("read")
    fresh = tokenise(_texts(Path(folder), n_rows, len(known.row_id)), load_tokenizer(), known)
    tokens = _behind(known, fresh)
    found = find_duplicates(tokens, np.arange(n_rows), DedupConfig(), earlier)
    _tell(f"searched: {found.near.n_pairs} pairs, extended: {found.extended}")
    return len(found.kept())


def _behind(one: TokenTable, other: TokenTable) -> TokenTable:
    from dedup.jaccard import join_sets

    return TokenTable(
        pa.chunked_array([*one.row_id.chunks, *other.row_id.chunks]),
        pa.chunked_array([*one.digest.chunks, *other.digest.chunks]),
        join_sets([one.sets, other.sets], one.sets.vocab_size),
        one.tokenizer,
    )


def _texts(folder: Path, stop: int, start: int = 0) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield batches of row ids and texts from the folder's file."""
    file = pq.ParquetFile(folder / "texts.parquet")
    place = 0
    for group in range(file.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        first, last = max(start - place, 0), min(stop - place, count)
        if first < last:
            ids = [f"{number:08}" for number in range(place + first, place + last)]
            yield pa.array(ids), file.read_row_group(group).column("text").combine_chunks().slice(first, last - first)
        place += count


def _tell(what: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"    {used.ru_utime + used.ru_stime:8.1f} CPU s, {used.ru_maxrss / 1024:6.0f} MiB: {what}", flush=True)


def main() -> int:
    """Measure and print; exit code 1 when a run failed."""
    parser = argparse.ArgumentParser(description="Duplicate search at scale.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--add", type=int, default=10_000)
    parser.add_argument("--real", type=int, default=300_000, help="different real functions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository; repeatable")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        functions = read_functions(min(options.real, options.rows), options.seed, options.repo)
        texts = with_near_duplicates(functions, options.rows + options.add, options.seed)
        pq.write_table(
            pa.table({"text": pa.array(texts, pa.large_string())}), f"{folder}/texts.parquet", row_group_size=_BATCH
        )
        print(f"{len(functions)} real functions, {len(texts)} texts", flush=True)
        del functions, texts
        started = time.perf_counter()
        whole = measure("search", search_all, folder, options.rows)
        added = measure("extension", search_added, folder, options.rows + options.add)
    if whole is None or added is None:
        return 1
    for item in (whole, added):
        print(
            f"{item.name:>10}: {item.result:>9,} rows stay, {item.cpu:8.1f} CPU s, {item.wall:8.1f} s wall, "
            f"{item.peak_mib:6.0f} MiB"
        )
    print(f"adding {options.add} rows costs {added.cpu / whole.cpu:.1%} of doing {options.rows} again")
    print(f"({time.perf_counter() - started:.0f} s in all)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
