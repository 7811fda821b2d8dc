from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from miners.git_process import ObjectReader
from miners.trees import Trees, is_folder
from schemas.errors import DataError
from tests.builders import RepoBuilder


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the ids that git is asked for, those of one request together."""
    requests: list[list[str]] = []
    one, many = ObjectReader.read, ObjectReader.read_many

    def read(reader: ObjectReader, object_id: str, max_bytes: int | None = None) -> tuple[str, bytes]:
        requests.append([object_id])
        return one(reader, object_id, max_bytes)

    def read_many(reader: ObjectReader, object_ids: Iterable[str]) -> Iterator[tuple[str, bytes] | None]:
        requests.append([*object_ids])
        return many(reader, requests[-1])

    monkeypatch.setattr(ObjectReader, "read", read)
    monkeypatch.setattr(ObjectReader, "read_many", read_many)
    return requests


def folder(entries: Iterable[tuple[bytes, bytes, bytes]], name: bytes) -> str:
    return next(object_id.hex() for mode, other, object_id in entries if other == name and is_folder(mode))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_entries_of_a_tree(tmp_path: Path, object_format: str) -> None:
    builder = RepoBuilder(tmp_path / "repo.git", object_format=object_format)
    commit = builder.commit({"b.py": b"x", "a/c.py": b"y"})
    with ObjectReader(builder.git_dir) as reader:
        entries = Trees(reader).entries(builder.root_tree(commit))
        assert [(mode, name, len(object_id)) for mode, name, object_id in entries] == [
            (b"40000", b"a", len(commit) // 2),
            (b"100644", b"b.py", len(commit) // 2),
        ]
        assert entries[1][2].hex() == builder.blob(b"x")


@pytest.mark.parametrize("data", [b"100644 a.py\0short", b"rubbish", b"100644 \0" + bytes(20)])
def test_a_tree_of_something_else_than_entries_is_an_error_each_time(builder: RepoBuilder, data: bytes) -> None:
    tree_id = builder.write("tree", data)
    with ObjectReader(builder.git_dir) as reader:
        trees = Trees(reader)
        for _ in range(2):
            with pytest.raises(DataError) as error:
                trees.entries(tree_id)
            assert error.value.reason == "object_corrupt"


def test_a_blob_is_no_tree(builder: RepoBuilder) -> None:
    with ObjectReader(builder.git_dir) as reader, pytest.raises(DataError):
        Trees(reader).entries(builder.blob(b""))


def test_trees_are_read_once_and_kept_within_a_bound(
    builder: RepoBuilder, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [builder.root_tree(builder.commit({"a.py": b"x = %d\n" % n})) for n in range(3)]
    monkeypatch.setattr("miners.trees._MAX_ENTRIES", 4)  # two trees of one entry
    with ObjectReader(builder.git_dir) as reader:
        trees = Trees(reader)
        for index in (0, 1, 0, 2, 0, 1):
            trees.entries(roots[index])
    assert asked == [[roots[0]], [roots[1]], [roots[2]], [roots[1]]]


def test_commits_and_the_way_to_their_folders_are_read_level_by_level(
    builder: RepoBuilder, asked: list[list[str]]
) -> None:
    files = {"a/b/c.py": b"x", "a/d/e.py": b"y", "f/g.py": b"z", "h.py": b""}
    one, two = builder.commit(files), builder.commit({"a/b/c.py": b"changed"})
    with ObjectReader(builder.git_dir) as reader:
        trees = Trees(reader)
        trees.read_ahead({one: {b"a/b", b"", b"none/there", b"h.py/no"}, two: {b"a"}})
        assert [len(ids) for ids in asked if len(ids) != 1] == [2, 2, 2]  # commits, roots, their folders `a`
        asked.clear()
        for commit in (one, two):
            root = trees.entries(reader.root(commit))
            below = trees.entries(folder(root, b"a"))
        assert not [ids for ids in asked if ids[0] not in (one, two)]
        inner = folder(below, b"b")
        trees.entries(inner)
        assert asked[-1] == [inner]  # of the second commit, where nobody asked for it


def test_what_cannot_be_read_ahead_is_left_out(builder: RepoBuilder) -> None:
    broken = builder.commit({"a/b.py": b"x", "c/d.py": b"y"})
    whole = builder.commit({"a/b.py": b"z"})
    gone = builder.tree({b"b.py": ("100644", builder.blob(b"x"))})
    builder.remove(gone)
    lost = builder.commit({"e/f.py": b"f"})
    builder.corrupt(lost)
    with ObjectReader(builder.git_dir) as reader:
        trees = Trees(reader)
        trees.read_ahead({broken: {b"a", b"c"}, lost: {b"e"}, whole: {b"a"}})
        with pytest.raises(DataError):
            trees.entries(gone)
        for commit in (broken, whole):
            root = trees.entries(reader.root(commit))
            assert [name for _, name, _ in root] == [b"a", b"c"]
        assert len(trees.entries(folder(root, b"a"))) == 1
