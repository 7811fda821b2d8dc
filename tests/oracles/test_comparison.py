"""The comparison finds what it has to find, and its numbers are those of the rows."""

from dataclasses import replace
from pathlib import Path

from miners.mine import MinedRepository
from schemas.records import Exclusion, Novelty
from tests.builders import RepoBuilder
from tests.oracles.ast_oracle import Truth, extract
from tests.oracles.comparison import CLASSES, Agreement, compare
from tests.oracles.test_ast_oracle import SINCE, mine

ADDED, MOVED, RENAMED = Novelty.ADDED, Novelty.MOVED, Novelty.RENAMED


def both(tmp_path: Path) -> tuple[MinedRepository, Truth]:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"a.py": b"def f(): return 1\n", "b.py": b"def g(): return 2\n"})
    return mine(builder), extract(builder.git_dir, SINCE)


def test_agreement(tmp_path: Path) -> None:
    result = compare(*both(tmp_path))
    assert (result.confusion, result.differences, result.n_judged) == ({(ADDED, ADDED): 2}, [], 2)
    assert result.agreement(ADDED) == Agreement(2, 2, 2)


def test_a_method_that_the_miner_misses_lowers_recall(tmp_path: Path) -> None:
    mined, truth = both(tmp_path)
    result = compare(replace(mined, methods=mined.methods[:1]), truth)
    agreed = result.agreement(ADDED)
    assert (agreed.precision, agreed.recall) == (1.0, 0.5)
    assert result.confusion == {(ADDED, ADDED): 1, (None, ADDED): 1}
    assert [line.endswith("miner no row, oracle added") for line in result.differences] == [True]


def test_a_method_that_the_miner_invents_lowers_precision(tmp_path: Path) -> None:
    mined, truth = both(tmp_path)
    invented = replace(mined.methods[0], start_byte=1)
    agreed = compare(replace(mined, methods=[*mined.methods, invented]), truth).agreement(ADDED)
    assert (round(agreed.precision, 3), agreed.recall) == (0.667, 1.0)


def test_other_classes_are_compared_too(tmp_path: Path) -> None:
    mined, truth = both(tmp_path)
    truth.novelty[next(key for key in truth.novelty if key[1] == "a.py")] = MOVED
    moved = [replace(row, novelty=RENAMED) if row.path == "a.py" else row for row in mined.methods]
    result = compare(replace(mined, methods=moved), truth)
    assert result.confusion == {(RENAMED, MOVED): 1, (ADDED, ADDED): 1}
    assert [result.agreement(novelty).precision for novelty in (ADDED, MOVED, RENAMED)] == [1.0, 1.0, 0.0]
    assert [result.agreement(novelty).recall for novelty in (ADDED, MOVED, RENAMED)] == [1.0, 0.0, 1.0]
    assert len(result.differences) == 1


def test_the_lines_hold_every_count(tmp_path: Path) -> None:
    mined, truth = both(tmp_path)
    lines = compare(replace(mined, methods=mined.methods[:1]), truth).lines()
    assert lines[1].split() == ["added", "1", "2", "1", "1.00000", "0.50000"]
    table = lines[lines.index("") + 1 :]
    heads = ["miner", "\\", "oracle", *CLASSES, "no", "row"]
    assert table[0].split() == heads
    assert table[1].split() == ["added", "1", "0", "0", "0", "0", "0", "0", "0"]
    assert table[-1].split() == ["no", "row", "1", "0", "0", "0", "0", "0", "0", "0"]


def test_marked_unreadable_and_excluded_files_are_left_out(tmp_path: Path) -> None:
    mined, truth = both(tmp_path)
    marked = [replace(row, novelty=Novelty.VENDORED) if row.path == "a.py" else row for row in mined.methods]
    assert compare(replace(mined, methods=marked), truth).n_marked == 1
    commit = mined.methods[0].commit_id
    truth.unreadable.add((commit, "b.py"))
    left = Exclusion(f"example/built@{commit}:a.py", "files", "file_too_large")
    result = compare(replace(mined, methods=[], excluded=[left]), truth)
    assert (result.n_unjudged, result.n_judged, result.confusion) == (2, 0, {})
