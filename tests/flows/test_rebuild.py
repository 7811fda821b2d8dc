"""A release again, from its manifest alone."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli import cli
from flows.rebuilding import Rebuilding, Rebuilt, _is_named, _locations, _source, rebuild
from flows.recipe import build
from flows.run import Computers, open_run, open_run_of
from flows.steppers import PlainStepper
from publishing.manifest import read_manifest
from publishing.release import ReleaseResult, ReleaseStatus
from schemas.config import Config, SourceConfig, WindowConfig, load_config
from schemas.errors import ConfigError, PipelineError
from schemas.records import RepositoryRecord
from schemas.search import SearchConfig
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, BEFORE, LATER, fingerprints, source_text, write_config

FUTURE = datetime(2200, 1, 1, tzinfo=UTC)
EXTRA = """
[[sources]]
git = ["missing.git"]
optional = true
[testbeds]
names = ["raw_data", "random_cut", "commit_gen"]
"""


def build_release(config: Path, workspace: Path) -> ReleaseResult:
    with open_run(config, workspace, 1) as run:
        made = build(run, PlainStepper()).release
    assert made is not None
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two repositories, one with a commit of the future, and an optional one that is not there; a release of them."""
    folder = tmp_path_factory.mktemp("world")
    alpha, beta = (RepoBuilder(folder / "acme" / f"{name}.git") for name in ("alpha", "beta"))
    alpha.commit({"old.py": b"x = 1\n"}, "Start", BEFORE)
    alpha.commit({"cost.py": source_text("cost")}, "Add the cost module with a total and a search for it", AFTER)
    alpha.commit({"later.py": b"def later(a, b):\n    return [a, b, a + b, a - b]\n"}, "From the future", FUTURE)
    beta.commit({"size.py": b"def size(box):\n    for side in box:\n        yield side * 2\n"}, "Add sizes", AFTER)
    config = write_config(folder, ["acme/alpha.git", "acme/beta.git"], EXTRA)
    made = build_release(config, folder / "data")
    return folder, made.folder


def asked(world: tuple[Path, Path], workspace: Path, **values: object) -> Rebuilding:
    folder, release = world
    given = {"manifest": release / "manifest.json", "workspace": workspace, "base": folder, "locations": {}}
    return Rebuilding(**(given | {"workers": 1} | values))  # type: ignore[arg-type]


def folder_of(rebuilt: Rebuilt) -> Path:
    assert rebuilt.result.release is not None
    return rebuilt.result.release.folder


def test_a_release_is_built_again_where_the_configuration_says(world: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = json.loads((world[1] / "manifest.json").read_text())
    assert manifest["future_from"] == FUTURE.isoformat()
    assert [(item["row_id"], item["reason"]) for item in manifest["unused"]] == [("missing.git", "source_missing")]
    rebuilt = rebuild(asked(world, tmp_path / "data"))
    assert rebuilt.differing == ()
    assert folder_of(rebuilt) == tmp_path / "data" / "rebuilds" / "1.0" / "releases" / "1.0"
    assert fingerprints(folder_of(rebuilt)) == fingerprints(world[1])


def test_it_is_built_again_from_the_clones_of_a_workspace_that_has_gone_on(
    world: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, release = world
    before = fingerprints(release)
    RepoBuilder(folder / "acme" / "alpha.git").commit({"new.py": source_text("speed")}, "Go on", AFTER)
    config = write_config(folder, ["acme/alpha.git", "acme/beta.git"], EXTRA, version="1.1")
    later = build_release(config, folder / "data")
    assert json.loads((later.folder / "manifest.json").read_text())["changes"]["version"] == "1.0"
    rebuilt = rebuild(asked(world, folder / "data", base=tmp_path))
    assert rebuilt.differing == ()
    assert fingerprints(folder_of(rebuilt)) == before


def test_a_head_that_nobody_has_is_named(world: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        rebuild(asked(world, tmp_path / "data", base=tmp_path))
    head = json.loads((world[1] / "manifest.json").read_text())["repositories"][0]["head"]
    assert f"nothing has commit {head} of acme/alpha; say where it is with --repository acme/alpha=LOCATION" in str(
        caught.value
    )
    other = RepoBuilder(tmp_path / "other.git")
    other.commit({"a.py": b"x = 1\n"}, "Other", BEFORE)
    places = {"acme/alpha": str(other.path), "acme/beta": str(world[0] / "acme" / "beta.git")}
    with pytest.raises(ConfigError, match=rf"{other.path} has not got commit {head}"):
        rebuild(asked(world, tmp_path / "data", base=tmp_path, locations=places))


def test_other_versions_are_refused_or_show_what_differs(world: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = json.loads((world[1] / "manifest.json").read_text())
    manifest |= {"code_version": "0.0.1+00000000", "python_version": "3.10.1"}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    with pytest.raises(
        ConfigError, match=r"made with code_version 0\.0\.1\+00000000 \(here .*\), python_version 3\.10"
    ):
        rebuild(asked(world, tmp_path / "data", manifest=path))
    rebuilt = rebuild(asked(world, tmp_path / "data", manifest=path, other_versions=True))
    assert rebuilt.differing == ("manifest.json",)


def test_what_is_no_manifest_is_refused(world: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(PipelineError, match=r"is no manifest of this version of Postquem \(KeyError\('name'\)\)"):
        rebuild(asked(world, tmp_path / "data", manifest=tmp_path / "manifest.json"))


RECORD = RepositoryRecord("acme/alpha", "local", None, None, "main", "1" * 40, 3)
SOURCE = SourceConfig(git=("../acme/alpha.git", "../acme/beta"))


@pytest.mark.parametrize(
    ("section", "location", "named"),
    [
        (SOURCE, "../acme/alpha.git", True),
        (SOURCE, "../acme/beta", False),
        (SourceConfig(fast_import=("alpha.fi",)), "alpha.fi", True),
        (SourceConfig(git=("x.git",), repo="acme/alpha"), "x.git", True),
        (SourceConfig(git=("alpha",), repo="acme/other"), "alpha", False),
        (SourceConfig(git=("c:\\clones\\alpha",)), "c:\\clones\\alpha", True),
    ],
)
def test_locations_are_known_by_the_sections_name_or_their_own(
    section: SourceConfig, location: str, named: bool
) -> None:
    assert _is_named(section, location, RECORD) is named


def test_who_may_be_executed_is_what_the_configuration_says() -> None:
    config = Config(
        sources=(SourceConfig(git=("alpha",), execute=False), SourceConfig(git=("beta",))),
        window=WindowConfig(since=AFTER),
        search=SearchConfig(execute=False),
    )
    beta, found = (replace(RECORD, repo=name) for name in ("acme/beta", "acme/found"))
    assert [_source(config, record).config.execute for record in (RECORD, beta, found)] == [False, True, False]
    assert [_source(config, record).repo for record in (RECORD, beta)] == ["acme/alpha", "acme/beta"]
    assert _source(replace(config, search=None), found).config.execute


def test_a_repository_is_looked_for_in_a_stated_order(tmp_path: Path) -> None:
    """As told alone; else the workspace's clone, what the configuration names, and the host."""
    (tmp_path / "data" / "repos" / "example.org" / "acme" / "alpha.git").mkdir(parents=True)
    (tmp_path / "alpha.git").mkdir()
    config = write_config(tmp_path, ["alpha.git", "gone/alpha.git"])
    hosted = replace(RECORD, host="example.org", web_url="https://example.org/acme/alpha")
    wanted = Rebuilding(tmp_path / "manifest.json", tmp_path / "data", tmp_path, {"acme/alpha": "/elsewhere"})
    with open_run(config, tmp_path / "other", 1) as run:
        assert list(_locations(run, wanted, hosted)) == ["/elsewhere"]
        assert list(_locations(run, replace(wanted, locations={}), hosted)) == [
            str(tmp_path / "data" / "repos" / "example.org" / "acme" / "alpha.git"),
            str(tmp_path / "alpha.git"),
            "https://example.org/acme/alpha.git",
        ]
        assert list(_locations(run, replace(wanted, locations={}), RECORD)) == [str(tmp_path / "alpha.git")]


def test_the_command_tells_that_every_byte_is_the_same(world: tuple[Path, Path], tmp_path: Path) -> None:
    folder, release = world
    words = ["release", "build", "--from", str(release / "manifest.json"), "--workspace", str(tmp_path / "data")]
    words += ["--base", str(tmp_path), "--workers", "1"]
    for name in ("alpha", "beta"):
        words += ["--repository", f"acme/{name}={folder / 'acme' / name}.git"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert done.output.endswith("Every file has the bytes that the manifest lists.\n")
    told = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert (told["release_status"], told["differing"]) == ("unchanged", [])


def test_the_command_names_files_with_other_bytes(world: tuple[Path, Path], tmp_path: Path) -> None:
    folder, release = world
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["files"][0]["sha256"] = "0" * 64
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    words = ["release", "build", "--from", str(path), "--workspace", str(tmp_path / "data"), "--base", str(folder)]
    done = CliRunner().invoke(cli, [*words, "--workers", "1"])
    assert isinstance(done.exception, PipelineError)
    assert str(done.exception) == f"other bytes than in {path}: NOTICE, manifest.json"


def test_a_location_without_a_name_is_refused(tmp_path: Path) -> None:
    for text in ("somewhere", "=somewhere", "acme/alpha="):
        words = ["release", "build", "--from", str(tmp_path / "m.json"), "--repository", text]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2
        assert "is no NAME=LOCATION, such as owner/name=../name.git" in done.output


def test_a_release_without_a_version_is_named_after_the_day(tmp_path: Path) -> None:
    RepoBuilder(tmp_path / "acme" / "alpha.git").commit({"cost.py": source_text("cost")}, "Add costs", AFTER)
    config = write_config(tmp_path, ["acme/alpha.git"], '[testbeds]\nnames = ["raw_data"]\n', version="")
    now = datetime(2026, 1, 31, 23, tzinfo=UTC)

    def made_at(moment: datetime, folder: Path) -> ReleaseResult:
        with open_run_of(load_config(config), tmp_path, folder, Computers(1), moment) as run:
            made = build(run, PlainStepper()).release
        assert made is not None
        return made

    first = made_at(now, tmp_path / "data")
    assert (first.status, first.folder.name) == (ReleaseStatus.WRITTEN, "2026.01.31")
    again = made_at(now + timedelta(days=40), tmp_path / "data")
    assert (again.status, again.folder) == (ReleaseStatus.UNCHANGED, first.folder)
    RepoBuilder(tmp_path / "acme" / "alpha.git").commit({"b.py": source_text("size")}, "Add sizes", LATER)
    more = made_at(now, tmp_path / "data")
    assert (more.status, more.folder.name) == (ReleaseStatus.WRITTEN, "2026.01.31.1")
    manifest = read_manifest(more.folder / "manifest.json")
    assert manifest.config["release"]["version"] == "2026.01.31.1"
    assert manifest.changes is not None
    assert [cause.what for cause in manifest.changes.causes] == ["repository acme/alpha"]
