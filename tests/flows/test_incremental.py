"""Later runs over the same workspace: a longer branch, a rewritten branch, several workers on one repository."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from flows.cloning import open_source
from flows.run import open_run
from flows.sources import plan_sources
from flows.steps import mine_commits
from miners.clone import Clone
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, BEFORE, postquem, source_text, write_config
from warehouse.ledger import Unit

TABLES = ("commits", "changed_files", "methods", "historic_files", "indexed_files", "exclusions")


def mine(config: Path, workspace: Path, workers: int = 1) -> tuple[Unit, dict[str, list[dict[str, Any]]]]:
    """Run the steps up to mining over the one repository of a configuration; return the unit and its tables."""
    with open_run(config, workspace, workers) as run:
        [source] = plan_sources(run.config, run.base).rows
        clone = open_source(run, source)
        assert isinstance(clone, Clone)
        unit = mine_commits(run, clone, workers)
        tables = {name: run.ledger.read(unit, name).to_pylist() for name in TABLES}
        marked = run.ledger.former("vanished", unit.partition)
        vanished = [] if marked is None else run.ledger.read(marked, "vanished_methods").to_pylist()
    return unit, tables | {"vanished_methods": vanished}


def files(unit: Unit) -> Mapping[str, list[str]]:
    """Return the digests of a unit's files, but for the table that holds the head."""
    return {name: [entry.sha256 for entry in entries] for name, entries in unit.files.items() if name != "repositories"}


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    made = RepoBuilder(tmp_path / "acme" / "alpha.git")
    made.commit({"old.py": source_text("age")}, "Start", BEFORE)
    made.commit({"cost.py": source_text("cost")}, "Cost", AFTER)
    return made


def test_a_longer_branch_gives_the_bytes_of_one_run(builder: RepoBuilder, tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path)])
    mine(config, tmp_path / "grown")
    builder.commit({"cost.py": None, "bad.py": b"x = '\xe9'\n"}, "Remove", AFTER)
    builder.commit({"cost.py": source_text("cost"), "size.py": source_text("size")}, "Restore", AFTER)
    grown, tables = mine(config, tmp_path / "grown")
    once, _ = mine(config, tmp_path / "once")
    assert files(grown) == files(once)
    assert [(row["fun_name"], row["novelty"]) for row in tables["methods"] if row["path"] == "cost.py"].count(
        ("find_cost", "restored")
    ) == 1


def test_a_rewritten_branch_marks_what_vanished_and_keeps_the_marks(builder: RepoBuilder, tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path)])
    first = builder.tips["main"]
    gone = builder.commit({"gone.py": source_text("gone")}, "Gone", AFTER)
    mine(config, tmp_path / "data")
    builder.commit({"kept.py": source_text("kept")}, "Kept", AFTER, parents=[first])
    unit, tables = mine(config, tmp_path / "data")
    assert {row["fun_name"] for row in tables["methods"]} == {"find_cost", "cost_total", "find_kept", "kept_total"}
    marks = [(row["commit_id"], row["path"], row["fun_name"], row["last_head"]) for row in tables["vanished_methods"]]
    expected = {(gone, "gone.py", name, gone) for name in ("find_gone", "gone_total")}
    assert (len(marks), set(marks)) == (2, expected)
    assert files(unit) == files(mine(config, tmp_path / "fresh")[0])
    last = builder.commit({"other.py": source_text("other")}, "Other", AFTER, parents=[first])
    _, tables = mine(config, tmp_path / "data")
    assert {(row["fun_name"], row["last_head"] == gone) for row in tables["vanished_methods"]} == {
        ("find_gone", True), ("gone_total", True), ("find_kept", False), ("kept_total", False),
    }  # fmt: skip
    builder.commit({"more.py": b"x = 1\n"}, "More", AFTER, parents=[gone])
    _, tables = mine(config, tmp_path / "data")
    assert {row["fun_name"] for row in tables["vanished_methods"]} == {
        "find_kept", "kept_total", "find_other", "other_total",
    }  # fmt: skip
    assert last in {row["commit_id"] for row in tables["vanished_methods"]}


def test_the_catalogue_shows_what_vanished(builder: RepoBuilder, tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path)])
    command = ("mine", "--config", config, "--workspace", tmp_path / "data")
    first = builder.tips["main"]
    gone = builder.commit({"gone.py": source_text("gone")}, "Gone", AFTER)
    assert postquem(*command).code == 0
    builder.commit({"kept.py": source_text("kept")}, "Kept", AFTER, parents=[first])
    outcome = postquem(*command)
    assert outcome.code == 0
    assert "its history was rewritten, so it was mined anew; 2 methods that are gone" in " ".join(
        outcome.stderr.split()
    )
    with duckdb.connect(str(tmp_path / "data" / "postquem.duckdb"), read_only=True) as catalogue:
        rows = catalogue.sql("select fun_name, last_head from vanished_methods order by all").fetchall()
        names = [row[0] for row in catalogue.sql("select fun_name from methods order by all").fetchall()]
    assert rows == [("find_gone", gone), ("gone_total", gone)]
    assert names == ["cost_total", "find_cost", "find_kept", "kept_total"]


def test_two_workers_share_one_repository(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "acme" / "big.git")
    for number in range(12):
        builder.commit(
            {f"m{index}.py": b"def f%d(n):\n    return n + %d\n" % (index, number) for index in range(100)},
            f"Change {number}",
            AFTER,
        )
    config = write_config(tmp_path, [str(builder.path)])
    two, tables = mine(config, tmp_path / "two", workers=2)
    one, _ = mine(config, tmp_path / "one")
    assert len(tables["methods"]) == 1200
    assert files(two) == files(one)
    paths = [entry.path for entry in two.files["methods"]]
    assert pq.read_metadata(tmp_path / "two" / "tables" / paths[0]).num_rows == 1200
