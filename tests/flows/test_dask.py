"""A run whose functions are computed by a Dask cluster: the same bytes, also when a worker is killed in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from flows import dedup_work, recipe
from flows.dask_pool import DaskPool, _look
from flows.run import open_run
from flows.steppers import PlainStepper
from flows.versions import code_version
from schemas.errors import ConfigError, DataError
from tests.flows.cluster import Cluster, running
from tests.flows.support import ROOT, build, fingerprints, make_repositories, write_config


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers; the last test that uses them kills one."""
    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_two_machines_share_a_search_and_give_the_same_bytes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup_work, "SHARED_IDS", 1)
    by_worker: list[tuple[str, object]] = []
    run = DaskPool.run

    def watched(self: DaskPool, function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - passed through
        by_worker.append((function.__name__, args[2:] if function is dedup_work.dedup_share else ()))
        return run(self, function, *args)

    monkeypatch.setattr(DaskPool, "run", watched)
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    digests = []
    for workspace, address in (("plain", None), ("shared", cluster.address)):
        with open_run(config, tmp_path / workspace, 1, address) as opened:
            recipe.build(opened, PlainStepper(), until="dedup")
            [unit] = [unit for unit in opened.ledger.units() if unit.stage == "dedup"]
        digests.append({name: [entry.sha256 for entry in entries] for name, entries in unit.files.items()})
    assert digests[0] == digests[1]
    assert sorted(item for item in by_worker if item[0] == "dedup_share") == [
        ("dedup_share", (0, 2)),
        ("dedup_share", (1, 2)),
    ]


def fail_with(reason: str) -> None:
    raise DataError(reason, "of the worker")


def test_a_run_survives_the_death_of_a_worker_and_gives_the_same_bytes(cluster: Cluster, tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    workspace = tmp_path / "data"
    command = [sys.executable, "-m", "flows.cli", "build", "--no-prefect", "--config", config, "--workspace", workspace]
    with (tmp_path / "log").open("wb") as log, Client(cluster.address, set_as_default=False) as client:
        run = subprocess.Popen(
            [*map(str, command), "--dask", cluster.address],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log,
        )  # fmt: skip
        addresses = {info["name"]: address for address, info in client.scheduler_info()["workers"].items()}
        deadline = time.monotonic() + 300
        while not client.processing(workers=[addresses["a"]])[addresses["a"]] and time.monotonic() < deadline:
            time.sleep(0.005)
        os.killpg(cluster.workers[0].pid, signal.SIGKILL)
        assert run.wait(timeout=600) == 0, (tmp_path / "log").read_text()
    assert cluster.workers[1].poll() is None
    assert build(config, tmp_path / "plain").code == 0
    assert fingerprints(workspace / "releases") == fingerprints(tmp_path / "plain" / "releases")
    assert [path.name for path in workspace.glob(".dask-*")] == []

    pool = DaskPool(cluster.address, workspace, code_version())  # the cluster goes on to serve others
    assert pool.workers == 1
    assert pool.run(sorted, [3, 1, 2]) == [1, 2, 3]
    with pytest.raises(DataError, match="no_tests: of the worker"):
        pool.run(fail_with, "no_tests")
    pool.close()
    with pytest.raises(
        ConfigError, match=r"Dask worker tcp://\S+ runs Postquem 0\.\S+, this is 9\.9; install the same"
    ):
        DaskPool(cluster.address, workspace, "9.9")


def test_a_cluster_that_cannot_compute_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["nowhere"])
    outcome = build(
        config,
        tmp_path / "data",
        "--dask",
        "tcp://127.0.0.1:1",
        env={"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"},
    )
    assert outcome.code == 2
    assert "Error: no Dask scheduler answers at tcp://127.0.0.1:1" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_worker_tells_its_version_and_whether_it_sees_the_workspace(tmp_path: Path) -> None:
    assert _look(str(tmp_path / "probe")) == (code_version(), False)
    (tmp_path / "probe").touch()
    assert _look(str(tmp_path / "probe")) == (code_version(), True)
