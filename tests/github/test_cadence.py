"""Month after month over HTTPS, in one process: what grows equals what is made anew; faults of clones cost no run."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flows.cloning
import flows.recipe
from flows.cloning import left_out
from flows.opt_out_check import check_entries
from flows.rebuilding import Rebuilding, rebuild
from flows.recipe import BuildResult
from flows.recipe import build as carry_out
from flows.run import open_run
from flows.status import ItemStatus, list_status
from flows.steppers import PlainStepper
from miners.git_answers import Pauses
from schemas.config import load_config
from schemas.errors import PipelineError
from schemas.opt_out import read_opt_outs
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, LATER, fingerprints, make_repositories, source_text
from tests.github.server import FakeClock, Hub, serving
from tests.github.universe import Repository, equal_universe
from warehouse.lock import open_workspace

MONTH = timedelta(days=30)


# A method for each of two repositories that is like none of the other.
OWN = {
    "alpha": b"""
def pieces_of(text, width):
    pieces = []
    while text:
        pieces.append(text[:width])
        text = text[width:]
    return pieces
""",
    "beta": b"""
def nearest(points, origin):
    best, least = None, float("inf")
    for x, y in points:
        distance = (x - origin[0]) ** 2 + (y - origin[1]) ** 2
        if distance < least:
            best, least = (x, y), distance
    return best
""",
}


class Here:
    """A pool of workers that is this process."""

    workers, shares = 2, 1

    def run(self, function: Callable[..., object], *args: object) -> object:
        return function(*args)

    def close(self) -> None:
        """Nothing is to be closed."""


class World:
    """A hub with real repositories behind it and a configuration that searches it."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        assert hub.root is not None
        self.hub, self.folder, self.root = hub, folder, hub.root
        self.repositories = make_repositories(hub.root)
        self.now = datetime.now(UTC)
        self.config = folder / "config.toml"
        self.extra = ""

    def named(self, *names: str, **former: tuple[str, ...]) -> None:
        """Let the hub show repositories of these names; the id of each is that of the first name it had."""
        ids = {"alpha": 11, "beta": 12, "gamma": 13, "delta": 14}
        rows: list[Repository] = []
        for row, name in zip(equal_universe(len(names)), names, strict=True):
            first = former.get(name, (name,))[0]
            was = tuple(f"acme/{old}" for old in former.get(name, ()))
            rows.append(replace(row, name=f"acme/{name}", repo_id=ids[first], former_names=was))
        self.hub.rows = rows

    def build(self, workspace: str, until: str = "release") -> BuildResult:
        self.config.write_text(
            f"[release]\nversion = '1'\noverwrite = true\n[window]\nsince = 2024-01-01\n"
            f"[search]\nstars = '>=3'\nrefresh = '1d'\napi_url = '{self.hub.base}/api/v3'\n{self.extra}"
        )
        with open_run(self.config, self.folder / workspace, 2) as run:
            run.pool.close()
            here = replace(run, pool=Here(), now=self.now)  # type: ignore[arg-type] # does what a pool does
            return carry_out(here, PlainStepper(), until)

    def status(self, workspace: str) -> list[ItemStatus]:
        space = open_workspace(self.folder / workspace)
        return list_status(load_config(self.config), self.folder, space)

    def release(self, workspace: str) -> dict[str, str]:
        return fingerprints(self.folder / workspace / "releases" / "1")

    def searched(self, workspace: str) -> dict[str, list[str]]:
        """Return the other names of each repository that the lake knows."""
        [path] = (self.folder / workspace / "tables" / "discovered_repositories").rglob("*.parquet")
        table = pq.read_table(path)
        return dict(zip(table["repo"].to_pylist(), table["aliases"].to_pylist(), strict=True))

    def asked(self) -> list[str]:
        """Return the paths of the requests to git since the last call, by repository and kind."""
        paths = [asked.path for asked in self.hub.asked if asked.path.startswith("/acme/")]
        self.hub.asked.clear()
        return sorted(paths)


@pytest.fixture
def world(tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def] # noqa: ANN201 - a fixture
    for name in ("GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, str(certificate[0]))
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_x")
    monkeypatch.setattr("miners.remote.PAUSES", (0.0,) * 9)
    clock = FakeClock()
    monkeypatch.setattr("miners.git_answers.HOSTS", Pauses(clock.now, clock.sleep, lambda text: None))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    hub = Hub([], root=tmp_path / "www")
    with serving(hub, certificate):
        yield World(hub, tmp_path)


def test_a_release_of_the_grown_lake_equals_one_from_scratch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.named("alpha", "beta", "gamma")
    monkeypatch.setattr(flows.cloning._Disk, "limit", 0)  # every clone is thinned out when it is mined
    world.build("grown")
    assert any(path.startswith("/acme/beta.git/") for path in world.asked())
    first = world.release("grown")
    packs = {path.parent.parent.parent.stem: path for path in (world.folder / "grown" / "repos").rglob("*.pack")}
    assert sorted(packs) == ["alpha", "beta", "gamma"]
    assert sum(path.stat().st_size for path in packs.values()) < 6_000  # commits alone

    world.build("grown")  # nothing is new: what the branches point to, and no object
    assert world.asked() == sorted(
        f"/acme/{name}.git/{path}" for name in ("alpha", "beta", "gamma")
        for path in ("info/refs", "info/refs", "git-upload-pack", "git-upload-pack")
    )  # fmt: skip
    assert world.release("grown") == first

    world.now += MONTH
    alpha, gamma = world.repositories["alpha"], world.repositories["gamma"]
    alpha.commit({"cost.py": source_text("cost", 11), "mass.py": source_text("mass")}, "Weigh all of it", LATER)
    gamma.commit({"speed.py": None}, "Remove it", LATER)
    gamma.commit({"speed.py": source_text("speed")}, "Bring it back", LATER)
    (world.root / "acme" / "beta.git").rename(world.root / "acme" / "better.git")
    delta = RepoBuilder(world.root / "acme" / "delta.git")
    delta.commit({"a.py": source_text("angle")}, "Add the angle", AFTER)
    world.named("alpha", "better", "gamma", "delta", better=("beta",))
    grown = world.build("grown")
    renamed = [path for path in world.asked() if path.startswith("/acme/better.git/")]
    scratch = world.build("scratch")
    assert world.release("grown") != first
    assert world.release("grown") == world.release("scratch")  # the manifest included
    none = {f"acme/{name}": list[str]() for name in ("alpha", "better", "gamma", "delta")}
    assert (world.searched("grown"), world.searched("scratch")) == ({**none, "acme/better": ["acme/beta"]}, none)
    assert grown.testbed_rows == scratch.testbed_rows
    names = sorted(path.parent.stem for path in (world.folder / "grown" / "repos").rglob("HEAD"))
    assert names == ["alpha", "better", "delta", "gamma"]
    assert (len(renamed), len([path for path in world.asked() if path.startswith("/acme/better.git/")])) == (
        8,
        9,
    )  # its commits are there, under another name


def test_an_opt_out_by_an_earlier_name_holds_where_the_rename_was_seen(world: World) -> None:
    """Also when the release is built again from its manifest, which does not tell that name."""
    world.named("alpha", "beta")
    world.build("grown", "mine")
    world.now += MONTH
    (world.root / "acme" / "beta.git").rename(world.root / "acme" / "better.git")
    world.named("alpha", "better", better=("beta",))
    world.extra = "[optout]\nfiles = ['optout.toml']\n"
    entry = "[[optout]]\ndate = 2026-01-31\nreason = 'x'\nrepository = 'acme/beta'\n"
    (world.folder / "optout.toml").write_text(entry)
    world.build("grown")
    manifest = world.folder / "grown" / "releases" / "1" / "manifest.json"
    rows = pq.read_table(next((manifest.parent / "raw_data").glob("*.parquet")))
    assert set(rows["repo"].to_pylist()) == {"acme/alpha"}
    values = json.loads(manifest.read_text())
    assert (values["opted_out"], [row["aliases"] for row in values["repositories"]]) == (6, [[], []])
    states = {item.stage: item.state for item in world.status("grown")}
    assert states["opt_out"] == "up to date"
    asked = Rebuilding(manifest, world.folder / "grown", world.folder, {}, workers=1)
    assert rebuild(asked).differing == ()
    checked = check_entries(read_opt_outs([world.folder / "optout.toml"]), open_workspace(world.folder / "grown"))
    assert (checked.mined, checked.releases) == ([6], {"1": 0})


def test_faults_on_a_fifth_of_the_requests_to_git_change_no_release(world: World) -> None:
    world.named("alpha", "gamma")
    world.build("calm")
    world.hub.git_fault_rate = 0.2
    world.build("faulty")
    assert world.release("faulty") == world.release("calm")
    assert any(asked.status != 200 for asked in world.hub.asked if asked.path.startswith("/acme/"))


@pytest.mark.parametrize(
    ("start", "fault", "reason"),
    [
        ("/acme/beta.git/", "500", "repository_unreachable"),
        ("/acme/beta.git/git-upload-pack", "truncated", "repository_unreachable"),
        ("/acme/beta.git/", "404", "source_missing"),
        ("/acme/beta.git/", "403", "repository_refused"),
        ("/acme/beta.git/", "451", "repository_blocked"),
        ("/acme/beta.git/", "429", "repository_unreachable"),
    ],
)
def test_a_clone_that_fails_costs_only_itself_and_is_tried_again(
    world: World, start: str, fault: str, reason: str
) -> None:
    world.named("alpha", "beta", "gamma")
    world.hub.git_broken = {start: fault}
    result = world.build("data", "mine")
    [sources] = [report for report in result.reports if report.stage == "sources"]
    assert (sources.rows_in, sources.rows_out, sources.excluded_by_reason) == (3, 2, {reason: 1})
    states = [(item.stage, item.partition, item.state) for item in world.status("data")]
    assert [item for item in states if item[1] == "acme/beta"] == [("sources", "acme/beta", reason)]
    assert [item[2] for item in states if item[0] == "mine"] == ["up to date", "up to date"]

    world.hub.git_broken = {}
    result = world.build("data", "mine")
    [sources] = [report for report in result.reports if report.stage == "sources"]
    assert (sources.rows_in, sources.rows_out) == (3, 3)
    with open_run(world.config, world.folder / "data", 1) as run:
        assert left_out(run.ledger) == {}


@pytest.mark.parametrize(("fault", "reason"), [("reset", "repository_unreachable"), ("404", "source_missing")])
def test_a_content_that_fails_after_the_commits_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: str, reason: str
) -> None:
    world.named("alpha", "beta")
    plan_and_fetch = flows.work.plan_and_fetch

    def failing(clone, *args):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002, ANN202 - passed on
        if clone.record.repo == "acme/beta":
            world.hub.git_broken = {"/acme/beta.git/": fault}
        return plan_and_fetch(clone, *args)

    monkeypatch.setattr(flows.work, "plan_and_fetch", failing)
    result = world.build("data", "mine")
    [sources] = [report for report in result.reports if report.stage == "sources"]
    assert sources.excluded_by_reason == {reason: 1}


@pytest.mark.parametrize(
    ("fault", "section", "reason"),
    [
        ("reset", "", "repository_unreachable"),
        ("404", "", "source_missing"),
        ("500", "[[sources]]\ngit = ['{}/acme/beta']\n", "repository_unreachable"),
    ],
)
def test_a_tree_that_cannot_be_had_for_real_code_costs_only_its_own_rows_there(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: str, section: str, reason: str
) -> None:
    """Between mining and real_code a thinned-out clone loses its source; no sandbox here, for the test to be quick."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")  # no engine answers there
    monkeypatch.setattr(flows.cloning._Disk, "limit", 0)
    world.named("alpha", "beta")
    for name, source in OWN.items():
        world.repositories[name].commit({"own.py": source})
    digest = "sha256:" + "0" * 64
    world.extra = (
        f"[testbeds]\nnames = ['raw_data', 'real_code']\n{section.format(world.hub.base)}"
        f"[real_code]\noptional = true\ndocstring = 'any'\nbackend = 'docker'\nimage = '{digest}'\n"
    )
    plan_proofs = flows.recipe.plan_proofs

    def failing(*args):  # type: ignore[no-untyped-def] # noqa: ANN002, ANN202 - passed on
        world.hub.git_broken = {"/acme/beta.git/": fault}
        return plan_proofs(*args)

    monkeypatch.setattr(flows.recipe, "plan_proofs", failing)
    by_repo = {report.partition: report for report in world.build("data").reports if report.stage == "real_code"}
    rows = {repo: report.rows_in for repo, report in by_repo.items()}
    assert {repo: report.excluded_by_reason for repo, report in by_repo.items()} == {
        "acme/alpha": {"no_sandbox": rows["acme/alpha"]},
        "acme/beta": {reason: rows["acme/beta"]},
    }
    assert min(rows.values()) > 0

    monkeypatch.setattr(flows.recipe, "plan_proofs", plan_proofs)
    world.hub.git_broken = {}
    again = [report for report in world.build("data").reports if report.stage == "real_code"]
    assert {report.partition: report.excluded_by_reason for report in again} == {
        repo: {"no_sandbox": count} for repo, count in rows.items()
    }


def test_a_source_that_must_not_be_missing_ends_the_run(world: World) -> None:
    world.named("alpha")
    world.hub.git_broken = {"/acme/beta/": "500"}
    world.extra = f"[[sources]]\ngit = ['{world.hub.base}/acme/beta']\n"
    with pytest.raises(PipelineError, match=r"clone failed for 1 of 2(?s:.*)acme/beta"):
        world.build("data", "mine")
    world.extra += "optional = true\n"
    result = world.build("data", "mine")
    [sources] = [report for report in result.reports if report.stage == "sources"]
    assert sources.excluded_by_reason == {"repository_unreachable": 1}


def test_one_that_is_too_large_is_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("miners.remote._LOOK_SECONDS", 0.001)
    monkeypatch.setattr("miners.remote.folder_size", lambda folder: 2_000_000 if "beta" in str(folder) else 0)
    world.named("alpha", "beta")
    world.extra = "[clones]\nmax_megabytes = 1\n"
    result = world.build("data", "mine")
    [sources] = [report for report in result.reports if report.stage == "sources"]
    assert sources.excluded_by_reason == {"clone_too_large": 1}


def test_room_is_made_before_a_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clones of earlier runs are thinned out when all take too much, and their tables stay."""
    world.named("alpha", "beta")
    world.build("data", "mine")
    tables = fingerprints(world.folder / "data" / "tables" / "methods")
    repos = world.folder / "data" / "repos"
    before = {path.name for path in repos.rglob("*.pack")}
    monkeypatch.setattr(flows.cloning._Disk, "limit", 0)
    world.asked()
    world.build("data", "mine")
    after = {path.name for path in repos.rglob("*.pack")}
    assert (len(before), len(after), after <= before) == (6, 2, False)
    assert fingerprints(world.folder / "data" / "tables" / "methods") == tables
    assert len(world.asked()) == 2 * 4
