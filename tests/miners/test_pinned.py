"""Clones with the commit that an earlier run saw as the newest."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from miners.clone import Clone, open_clone
from miners.git_process import run_git
from miners.pinned import open_pinned, pinned_place
from miners.places import Place, identify
from schemas.config import SourceConfig
from schemas.errors import ConfigError, DataError
from schemas.records import RepositoryRecord
from tests.builders import RepoBuilder

DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    made = RepoBuilder(tmp_path / "acme" / "alpha.git")
    made.commit({"a.py": b"x = 1\n"}, "One", DAY)
    return made


def record_of(builder: RepoBuilder, tmp_path: Path, **values: object) -> RepositoryRecord:
    """The record of a first run over the repository."""
    place = identify(SourceConfig(git=(str(builder.path),)), str(builder.path), tmp_path)
    record = open_clone(place, tmp_path / "first").record
    return RepositoryRecord(**({name: getattr(record, name) for name in RepositoryRecord.__slots__} | values))


def test_the_recorded_head_is_the_clones_when_the_branch_has_gone_on(builder: RepoBuilder, tmp_path: Path) -> None:
    record = record_of(builder, tmp_path)
    newest = builder.commit({"a.py": b"x = 2\n"}, "Two", DAY)
    clone = open_pinned(record, str(builder.path), tmp_path / "repos")
    assert clone == Clone(tmp_path / "repos" / "local" / "acme" / "alpha.git", record)
    assert record.head != newest
    assert run_git(clone.git_dir, "rev-parse", "HEAD").decode().strip() == newest


def test_a_second_time_the_clone_is_brought_up_to_date(builder: RepoBuilder, tmp_path: Path) -> None:
    open_pinned(record_of(builder, tmp_path), str(builder.path), tmp_path / "repos")
    builder.commit({"a.py": b"x = 2\n"}, "Two", DAY)
    later = record_of(builder, tmp_path)
    assert open_pinned(later, str(builder.path), tmp_path / "repos").record == later


def test_a_head_that_a_rewritten_branch_has_lost_is_found_in_an_old_clone(builder: RepoBuilder, tmp_path: Path) -> None:
    first = builder.tips["main"]
    builder.commit({"a.py": b"x = 2\n"}, "Two", DAY)
    record = record_of(builder, tmp_path)
    builder.commit({"a.py": b"x = 3\n"}, "Instead", DAY, parents=[first])
    record_of(builder, tmp_path)  # the first run's clone follows the branch and keeps the objects
    old = tmp_path / "first" / "local" / "acme" / "alpha.git"
    assert open_pinned(record, str(old), tmp_path / "repos").record == record


def test_a_location_without_the_commit_says_so(builder: RepoBuilder, tmp_path: Path) -> None:
    record = record_of(builder, tmp_path, head="9" * 40)
    with pytest.raises(DataError) as caught:
        open_pinned(record, str(builder.path), tmp_path / "repos")
    assert (caught.value.reason, caught.value.detail) == (
        "commit_missing", f"{builder.path} has not got commit {'9' * 40}",
    )  # fmt: skip


def test_a_location_that_is_no_repository_is_a_configuration_error(builder: RepoBuilder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is no git repository"):
        open_pinned(record_of(builder, tmp_path), str(tmp_path / "empty"), tmp_path / "repos")


@pytest.mark.parametrize(
    ("location", "branch", "expected"),
    [
        ("https://example.org/o/group/n.git", "devel", ("https", "o/group", "n", "devel")),
        ("stream.fi", "main", ("fast_import", "o/group", "n", "main")),
        ("folder", "HEAD", ("path", "o/group", "n", None)),
    ],
)
def test_places_are_told_apart_by_what_is_there(
    tmp_path: Path, location: str, branch: str, expected: tuple[str, str, str, str | None]
) -> None:
    (tmp_path / "stream.fi").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    where = location if "://" in location else str(tmp_path / location)
    place = pinned_place(RepositoryRecord("o/group/n", "example.org", 7, None, branch, "1" * 40, 1), where)
    assert (place.kind, place.owner, place.name, place.branch) == expected
    assert place == Place(place.kind, where, "local", place.owner, place.name, None, place.branch, None)
