import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import dedup_scale, dedup_truth
from bench.corpus import read_functions, with_near_duplicates
from bench.dedup import CONTESTANTS, Outcome, main, report
from bench.measure import tree_usage
from dedup.clusters import MAX_LISTED_CLUSTER
from dedup.jaccard import TokenSets
from schemas.arrow import schema_of
from schemas.records import DataPoint
from tests.dedup.corpus import real_functions, sets_from, sets_of
from warehouse.ledger import Ledger


def test_exact_join_returns_what_brute_force_does_on_real_functions() -> None:
    sets = sets_of(sorted(set(real_functions(600, seed=5))))
    exact, brute = (sorted(map(tuple, CONTESTANTS[name](sets).tolist())) for name in ("exact join", "brute force"))
    assert exact == brute
    assert len(exact) > 10


@pytest.mark.parametrize("name", CONTESTANTS)
def test_contestants_return_pairs_with_the_smaller_position_first(name: str) -> None:
    if name.startswith("rensa"):
        pytest.importorskip("rensa", reason="rensa comes with the bench extra only")
    sets = sets_from([range(20), range(500, 530), range(20), range(600, 640)])
    assert CONTESTANTS[name](sets).tolist() == [[0, 2]]


def test_report_gives_recall_precision_and_ratio_against_brute_force() -> None:
    truth = {(0, 1), (0, 2), (3, 4), (5, 6)}
    outcomes = [
        Outcome("exact join", 2.0, 100.0, truth),
        Outcome("datasketch", 10.0, 50.0, {(0, 1), (7, 8)}),
        Outcome("brute force", 4.0, 200.0, truth),
    ]
    assert [line.split() for line in report(outcomes, 1_000, truth).splitlines()] == [
        ["CPU", "s", "rows/s", "recall", "precision", "peak", "MB", "CPU", "/", "ours"],
        ["exact", "join", "2.00", "500", "1.0000", "1.0000", "100", "1.0"],
        ["datasketch", "10.00", "100", "0.2500", "0.5000", "50", "5.0"],
        ["brute", "force", "4.00", "250", "1.0000", "1.0000", "200", "2.0"],
    ]


def test_unknown_contestant_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "guess"])
    assert "invalid choice: 'guess'" in capsys.readouterr().err


def test_whole_run_prints_a_line_for_each_contestant(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "datasketch", "brute force"]
    assert main(["--rows", "120", "--grow", "200", "--truth", "200", *only]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("200 functions, ")
    assert lines[1].startswith("first 200 rows: ")
    assert [line.split()[0] for line in lines[3:]] == ["datasketch", "brute", "exact"]
    assert lines[-1].split()[4:6] == ["1.0000", "1.0000"]


def test_functions_come_from_the_heads_of_repositories_first(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tmp_path)]
    (tmp_path / "a.py").write_text('class A:\n    def f(self):\n        """Doc."""\n        return 1\n')
    (tmp_path / "broken.py").write_text("def (")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    assert read_functions(1, 0, [tmp_path]) == ["def f(self):\n    return 1"]


def test_near_duplicates_are_seeded_and_hold_the_functions() -> None:
    functions = real_functions(40, seed=6)
    texts = with_near_duplicates(functions, 200, seed=1)
    assert texts == with_near_duplicates(functions, 200, seed=1)
    assert len(texts) == 200
    assert set(functions) <= set(texts)
    assert len(CONTESTANTS["brute force"](sets_of(texts))) > 100


def test_whole_search_is_compared_with_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = sorted(set(real_functions(700, seed=6)))
    assert dedup_truth.check(functions, 3) == []
    truth = dedup_truth.true_pairs

    def one_pair_less(sets: TokenSets) -> dict[tuple[int, int], float]:
        pairs = truth(sets)
        pairs.popitem()
        return pairs

    monkeypatch.setattr(dedup_truth, "true_pairs", one_pair_less)
    problems = dedup_truth.check(functions, 3)
    assert any(line.endswith("is no pair") for line in problems)
    assert any(" pairs instead of " in line for line in problems)


def test_lake_of_the_scale_bench_is_one_that_the_search_reads(tmp_path: Path) -> None:
    texts = [f"def f():\n    return {number}" for number in range(7)]
    pq.write_table(pa.table({"text": pa.array(texts, pa.large_string())}), tmp_path / "texts.parquet")
    dedup_scale.add_points(tmp_path, 0, 5)
    dedup_scale.add_points(tmp_path, 5, 7)
    ledger = Ledger(tmp_path / "data" / "tables")
    columns = ["row_id", "repo", "commit_id", "novelty", "committer_date", "code"]
    points = [ledger.read(unit, "data_points", columns) for unit in ledger.units()]
    expected = pa.schema([schema_of(DataPoint).field(name) for name in columns])
    assert [table.schema.equals(expected) for table in points] == [True, True]
    assert [code for table in points for code in table.column("code").to_pylist()] == texts


def test_hard_inputs_go_through_the_steps_together(tmp_path: Path) -> None:
    limit = MAX_LISTED_CLUSTER + 44
    texts = [text for kind, count in (("cluster", limit), ("equal", 20), ("none", 10), ("one", 60), ("long", 3))
             for text in dedup_scale.hard_texts(kind, count)]  # fmt: skip
    assert len(texts[-1]) > 10**6
    dedup_scale.write_texts(tmp_path / "texts.parquet", texts)
    # One cluster of all bodies but for the long ones, one of these, the empty text and 26 letters.
    kept, cpu = dedup_scale.search(str(tmp_path), 0, len(texts), 1)
    assert kept == 1 + 1 + 1 + 26
    assert cpu > 0
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select size, count(*) from '{tmp_path}/data/tables/duplicate_clusters/**/*.parquet' group by 1 order by 1"
        ).fetchall()
        pairs = connection.execute(
            f"select exact, count(*) from '{tmp_path}/data/tables/duplicates/**/*.parquet' "
            "where exact or cluster_id in (row_id_a, row_id_b) group by 1 order by 1"
        ).fetchall()
    # 60 rows have 26 letters: 8 of them three times, 18 twice. Each text that goes has a pair with its keeper.
    assert found == [(2, 18), (3, 8 + 1), (10, 1), (limit + 20, 1)]
    assert pairs == [(False, limit + 2), (True, 19 + 9 + 34)]


def test_a_kind_of_texts_that_is_used_up_is_told() -> None:
    with pytest.raises(ValueError, match="different texts of kind cluster, not 1,000,000"):
        dedup_scale.hard_texts("cluster", 1_000_000)


def test_usage_counts_the_processes_below_this_one() -> None:
    cpu, peak = tree_usage()
    code = "import time; data = bytearray(64 << 20); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        more_cpu, more = tree_usage()
        child.kill()
    assert more >= peak + 64
    assert more_cpu >= cpu
