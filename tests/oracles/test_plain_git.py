"""Reading commits, trees and blobs without the miner."""

from pathlib import Path

import pytest

from tests.builders import RepoBuilder, executable, symlink
from tests.oracles.plain_git import Lineage, Objects, history, shown, stored


@pytest.mark.parametrize("path", [b"a/b.py", "ä.py".encode(), b"\xff.py", b"a\\xff.py", b"\\\\n.py", b"\\\xe9.py"])
def test_a_path_is_shown_so_that_it_can_be_read_back(path: bytes) -> None:
    assert stored(shown(path)) == path


def test_changed_files_differ_from_every_parent(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    base = builder.commit({"a.py": b"1", "p/b.py": b"1", "p/q/c.py": b"1", "d.txt": b"1"})
    one = builder.commit({"a.py": b"2", "p/b.py": b"2"}, parents=[base], branch="side")
    two = builder.commit({"p/q/c.py": b"2", "p/b.py": b"3"}, parents=[base])
    merge = builder.commit({"a.py": b"2", "p/b.py": b"4", "p/q/c.py": b"2", "e.py": b"1"}, parents=[two, one])
    commits = history(builder.git_dir, "HEAD")
    assert next(iter(commits)) == base
    assert list(commits)[-1] == merge
    with Objects(builder.git_dir) as objects:
        trees = [commits[parent].tree for parent in (two, one)]
        changed = dict(objects.changed(commits[merge].tree, trees))
        assert {path: objects.read(blob) for path, blob in changed.items()} == {b"p/b.py": b"4", b"e.py": b"1"}
        assert sorted(path for path, _ in objects.changed(commits[base].tree, [None])) == [
            b"a.py",
            b"p/b.py",
            b"p/q/c.py",
        ]
        assert objects.find(commits[merge].tree, b"p/b.py") == changed[b"p/b.py"]
        assert [objects.find(commits[merge].tree, path) for path in (b"p", b"p/x.py", b"x/b.py")] == [None] * 3
        assert objects.read(bytes(20)) is None
        with pytest.raises(LookupError, match="audit a whole clone"):
            objects.folder(bytes(20))


def test_only_regular_python_files_are_files(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"a.py": symlink("b.py"), "b.py": executable(b"1"), "c.pyi": b"1"})
    with Objects(builder.git_dir) as objects:
        (commit,) = history(builder.git_dir, "HEAD").values()
        assert [path for path, _ in objects.changed(commit.tree, [None])] == [b"b.py"]


def test_lineage(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    base = builder.commit({"a.py": b"1"})
    left = builder.commit({"a.py": b"2"}, parents=[base], branch="side")
    right = builder.commit({"a.py": b"3"}, parents=[base])
    merge = builder.commit({"a.py": b"4"}, parents=[right, left])
    lineage = Lineage(history(builder.git_dir, "HEAD"))
    everything = {base, left, right, merge}
    found = {name: lineage.ancestors_among(name, everything) for name in everything}
    assert found == {base: set(), left: {base}, right: {base}, merge: {base, left, right}}
    assert lineage.ancestors_among(left, [right]) == set()
    assert lineage.ancestors_among(left, []) == set()
