"""The duplicate search of the flows: grown step by step or at once, by one worker or shared by several."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dedup.jaccard import TokenSets
from dedup.words import WordCache
from flows import dedup_work
from flows.pool import WorkerPool
from flows.recipe import build
from flows.run import open_run
from flows.steppers import PlainStepper
from flows.work import Job
from schemas.config import load_config
from tests.builders import AUTHOR, RepoBuilder
from tests.flows.support import AFTER, BEFORE, source_text, write_config
from warehouse.ledger import Ledger, Unit

WORDS = ("cost", "weight", "height", "volume", "speed", "price")
OTHER = b"def pairs(items, size):\n    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]\n"


def repository(
    folder: Path, name: str, words: Sequence[str], start: datetime, author: str = AUTHOR
) -> RepoBuilder:  # fmt: skip
    builder = RepoBuilder(folder / "acme" / f"{name}.git")
    builder.commit({"empty.py": b"x = 1\n"}, "Start", BEFORE)
    for number, word in enumerate(words):
        files = {f"{word}.py": source_text(word, 10 + number), f"{word}_pairs.py": OTHER}
        builder.commit(files, f"Add {word}", start + timedelta(days=number), author=author)
    return builder


def deduplicated(config: Path, workspace: Path, workers: int = 1) -> tuple[dict[str, list[str]], Unit]:
    """Run the recipe up to the duplicate search; return the digests of its unit's files, and the unit."""
    with open_run(config, workspace, workers) as run:
        build(run, PlainStepper(), until="dedup")
        [unit] = [unit for unit in run.ledger.units() if unit.stage == "dedup"]
        assert run.ledger.sweep() == []
    return {name: [entry.sha256 for entry in entries] for name, entries in unit.files.items()}, unit


def test_a_lake_grown_in_three_steps_is_the_lake_built_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alpha = repository(tmp_path, "alpha", WORDS[:3], AFTER)
    one = write_config(tmp_path, [str(alpha.path)])
    deduplicated(one, tmp_path / "grown")
    assert "goes on from the former search" not in capfd.readouterr().err
    alpha.commit({"late.py": source_text("lateness")}, "Add lateness", AFTER + timedelta(days=90))
    deduplicated(one, tmp_path / "grown")
    assert "goes on from the former search, 2 of 9 texts are new" in capfd.readouterr().err
    # Older than all of alpha: its copies of alpha's texts take their places.
    beta = repository(tmp_path, "beta", [WORDS[0], WORDS[5]], AFTER - timedelta(days=90), "Bob <bob@example.org>")
    both = write_config(tmp_path, [str(alpha.path), str(beta.path)])
    grown, unit = deduplicated(both, tmp_path / "grown")
    assert "goes on from the former search, 2 of 11 texts are new" in capfd.readouterr().err
    assert grown == deduplicated(both, tmp_path / "once")[0]
    counts = {report.stage: (report.rows_in, report.rows_out) for report in unit.reports}
    assert counts == {"dedup_exact": (14, 11), "dedup_near": (11, 3)}
    with open_run(both, tmp_path / "grown", 1) as run:
        clusters = run.ledger.read(unit, "duplicate_clusters")
    assert clusters.column("n_repos").to_pylist() == clusters.column("n_authors").to_pylist() == [2, 2, 2]


def test_a_rewritten_history_leaves_what_a_new_search_finds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    alpha = repository(tmp_path, "alpha", WORDS, AFTER)
    config = write_config(tmp_path, [str(alpha.path)])
    kept = alpha.tips["main"]
    alpha.commit({"gone.py": source_text("gone")}, "Gone", AFTER - timedelta(days=1))
    deduplicated(config, tmp_path / "grown")
    alpha.commit({"late.py": source_text("lateness")}, "Late", AFTER + timedelta(days=90), parents=[kept])
    assert deduplicated(config, tmp_path / "grown")[0] == deduplicated(config, tmp_path / "once")[0]
    assert "goes on from the former search, 2 of 15 texts are new" in capfd.readouterr().err


def test_limits_that_changed_start_a_new_search(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    alpha = repository(tmp_path, "alpha", WORDS, AFTER)
    deduplicated(write_config(tmp_path, [str(alpha.path)]), tmp_path / "data")
    other = write_config(tmp_path, [str(alpha.path)], "[dedup]\nthreshold = 0.9\n")
    assert deduplicated(other, tmp_path / "data")[0] == deduplicated(other, tmp_path / "once")[0]
    assert "goes on from the former search" not in capfd.readouterr().err
    # What stays of a cluster changes nothing in the pairs.
    none = write_config(tmp_path, [str(alpha.path)], '[dedup]\nthreshold = 0.9\nkeep = "none"\n')
    assert deduplicated(none, tmp_path / "data")[0] == deduplicated(none, tmp_path / "once")[0]
    assert "goes on from the former search, 0 of 13 texts are new" in capfd.readouterr().err


def test_several_workers_share_a_large_search_without_changing_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = repository(tmp_path, "alpha", WORDS, AFTER)
    config = write_config(tmp_path, [str(alpha.path)])
    one, _ = deduplicated(config, tmp_path / "one", workers=1)
    monkeypatch.setattr(dedup_work, "SHARED_IDS", 1)
    shared: list[tuple[int, int]] = []
    run = WorkerPool.run

    def watched(self: WorkerPool, function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - passed through
        if function is dedup_work.dedup_share:
            shared.append(args[2:])
        return run(self, function, *args)

    monkeypatch.setattr(WorkerPool, "run", watched)
    assert deduplicated(config, tmp_path / "threads", workers=2)[0] == one
    assert shared == []  # the threads of one process reach all cores, and it holds all sets once
    for count in (2, 3):
        monkeypatch.setattr(WorkerPool, "shares", count)
        assert deduplicated(config, tmp_path / f"shares-{count}", workers=2)[0] == one
    assert sorted(shared) == [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_token_sets_are_taken_over_from_the_run_before(tmp_path: Path) -> None:
    alpha = repository(tmp_path, "alpha", WORDS[:2], AFTER)
    config = write_config(tmp_path, [str(alpha.path)])
    before, after = (tmp_path / "before").as_posix(), tmp_path / "after"

    def tokens(workspace: str | Path) -> pa.Table:
        with open_run(config, Path(workspace), 1) as run:
            build(run, PlainStepper(), until="dedup")
            unit = run.ledger.former("tokens", "features/acme/alpha")
            assert unit is not None
            return run.ledger.read(unit, "tokens")

    first = tokens(before)
    assert first.num_rows == 5
    alpha.commit({"late.py": source_text("lateness")}, "Add lateness", AFTER + timedelta(days=90))
    grown = tokens(before)
    assert grown.num_rows == 7
    assert grown.equals(tokens(after), check_metadata=True)


def test_an_earlier_releases_texts_are_not_tokenised_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["def one(a):\n    return a\n", "def two(b):\n    return b + b\n"]
    ledger = Ledger(tmp_path)
    points = pa.table({"row_id": ["1", "2"], "code": texts})
    released = pa.table({"reference_id": ["1", "2", "3"], "text": [texts[1], "def new(): ...", texts[0]]})
    sources = [
        Unit("features", "o/n", "f", {"data_points": (ledger.write("data_points", "o/n", "f", points),)}),
        Unit("references", "1.0", "r", {"reference_texts": (ledger.write("reference_texts", "1.0", "r", released),)}),
    ]
    config = load_config(write_config(tmp_path, ["nowhere"]))
    jobs = [Job("tokens", unit.partition, unit.key, tmp_path, config, "v", AFTER) for unit in sources]
    encoded: list[str] = []
    encode = WordCache.encode_sets

    def watched(self: WordCache, given: Sequence[str]) -> TokenSets:
        encoded.extend(given)
        return encode(self, given)

    monkeypatch.setattr(WordCache, "encode_sets", watched)
    known = dedup_work.tokens(jobs[0], sources[0], [])
    assert encoded == texts
    found = ledger.read(dedup_work.tokens(jobs[1], sources[1], [known]), "tokens")
    assert encoded == [*texts, "def new(): ..."]
    anew = ledger.read(dedup_work.tokens(replace(jobs[1], key="again"), sources[1], []), "tokens")
    assert found.equals(anew, check_metadata=True)
    assert found.column("row_id").to_pylist() == ["1", "2", "3"]
