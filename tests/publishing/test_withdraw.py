"""Withdrawing published versions from a loopback Hub with the real client."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from publishing.hub import HubRepository
from publishing.push import PushStatus, push
from publishing.release_files import ReleaseFiles
from publishing.withdraw import Withdrawal, withdraw
from schemas.errors import ConfigError, TransientError
from tests.hub.server import Fault, Hub
from tests.hub.store import HubError
from tests.hub.support import REPO, client_of, make_release
from tests.publishing.releases import points

# The client of LFS hands bytes to its transport in a way that the newest transport calls old.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw:DeprecationWarning")
DAY = date(2026, 11, 30)
RAW, CUT, OUT = (f"{name}/test-00000-of-00001.parquet" for name in ("raw_data", "random_cut", "exclusions"))
SMALL = (
    "NOTICE", "README.md", "croissant.json", "inspect/postquem.py", "lm_eval/postquem.py",
    "lm_eval/postquem_random_cut.yaml", "lm_eval/postquem_raw_data.yaml", "manifest.json", "prompts.json",
)  # fmt: skip
STONE = """
<!-- postquem: withdrawn versions -->
## Withdrawn versions

Their rows are no longer offered; copies that were made before are not reached by this.

| version | withdrawn on | reason |
| --- | --- | --- |
| `2026.10` | 2026-11-30 | an author \\| opted out |
"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFiles, ReleaseFiles]:
    rows = points()
    changed = [*rows[:5], replace(rows[5], code="def c(): 1")]
    first = make_release(tmp_path_factory.mktemp("first"))
    return first, make_release(tmp_path_factory.mktemp("second"), "2026.11", changed)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, releases: tuple[ReleaseFiles, ReleaseFiles]) -> Iterator[Hub]:
    """A Hub with both versions."""
    with client_of(tmp_path, monkeypatch) as running:
        for release in releases:
            push(release, HubRepository(REPO), private=False, dry_run=False)
        running.requests.clear()
        yield running


def withdrawn(version: str, *, dry_run: bool = False) -> Withdrawal:
    return withdraw(HubRepository(REPO), version, "an author | opted out", DAY, dry_run=dry_run)


def test_an_older_version_goes_and_leaves_a_tombstone(hub: Hub, releases: tuple[ReleaseFiles, ReleaseFiles]) -> None:
    repository = hub.store.repositories[REPO]
    commit, first, second = repository.tags["2026.10"], *releases
    hashes = {entry.path: entry.sha256 for entry in first.files}
    expected = Withdrawal(
        REPO, "2026.10", commit, empties_main=False, deleted=(RAW,), not_listed=(),
        shared={OUT: ("main", "2026.11"), CUT: ("main", "2026.11")},
        in_git=SMALL,
    )  # fmt: skip
    assert withdrawn("2026.10", dry_run=True) == expected
    assert hub.writes() == []
    assert withdrawn("2026.10") == expected
    assert (list(repository.tags), repository.history()[0]) == (["2026.11"], "Withdraw 2026.10")
    assert hashes[RAW] not in repository.objects
    main = repository.find("main").files
    assert main["README.md"].content.decode() == second.card() + STONE
    assert {path for path, blob in main.items() if blob.sha256 is not None} == {RAW, CUT, OUT}
    assert repository.find("2026.11").files["README.md"].content.decode() == second.card()


def test_the_newest_version_leaves_main_without_data(hub: Hub) -> None:
    repository = hub.store.repositories[REPO]
    gone = withdrawn("2026.11")
    assert (gone.empties_main, gone.deleted) == (True, (RAW,))
    assert set(repository.find("main").files) == {".gitattributes", "README.md"}
    card = repository.find("main").files["README.md"].content.decode()
    assert card.startswith("---\ntags:\n- code\n---\n# shapes\n\nThe newest version was withdrawn, ")
    assert card.endswith(STONE.replace("2026.10", "2026.11"))
    assert set(repository.find("2026.10").files) == {
        ".gitattributes", *SMALL, RAW, CUT, OUT,
    }  # fmt: skip


def test_tombstones_stay_in_later_versions_and_a_withdrawn_one_does_not_come_back(
    hub: Hub, releases: tuple[ReleaseFiles, ReleaseFiles]
) -> None:
    withdrawn("2026.10")
    first, second = releases
    with pytest.raises(ConfigError, match=r"version 2026\.10 was withdrawn from me/shapes; give the release a new"):
        push(first, HubRepository(REPO), private=False, dry_run=False)
    third = replace(second, version="2026.12")
    push(third, HubRepository(REPO), private=False, dry_run=False)
    repository = hub.store.repositories[REPO]
    assert repository.find("2026.12").files["README.md"].content.decode() == second.card() + STONE
    assert push(third, HubRepository(REPO), private=False, dry_run=False).status is PushStatus.UNCHANGED
    assert push(second, HubRepository(REPO), private=False, dry_run=False).status is PushStatus.UNCHANGED


def test_a_withdrawal_that_was_interrupted_goes_on(hub: Hub) -> None:
    hub.faults = [
        Fault("POST .*/lfs-files/batch", HubError(502, "late")),
        Fault("DELETE .*/tag/", HubError(502, "late")),
    ]
    for _ in range(2):
        with pytest.raises(TransientError):
            withdrawn("2026.10")
        assert "2026.10" in hub.store.repositories[REPO].tags
    gone = withdrawn("2026.10")
    assert (gone.deleted, gone.not_listed) == ((), (RAW,))
    repository = hub.store.repositories[REPO]
    assert list(repository.tags) == ["2026.11"]
    assert repository.history().count("Withdraw 2026.10") == 1


def test_an_unknown_version_is_refused_with_the_known_ones(hub: Hub) -> None:
    with pytest.raises(ConfigError, match=r"^me/shapes has no version 2026\.1; it has: 2026\.10, 2026\.11$"):
        withdrawn("2026.1")
    with pytest.raises(ConfigError, match=r"^me/other is not on the Hub, or the token may not see it$"):
        withdraw(HubRepository("me/other"), "1", "r", DAY, dry_run=True)
