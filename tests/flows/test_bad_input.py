"""Bad input: each a clear message that says what to do, the right exit code, and nothing lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import RepoBuilder
from tests.flows.support import AFTER, ROOT, build, make_repositories, postquem, source_text, write_config

COMMAND = (sys.executable, "-m", "flows.cli", "build", "--no-prefect")


def repository(folder: Path, name: str = "good") -> Path:
    builder = RepoBuilder(folder / "acme" / f"{name}.git")
    builder.commit({"a.py": source_text("cost")}, "Add cost", AFTER)
    return builder.path


def test_unknown_configuration_key_names_the_known_ones(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["x"], "[mining]\nmax_bytes = 3\n")
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 2
    assert "unknown key max_bytes in [mining]; known keys: max_file_bytes" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_missing_configuration(tmp_path: Path) -> None:
    outcome = build(tmp_path / "none.toml", tmp_path / "data")
    assert outcome.code == 2
    assert "no configuration file" in outcome.stderr


def test_missing_path_stops_before_any_work(tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(repository(tmp_path)), "nowhere"])
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 2
    assert "nowhere does not exist; correct it in [[sources]]" in outcome.stderr
    assert not list((tmp_path / "data/repos").rglob("HEAD"))


def test_optional_missing_path_is_left_out_with_a_reason(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, [str(repository(tmp_path))], "[[sources]]\ngit = ['nowhere']\noptional = true\nrepo = 'a/b'\n"
    )
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["stages"][0]["excluded_by_reason"] == {"source_missing": 1}


@pytest.mark.parametrize(
    "location", ["ext::sh -c touch% x", "git@example.org:a/b.git", "--upload-pack=x", "http://a/b"]
)
def test_locations_that_could_run_code_or_leak_are_refused(tmp_path: Path, location: str) -> None:
    outcome = build(write_config(tmp_path, [location]), tmp_path / "data")
    assert outcome.code == 2
    assert "a location is a local path, a file:// or an https:// URL" in outcome.stderr


def test_two_sources_of_one_name_are_refused(tmp_path: Path) -> None:
    first = repository(tmp_path / "one")
    second = repository(tmp_path / "two")
    outcome = build(write_config(tmp_path, [str(first), str(second)]), tmp_path / "data")
    assert outcome.code == 2
    assert "two sources are called acme/good" in outcome.stderr


def test_empty_repository_beside_a_good_one_is_left_out(tmp_path: Path) -> None:
    empty = RepoBuilder(tmp_path / "acme" / "empty.git").path
    outcome = build(write_config(tmp_path, [str(empty), str(repository(tmp_path))]), tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["stages"][0]["excluded_by_reason"] == {"repository_empty": 1}
    assert outcome.summary["testbeds"]["raw_data"] == 2


def test_nothing_but_an_empty_repository_fails(tmp_path: Path) -> None:
    empty = RepoBuilder(tmp_path / "acme" / "empty.git").path
    outcome = build(write_config(tmp_path, [str(empty)]), tmp_path / "data")
    assert outcome.code == 1
    assert "nothing to release: no method came through" in outcome.stderr
    assert "repository_empty (1)" in outcome.stderr


def test_repository_without_python_fails_alone_and_says_why(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "acme" / "text.git")
    builder.commit({"a.txt": b"no code"}, "Add text", AFTER)
    outcome = build(write_config(tmp_path, [str(builder.path)]), tmp_path / "data")
    assert outcome.code == 1
    assert "repository_without_python" in outcome.stderr


def test_shallow_clone_is_left_out_and_says_how_to_mend_it(tmp_path: Path) -> None:
    builders = make_repositories(tmp_path)
    shallow = tmp_path / "shallow" / "alpha"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{builders['alpha'].path}", str(shallow)],
        check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip
    outcome = build(write_config(tmp_path, [str(shallow)]), tmp_path / "data")
    assert outcome.code == 1
    assert "repository_shallow (1)" in outcome.stderr
    outcome = postquem(
        "mine", "--config", write_config(tmp_path, [str(shallow)]), "--workspace", tmp_path / "data"
    )  # fmt: skip
    assert "git fetch --unshallow" in outcome.stderr


def test_corrupt_blob_costs_its_file_and_nothing_else(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "acme" / "bad.git")
    commit = builder.commit({"a.py": source_text("cost"), "b.py": source_text("height", 99)}, "Add two", AFTER)
    builder.corrupt(builder.blob_of(commit, "b.py"))
    outcome = build(write_config(tmp_path, [str(builder.path)]), tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    stages = {stage["stage"]: stage for stage in outcome.summary["stages"]}
    assert (stages["files"]["rows_in"], stages["files"]["rows_out"]) == (2, 1)
    assert list(stages["files"]["excluded_by_reason"]) in (["object_corrupt"], ["blob_missing"])
    assert outcome.summary["testbeds"]["raw_data"] == 2


def test_workspace_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    outcome = build(write_config(tmp_path, [str(repository(tmp_path))]), tmp_path / "data")
    assert outcome.code == 2
    assert "choose another --workspace" in outcome.stderr


def test_workspace_in_use_names_the_other_run(tmp_path: Path) -> None:
    from warehouse.lock import lock_workspace, open_workspace

    config = write_config(tmp_path, [str(repository(tmp_path))])
    with lock_workspace(open_workspace(tmp_path / "data")):
        outcome = build(config, tmp_path / "data")
    assert outcome.code == 2
    assert f"another run (pid {os.getpid()}) is using" in outcome.stderr


def test_damaged_table_is_made_again(tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(repository(tmp_path))])
    assert build(config, tmp_path / "data").code == 0
    [table] = (tmp_path / "data/tables/data_points").rglob("*.parquet")
    table.write_bytes(table.read_bytes()[:-10])
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["release_status"] == "unchanged"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_says_how_to_go_on_and_leaves_no_process(tmp_path: Path, number: int, code: int) -> None:
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    process = subprocess.Popen(
        [*COMMAND, "--config", str(config), "--workspace", str(tmp_path / "data")],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    while not list((tmp_path / "data").glob("repos/local/acme/*")) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, stderr = process.communicate(timeout=60)  # ends only when every process that holds the pipe has ended
    assert process.returncode == code
    assert "run the same command again to go on" in stderr
    assert "Traceback" not in stderr
    assert build(config, tmp_path / "data").code == 0


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    process = subprocess.Popen(
        [*COMMAND, "--config", str(config), "--workspace", str(tmp_path / "data")],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    while not (tmp_path / "data/tables/methods").is_dir() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)  # the workers and their fork server hold the pipe as long as they live
    assert process.returncode == -signal.SIGKILL


def test_wrong_option_is_a_usage_error() -> None:
    outcome = postquem("build", "--worker", "2")
    assert outcome.code == 2
    assert "--workers" in outcome.stderr


def test_status_without_workspace_says_what_makes_one(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["x"])
    outcome = postquem("status", "--config", config, "--workspace", tmp_path / "none")
    assert outcome.code == 2
    assert "`postquem build` makes it" in outcome.stderr
    assert not (tmp_path / "none").exists()
