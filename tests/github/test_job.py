"""The whole job over HTTPS: search, clone through `git http-backend`, mine, release; and the command that searches."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.status import list_status
from schemas.config import load_config
from tests.builders import RepoBuilder
from tests.flows.support import ROOT, build, fingerprints, make_repositories, postquem
from tests.github.server import Hub, serving
from tests.github.universe import Repository, equal_universe
from warehouse.lock import open_workspace

TOKEN = "ghp_a-secret-of-the-user"  # it must be nowhere but in the requests


@pytest.fixture
def world(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[tuple[Hub, Path, dict[str, str]]]:
    """A hub with real repositories behind it, a configuration that searches it, and the environment to do so."""
    root = tmp_path / "www"
    make_repositories(root)
    RepoBuilder(root / "acme" / "empty.git")
    hub = Hub([], root=root)
    with serving(hub, certificate) as api_url:
        config = tmp_path / "config.toml"
        config.write_text(
            f"[release]\nversion = '1'\n[window]\nsince = 2024-01-01\n"
            f"[search]\nstars = '>=3'\napi_url = '{api_url}'\n"
            f"[[sources]]\ngit = ['{hub.base}/acme/alpha']\nexecute = false\n"
        )
        environment = {
            "GITHUB_TOKEN": TOKEN,
            "GIT_SSL_CAINFO": str(certificate[0]),
            "REQUESTS_CA_BUNDLE": str(certificate[0]),
            **dict.fromkeys(("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), ""),
        }
        yield hub, config, environment


def universe() -> list[Repository]:
    alpha, beta, gamma, empty, deleted, blocked, few = equal_universe(7)
    return [
        replace(alpha, name="acme/alpha", repo_id=11),
        replace(beta, name="acme/beta", repo_id=12),
        replace(gamma, name="acme/gamma", repo_id=13),
        replace(empty, name="acme/empty", repo_id=14),
        replace(deleted, name="acme/deleted", repo_id=15, withheld=404),
        replace(blocked, name="acme/blocked", repo_id=16, withheld=451),
        replace(few, name="acme/few", repo_id=17, stars=2),
    ]


def test_from_the_search_to_the_release(world: tuple[Hub, Path, dict[str, str]]) -> None:
    hub, config, environment = world
    hub.rows = universe()
    workspace = config.parent / "data"
    outcome = build(config, workspace, env=environment)
    assert outcome.code == 0, outcome.stderr
    assert [(row["stage"], row["rows_in"], row["rows_out"]) for row in outcome.summary["stages"][:2]] == [
        ("discovery", 6, 6), ("sources", 7, 3),
    ]  # fmt: skip
    assert outcome.summary["stages"][1]["excluded_by_reason"] == {
        "repository_blocked": 1, "repository_deleted": 1, "repository_empty": 1, "repository_repeated": 1,
    }  # fmt: skip
    release = workspace / "releases" / "1"
    manifest = json.loads((release / "manifest.json").read_text())
    assert [(row["repo"], row["repo_id"], row["web_url"]) for row in manifest["repositories"]] == [
        (f"acme/{name}", repo_id, f"{hub.base}/acme/{name}")
        for name, repo_id in (("alpha", 11), ("beta", 12), ("gamma", 13))
    ]
    assert manifest["discovery"] == {
        "api_url": f"{hub.base}/api/v3",
        "query": "language:Python is:public stars:>=3",
        "licences": [],
        "total": 6,
        "found": 6,
        "uncovered": 0,
        "incomplete": 0,
        "repo_ids_sha256": hashlib.sha256(b"11\n12\n13\n14\n15\n16\n").hexdigest(),
    }
    card = (release / "README.md").read_text()
    assert "GitHub counts 6 repositories, of which 6 were found." in card
    [rows] = (release / "raw_data").glob("*.parquet")
    table = pq.read_table(rows)
    # Which of equal methods stays depends on row ids, and these on the server's port.
    ids = {"acme/alpha": 11, "acme/beta": 12, "acme/gamma": 13}
    assert table.num_rows > 0
    assert table["repo_id"].to_pylist() == [ids[repo] for repo in table["repo"].to_pylist()]
    assert all(url.startswith(f"{hub.base}/acme/") for url in table["url"].to_pylist())
    api = [asked for asked in hub.asked if asked.path.startswith(("/search", "/repositories"))]
    assert sorted((asked.path, asked.status) for asked in api) == [
        ("/repositories/15", 404), ("/repositories/16", 451), ("/search/repositories", 200),
    ]  # fmt: skip
    assert {(asked.token, asked.agent.split("/")[0]) for asked in api} == {(TOKEN, "Postquem")}
    _check_that_the_token_is_nowhere(workspace, outcome.stdout + outcome.stderr)
    _check_a_second_run(hub, config, environment, fingerprints(release))


def _check_that_the_token_is_nowhere(workspace: Path, output: str) -> None:
    files = [path for path in workspace.rglob("*") if path.is_file()]
    assert any("github" in path.parts for path in files)
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in output


def _check_a_second_run(hub: Hub, config: Path, environment: dict[str, str], before: dict[str, str]) -> None:
    """While the search counts it is not made again, and the same heads give the same release."""
    hub.asked.clear()
    again = build(config, config.parent / "data", env=environment)
    assert again.code == 0, again.stderr
    assert again.summary["release_status"] == "unchanged"
    assert fingerprints(config.parent / "data" / "releases" / "1") == before
    assert [asked.path for asked in hub.asked if asked.path.startswith("/search")] == []
    [searched, *_] = list_status(load_config(config), config.parent, open_workspace(config.parent / "data"))
    assert (searched.stage, searched.partition, searched.state, searched.rows_out) == (
        "discovery", "all", "up to date", 6,
    )  # fmt: skip


def test_a_killed_search_goes_on_where_it_stopped(world: tuple[Hub, Path, dict[str, str]]) -> None:
    hub, config, environment = world
    hub.rows = equal_universe(330)
    workspace = config.parent / "data"
    command = [sys.executable, "-m", "flows.cli", "discover", "--json", "--config", config, "--workspace", workspace]
    child = subprocess.Popen(
        [*map(str, command)], cwd=ROOT, env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def kill(number: int) -> None:
        if number == 3:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()

    hub.before_search = kill
    assert child.wait(timeout=120) == -signal.SIGKILL
    with hub.lock:
        assert [asked.query["page"] for asked in hub.asked] == ["1", "2", "3"]
        hub.asked.clear()
    outcome = postquem("discover", "--json", "--config", config, "--workspace", workspace, env=environment)
    assert outcome.code == 0, outcome.stderr
    assert [asked.query["page"] for asked in hub.asked] == ["3", "4"]
    [stage] = outcome.summary["stages"]
    assert (stage["stage"], stage["rows_in"], stage["rows_out"]) == ("discovery", 330, 330)
    assert (outcome.summary["release"], outcome.summary["testbeds"]) == (None, {})
    assert not [*(workspace / "repos").iterdir()]
