"""The definitions that commits outside the window brought, as git shows them."""

from pathlib import Path

import pytest

import miners.history
from miners.history import header_digest, header_line, merged, read_history
from schemas.history import HistoricFile
from schemas.records import Exclusion
from tests.builders import RepoBuilder

LIMIT = 5_000_000
AREA = b"def area(width, height):\n    return width * height\n"
ASYNC = b"class A:\n\tasync  def fetch( self ):\n\t\tdef inner(): pass\n\t\treturn inner\n"


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def digests(*lines: str) -> tuple[str, ...]:
    return tuple(header_digest(line.encode()) for line in lines)


def test_every_definition_that_a_commit_brings_or_changes(builder: RepoBuilder) -> None:
    first = builder.commit({"a.py": AREA, "b.txt": AREA})
    second = builder.commit({"a.py": AREA + ASYNC + b"# def not(): one\nx = 'def no(): pass'\n", "c.py": b"x = 1\n"})
    third = builder.commit({"a.py": ASYNC, "d.py": AREA})
    fourth = builder.commit({"a.py": ASYNC.replace(b"inner\n", b"inner()\n"), "d.py": None})
    history = read_history(builder.git_dir, [first, second, third, fourth], "o/r", LIMIT)
    fetch, inner, area = digests("async def fetch(self):", "def inner(): pass", "def area(width, height):")
    assert history.files == [
        HistoricFile("o/r", first, builder.blob_of(first, "a.py"), (area,)),
        # What follows a definition up to the next one belongs to it, as far as lines tell.
        HistoricFile("o/r", second, builder.blob_of(second, "a.py"), (area, fetch, inner)),
        HistoricFile("o/r", third, builder.blob_of(third, "a.py"), (fetch, inner)),
        HistoricFile("o/r", third, builder.blob_of(third, "d.py"), (area,)),
        HistoricFile("o/r", fourth, builder.blob_of(fourth, "a.py"), (fetch, inner)),
    ]
    assert (history.n_commits, history.excluded) == (4, [])


def test_a_merge_brings_what_no_parent_has(builder: RepoBuilder) -> None:
    root = builder.commit({"a.py": AREA, "b.py": AREA})
    side = builder.commit({"a.py": AREA + ASYNC, "b.py": ASYNC}, parents=[root])
    main = builder.commit({"a.py": b"x = 1\n" + AREA, "b.py": AREA}, parents=[root])
    merge = builder.commit({"a.py": b"x = 1\n" + AREA + ASYNC, "b.py": ASYNC}, parents=[main, side])
    history = read_history(builder.git_dir, [merge], "o/r", LIMIT)
    headers = digests("def area(width, height):", "async def fetch(self):", "def inner(): pass")
    assert history.files == [HistoricFile("o/r", merge, builder.blob_of(merge, "a.py"), headers)]


@pytest.mark.parametrize("limit", [0, 100, 1_000])
def test_versions_that_do_not_all_fit_in_memory(
    builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    root = builder.commit({"a.py": AREA})
    commits = [builder.commit({"a.py": AREA + ASYNC * number}, parents=[root]) for number in (1, 2, 3, 1)]
    whole = read_history(builder.git_dir, [root, *commits], "o/r", LIMIT)
    monkeypatch.setattr(miners.history, "_MAX_TEXT_BYTES", limit)
    assert read_history(builder.git_dir, [root, *commits], "o/r", LIMIT) == whole
    assert [row.commit_id for row in whole.files] == [root, *commits]


def test_a_commit_that_git_cannot_show_costs_only_itself(builder: RepoBuilder) -> None:
    commits = [builder.commit({f"{number}.py": AREA + b"# %d\n" % number}) for number in range(9)]
    builder.remove(builder.blob_of(commits[4], "4.py"))
    history = read_history(builder.git_dir, commits, "o/r", LIMIT)
    assert [row.commit_id for row in history.files] == [*commits[:4], *commits[5:]]
    assert history.excluded == [
        Exclusion(f"o/r@{commits[4]}", "history", "commit_unreadable", "git cannot show its changes"),
    ]
    assert history.n_commits == 8


def test_a_clone_without_its_blobs(builder: RepoBuilder) -> None:
    commits = [builder.commit({f"{number}.py": AREA + b"# %d\n" % number}) for number in range(9)]
    for number, commit in enumerate(commits):
        builder.remove(builder.blob_of(commit, f"{number}.py"))
    history = read_history(builder.git_dir, commits, "o/r", LIMIT)
    assert (history.files, history.n_commits) == ([], 0)
    assert [(item.row_id, item.reason) for item in history.excluded] == [
        (f"o/r@{commit}", "commit_unreadable") for commit in commits
    ]


def test_large_files_are_not_looked_into(builder: RepoBuilder) -> None:
    commit = builder.commit({"a.py": AREA + b"#" * 1000, "b.py": ASYNC})
    smaller = builder.commit({"a.py": AREA, "b.py": ASYNC})
    history = read_history(builder.git_dir, [commit, smaller], "o/r", 500)
    assert [(row.commit_id, row.blob_id) for row in history.files] == [
        (commit, builder.blob_of(commit, "b.py")),
        (smaller, builder.blob_of(smaller, "a.py")),
    ]


def test_a_blob_at_which_git_ends_costs_only_its_own_commits(builder: RepoBuilder) -> None:
    commits = [builder.commit({f"{number}.py": AREA + b"# %d\n" % number}) for number in range(5)]
    builder.corrupt(builder.blob_of(commits[2], "2.py"))
    history = read_history(builder.git_dir, commits, "o/r", LIMIT)
    assert [row.commit_id for row in history.files] == [*commits[:2], *commits[3:]]
    assert [item.row_id for item in history.excluded] == [f"o/r@{commits[2]}"]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def f(a):\n    pass", "def f(a):"),
        ("@wraps(\n    g)\n@other\nasync def  f( a,\n  b): pass", "async def f(a,"),
        ("@wraps(lambda: 'def')\ndef f(): pass", "def f(): pass"),
    ],
)
def test_the_line_that_begins_a_method(code: str, line: str) -> None:
    found = header_line(code)
    assert found is not None
    assert header_digest(found) == header_digest(line.encode())


def test_code_without_a_definition_has_no_such_line() -> None:
    assert header_line("x = 1\n") is None


class TestWithParents:
    """What a commit changes or takes away is told of its parents, where only a part of the history is searched."""

    def test_a_blob_before_has_what_the_commit_takes_away_or_changes(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA + ASYNC, "b.py": AREA})
        second = builder.commit({"a.py": ASYNC + b"x = 1\n", "b.py": None})
        third = builder.commit({"a.py": ASYNC.replace(b"inner\n", b"inner()\n"), "c.py": AREA})
        history = read_history(builder.git_dir, [second], "o/r", LIMIT, {second: (first,), third: (second,)})
        fetch, inner, area = digests("async def fetch(self):", "def inner(): pass", "def area(width, height):")
        found = {(row.commit_id, row.blob_id): set(row.headers) for row in merged(history.files)}
        assert found == {
            (first, builder.blob_of(first, "a.py")): {area, fetch, inner},
            (first, builder.blob_of(first, "b.py")): {area},
            (second, builder.blob_of(second, "a.py")): {fetch, inner},
        }
        assert (history.n_commits, history.excluded) == (1, [])

    def test_a_merge_takes_away_from_each_parent(self, builder: RepoBuilder) -> None:
        root = builder.commit({"x.py": b"x = 1\n"})
        side = builder.commit({"a.py": AREA}, parents=[root], branch="side")
        main = builder.commit({"b.py": AREA}, parents=[root])
        merge = builder.commit({"b.py": b"y = 1\n"}, "Merge", parents=[main, side])
        history = read_history(builder.git_dir, [], "o/r", LIMIT, {merge: (main, side)})
        assert [(row.commit_id, row.blob_id) for row in history.files] == [(main, builder.blob_of(main, "b.py"))]
        assert history.n_commits == 0

    def test_what_cannot_be_read_of_a_mined_commit_is_not_said_twice(self, builder: RepoBuilder) -> None:
        old = builder.commit({"a.py": AREA, "b.py": ASYNC})
        new = builder.commit({"a.py": b"x = 1\n", "b.py": b"y = 1\n"})
        builder.remove(builder.blob_of(old, "a.py"))
        history = read_history(builder.git_dir, [], "o/r", LIMIT, {new: (old,)})
        assert (history.files, history.excluded, history.n_commits) == ([], [], 0)
