"""Pushing releases to a loopback Hub with the real client, through LFS and through Xet."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from publishing.hub import Change, HubRepository, patiently
from publishing.push import PushResult, PushStatus, push
from publishing.release_files import ReleaseFiles
from schemas.errors import ConfigError, PipelineError, TransientError
from tests.hub.server import Fault, Hub
from tests.hub.store import Blob, HubError
from tests.hub.support import REPO, client_of, make_release
from tests.publishing.releases import points

# The client of LFS hands bytes to its transport in a way that the newest transport calls old.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw:DeprecationWarning"),
    # The oldest client that is admitted calls the newest Xet by its old names.
    pytest.mark.filterwarnings("ignore:hf_xet:DeprecationWarning"),
]
COMMIT, TAG = "POST /api/datasets/me/shapes/commit/main", r"POST /api/datasets/me/shapes/tag/"
TASK_FILES = (
    "inspect/postquem.py",
    "lm_eval/postquem.py",
    "lm_eval/postquem_random_cut.yaml",
    "lm_eval/postquem_raw_data.yaml",
)
FILES = (
    "NOTICE",
    "README.md",
    "croissant.json",
    "exclusions/test-00000-of-00001.parquet",
    *TASK_FILES,
    "manifest.json",
    "prompts.json",
    "random_cut/test-00000-of-00001.parquet",
    "raw_data/test-00000-of-00001.parquet",
)
# What differs between the two versions below: tasks name theirs.
CHANGED = ("NOTICE", "README.md", "croissant.json", *TASK_FILES[2:], "manifest.json", FILES[-1])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with client_of(tmp_path, monkeypatch) as running:
        yield running


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFiles:
    return make_release(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFiles:
    """The next version: another row in raw_data, the same random_cut."""
    rows = points()
    return make_release(tmp_path_factory.mktemp("later"), "2026.11", [*rows[:5], replace(rows[5], code="def c(): 1")])


def pushed(release: ReleaseFiles, *, private: bool = False, dry_run: bool = False, repo: str = REPO) -> PushResult:
    return push(release, HubRepository(repo), private=private, dry_run=dry_run)


def contents(hub: Hub, revision: str) -> dict[str, bytes]:
    """Return the files of a revision as the Hub would serve them."""
    repository = hub.store.repositories[REPO]
    files = repository.find(revision).files
    return {
        path: blob.content if blob.sha256 is None else repository.objects[blob.sha256] for path, blob in files.items()
    }


def folder_contents(release: ReleaseFiles) -> dict[str, bytes]:
    attributes = {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}
    return attributes | {path: (release.folder / path).read_bytes() for path in FILES}


def test_a_release_becomes_one_commit_with_one_tag(hub: Hub, release: ReleaseFiles) -> None:
    result = pushed(release)
    repository = hub.store.repositories[REPO]
    sizes = {path: (release.folder / path).stat().st_size for path in FILES}
    assert result == PushResult(
        PushStatus.PUSHED, REPO, "2026.10", repository.tags["2026.10"], creates=True, added=sizes
    )
    assert repository.history() == ["Release 2026.10", "initial commit"]
    assert repository.tags == {"2026.10": repository.branches["main"]}
    assert not repository.private
    assert contents(hub, "2026.10") == folder_contents(release)


def test_a_second_push_sends_nothing_that_writes(hub: Hub, release: ReleaseFiles) -> None:
    first = pushed(release)
    hub.requests.clear()
    second = pushed(release)
    assert second == PushResult(PushStatus.UNCHANGED, REPO, "2026.10", first.commit, tags=False)
    assert hub.writes() == []


def test_a_dry_run_sends_nothing_that_writes_and_needs_no_token(
    hub: Hub, release: ReleaseFiles, later: ReleaseFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    planned = pushed(release, dry_run=True)
    assert (planned.status, planned.creates, tuple(planned.added)) == (PushStatus.PLANNED, True, FILES)
    assert (hub.writes(), hub.store.repositories) == ([], {})
    monkeypatch.setenv("HF_TOKEN", "hf_writer")
    pushed(release)
    hub.requests.clear()
    changed = pushed(later, dry_run=True)
    assert tuple(changed.added) == CHANGED
    assert (changed.deleted, changed.creates, hub.writes()) == ((), False, [])


def test_a_new_version_sends_what_changed_and_both_tags_hold_their_own(
    hub: Hub, release: ReleaseFiles, later: ReleaseFiles
) -> None:
    pushed(release)
    hub.requests.clear()
    result = pushed(later)
    assert tuple(result.added) == CHANGED
    assert len([request for request in hub.requests if request.startswith("PUT /lfs/")]) == 1
    assert contents(hub, "2026.10") == folder_contents(release)
    assert contents(hub, "2026.11") == contents(hub, "main") == folder_contents(later)


def test_files_gone_from_the_release_are_deleted_and_others_left_alone(hub: Hub, release: ReleaseFiles) -> None:
    pushed(release)
    repository = hub.store.repositories[REPO]
    stray = {"logo.png": Blob(1, b"x"), "raw_data/test-00001-of-00002.parquet": Blob(1, b"y")}
    repository.commit("main", "by hand", repository.find("main").files | stray)
    smaller = make_smaller(release, "2026.12")
    result = pushed(smaller)
    assert result.deleted == ("random_cut/test-00000-of-00001.parquet", "raw_data/test-00001-of-00002.parquet")
    assert result.kept == ("logo.png",)
    assert set(repository.find("2026.12").files) == {
        ".gitattributes", "logo.png", *(path for path in FILES if not path.startswith("random_cut/")),
    }  # fmt: skip


def make_smaller(release: ReleaseFiles, version: str) -> ReleaseFiles:
    """Return a release without random_cut, without writing one: the files are the same."""
    files = tuple(entry for entry in release.files if not entry.path.startswith("random_cut/"))
    return replace(release, version=version, files=files, rows={"raw_data": 6, "exclusions": 3})


def test_a_tag_with_other_contents_is_refused(hub: Hub, release: ReleaseFiles, later: ReleaseFiles) -> None:
    pushed(release)
    hub.requests.clear()
    with pytest.raises(ConfigError) as caught:
        pushed(replace(later, version="2026.10"))
    assert str(caught.value) == (
        "me/shapes has a version 2026.10 with other contents (NOTICE, README.md, "
        "croissant.json ...); give the release a new version"
    )
    assert hub.writes() == []


def test_private_is_for_new_repositories_and_refuses_public_ones(hub: Hub, release: ReleaseFiles) -> None:
    pushed(release, private=True)
    assert hub.store.repositories[REPO].private
    assert pushed(release, private=True).status is PushStatus.UNCHANGED
    hub.store.repositories[REPO].private = False
    with pytest.raises(ConfigError, match="me/shapes is public; make it private in its settings, or leave --private"):
        pushed(release, private=True)


def test_a_repository_of_something_else_is_refused(hub: Hub, release: ReleaseFiles) -> None:
    made = hub.store.create(REPO, private=False, token="hf_writer")
    made.commit("main", "other data", made.find("main").files | {"train.csv": Blob(1, b"x")})
    with pytest.raises(ConfigError, match=r"me/shapes holds something else than releases \(train.csv\)"):
        pushed(release)
    assert hub.writes() == []


@pytest.mark.parametrize(
    ("token", "repo", "message"),
    [
        (None, REPO, r"^the Hub wants to know who pushes: set HF_TOKEN to a token that may write "),
        ("hf_wrong", REPO, r"^the Hub does not know the token \(Invalid credentials in Authorization header\): set HF"),
        ("hf_reader", REPO, r"^the token may not do this to me/shapes \(.*\): take one with write access to it$"),
        ("hf_writer", "a/b/c", r"^'a/b/c' cannot name a repository, which is owner/name: "),
    ],
)
def test_what_the_user_has_to_change_is_a_configuration_error(
    hub: Hub, release: ReleaseFiles, monkeypatch: pytest.MonkeyPatch, token: str | None, repo: str, message: str
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ConfigError, match=message):
        pushed(release, repo=repo)
    assert hub.store.repositories == {}


def test_a_reader_of_a_repository_cannot_push_to_it(
    hub: Hub, release: ReleaseFiles, later: ReleaseFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(release)
    monkeypatch.setenv("HF_TOKEN", "hf_reader")
    with pytest.raises(ConfigError, match="the token may not do this to me/shapes"):
        pushed(later)
    assert hub.store.repositories[REPO].history() == ["Release 2026.10", "initial commit"]


@pytest.mark.parametrize("request_", ["POST /datasets/.*/batch", "PUT /lfs/", COMMIT])
def test_a_full_storage_is_said_and_leaves_no_tag(hub: Hub, release: ReleaseFiles, request_: str) -> None:
    hub.faults.append(Fault(request_, HubError(403, "Storage limit reached")))
    with pytest.raises(ConfigError, match=r"^the Hub has no space for me/shapes: Storage limit reached; delete "):
        pushed(release)
    assert (hub.store.repositories[REPO].tags, hub.store.repositories[REPO].history()) == ({}, ["initial commit"])


def test_a_commit_of_somebody_else_meanwhile_is_a_conflict(hub: Hub, release: ReleaseFiles) -> None:
    def interfere() -> None:
        repository = hub.store.repositories[REPO]
        repository.commit("main", "somebody else", repository.find("main").files)

    hub.faults.append(Fault(COMMIT, HubError(412, "A commit has happened since."), action=interfere))
    with pytest.raises(PipelineError) as caught:
        pushed(release)
    assert type(caught.value) is PipelineError
    assert str(caught.value) == (
        "somebody else committed to me/shapes meanwhile; nothing of this push is visible there. "
        "Look at what they did and push again"
    )
    assert hub.store.repositories[REPO].tags == {}
    assert pushed(release).status is PushStatus.PUSHED
    assert hub.store.repositories[REPO].history() == ["Release 2026.10", "somebody else", "initial commit"]


def test_the_hub_itself_refuses_a_moved_parent(hub: Hub, release: ReleaseFiles) -> None:
    """The same without a planted answer: the head moves between the listing and the commit."""
    target = HubRepository(REPO)
    target.create(private=False)
    state = target.state()
    assert state is not None
    repository = hub.store.repositories[REPO]
    repository.commit("main", "somebody else", repository.find("main").files)
    with pytest.raises(PipelineError, match="somebody else committed to me/shapes meanwhile"):
        target.commit(Change("Release", "", {"a.txt": b"a"}), state.head)


def test_a_tag_made_by_somebody_faster_is_compared(hub: Hub, release: ReleaseFiles) -> None:
    def same() -> None:
        hub.store.repositories[REPO].tags["2026.10"] = hub.store.repositories[REPO].branches["main"]

    hub.faults.append(Fault(TAG, HubError(409, "Tag reference exists already"), action=same))
    assert pushed(release).status is PushStatus.PUSHED


def test_a_tag_of_other_contents_made_meanwhile_is_refused(hub: Hub, release: ReleaseFiles) -> None:
    def other() -> None:
        hub.store.repositories[REPO].tags["2026.10"] = next(iter(hub.store.repositories[REPO].commits))

    hub.faults.append(Fault(TAG, HubError(409, "Tag reference exists already"), action=other))
    with pytest.raises(ConfigError, match=r"me/shapes has a version 2026\.10 with other contents"):
        pushed(release)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("request_", [COMMIT, TAG])
def test_a_passing_fault_is_retried_and_changes_nothing_twice(
    hub: Hub, release: ReleaseFiles, request_: str, after: bool
) -> None:
    """Before or after the Hub carried the request out, which the client cannot tell."""
    hub.faults.append(Fault(request_, HubError(503, "overloaded"), after=after))
    notes: list[str] = []
    waits: list[float] = []
    result = patiently(lambda: pushed(release), notes.append, waits.append)
    assert waits == [2.0]
    assert notes == ["the Hub is not well (status 503: overloaded); trying again in 2 s"]
    assert result.commit == hub.store.repositories[REPO].tags["2026.10"]
    assert hub.store.repositories[REPO].history() == ["Release 2026.10", "initial commit"]


def test_a_lost_connection_is_retried_four_times_in_all(hub: Hub, release: ReleaseFiles) -> None:
    hub.faults.append(Fault("GET /api/datasets/me/shapes$", times=4))
    waits: list[float] = []
    with pytest.raises(TransientError, match=r"^the Hub could not be reached"):
        patiently(lambda: pushed(release), lambda text: None, waits.append)
    assert waits == [2.0, 8.0, 30.0]
    assert pushed(release).status is PushStatus.PUSHED


def test_a_push_killed_between_commit_and_tag_is_finished_by_the_next(hub: Hub, release: ReleaseFiles) -> None:
    hub.faults.append(Fault(TAG, HubError(500, "gone")))
    with pytest.raises(TransientError):
        pushed(release)
    assert hub.store.repositories[REPO].tags == {}
    hub.requests.clear()
    result = pushed(release)
    assert (result.status, result.added) == (PushStatus.TAGGED, {})
    assert [request for request in hub.writes() if "/commit/" in request] == []
    assert contents(hub, "2026.10") == folder_contents(release)


def test_a_push_killed_in_the_middle_of_an_upload_goes_on(hub: Hub, release: ReleaseFiles) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        go_on.wait(30)

    hub.faults.append(Fault("PUT /lfs/", action=hold, skip=1))
    command = [sys.executable, "-m", "tests.hub.child", str(release.folder), REPO]
    environment = os.environ | {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "0"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        assert arrived.wait(60)
        child.send_signal(signal.SIGKILL)
    go_on.set()
    repository = hub.store.repositories[REPO]
    assert (repository.history(), repository.tags) == (["initial commit"], {})
    there = set(repository.objects)
    assert 1 <= len(there) <= 2
    hub.requests.clear()
    assert pushed(release).status is PushStatus.PUSHED
    sent = {request.rsplit("/", 1)[1] for request in hub.requests if request.startswith("PUT /lfs/")}
    assert sent == set(repository.objects) - there
    assert contents(hub, "2026.10") == folder_contents(release)


def test_xet_uploads_are_the_same_release(
    release: ReleaseFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(tmp_path, monkeypatch, xet=True) as hub:
        assert pushed(release).status is PushStatus.PUSHED
        files = hub.store.repositories[REPO].find("2026.10").files
        hashes = {entry.path: entry.sha256 for entry in release.files if entry.path.endswith(".parquet")}
        assert {path: blob.sha256 for path, blob in files.items() if blob.sha256 is not None} == hashes
        assert set(hashes.values()) == set(hub.store.xet_hashes())
        assert [request for request in hub.requests if request.startswith("PUT /lfs/")] == []
        assert pushed(release).status is PushStatus.UNCHANGED
        path = "raw_data/test-00000-of-00001.parquet"
        assert HubRepository(REPO).read(path, "2026.10") == (release.folder / path).read_bytes()
