from pathlib import Path

import pytest

from miners.caches import SourceCache, TreeCache, list_python
from miners.git_process import ObjectReader
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
    with pytest.raises(DataError) as error:
        TreeCache(builder.git_dir).get(commit)
    assert error.value.reason == "git_failed"


def test_trees_are_listed_once_and_the_oldest_is_dropped(builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = [builder.commit({"a.py": b"x = %d\n" % n}) for n in range(3)]
    listed: list[str] = []

    def count(git_dir: Path, commit_id: str) -> dict[str, list[str]]:
        listed.append(commit_id)
        return list_python(git_dir, commit_id)

    monkeypatch.setattr("miners.caches.list_python", count)
    monkeypatch.setattr("miners.caches._MAX_TREES", 2)
    cache = TreeCache(builder.git_dir)
    for index in (0, 1, 0, 2, 0, 1):
        assert list(cache.get(commits[index]).values()) == [["a.py"]]
    assert listed == [commits[0], commits[1], commits[2], commits[1]]


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
