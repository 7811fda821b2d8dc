"""The definitions that commits outside the window brought, as git shows them."""

from pathlib import Path

import pytest

import miners.history
from miners.history import header_digest, header_of, read_history
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


def test_every_line_that_begins_a_definition_and_was_added_or_is_removed_next(builder: RepoBuilder) -> None:
    first = builder.commit({"a.py": AREA, "b.txt": AREA})
    second = builder.commit({"a.py": AREA + ASYNC + b"# def not(): one\nx = 'def no(): pass'\n", "c.py": b"x = 1\n"})
    third = builder.commit({"a.py": ASYNC})
    history = read_history(builder.git_dir, [first, second, third], "o/r", LIMIT)
    assert history.files == [
        HistoricFile("o/r", first, builder.blob_of(first, "a.py"), digests("def area(width, height):")),
        HistoricFile(
            "o/r",
            second,
            builder.blob_of(second, "a.py"),
            digests("async def fetch(self):", "def inner(): pass", "def area(width, height):"),
        ),
    ]
    assert (history.n_commits, history.excluded) == (3, [])


@pytest.mark.parametrize("size", [1, 2, 7, 64, 65, 200])
def test_lines_are_found_wherever_a_piece_of_the_output_ends(
    builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    commits = [builder.commit({"a.py": AREA * number, f"{number}.py": ASYNC}) for number in range(4)]
    whole = read_history(builder.git_dir, commits, "o/r", LIMIT)
    monkeypatch.setattr(miners.history, "_CHUNK", size)
    assert read_history(builder.git_dir, commits, "o/r", LIMIT) == whole
    assert len(whole.files) == 7


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
    history = read_history(builder.git_dir, [commit], "o/r", 500)
    assert [row.blob_id for row in history.files] == [builder.blob_of(commit, "b.py")]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def f(a):\n    pass", "def f(a):"),
        ("@wraps(\n    g)\n@other\nasync def  f( a,\n  b): pass", "async def f(a,"),
        ("@wraps(lambda: 'def')\ndef f(): pass", "def f(): pass"),
    ],
)
def test_the_line_that_begins_a_method(code: str, line: str) -> None:
    assert header_of(code) == header_digest(line.encode())


def test_code_without_a_definition_has_no_such_line() -> None:
    assert header_of("x = 1\n") is None
