"""`postquem release push` and `yank` against a loopback Hub, the reading back in a process of its own."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli import cli
from publishing.read_back import read_back
from publishing.release_files import ReleaseFiles
from schemas.errors import ConfigError, PipelineError
from tests.hub.server import Hub
from tests.hub.store import Blob
from tests.hub.support import REPO, client_of, make_release
from tests.publishing.releases import points

# The client of LFS hands bytes to its transport in a way that the newest transport calls old.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw:DeprecationWarning")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFiles:
    return make_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with client_of(tmp_path, monkeypatch) as running:
        yield running


def run(*arguments: str) -> str:
    return CliRunner().invoke(cli, ["release", *arguments], catch_exceptions=False).stdout


def test_a_release_is_pushed_read_back_and_withdrawn(hub: Hub, release: ReleaseFiles) -> None:
    folder = str(release.folder)
    planned = run("push", folder, "--repo", REPO, "--dry-run")
    assert planned.splitlines()[0] == "me/shapes would be made, then 12 files written, 0 deleted:"
    assert planned.splitlines()[-1] == "and the commit tagged 2026.10. Nothing was sent."
    told = run("push", folder, "--repo", REPO)
    commit = hub.store.repositories[REPO].tags["2026.10"]
    assert told.splitlines()[0] == f"me/shapes has version 2026.10 now, commit {commit}:"
    assert told.splitlines()[-1] == "Read back: 13 rows of 3 configs and 12 files are those of the folder."
    again = json.loads(run("push", folder, "--repo", REPO, "--no-read-back", "--json"))
    assert again == {
        "status": "unchanged", "repo": REPO, "version": "2026.10", "commit": commit, "creates": False, "added": {},
        "deleted": [], "kept": [], "tags": False, "others": [], "read_back": None,
    }  # fmt: skip
    gone = json.loads(run("yank", "2026.10", "--repo", REPO, "--reason", "test", "--json"))
    assert (gone["empties_main"], len(gone["deleted"]), gone["shared"]) == (True, 3, {})
    assert hub.store.repositories[REPO].tags == {}


def test_what_was_published_wrongly_is_found(hub: Hub, release: ReleaseFiles, tmp_path: Path) -> None:
    run("push", str(release.folder), "--repo", REPO, "--no-read-back")
    repository, path = hub.store.repositories[REPO], "raw_data/test-00000-of-00001.parquet"
    rows = points()
    other = make_release(tmp_path, rows=[*rows[:5], replace(rows[5], code="def c(): 1")])
    content = (other.folder / path).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    repository.objects[sha256] = content
    card = release.card().encode() + b"\n"
    changed = {path: Blob(len(content), sha256=sha256), "README.md": Blob(len(card), card)}
    repository.tags["2026.10"] = repository.commit("main", "by hand", repository.find("main").files | changed).oid
    with pytest.raises(PipelineError) as caught:
        read_back(release, REPO, "2026.10")
    assert str(caught.value) == (
        f"revision 2026.10 of me/shapes is not what was pushed: {path} loads other rows; README.md has other bytes; "
        f"{path} has other bytes. Withdraw it with `postquem release yank`, and push a new version"
    )


def test_reading_back_needs_datasets_and_says_so_before_anything_is_sent(
    hub: Hub, release: ReleaseFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("publishing.read_back.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"reading back needs the extra hub: pip install -e '\.\[hub\]'"):
        run("push", str(release.folder), "--repo", REPO)
    assert hub.requests == []
