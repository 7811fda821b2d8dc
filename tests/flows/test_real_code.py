"""The testbed real_code in the flow: killed at any moment, without a sandbox, switched off."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from flows.execution import sample_key
from flows.rebuilding import Rebuilding, rebuild
from schemas.config import load_config
from tests.flows.cluster import running
from tests.flows.support import ROOT, build
from warehouse.ledger import Unit
from warehouse.tables import FileEntry

NEEDS_NO_ENGINE = {"DOCKER_HOST": "tcp://127.0.0.1:1"}  # a port where no engine answers


def write(folder: Path, section: str = "", source: str = "", name: str = "gridtext") -> Path:
    """Write a configuration over one sample repository."""
    path = folder / "config.toml"
    path.write_text(
        f'[release]\nversion = "1"\n[window]\nsince = 2026-01-01\n[testbeds]\nnames = ["raw_data", "real_code"]\n'
        f'[[sources]]\nfast_import = ["{ROOT}/samples/{name}.fi"]\n{source}\n[real_code]\n{section}\n'
    )
    return path


def kill_when(config: Path, workspace: Path, reached: Callable[[], bool]) -> None:
    """Run the build, end all of it that can be ended by one signal as soon as a moment is reached."""
    with (workspace.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "build", "--no-prefect", "--config", config, "--workspace", workspace],
            cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while not reached() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, (workspace.parent / "log").read_text()
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_the_sample_does_not_depend_on_how_long_the_proofs_took(tmp_path: Path) -> None:
    config = load_config(write(tmp_path))

    def proven(functions: str, seconds: str) -> Unit:
        tables = {"proven_functions": functions, "real_code_runs": seconds}
        files = {name: (FileEntry(f"{name}/x.parquet", 1, digest * 64, 1),) for name, digest in tables.items()}
        return Unit("real_code", "o/n", "key", files)

    keys = [sample_key(config, [proven(*digests)]) for digests in (("0", "1"), ("0", "2"), ("3", "1"))]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.usefixtures("sandboxed")
def test_kill_9_while_building_and_while_proving_changes_nothing(tmp_path: Path) -> None:
    """It goes on where it was, here on a Dask cluster; the release has the bytes of one built again at one go."""
    config = write(tmp_path)
    workspace = tmp_path / "killed" / "data"
    workspace.mkdir(parents=True)
    environments = workspace / "environments"
    kill_when(config, workspace, lambda: any(environments.glob("building/*")))
    kill_when(config, workspace, lambda: any(environments.glob("built/*")) and any(workspace.glob("trees/*/tree")))
    left = [path.name for path in workspace.glob("trees/*")]
    assert left, "the second kill came when nothing was executed any more"
    (tmp_path / "cluster").mkdir()
    with running(tmp_path / "cluster") as cluster:
        done = build(config, workspace, "--dask", cluster.address)
    assert done.code == 0, done.stderr
    assert done.summary["testbeds"]["real_code"] > 0
    stream = {"samples/gridtext": str(ROOT / "samples" / "gridtext.fi")}
    manifest = workspace / "releases" / "1" / "manifest.json"
    assert rebuild(Rebuilding(manifest, tmp_path / "whole", tmp_path, stream, workers=1)).differing == ()
    assert list(workspace.glob("trees/*")) == []
    assert list(environments.glob("building/*")) == []


def test_without_a_sandbox_the_run_stops_and_says_what_to_do(tmp_path: Path) -> None:
    config = write(tmp_path, 'backend = "docker"\nimage = "sha256:' + "0" * 64 + '"')
    outcome = build(config, tmp_path / "data", env=NEEDS_NO_ENGINE)
    assert outcome.code == 2
    assert "docker" in outcome.stderr.lower()
    assert "Traceback" not in outcome.stderr


def test_an_optional_real_code_stays_empty_without_a_sandbox_and_is_tried_again(tmp_path: Path) -> None:
    config = write(tmp_path, 'optional = true\nbackend = "docker"\nimage = "sha256:' + "0" * 64 + '"')
    outcome = build(config, tmp_path / "data", env=NEEDS_NO_ENGINE)
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["testbeds"]["real_code"] == 0
    [stage] = [row for row in outcome.summary["stages"] if row["stage"] == "real_code"]
    assert stage["excluded_by_reason"]["no_sandbox"] > 5
    catalogue = duckdb.connect(tmp_path / "data" / "postquem.duckdb", read_only=True)
    [(repo, reason, n_candidates)] = catalogue.sql("select repo, reason, n_candidates from real_code_runs").fetchall()
    assert (repo, reason, n_candidates) == ("samples/gridtext", "no_sandbox", stage["excluded_by_reason"]["no_sandbox"])
    again = build(config, tmp_path / "data", env=NEEDS_NO_ENGINE)
    [redone] = [row for row in again.summary["stages"] if row["stage"] == "real_code"]
    assert redone["seconds"] > 0  # of this run: nothing was recorded as done


def test_a_source_can_be_left_unexecuted(tmp_path: Path) -> None:
    outcome = build(write(tmp_path, source="execute = false"), tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    [stage] = [row for row in outcome.summary["stages"] if row["stage"] == "real_code"]
    assert set(stage["excluded_by_reason"]) > {"execution_off"}
    assert stage["rows_out"] == 0
    assert not (tmp_path / "data" / "environments").exists()
