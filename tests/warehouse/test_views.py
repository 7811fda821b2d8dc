import os
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from schemas.arrow import schema_of, to_table
from schemas.errors import PipelineError
from schemas.records import CommitRecord, Exclusion, Method, StageReport
from tests.builders import make_method
from warehouse.ledger import Ledger, Unit, unit_key
from warehouse.lock import Workspace, open_workspace
from warehouse.views import TABLES, connect, rebuild_catalogue

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "it's a [data]* folder")


def finish(workspace: Workspace, partition: str, n_rows: int = 1) -> Unit:
    ledger = Ledger(workspace.tables)
    key = unit_key("mine", "1", partition, [])
    commits = [
        CommitRecord(partition, f"c{index}", ("p1", "p2"), MOMENT, MOMENT, "é", author_is_bot=False)
        for index in range(n_rows)
    ]
    exclusions = [Exclusion(f"{partition}@x", "mine", "moved")]
    files = {
        "commits": (ledger.write("commits", partition, key, to_table(commits, CommitRecord)),),
        "exclusions": (ledger.write("exclusions", partition, key, to_table(exclusions, Exclusion)),),
    }
    report = StageReport("mine", partition, n_rows + 1, n_rows, {"moved": 1}, "d", "0.1.0", MOMENT, None)
    unit = Unit("mine", partition, key, files, (report,))
    ledger.record(unit)
    return unit


def query(workspace: Workspace, sql: str) -> list[tuple[object, ...]]:
    with connect(workspace) as connection:
        return connection.execute(sql).fetchall()


def test_views_show_the_rows_of_every_unit(workspace: Workspace) -> None:
    finish(workspace, "o/a", 2)
    finish(workspace, "O/B")
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT repo, commit_id, parent_ids FROM commits ORDER BY ALL") == [
        ("O/B", "c0", ["p1", "p2"]),
        ("o/a", "c0", ["p1", "p2"]),
        ("o/a", "c1", ["p1", "p2"]),
    ]
    assert query(workspace, "SELECT reason, count(*) FROM exclusions GROUP BY ALL") == [("moved", 2)]


def test_exclusions_have_the_place_of_what_was_left_out(workspace: Workspace) -> None:
    ledger, key = Ledger(workspace.tables), unit_key("mine", "1", "o/a", [])
    methods = [
        make_method(row_id=name, repo="o/a", commit_id="c" * 40, path="a.py", fun_name=f"A.{name}")
        for name in ("R1", "R2", "R3")
    ]
    excluded = [
        Exclusion("R1", "features", "bare_stub"),
        Exclusion("R2", "opt_out", "opted_out"),
        Exclusion("o/a@" + "d" * 40, "commits", "too_many_files"),
        Exclusion("o/a@" + "d" * 64 + ":x/é:\n.py", "files", "bad_blob"),
        Exclusion("o/a", "sources", "repository_without_python"),
        Exclusion("R9", "testbed_random_cut", "not_drawn", "", "o/z", "e" * 40, "z.py", "Z.z"),
    ]
    tables = {"methods": to_table(methods, Method), "exclusions": to_table(excluded, Exclusion)}
    files = {name: (ledger.write(name, "o/a", key, rows),) for name, rows in tables.items()}
    ledger.record(Unit("mine", "o/a", key, files, ()))
    rebuild_catalogue(workspace)
    placed = "SELECT row_id[:4], repo, commit_id[:2], path, fun_name, reason FROM exclusions ORDER BY ALL"
    assert query(workspace, placed) == [
        ("R1", "o/a", "cc", "a.py", "A.R1", "bare_stub"),
        ("R2", None, None, None, None, "opted_out"),
        ("R9", "o/z", "ee", "z.py", "Z.z", "not_drawn"),
        ("o/a", "o/a", None, None, None, "repository_without_python"),
        ("o/a@", "o/a", "dd", "x/é:\n.py", None, "bad_blob"),
        ("o/a@", "o/a", "dd", None, None, "too_many_files"),
    ]


def test_dates_are_utc(workspace: Workspace) -> None:
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT author_date::VARCHAR FROM commits") == [("2024-05-06 07:08:09.123456+00",)]


def test_runs_hold_the_reports(workspace: Workspace) -> None:
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    assert query(
        workspace, "SELECT stage, partition, rows_in, rows_out, excluded_by_reason, finished_at FROM runs"
    ) == [("mine", "o/a", 2, 1, {"moved": 1}, None)]


def test_a_table_without_files_has_a_view_with_its_columns(workspace: Workspace) -> None:
    rebuild_catalogue(workspace)
    tables = {name for (name,) in query(workspace, "SHOW TABLES")}
    assert tables == {*TABLES, "runs"}
    for table, row_type in TABLES.items():
        with connect(workspace) as connection:
            relation = connection.execute(f'SELECT * FROM "{table}"')
            assert [column[0] for column in relation.description or []] == schema_of(row_type).names
            assert relation.fetchall() == []


def test_views_have_the_same_types_with_and_without_files(workspace: Workspace) -> None:
    rebuild_catalogue(workspace)
    empty = query(workspace, "DESCRIBE commits")
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    assert query(workspace, "DESCRIBE commits") == empty


def test_a_table_of_empty_files_only_is_readable(workspace: Workspace) -> None:
    finish(workspace, "o/a", 0)
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT count(*) FROM commits") == [(0,)]


def test_files_of_no_unit_are_not_seen(workspace: Workspace) -> None:
    unit = finish(workspace, "o/a")
    folder = (workspace.tables / unit.files["commits"][0].path).parent
    (folder / "half-written.parquet").write_bytes(b"PAR1")
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT count(*) FROM commits") == [(1,)]


def test_only_the_units_named_are_covered(workspace: Workspace) -> None:
    finish(workspace, "o/a")
    unit = finish(workspace, "o/b")
    rebuild_catalogue(workspace, [unit])
    assert query(workspace, "SELECT repo FROM commits") == [("o/b",)]
    assert query(workspace, "SELECT partition FROM runs") == [("o/b",)]


def test_a_table_that_is_not_in_the_list_has_a_view_too(workspace: Workspace) -> None:
    unit = finish(workspace, "o/a")
    rebuild_catalogue(workspace, [Unit("search", "all", "k", {"search hits": unit.files["exclusions"]})])
    assert query(workspace, 'SELECT reason FROM "search hits"') == [("moved",)]


def test_rebuilding_replaces_a_deleted_or_damaged_catalogue(workspace: Workspace) -> None:
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    workspace.catalogue.write_bytes(b"rubbish" * 1000)
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT count(*) FROM commits") == [(1,)]
    workspace.catalogue.unlink()
    rebuild_catalogue(workspace)
    assert query(workspace, "SELECT count(*) FROM commits") == [(1,)]


def test_no_other_file_is_left_in_the_workspace(workspace: Workspace) -> None:
    rebuild_catalogue(workspace)
    assert sorted(path.name for path in workspace.root.iterdir()) == ["postquem.duckdb", "releases", "repos", "tables"]


def test_a_reader_keeps_its_catalogue_while_another_is_built(workspace: Workspace) -> None:
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    with connect(workspace) as reader:
        finish(workspace, "o/b")
        rebuild_catalogue(workspace)
        assert reader.execute("SELECT count(*) FROM commits").fetchall() == [(1,)]
    assert query(workspace, "SELECT count(*) FROM commits") == [(2,)]


def test_views_work_from_any_folder(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(workspace, "o/a")
    rebuild_catalogue(workspace)
    monkeypatch.chdir("/")
    assert query(workspace, "SELECT count(*) FROM commits") == [(1,)]


def test_a_read_only_connection_cannot_write(workspace: Workspace) -> None:
    rebuild_catalogue(workspace)
    with connect(workspace) as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("CREATE TABLE x AS SELECT 1")
    with connect(workspace, read_only=False) as connection:
        connection.execute("CREATE TABLE x AS SELECT 1 AS one")
        assert connection.execute("SELECT one FROM x").fetchall() == [(1,)]


def test_a_missing_catalogue_says_what_to_run(workspace: Workspace) -> None:
    with pytest.raises(PipelineError, match=r"does not exist yet; run `postquem build` first"):
        connect(workspace)


def test_a_damaged_catalogue_says_what_to_do(workspace: Workspace) -> None:
    workspace.catalogue.write_bytes(b"rubbish" * 1000)
    with pytest.raises(PipelineError, match=r"cannot open .*; close other programs that use it, or remove it"):
        connect(workspace)


def test_a_full_disk_is_an_error_and_keeps_the_former_catalogue(workspace: Workspace) -> None:
    rebuild_catalogue(workspace)
    finish(workspace, "o/a")
    (workspace.root / f".tmp-{os.getpid()}-postquem.duckdb.wal").mkdir()  # the write-ahead log cannot be created
    with pytest.raises(PipelineError, match=r"cannot write .*postquem\.duckdb"):
        rebuild_catalogue(workspace)
    assert query(workspace, "SELECT count(*) FROM commits") == [(0,)]
