"""The duplicate search of the flows at scale, end to end, and the cost of adding rows to a finished lake.

    python -m bench.dedup_scale [--rows 1000000] [--add 10000] [--real 300000] [--workers 2] [--repo PATH ...]
    python -m bench.dedup_scale --input cluster|equal|none|one|long [--rows 100000] [--add 1000]

Input: `--real` different real functions (bench.corpus) and seeded edits of them, as a lake whose data points have the
columns that the search reads, in units of 50,000 rows, each standing for a repository. The steps of the flows tokenise
them, search and write all tables; then a run over one more unit, whose rows are `--add` later ones, does the same.
CPU seconds and memory are those of all processes, start and imports included; memory is the sum of their peaks.
With `--input` all rows are of one hard kind: near-duplicates of each other, equal, without a token, of one token, or
near-duplicates of a megabyte each.
"""

import argparse
import keyword
import string
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import combinations, cycle, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.corpus import read_functions, with_near_duplicates
from bench.measure import measure, tree_usage

_UNIT_ROWS = 50_000
_START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = ("cluster", "equal", "none", "one", "long")
_BODY = """def total(rows, key, start=0):
    found = start
    for number, row in enumerate(rows):
        if key in row and row[key] is not None:
            found += row[key] * number
        elif number > 3:
            raise KeyError(f"row {number} has no {key}")
"""


def make_texts(path: Path, n_rows: int, n_real: int, repositories: Sequence[Path], seed: int = 0) -> None:
    """Write `n_rows` texts, edits of at most `n_real` real functions."""
    functions = read_functions(min(n_real, n_rows), seed, repositories)
    write_texts(path, with_near_duplicates(functions, n_rows, seed))
    print(f"{len(functions)} real functions, {n_rows} texts", flush=True)


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """Write texts where `add_points` reads them."""
    pq.write_table(pa.table({"text": pa.array(texts, pa.large_string())}), path, row_group_size=_UNIT_ROWS)


def hard_texts(kind: str, count: int) -> list[str]:
    """Return texts of one of the `KINDS`, as many as are wanted; of `cluster` and `long` all differ."""
    if kind in ("cluster", "long"):
        long = "".join(f"    row_{number} = {number}\n" for number in range(48_000)) if kind == "long" else ""
        # Three words more in each than the 25 ids and more of the body: two share at least 25 / 31 of their ids.
        words = [*keyword.kwlist, *keyword.softkwlist, *(letter * 2 for letter in string.ascii_letters)]
        chosen = list(islice(combinations(words, 3), count))
        if len(chosen) < count:
            raise ValueError(f"there are {len(chosen):,} different texts of kind {kind}, not {count:,}")
        return [f"{_BODY}{long}    # {' '.join(three)}\n    return found\n" for three in chosen]
    texts = {"equal": [f"{_BODY}    return found\n"], "none": [""], "one": list(string.ascii_lowercase)}
    return list(islice(cycle(texts[kind]), count))


def search(folder: str, start: int, stop: int, workers: int) -> tuple[int, float]:
    """Add the texts of a range to the lake and search duplicates of all.

    Return the rows that stay and the CPU seconds of all processes, writing the texts and this one's imports aside.
    """
    from flows.dedup_steps import Tokenised, remove_duplicates, token_units, tokenise
    from flows.dedup_work import DedupInputs
    from flows.run import open_run

    root = Path(folder)
    config = root / "config.toml"
    config.write_text('[window]\nsince = 2024-01-01\n[[sources]]\ngit = ["none"]\n', encoding="utf-8")
    add_points(root, start, stop)
    before = _tell("input written (imports included), which the pipeline would not do here")
    with open_run(config, root / "data", workers) as run:
        points = [unit for unit in run.ledger.units() if unit.stage == "features"]
        with ThreadPoolExecutor(workers) as threads:
            made = list(threads.map(lambda unit: tokenise(run, unit), points))
        _tell("tokenised")
        inputs = DedupInputs(tuple(points), (), ())
        unit = remove_duplicates(run, Tokenised(inputs, token_units(points, made)))
        after = _tell("searched and written")
        return unit.reports[-1].rows_out, after - before


def add_points(root: Path, start: int, stop: int) -> None:
    """Write data points of the texts in a range, later ones with later dates, as units of the stage `features`."""
    from schemas.arrow import schema_of
    from schemas.records import DataPoint
    from warehouse.ledger import Ledger, Unit
    from warehouse.tables import FileEntry

    ledger = Ledger(root / "data" / "tables")
    for first in range(start, stop, _UNIT_ROWS):
        last = min(first + _UNIT_ROWS, stop)
        texts = pq.ParquetFile(root / "texts.parquet").read_row_group(first // _UNIT_ROWS).column("text")
        offset = first % _UNIT_ROWS
        repo = f"bench/r{first:08}"
        count = last - first
        columns: dict[str, pa.Array] = {
            "row_id": pa.array([sha256(str(number).encode()).hexdigest()[:40] for number in range(first, last)]),
            "committer_date": pa.array(
                [_START + timedelta(seconds=number) for number in range(first, last)], pa.timestamp("us", "UTC")
            ),
            "code": texts.slice(offset, count).cast(pa.string()),
            "novelty": pa.array(["added"] * count),
            "repo": pa.array([repo] * count),
            "commit_id": pa.array([f"{number // 5:040x}" for number in range(first, last)]),
        }
        schema = pa.schema([schema_of(DataPoint).field(name) for name in columns])
        table = pa.table(list(columns.values()), schema)
        files: dict[str, tuple[FileEntry, ...]] = {"data_points": (ledger.write("data_points", repo, "0" * 16, table),)}
        ledger.record(Unit("features", repo, f"bench {first}", files))


def _tell(what: str) -> float:
    cpu, peak = tree_usage()
    print(f"    {cpu:8.1f} CPU s, {peak:6.0f} MiB at most: {what}", flush=True)
    return cpu


def measured(folder: str, start: int, stop: int, workers: int) -> int:
    """Search and print what it cost, all processes together; return hundredths of CPU seconds."""
    began = time.perf_counter()
    kept, cpu = search(folder, start, stop, workers)
    print(f"    {kept:,} rows stay, {cpu:.1f} CPU s, {time.perf_counter() - began:.1f} s wall", flush=True)
    return round(100 * cpu)


def main() -> int:
    """Measure and print; exit code 1 when a run failed."""
    parser = argparse.ArgumentParser(description="Duplicate search at scale.")
    parser.add_argument("--input", choices=KINDS, help="rows of one hard kind instead of real functions")
    parser.add_argument("--rows", type=int, help="a multiple of 50,000, or fewer; default 1,000,000, of a kind 100,000")
    parser.add_argument("--add", type=int, help="default: a hundredth of the rows")
    parser.add_argument("--real", type=int, default=300_000, help="different real functions")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository; repeatable")
    parser.add_argument("--folder", type=Path, help="keep everything here, and go on from what is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        n_rows = options.rows or (100_000 if options.input else 1_000_000)
        n_all = n_rows + (n_rows // 100 if options.add is None else options.add)
        if not (folder / "texts.parquet").is_file():
            if options.input:
                write_texts(folder / "texts.parquet", hard_texts(options.input, n_all))
            else:
                make_texts(folder / "texts.parquet", n_all, options.real, options.repo)
        cost = []
        for name, start, stop in (("all", 0, n_rows), ("added", n_rows, n_all)):
            print(f"{name}: {stop - start:,} rows", flush=True)
            measurement = measure(name, measured, str(folder), start, stop, options.workers)
            if measurement is None:
                return 1
            cost.append(measurement.result)
    print(f"the added rows cost {100 * cost[1] / max(cost[0], 1):.1f}% of all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
