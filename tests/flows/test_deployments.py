"""The deployments of `prefect.yaml` on a real Prefect server with a real worker: triggered, killed, taken up."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from schemas.config import load_config
from tests.flows.support import ROOT, build, fingerprints, make_repositories, write_config

PREFECT = Path(sys.executable).parent / "prefect"
_WAIT_SECONDS = 600  # against hanging only: a run takes some ten seconds on an idle machine


class Server:
    """A Prefect server of its own, and the commands that talk to it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.api = f"http://127.0.0.1:{port}/api"
        self.folder = folder
        self.env = {
            **os.environ, "PREFECT_HOME": str(folder / "home"), "PREFECT_API_URL": self.api,
            "PREFECT_PROFILES_PATH": str(folder / "profiles.toml"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1", "PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        self.process = self.start("server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui")
        wait_for(lambda: self._answers())

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Prefect command in a session of its own; its output goes to a file."""
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            return subprocess.Popen(
                [PREFECT, *arguments], cwd=ROOT, env=self.env, stdout=log, stderr=log, start_new_session=True
            )

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            [PREFECT, "--no-prompt", *arguments], cwd=ROOT, env=self.env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, method: str, path: str, **values: Any) -> Any:  # noqa: ANN401 - JSON
        """Ask the server, again where it fails: its SQLite is locked at times on a busy machine."""
        answers: list[requests.Response] = []

        def answered() -> bool:
            answers.append(requests.request(method, f"{self.api}/{path}", json=values or None, timeout=60))
            return answers[-1].status_code < requests.codes.server_error

        wait_for(answered)
        answers[-1].raise_for_status()
        return answers[-1].json()

    def read(self, path: str, **values: Any) -> Any:  # noqa: ANN401 - JSON
        return self.ask("POST", f"{path}/filter", **values)

    def runs(self) -> list[dict[str, Any]]:
        """Return the flow runs that have begun, oldest first."""
        rows = self.read("flow_runs", sort="START_TIME_ASC")
        return [row for row in rows if row["state_type"] != "SCHEDULED"]

    def trigger(self, deployment: str, parameters: dict[str, Any]) -> None:
        """Run a deployment to its end."""
        found = self.ask("GET", f"deployments/name/{deployment}")
        once = {"parameters": parameters, "idempotency_key": uuid4().hex}
        made = self.ask("POST", f"deployments/{found['id']}/create_flow_run", **once)
        state: dict[str, Any] = {}

        def ended() -> bool:
            state.update(self.ask("GET", f"flow_runs/{made['id']}")["state"])
            return state["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")

        wait_for(ended)
        assert state["type"] == "COMPLETED", state

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Have a worker that is killed in the end."""
        process = self.start("worker", "start", "--pool", "postquem", "--type", "process")
        try:
            yield
        finally:
            kill(process)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.api}/health", timeout=5).ok
        except requests.ConnectionError:
            return False


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its session, as a machine that goes down does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("prefect"))
    yield server
    kill(server.process)


@pytest.fixture(scope="module")
def deployed(server: Server) -> Server:
    """The server with the work pool and the deployments of `prefect.yaml`."""
    before = (ROOT / "prefect.yaml").read_bytes()
    server.call("work-pool", "create", "postquem", "--type", "process")
    server.call("deploy", "--all")
    assert (ROOT / "prefect.yaml").read_bytes() == before
    return server


def test_deployments_run_at_their_times_one_at_a_time(deployed: Server) -> None:
    rows = {row["name"]: row for row in deployed.read("deployments")}
    assert {
        name: (row["entrypoint"], [item["schedule"]["cron"] for item in row["schedules"]]) for name, row in rows.items()
    } == {
        "monthly-release": ("flows.build_testbeds.build_testbeds", ["0 5 1 * *"]),
        "weekly-mining": ("flows.mine_commits.mine_commits", ["0 3 * * 1"]),
    }
    for row in rows.values():
        assert row["concurrency_options"]["collision_strategy"] == "ENQUEUE"
        assert row["global_concurrency_limit"]["limit"] == 1
        assert row["job_variables"] == {"working_dir": str(ROOT)}
        schema = row["parameter_openapi_schema"]["properties"]
        assert set(row["parameters"]) <= set(schema)
    config = rows["monthly-release"]["parameters"]["config"]
    assert load_config(ROOT / config).sources


def test_a_killed_worker_s_run_is_taken_up_by_the_next(deployed: Server, tmp_path: Path) -> None:
    repositories = [str(builder.path) for builder in make_repositories(tmp_path).values()]
    config, workspace = write_config(tmp_path, repositories), tmp_path / "data"
    places = {"config": str(config), "workspace": str(workspace)}
    parameters = {
        **places, "calendar_version": False, "overrides": {"release.version": "2026.12", "testbeds.seed": 7},
    }  # fmt: skip
    given = [part for name, value in parameters.items() for part in ("--param", f"{name}={json.dumps(value)}")]

    with deployed.worker():
        deployed.call("deployment", "run", "build-testbeds/monthly-release", *given)
        wait_for(lambda: any((workspace / "tables").rglob("*.parquet")))
        [first] = deployed.runs()
    _end_processes_of(first["id"])
    assert not (workspace / "releases" / "2026.12").exists()

    with deployed.worker():
        _end_on_the_server(deployed, first["id"])
        deployed.trigger("mine-commits/weekly-mining", places)
        assert not (workspace / "releases" / "2026.12").exists()
        deployed.trigger("build-testbeds/monthly-release", parameters)

    (tmp_path / "undisturbed").mkdir()
    undisturbed = write_config(tmp_path / "undisturbed", repositories, "[testbeds]\nseed = 7\n", version="2026.12")
    assert build(undisturbed, tmp_path / "plain").code == 0
    assert fingerprints(workspace / "releases") == fingerprints(tmp_path / "plain" / "releases")
    _check_artifacts(deployed)


def _end_processes_of(run_id: str) -> None:
    """Kill whatever process carries out a flow run: its worker may be gone while it lives."""
    marker = f"PREFECT__FLOW_RUN_ID={run_id}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


def _end_on_the_server(server: Server, run_id: str) -> None:
    """Tell the server that a killed run is over, which gives its slot back; by itself it does so in five minutes."""
    state = {"type": "CRASHED", "name": "Crashed"}
    assert server.ask("POST", f"flow_runs/{run_id}/set_state", state=state)["status"] == "ACCEPT"


def _check_artifacts(server: Server) -> None:
    newest_last = reversed(server.read("artifacts", sort="UPDATED_DESC"))
    rows = {row["key"]: row for row in newest_last}
    funnel = json.loads(rows["funnel"]["data"])
    assert [row["stage"] for row in funnel][:3] == ["sources", "commits", "files"]
    assert all(row["rows in"] == row["rows out"] + row["left out"] for row in funnel)
    assert "Release `2026.12` (written)" in rows["release"]["data"]
    assert float(rows["progress-mine"]["data"]) == 100.0
    tagged = {row["name"].split()[0]: row["tags"] for row in server.read("task_runs")}
    assert tagged["clone"] == ["github-clone"]
    assert tagged["mine"] == []
