"""The main job on small real repositories, as a user runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.config import TESTBEDS
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, ROOT, build, fingerprints, make_repositories, postquem, source_text, write_config


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, RepoBuilder]]:
    """Return a folder with repositories and configuration, a finished workspace, and the builders."""
    folder = tmp_path_factory.mktemp("world")
    builders = make_repositories(folder)
    config = write_config(folder, [str(folder / "acme" / f"{name}.git") for name in builders])
    outcome = build(config, folder / "data")
    assert outcome.code == 0, outcome.stderr
    return folder, folder / "data", builders


def read(release: Path, name: str) -> list[dict[str, object]]:
    files = sorted((release / name).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_every_testbed_is_written_with_the_brand_new_methods(world: tuple[Path, Path, object]) -> None:
    release = world[1] / "releases" / "1.0"
    rows = read(release, "raw_data")
    # All functions of a template differ by names only and fall together at 0.7; the earliest of each kind is kept.
    kinds = sorted(re.sub("cost|height|speed|colour", "x", str(row["fun_name"])) for row in rows)
    assert kinds == ["find_x", "x_total"]
    assert [row["path"] for row in rows if row["path"] == "old.py"] == []
    assert {row["committer_date"] for row in rows} == {AFTER}
    assert {name for name in TESTBEDS if read(release, name)} == set(TESTBEDS)


def test_every_row_of_every_stage_is_accounted_for(world: tuple[Path, Path, object]) -> None:
    folder, data, _ = world
    summary = build(folder / "config.toml", data).summary
    stages = {stage["stage"]: stage for stage in summary["stages"]}
    assert {"sources", "commits", "files", "methods", "features"} <= set(stages)
    assert {"cutoff", "dedup_old", "dedup_exact", "dedup_near"} <= set(stages)
    for stage in stages.values():
        assert stage["rows_in"] == stage["rows_out"] + sum(stage["excluded_by_reason"].values())
    assert stages["sources"]["rows_out"] == 3
    assert stages["features"]["rows_in"] == stages["methods"]["rows_out"]
    assert (stages["cutoff"]["rows_in"], stages["cutoff"]["rows_out"]) == (3, 3)
    assert stages["dedup_old"]["rows_in"] == stages["features"]["rows_out"]
    assert stages["dedup_exact"]["rows_in"] == stages["dedup_old"]["rows_out"]
    assert stages["dedup_near"]["rows_in"] == stages["dedup_exact"]["rows_out"]
    assert stages["testbed_raw_data"]["rows_in"] == stages["dedup_near"]["rows_out"]
    assert stages["testbed_raw_data"]["rows_out"] == summary["testbeds"]["raw_data"]


def test_exclusions_of_the_release_add_up_to_the_funnel(world: tuple[Path, Path, object]) -> None:
    release = world[1] / "releases" / "1.0"
    rows = read(release, "exclusions")
    funnel = json.loads((release / "manifest.json").read_text())["funnel"]
    expected = {
        (stage["stage"], reason): count
        for stage in funnel
        for reason, count in stage["excluded_by_reason"].items()
    }  # fmt: skip
    counted: dict[tuple[object, object], int] = {}
    for row in rows:
        counted[(row["stage"], row["reason"])] = counted.get((row["stage"], row["reason"]), 0) + 1
    assert counted == expected


def test_exclusions_of_the_release_say_where_the_row_was(world: tuple[Path, Path, object]) -> None:
    rows = [row for row in read(world[1] / "releases" / "1.0", "exclusions") if row["reason"] == "near_duplicate"]
    assert len(rows) > 3
    for row in rows:
        assert row["repo"] in ("acme/alpha", "acme/beta", "acme/gamma")
        assert row["commit_id"]
        assert str(row["path"]).endswith(".py")
        assert str(row["fun_name"]).startswith(("find_", str(row["path"]).removesuffix(".py"), "colour"))


def test_progress_goes_to_standard_error_also_beside_json(world: tuple[Path, Path, object]) -> None:
    outcome = build(world[0] / "config.toml", world[1])
    assert "mine  acme/alpha" in outcome.stderr
    assert outcome.summary["seconds"] > 0
    assert sum(stage["seconds"] for stage in outcome.summary["stages"] if stage["stage"] != "sources") == 0


def test_a_second_run_does_no_work_and_changes_nothing(world: tuple[Path, Path, object]) -> None:
    folder, data, _ = world
    before = fingerprints(data / "releases" / "1.0")
    tables = {path: path.stat().st_mtime_ns for path in (data / "tables").rglob("*.parquet")}
    outcome = build(folder / "config.toml", data)
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["release_status"] == "unchanged"
    assert fingerprints(data / "releases" / "1.0") == before
    assert {path: path.stat().st_mtime_ns for path in (data / "tables").rglob("*.parquet")} == tables


@pytest.mark.parametrize(("workers", "seed"), [("1", "0"), ("2", "4242")])
def test_workers_and_hash_seed_do_not_change_a_byte(
    world: tuple[Path, Path, object], tmp_path: Path, workers: str, seed: str
) -> None:
    folder, data, _ = world
    outcome = build(folder / "config.toml", tmp_path / "data", "--workers", workers, env={"PYTHONHASHSEED": seed})
    assert outcome.code == 0, outcome.stderr
    assert fingerprints(tmp_path / "data" / "releases" / "1.0") == fingerprints(data / "releases" / "1.0")


def test_new_commits_are_fetched_and_only_their_repository_is_mined_again(tmp_path: Path) -> None:
    builders = make_repositories(tmp_path)
    config = write_config(
        tmp_path, [str(tmp_path / "acme" / f"{name}.git") for name in builders], "[release]\noverwrite = true\n"
    )
    config.write_text(config.read_text().replace("[release]\noverwrite = true\n", "", 1))
    text = config.read_text().replace('version = "1.0"', 'version = "1.0"\noverwrite = true', 1)
    config.write_text(text)
    assert build(config, tmp_path / "data").code == 0
    mined = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data/tables/methods").rglob("*.parquet")}
    assert len(mined) == 3
    builders["beta"].commit({"pressure.py": source_text("pressure", 77)}, "Add pressure", "1719900000 +0000")
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data/tables/methods").rglob("*.parquet")}
    assert len(again) == 3
    assert len(set(mined.items()) & set(again.items())) == 2
    assert outcome.summary["release_status"] == "replaced"


def test_a_release_with_other_contents_is_not_replaced_silently(
    world: tuple[Path, Path, object], tmp_path: Path
) -> None:
    folder, _, _ = world
    workspace, locations = tmp_path / "data", [str(folder / "acme" / "alpha.git")]
    assert build(write_config(tmp_path, locations), workspace).code == 0
    before = fingerprints(workspace)
    outcome = build(write_config(tmp_path, locations, "[dedup]\nthreshold = 0.9\n"), workspace)
    assert outcome.code == 2
    assert "release.version" in outcome.stderr
    assert "overwrite" in outcome.stderr
    before.pop(".lock")  # holds the pid of the last run
    after = fingerprints(workspace)
    after.pop(".lock")
    assert after == before  # told before any work


@pytest.mark.parametrize("delay", [0.9, 1.6, 2.3])
def test_kill_9_loses_nothing_and_duplicates_nothing(
    world: tuple[Path, Path, object], tmp_path: Path, delay: float
) -> None:
    folder, data, _ = world
    command = [sys.executable, "-m", "flows.cli", "build", "--no-prefect", "--config", str(folder / "config.toml")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--workspace", str(tmp_path / "data")],
            cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    outcome = build(folder / "config.toml", tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert fingerprints(tmp_path / "data" / "releases" / "1.0") == fingerprints(data / "releases" / "1.0")
    leftovers = [path.name for path in (tmp_path / "data").rglob(".tmp-*")]
    assert leftovers == []


def test_the_catalogue_answers_sql_over_all_stages(world: tuple[Path, Path, object]) -> None:
    from warehouse.lock import open_workspace
    from warehouse.views import connect

    with connect(open_workspace(world[1])) as connection:
        counts = dict(connection.sql("select novelty, count(*) from methods group by all").fetchall())
        [(points,)] = connection.sql("select count(*) from data_points").fetchall()
        [(runs,)] = connection.sql("select count(*) from runs where rows_in > 0").fetchall()
    assert points == counts["added"]
    assert runs >= 3


def test_stage_commands_stop_at_their_stage(world: tuple[Path, Path, object], tmp_path: Path) -> None:
    folder, _, _ = world
    outcome = postquem("mine", "--json", "--config", folder / "config.toml", "--workspace", tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert [stage["stage"] for stage in outcome.summary["stages"]] == [
        "sources",
        "commits",
        "files",
        "methods",
        "index",
        "history",
    ]
    assert outcome.summary["release"] is None
    assert not list((tmp_path / "data/releases").iterdir())
    outcome = postquem("dedup", "--json", "--config", folder / "config.toml", "--workspace", tmp_path / "data")
    assert [stage["stage"] for stage in outcome.summary["stages"]][-5:] == [
        "features",
        "cutoff",
        "dedup_old",
        "dedup_exact",
        "dedup_near",
    ]


def test_status_tells_what_is_done_and_changes_nothing(world: tuple[Path, Path, object]) -> None:
    folder, data, _ = world
    before = fingerprints(data)
    outcome = postquem("status", "--json", "--config", folder / "config.toml", "--workspace", data)
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["releases"] == ["1.0"]
    repositories = ["acme/alpha", "acme/beta", "acme/gamma"]
    assert [(item["stage"], item["partition"], item["state"]) for item in outcome.summary["items"]] == [
        *(("mine", name, "up to date") for name in repositories),
        *(("features", name, "up to date") for name in repositories),
        *(("cutoff", name, "up to date") for name in repositories),
        *(("compare", name, "up to date") for name in repositories),
        ("dedup", "all", "up to date"),
        *(("testbeds", name, "up to date") for name in TESTBEDS),
    ]
    assert fingerprints(data) == before


def test_status_tells_what_a_changed_configuration_would_redo(world: tuple[Path, Path, object], tmp_path: Path) -> None:
    folder, data, _ = world
    locations = [str(folder / "acme" / f"{name}.git") for name in ("alpha", "beta", "gamma")]

    def states(extra: str) -> dict[str, set[str]]:
        config = write_config(tmp_path, locations, extra)
        outcome = postquem("status", "--json", "--config", config, "--workspace", data)
        found: dict[str, set[str]] = {}
        for item in outcome.summary["items"]:
            found.setdefault(item["stage"], set()).add(item["state"])
        return found

    up, redo, never = {"up to date"}, {"would be redone"}, {"not done yet"}
    all_up = dict.fromkeys(("mine", "features", "cutoff", "compare", "dedup", "testbeds"), up)
    rest = {"dedup": redo, "testbeds": redo}
    assert states("[testbeds]\nsize = 7\n") == all_up | {"testbeds": redo}
    assert states("[dedup]\nthreshold = 0.8\n") == all_up | {"compare": redo} | rest
    assert states("[licences]\nunknown = 'exclude'\n") == all_up | {"features": redo, "compare": redo} | rest
    assert states("[mining]\nmax_file_bytes = 9\n") == dict.fromkeys(all_up, redo)
    assert states("[dedup]\ncopied_old = 'all'\n") == all_up | {"compare": never} | rest
    assert states("[dedup]\ncopied_old = 'off'\n") == {"mine": up, "features": up} | rest
    locations.append(str(RepoBuilder(tmp_path / "acme" / "delta.git").path))
    old = {"cutoff": up | never, "compare": redo | never}
    assert states("") == {"mine": up | never, "features": up | never} | old | rest
