import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from publishing import release
from publishing.release import ReleaseStatus, write_release
from schemas.arrow import from_table, schema_of, to_table
from schemas.errors import ConfigError, PipelineError
from schemas.records import DataPoint, Exclusion, StageReport
from tests.builders import make_point
from tests.publishing.releases import (
    EXCLUSIONS,
    ROW_TYPES,
    SINCE,
    make_inputs,
    points,
    rows_by_testbed,
    with_release,
)
from warehouse.tables import file_entry, read_table

ROOT = Path(__file__).parents[2]
SHARD = "test-00000-of-00001.parquet"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_release_has_every_file_of_the_contract(tmp_path: Path) -> None:
    result = write_release(make_inputs(), tmp_path / "releases")
    assert result.folder == tmp_path / "releases" / "1.2.0"
    assert result.status is ReleaseStatus.WRITTEN
    assert result.rows == {
        "raw_data": 6,
        "raw_data_docstring": 5,
        "random_cut": 4,
        "with_docstring": 2,
        "from_docstring": 1,
        "commit_gen": 6,
        "summarization_gen": 0,
        "exclusions": 3,
    }
    tasks = ["commit_gen_code", "commit_gen_message", *(name for name in result.rows if result.rows[name])]
    tasks = [name for name in tasks if name not in ("commit_gen", "exclusions")]
    expected = [
        "NOTICE", "README.md", "croissant.json", "inspect/postquem.py", "lm_eval/postquem.py", "manifest.json",
        "prompts.json",
        *(f"lm_eval/postquem_{name}.yaml" for name in tasks), *(f"{name}/{SHARD}" for name in result.rows),
    ]  # fmt: skip
    assert [entry.path for entry in result.files] == sorted(expected)
    assert sorted(contents(result.folder)) == sorted(expected)
    assert names(tmp_path / "releases") == ["1.2.0"]


def test_result_files_tell_the_bytes_on_disk(tmp_path: Path) -> None:
    result = write_release(make_inputs(), tmp_path)
    for entry in result.files:
        assert file_entry(result.folder / entry.path, result.folder, entry.rows) == entry


def test_rows_come_back_in_the_total_order(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    for name, rows in rows_by_testbed(points()).items():
        table = read_table(folder / name / SHARD)
        assert table.schema.equals(schema_of(ROW_TYPES[name]), check_metadata=True)
        ordered = sorted(
            rows, key=lambda row: (row.repo, row.committer_date, row.commit_id, row.path, row.start_byte, row.row_id)
        )
        assert list(from_table(table, ROW_TYPES[name])) == ordered


def test_exclusions_are_sorted_and_hide_local_paths(tmp_path: Path) -> None:
    releases = tmp_path / "releases"
    inside = Exclusion("o/n", "clone", "corrupt", f"object in {tmp_path}/repos/local/o/n.git is corrupt")
    inputs = make_inputs(exclusions=to_table([*EXCLUSIONS, inside], Exclusion))
    folder = write_release(inputs, releases).folder
    assert list(from_table(read_table(folder / "exclusions" / SHARD), Exclusion)) == [
        Exclusion("o/n", "clone", "corrupt", "object in <workspace>/repos/local/o/n.git is corrupt"),
        EXCLUSIONS[1],
        EXCLUSIONS[2],
        Exclusion("o/n@e1:x.py", "mine", "bad_blob", "cannot read tools/objects"),
    ]


def test_a_source_that_never_got_a_name_is_excluded_without_its_place(tmp_path: Path) -> None:
    gone = Exclusion("/home/ada/private/tools.git", "sources", "source_missing", "no /home/ada/private/tools.git")
    folder = write_release(make_inputs(exclusions=to_table([gone], Exclusion)), tmp_path).folder
    assert list(from_table(read_table(folder / "exclusions" / SHARD), Exclusion)) == [
        Exclusion("tools", "sources", "source_missing", "no tools")
    ]


def test_the_same_inputs_give_the_same_bytes_anywhere(tmp_path: Path) -> None:
    first = write_release(make_inputs(), tmp_path / "a" / "releases").folder
    table = make_inputs().tables["raw_data"]
    chunked = pa.concat_tables([table.slice(4), table.slice(0, 1), table.slice(1, 3)])
    shuffled = make_inputs(list(reversed(points())))
    inputs = replace(
        shuffled,
        tables={name: shuffled.tables[name] for name in sorted(shuffled.tables)} | {"raw_data": chunked},
        exclusions=to_table(EXCLUSIONS[::-1], Exclusion),
        repositories=shuffled.repositories[::-1],
    )
    inputs = replace(
        inputs, tables={**inputs.tables, "random_cut": make_inputs().tables["random_cut"].take([2, 0, 3, 1])}
    )
    inputs = replace(inputs, tables={**inputs.tables, "with_docstring": make_inputs().tables["with_docstring"]})
    inputs = replace(inputs, tables={**inputs.tables, "from_docstring": make_inputs().tables["from_docstring"]})
    second = write_release(inputs, tmp_path / "elsewhere" / "deep" / "releases").folder
    assert contents(first) == contents(second)


def test_the_hash_seed_does_not_show_in_the_bytes(tmp_path: Path) -> None:
    expected = contents(write_release(make_inputs(config=with_release(overwrite=True)), tmp_path / "a").folder)
    assert run_script(tmp_path / "b", "0.1.0", 0, seed="1") == 0
    assert contents(tmp_path / "b" / "1.2.0") == expected


def test_no_time_path_user_or_secret_is_in_any_file(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path / "releases").folder
    year = str(datetime.now(UTC).year).encode()
    for path, content in contents(folder).items():
        for forbidden in (str(tmp_path).encode(), b"/home/", b"ada/private", b"secret", os.uname().nodename.encode()):
            assert forbidden not in content, path
        if path in ("README.md", "manifest.json"):
            assert year not in content.replace(b"2024-", b"").replace(b"2025-01-01", b""), path


def test_the_same_release_again_touches_nothing(tmp_path: Path) -> None:
    first = write_release(make_inputs(), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    second = write_release(make_inputs(), tmp_path)
    assert second == replace(first, status=ReleaseStatus.UNCHANGED)
    assert {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")} == before
    assert names(tmp_path) == ["1.2.0"]


def test_asking_to_overwrite_the_same_contents_touches_nothing(tmp_path: Path) -> None:
    write_release(make_inputs(), tmp_path)
    assert write_release(make_inputs(config=with_release(overwrite=True)), tmp_path).status is ReleaseStatus.UNCHANGED


def test_other_contents_under_the_same_version_are_refused(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    before = contents(folder)
    with pytest.raises(ConfigError) as raised:
        write_release(make_inputs(points()[:5]), tmp_path)
    assert str(raised.value) == (
        f"{folder} holds another release; raise release.version in the configuration, "
        "or set release.overwrite = true to replace it"
    )
    assert contents(folder) == before
    assert names(tmp_path) == ["1.2.0"]


def test_a_folder_that_is_no_release_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "1.2.0").mkdir()
    (tmp_path / "1.2.0" / "precious.txt").write_text("notes")
    with pytest.raises(ConfigError, match="holds another release"):
        write_release(make_inputs(), tmp_path)
    assert contents(tmp_path) == {"1.2.0/precious.txt": b"notes"}


def test_overwrite_replaces_other_contents(tmp_path: Path) -> None:
    write_release(make_inputs(), tmp_path / "a")
    changed = make_inputs(points()[:5], config=with_release(overwrite=True))
    assert write_release(changed, tmp_path / "a").status is ReleaseStatus.REPLACED
    write_release(changed, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert names(tmp_path / "a") == ["1.2.0"]


def test_another_version_stands_beside_the_first(tmp_path: Path) -> None:
    write_release(make_inputs(), tmp_path)
    assert write_release(make_inputs(config=with_release(version="1.3.0")), tmp_path).status is ReleaseStatus.WRITTEN
    assert names(tmp_path) == ["1.2.0", "1.3.0"]


@pytest.mark.parametrize("damage", ["delete", "truncate", "add"])
def test_a_damaged_release_is_made_good(tmp_path: Path, damage: str) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    before = contents(folder)
    path = folder / "raw_data" / SHARD
    if damage == "delete":
        path.unlink()
    elif damage == "truncate":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        (folder / "raw_data" / "test-00001-of-00002.parquet").write_bytes(b"stray")
    assert write_release(make_inputs(), tmp_path).status is ReleaseStatus.REPLACED
    assert contents(folder) == before


def run_script(folder: Path, code_version: str, number: int, seed: str = "0") -> int:
    """Write the small release in another process that dies at its n-th rename; return the exit code."""
    command = [sys.executable, "-m", "tests.publishing.releases", str(folder), code_version, str(number)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=False).returncode


# 8 configs, 10 task files, notice, Croissant file, card and manifest are renamed into the new folder, then that folder.
@pytest.mark.parametrize("number", [5, 23])
def test_a_killed_first_run_leaves_nothing_and_the_next_one_cleans_up(tmp_path: Path, number: int) -> None:
    assert run_script(tmp_path, "0.1.0", number) == -signal.SIGKILL
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".tmp-1.2.0-")] == []
    assert len(names(tmp_path)) == 1
    assert write_release(make_inputs(), tmp_path).status is ReleaseStatus.WRITTEN
    assert names(tmp_path) == ["1.2.0"]


# The 23rd rename moves the former release aside, the 24th puts the new one in its place.
def test_a_run_killed_between_the_two_leaves_the_former_release(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    before = contents(folder)
    assert run_script(tmp_path, "0.2.0", 24) == -signal.SIGKILL
    assert not folder.exists()
    assert write_release(make_inputs(), tmp_path).status is ReleaseStatus.UNCHANGED
    assert contents(folder) == before
    assert names(tmp_path) == ["1.2.0"]


def test_a_run_killed_while_it_removes_the_replaced_release_has_replaced_it(tmp_path: Path) -> None:
    write_release(make_inputs(code_version="0.2.0"), tmp_path)
    (tmp_path / ".old-1.2.0").mkdir()
    (tmp_path / ".old-1.2.0" / "manifest.json").write_text("{}")
    assert write_release(make_inputs(code_version="0.2.0"), tmp_path).status is ReleaseStatus.UNCHANGED
    assert names(tmp_path) == ["1.2.0"]


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupted_replacement_puts_the_former_release_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = contents(write_release(make_inputs(), tmp_path).folder)
    calls = 0
    real = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_release(make_inputs(code_version="0.2.0", config=with_release(overwrite=True)), tmp_path)
    assert contents(tmp_path / "1.2.0") == before
    assert names(tmp_path) == ["1.2.0"]


@pytest.mark.parametrize("number", [1, 9, 40, 41])
def test_a_disk_that_fills_at_any_point_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    calls = 0
    real = os.fsync

    def fills(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fills)
    with pytest.raises(PipelineError, match="the disk is full; free space and run again"):
        write_release(make_inputs(), tmp_path)
    assert [name for name in names(tmp_path) if name.startswith(".")] == []


def test_a_failed_card_check_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(folder: Path) -> None:
        raise PipelineError(f"{folder.name} is wrong")

    monkeypatch.setattr(release, "check_card", wrong)
    with pytest.raises(PipelineError, match="is wrong"):
        write_release(make_inputs(), tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("column", ["author_date", "committer_date"])
@pytest.mark.parametrize("moment", [datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)])
def test_a_row_outside_the_window_is_refused(tmp_path: Path, column: str, moment: datetime) -> None:
    rows = [*points(), make_point(fun_name="late", **{column: moment})]
    with pytest.raises(PipelineError, match="outside the window; please report this as a bug"):
        write_release(make_inputs(rows), tmp_path)
    assert names(tmp_path) == []


def test_rows_at_the_edges_of_the_window_are_in_it(tmp_path: Path) -> None:
    last = datetime(2024, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    rows = [make_point(author_date=SINCE, committer_date=last)]
    assert write_release(make_inputs(rows), tmp_path).rows["raw_data"] == 1


def test_a_row_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="raw_data has a row id twice"):
        write_release(make_inputs([*points(), points()[0]]), tmp_path)


@pytest.mark.parametrize("name", ["../escape", "Raw", "", "a/b", "exclusions"])
def test_an_impossible_config_name_is_refused(tmp_path: Path, name: str) -> None:
    table = to_table(points(), DataPoint)
    with pytest.raises(PipelineError, match=r"cannot name a config|is no testbed"):
        write_release(make_inputs(tables={name: table}), tmp_path)
    assert names(tmp_path) == []


def test_a_table_without_the_columns_of_the_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="raw_data has no column committer_date, start_byte"):
        write_release(make_inputs(tables={"raw_data": to_table(EXCLUSIONS, Exclusion)}), tmp_path)


def test_a_funnel_that_counts_a_partition_twice_is_refused(tmp_path: Path) -> None:
    report = StageReport("mine", "o/n", 1, 1)
    with pytest.raises(PipelineError, match="stage mine reported o/n twice"):
        write_release(make_inputs(funnel=(report, report)), tmp_path)
    assert names(tmp_path) == []


def test_a_release_without_any_row_can_be_written(tmp_path: Path) -> None:
    inputs = make_inputs([], exclusions=to_table([], Exclusion), funnel=(), repositories=())
    result = write_release(inputs, tmp_path)
    assert set(result.rows.values()) == {0}
    assert "\nconfigs: []\n" in (result.folder / "README.md").read_text()


def test_the_manifest_names_every_other_file_with_its_hash(tmp_path: Path) -> None:
    folder = write_release(make_inputs(), tmp_path).folder
    listed = {entry["path"]: entry for entry in json.loads((folder / "manifest.json").read_text())["files"]}
    for path, content in contents(folder).items():
        if path != "manifest.json":
            entry = listed.pop(path)
            assert (entry["sha256"], entry["bytes"]) == (sha256(content).hexdigest(), len(content))
    assert listed == {}


def test_a_releases_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "releases").write_text("in the way")
    with pytest.raises(PipelineError, match=r"cannot write .*1\.2\.0"):
        write_release(make_inputs(), tmp_path / "releases")
