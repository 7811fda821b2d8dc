"""Which rows an entry removes."""

from datetime import date
from pathlib import Path

import pytest

from miners.opt_out import Place, Removed, opted_out
from schemas.opt_out import OptOut
from schemas.records import RepositoryRecord
from tests.builders import RepoBuilder

DAY = date(2026, 1, 31)


@pytest.fixture
def repository(tmp_path: Path) -> tuple[RepoBuilder, str]:
    builder = RepoBuilder(tmp_path / "r.git")
    message = "Add\n\nCo-Authored-By: Grace H <grace@navy.example>\nSigned-off-by: Someone Else <else@example.net>\n"
    return builder, builder.commit({"a.py": b"1"}, message)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (OptOut(DAY, "x", repository="acme/new"), True),
        (OptOut(DAY, "x", repository="ACME/New"), True),
        (OptOut(DAY, "x", repository="acme/old"), True),
        (OptOut(DAY, "x", repository="acme/*"), True),
        (OptOut(DAY, "x", repository="acme/ne"), False),
        (OptOut(DAY, "x", repo_id=7), True),
        (OptOut(DAY, "x", repo_id=8), False),
        (OptOut(DAY, "x", repository="acme/new", repo_id=8), False),
        (OptOut(DAY, "x", path="src/*"), True),
        (OptOut(DAY, "x", path="*.py"), True),
        (OptOut(DAY, "x", path="SRC/*"), False),
        (OptOut(DAY, "x", path="deep/*"), False),
        (OptOut(DAY, "x", author="*@example.org"), True),
        (OptOut(DAY, "x", author="ada author"), True),
        (OptOut(DAY, "x", author="Ada Author <ada@example.org>"), True),
        (OptOut(DAY, "x", author="grace@navy.example"), True),
        (OptOut(DAY, "x", author="carl@example.org"), False),
        (OptOut(DAY, "x", author="else@example.net"), False),
        (OptOut(DAY, "x", author="*@example.org", path="docs/*"), False),
    ],
)
def test_everything_in_an_entry_must_hold(repository: tuple[RepoBuilder, str], entry: OptOut, expected: bool) -> None:
    builder, commit_id = repository
    record = RepositoryRecord("acme/new", "github.com", 7, None, "main", commit_id, 1, ("acme/old",))
    row = Place("id", "acme/new", "src/deep/a.py", commit_id)
    found = list(opted_out([row], [entry], {"acme/new": record}, {"acme/new": builder.git_dir}))
    assert found == ([Removed("id", 0)] if expected else [])


def test_a_row_counts_for_the_first_entry(repository: tuple[RepoBuilder, str]) -> None:
    builder, commit_id = repository
    entries = [OptOut(DAY, "x", path="b/*"), OptOut(DAY, "x", author="*"), OptOut(DAY, "x", repository="*/*")]
    rows = [Place("1", "a/a", "b/x.py", commit_id), Place("2", "a/a", "x.py", commit_id)]
    assert list(opted_out(rows, entries, {}, {"a/a": builder.git_dir})) == [Removed("1", 0), Removed("2", 1)]


def test_what_cannot_be_read_may_not_stay(repository: tuple[RepoBuilder, str]) -> None:
    builder, commit_id = repository
    entries = [OptOut(DAY, "x", author="nobody@example.net", path="src/*")]
    rows = [
        Place("1", "a/a", "src/x.py", "0" * 40),
        Place("2", "a/a", "src/x.py", commit_id),
        Place("3", "a/a", "x.py", "0" * 40),
        Place("4", "b/without-clone", "src/x.py", commit_id),
    ]
    assert list(opted_out(rows, entries, {}, {"a/a": builder.git_dir})) == [Removed("1", None), Removed("4", None)]
