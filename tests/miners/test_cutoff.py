"""The tree at the cutoff: which commit, and which methods stood in it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from miners.cutoff import CutoffCommit, OldDefinition, OldTree, find_cutoff
from schemas.errors import DataError
from schemas.records import Exclusion
from tests.builders import RepoBuilder, submodule, symlink

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
LIMIT = 1_000_000


def chain(folder: Path, months: list[str]) -> tuple[RepoBuilder, list[str]]:
    """Return a repository with one commit on the first of each month, each a file of its own."""
    builder = RepoBuilder(folder / "r.git")
    dates = [datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC) for month in months]
    return builder, [builder.commit({f"f{index}.py": b"x = 1\n"}, "c", date) for index, date in enumerate(dates)]


@pytest.mark.parametrize(
    ("months", "expected"),
    [
        (["2023-01", "2023-12", "2024-01", "2024-02"], 1),
        (["2023-01"], 0),
        (["2024-01", "2024-02"], None),
        # A clock a year behind inside the window does not make the window's first commits old.
        (["2023-01", "2023-02", "2024-01", "2024-02", "2023-06", "2024-03"], 1),
        # A clock ahead long ago does not make the years behind it new.
        (["2022-01", "2025-01", "2022-03", "2022-04", "2024-01", "2024-02"], 3),
        # One commit each way: the earlier point, so that nothing of the window counts as old.
        (["2023-01", "2024-01", "2023-02"], 0),
    ],
)
def test_cutoff_leaves_the_fewest_commits_on_the_wrong_side(
    tmp_path: Path, months: list[str], expected: int | None
) -> None:
    builder, commits = chain(tmp_path, months)
    found = find_cutoff(builder.git_dir, commits[-1], SINCE)
    if expected is None:
        assert found is None
    else:
        date = datetime.strptime(months[expected], "%Y-%m").replace(tzinfo=UTC)
        assert found == CutoffCommit(commits[expected], date)


def test_committer_date_counts_and_the_first_moment_is_new(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    old = builder.commit({"a.py": b""}, "old", datetime(2023, 1, 1, tzinfo=UTC))
    builder.commit({"b.py": b""}, "rebased", datetime(2023, 2, 1, tzinfo=UTC), SINCE)
    head = builder.commit({"c.py": b""}, "new", datetime(2024, 2, 1, tzinfo=UTC))
    assert find_cutoff(builder.git_dir, head, SINCE) == CutoffCommit(old, datetime(2023, 1, 1, tzinfo=UTC))


def test_only_first_parents_are_looked_at(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    main = builder.commit({"a.py": b""}, "main", datetime(2023, 1, 1, tzinfo=UTC))
    side = builder.commit({"s.py": b""}, "side", datetime(2023, 6, 1, tzinfo=UTC), parents=[main], branch="side")
    head = builder.commit({"s.py": b""}, "merge", datetime(2024, 6, 1, tzinfo=UTC), parents=[main, side])
    assert find_cutoff(builder.git_dir, head, SINCE) == CutoffCommit(main, datetime(2023, 1, 1, tzinfo=UTC))


def test_history_that_ends_early_is_told_from_a_young_one(tmp_path: Path) -> None:
    builder, commits = chain(tmp_path, ["2022-01", "2023-01", "2024-01", "2024-02"])
    builder.remove(commits[0])
    assert find_cutoff(builder.git_dir, commits[-1], SINCE) == CutoffCommit(
        commits[1], datetime(2023, 1, 1, tzinfo=UTC)
    )
    builder.remove(commits[1])
    with pytest.raises(DataError, match="cutoff_unknown: git cannot read the parents of " + commits[2]):
        find_cutoff(builder.git_dir, commits[-1], SINCE)


def test_unreadable_date_counts_as_old(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head = builder.commit({"a.py": b""}, "c", "rubbish")
    assert find_cutoff(builder.git_dir, head, SINCE) == CutoffCommit(head, datetime(1970, 1, 1, tzinfo=UTC))


def tree_of(builder: RepoBuilder, commit_id: str, share: int = 0, n_shares: int = 1) -> OldTree:
    return OldTree(builder.git_dir, "o/n", commit_id, LIMIT, share, n_shares)


def test_methods_of_every_file_come_by_path_and_place(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head_line = b"# -*- coding: latin-1 -*-\n"
    module = head_line + b"class A:\n    def m(self):\n        return '\xe9'\n\n\ndef f():\n    return 2\n"
    head = builder.commit(
        {
            "z.py": b"def z():\n    def inner():\n        return 1\n    return inner\n",
            "vendor/v_pb2.py": b"def v(): return 0\n",
            "b/copy.py": module,
            "a.py": module,
            "notes.txt": b"def no(): pass\n",
        }
    )
    tree = tree_of(builder, head)
    blob = {name: builder.blob_of(head, name) for name in ("a.py", "vendor/v_pb2.py", "z.py")}
    assert list(tree.definitions()) == [
        OldDefinition("a.py", blob["a.py"], "A.m", 39, 70, 3, "def m(self):\n    return 'é'"),
        OldDefinition("a.py", blob["a.py"], "f", 73, 94, 7, "def f():\n    return 2"),
        OldDefinition("vendor/v_pb2.py", blob["vendor/v_pb2.py"], "v", 0, 17, 1, "def v(): return 0"),
        OldDefinition(
            "z.py", blob["z.py"], "z", 0, 59, 1, "def z():\n    def inner():\n        return 1\n    return inner"
        ),
    ]
    assert (tree.n_files, tree.n_methods, tree.excluded) == (3, 4, [])


def test_unreadable_files_are_excluded_and_their_neighbours_read(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head = builder.commit(
        {
            "bad.py": b"def f(): return 1\0\n",
            "big.py": b"x = 1\n" * 200_000,
            "gone.py": b"def g(): return 1\n",
            "good.py": b"def h(): return 1\n",
            "latin.py": b"def e(): return '\xe9'\n",
            "link.py": symlink("good.py"),
            "module.py": submodule("1" * 40),
        }
    )
    builder.remove(builder.blob_of(head, "gone.py"))
    tree = tree_of(builder, head)
    assert [item.fun_name for item in tree.definitions()] == ["h"]
    assert [(item.row_id, item.stage, item.reason) for item in tree.excluded] == [
        (f"o/n@{head}:bad.py", "cutoff", "binary"),
        (f"o/n@{head}:big.py", "cutoff", "file_too_large"),
        (f"o/n@{head}:gone.py", "cutoff", "blob_missing"),
        (f"o/n@{head}:latin.py", "cutoff", "undecodable"),
    ]
    assert tree.n_files == 1


@pytest.mark.parametrize("n_shares", [2, 3, 7])
def test_shares_one_behind_the_other_are_the_whole(tmp_path: Path, n_shares: int) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    files = {f"{name}.py": b"def %c(): return 1\n" % ord(name) for name in "abcd"}
    head = builder.commit(files | {"bad.py": b"x = 1\0\n"})
    whole = tree_of(builder, head)
    definitions = list(whole.definitions())
    assert [item.fun_name for item in definitions] == ["a", "b", "c", "d"]
    shares = [tree_of(builder, head, share, n_shares) for share in range(n_shares)]
    assert [item for share in shares for item in share.definitions()] == definitions
    assert [item for share in shares for item in share.excluded] == whole.excluded
    assert sum(share.n_files for share in shares) == whole.n_files == 4
    sizes = [share.n_files + len(share.excluded) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_tree_that_cannot_be_listed_is_one_exclusion(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head = builder.commit({"a.py": b"def f(): return 1\n"})
    builder.remove(builder.root_tree(head))
    tree = tree_of(builder, head)
    assert list(tree.definitions()) == []
    [excluded] = tree.excluded
    assert (excluded.row_id, excluded.stage, excluded.reason) == (f"o/n@{head}", "cutoff", "git_failed")
    second = tree_of(builder, head, 1, 2)
    assert (list(second.definitions()), second.excluded) == ([], [])


def test_file_that_nobody_foresaw_is_excluded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head = builder.commit({"a.py": b"def f(): return 1\n"})

    def fail(source: bytes, tree: object) -> list[object]:
        raise RecursionError("too deep")

    monkeypatch.setattr("miners.cutoff.find_methods", fail)
    tree = tree_of(builder, head)
    assert list(tree.definitions()) == []
    assert tree.excluded == [Exclusion(f"o/n@{head}:a.py", "cutoff", "file_unparsable", "RecursionError('too deep')")]


def test_definition_that_cannot_be_dedented_stands_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    head = builder.commit({"a.py": b"class A:\n    def f(self):\n        return 1\n"})

    def fail(source: bytes, span: object, *, is_sound: bool) -> str:
        raise DataError("dedent_failed")

    monkeypatch.setattr("miners.cutoff.dedent", fail)
    assert [item.code for item in tree_of(builder, head).definitions()] == ["def f(self):\n        return 1"]
