from itertools import permutations
from pathlib import Path

import pytest

from miners.caches import SourceCache, TreeCache, list_python
from miners.git_process import ObjectReader
from miners.trees import Trees
from schemas.errors import DataError
from tests.builders import RepoBuilder, executable, submodule, symlink


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def test_python_files_of_a_tree_by_blob(builder: RepoBuilder) -> None:
    commit = builder.commit(
        {
            "b.py": b"x = 1\n", "a/c.py": b"x = 1\n", "d.py": executable(b"y = 2\n"), "e.txt": b"x = 1\n",
            "f.py": symlink("b.py"), "g.py": submodule("a" * 40), b"\xe9.py": b"z = 3\n", "h.PY": b"",
        }
    )  # fmt: skip
    assert list_python(builder.git_dir, commit) == {
        builder.blob(b"x = 1\n"): ["a/c.py", "b.py"],
        builder.blob(b"y = 2\n"): ["d.py"],
        builder.blob(b"z = 3\n"): ["\\xe9.py"],
    }


def test_a_tree_that_git_cannot_read_is_an_error(builder: RepoBuilder) -> None:
    commit = builder.commit({"a/b.py": b"x = 1\n"})
    builder.remove(builder.root_tree(commit))
    with ObjectReader(builder.git_dir) as reader, pytest.raises(DataError) as error:
        TreeCache(Trees(reader)).get(commit)
    assert error.value.reason == "git_failed"


def test_what_a_tree_cache_lists_is_what_git_lists(builder: RepoBuilder) -> None:
    """Folders that are equal, empty of Python, of odd names; links and submodules."""
    first = {
        "b.py": b"x = 1\n", "a/c.py": b"x = 1\n", "a/d/e.py": executable(b"y = 2\n"),
        "f/g/e.py": executable(b"y = 2\n"),
        "docs/h.txt": b"x = 1\n", "i.py": symlink("b.py"), "j.py": submodule("a" * 40), b"\xe9/k\\.py": b"z = 3\n",
    }  # fmt: skip
    commits = [builder.commit(first), builder.commit({"a/d/e.py": b"y = 3\n"}), builder.commit({"a/c.py": None})]
    with ObjectReader(builder.git_dir) as reader:
        cache = TreeCache(Trees(reader))
        for commit in commits:
            assert cache.get(commit) == list_python(builder.git_dir, commit)
        assert cache.get(commits[2]) == {
            builder.blob(b"x = 1\n"): ["b.py"],
            builder.blob(b"y = 2\n"): ["f/g/e.py"],
            builder.blob(b"y = 3\n"): ["a/d/e.py"],
            builder.blob(b"z = 3\n"): ["\\xe9/k\\\\.py"],
        }


def test_a_tree_after_another_of_quite_other_folders(builder: RepoBuilder) -> None:
    """Folders that come, go, become files and are the same elsewhere; whatever was listed before."""
    states: list[dict[str | bytes, bytes | None]] = [
        {"a/b.py": b"x = 1\n", "c.py/d.py": b"x = 1\n", "e/f/g.py": b"y = 2\n"},
        {"a/b.py": None, "a": b"text", "c.py/d.py": None, "c.py": b"x = 1\n", "h/f/g.py": b"y = 2\n"},
        {"a": None, "e/f/g.py": None, "a/b/c.py": b"x = 1\n", "c.py": b"y = 2\n"},
    ]
    commits = [builder.commit(state) for state in states]
    expected = [list_python(builder.git_dir, commit) for commit in commits]
    assert [sum(map(len, tree.values())) for tree in expected] == [3, 3, 3]
    for order in permutations(range(3)):
        with ObjectReader(builder.git_dir) as reader:
            cache = TreeCache(Trees(reader))
            assert [cache.get(commits[index]) for index in order] == [expected[index] for index in order]


def test_a_tree_with_a_name_twice_is_left_to_git_and_those_after_it_are_whole(builder: RepoBuilder) -> None:
    blobs = [builder.blob(b"x = %d\n" % n) for n in range(3)]
    twice = builder.write("tree", b"".join(b"100644 a.py\0" + bytes.fromhex(blob_id) for blob_id in blobs[:2]))
    commits = [
        builder.commit({"b.py": b"x = 2\n"}),
        builder.raw_commit(f"tree {twice}\n\n".encode()),
        builder.commit({"c.py": b"x = 2\n"}),
    ]
    with ObjectReader(builder.git_dir) as reader:
        cache = TreeCache(Trees(reader))
        trees = [cache.get(commit) for commit in commits]
    assert trees == [{blobs[2]: ["b.py"]}, {blobs[0]: ["a.py"], blobs[1]: ["a.py"]}, {blobs[2]: ["b.py", "c.py"]}]


def test_a_tree_too_deep_is_left_to_git(builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = builder.commit({"a/b/c.py": b"x = 1\n"})
    monkeypatch.setattr("miners.trees._MAX_DEPTH", 2)
    with ObjectReader(builder.git_dir) as reader:
        assert TreeCache(Trees(reader)).get(commit) == {builder.blob(b"x = 1\n"): ["a/b/c.py"]}


def test_trees_are_listed_once_and_the_oldest_is_dropped(builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = [builder.commit({"a.py": b"x = %d\n" % n}) for n in range(3)]
    monkeypatch.setattr("miners.caches._MAX_TREES", 2)
    with ObjectReader(builder.git_dir) as reader:
        cache = TreeCache(Trees(reader))
        trees = [cache.get(commits[index]) for index in (0, 1, 0, 2, 0, 1)]
    assert [list(tree.values()) for tree in trees] == [[["a.py"]]] * 6
    assert (trees[0] is trees[2], trees[2] is trees[4], trees[1] is trees[5]) == (True, True, False)


def test_sources_are_kept_within_a_bound(builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = [builder.blob(b"x = %d\n" % n) for n in range(3)]
    monkeypatch.setattr("miners.caches._MAX_TEXT_BYTES", 12)
    with ObjectReader(builder.git_dir) as reader:
        cache = SourceCache(reader, 100)
        first = [cache.get(blob) for blob in blobs]
        assert [source.utf8 for source in first] == [b"x = 0\n", b"x = 1\n", b"x = 2\n"]
        assert cache.get(blobs[2]) is first[2]
        assert cache.get(blobs[1]) is first[1]
        assert cache.get(blobs[0]) is not first[0]


def test_a_file_above_the_limit_is_refused_each_time(builder: RepoBuilder) -> None:
    blob = builder.blob(b"x = 1\n")
    with ObjectReader(builder.git_dir) as reader:
        cache = SourceCache(reader, 5)
        for _ in range(2):
            with pytest.raises(DataError) as error:
                cache.get(blob)
            assert error.value.reason == "file_too_large"
