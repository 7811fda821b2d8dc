"""A commit's tree as files: byte for byte what git stores, and nothing outside the folder."""

import os
import re
import stat
from pathlib import Path

import pytest

from miners.checkout import Checkout, export_tree
from schemas.errors import DataError, PipelineError
from tests.builders import RepoBuilder, executable, submodule, symlink


def tree_of(root: Path) -> dict[bytes, object]:
    """Return every path below a folder: bytes of files (`x` when executable), targets of links, empty folders."""
    found: dict[bytes, object] = {}
    for path in sorted(root.rglob("*")):
        inside = os.fsencode(path.relative_to(root))
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[inside] = ("link", os.fsencode(path.readlink()))
        elif stat.S_ISREG(mode):
            found[inside] = ("x", path.read_bytes()) if mode & stat.S_IXUSR else path.read_bytes()
        elif not any(path.iterdir()):
            found[inside] = "empty folder"
    return found


def test_writes_the_bytes_of_the_blobs_and_no_attribute_counts(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    commit = repo.commit(
        {
            ".gitattributes": b"* text eol=crlf\n*.md export-ignore\nv.py export-subst ident\nbig.bin filter=lfs\n",
            "README.md": b"one\ntwo\n",
            "v.py": b'VERSION = "$Format:%H$"  # $Id$\n',
            "crlf.py": b"a = 1\r\nb = 2\r\n",
            "big.bin": b"version https://git-lfs.github.com/spec/v1\n",
            "empty": b"",
            "bin/run": executable(b"#!/bin/sh\n"),
            b"caf\xe9/\xff\xfe.py": b"latin\n",
            "a b/new\nline.py": b"odd\n",
            "link.py": symlink("v.py"),
            "out": symlink("../../outside"),
            "vendored/dep": submodule("1" * 40),
        }
    )
    target = tmp_path / "tree"
    assert export_tree(repo.git_dir, commit, target) == Checkout(
        files=9, size=195, symlinks=2, submodules=("vendored/dep",), impossible=()
    )
    assert tree_of(target) == {
        b".gitattributes": b"* text eol=crlf\n*.md export-ignore\nv.py export-subst ident\nbig.bin filter=lfs\n",
        b"README.md": b"one\ntwo\n",
        b"v.py": b'VERSION = "$Format:%H$"  # $Id$\n',
        b"crlf.py": b"a = 1\r\nb = 2\r\n",
        b"big.bin": b"version https://git-lfs.github.com/spec/v1\n",
        b"empty": b"",
        b"bin/run": ("x", b"#!/bin/sh\n"),
        b"caf\xe9/\xff\xfe.py": b"latin\n",
        b"a b/new\nline.py": b"odd\n",
        b"link.py": ("link", b"v.py"),
        b"out": ("link", b"../../outside"),
        b"vendored/dep": "empty folder",
    }


def test_takes_the_commit_that_it_is_asked_for_whatever_the_umask(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    first = repo.commit({"pkg/a.py": b"old\n"})
    repo.commit({"pkg/a.py": b"new\n", "pkg/b.py": b"more\n"})
    before = os.umask(0o077)
    try:
        export_tree(repo.git_dir, first, tmp_path / "tree")
    finally:
        os.umask(before)
    assert tree_of(tmp_path / "tree") == {b"pkg/a.py": b"old\n"}
    assert stat.S_IMODE((tmp_path / "tree" / "pkg").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "tree" / "pkg" / "a.py").stat().st_mode) == 0o644


def test_says_which_paths_cannot_be_and_writes_their_neighbours(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    blob, evil = repo.blob(b"good\n"), repo.blob(b"evil\n")
    link = repo.blob(os.fsencode(tmp_path))
    inside = repo.tree({b"escaped": ("100644", evil)})

    def entry(mode: str, name: bytes, object_id: str) -> bytes:
        return mode.encode() + b" " + name + b"\0" + bytes.fromhex(object_id)

    root = repo.write(
        "tree",
        entry("100644", b"..", evil)
        + entry("40000", b".GIT", inside)
        + entry("100644", b"good.py", blob)
        + entry("120000", b"lib", link)
        + entry("40000", b"lib", inside)
        + entry("120000", b"null", repo.blob(b"a\0b"))
        + entry("100644", b"n" * 256, evil)
        + entry("100644", b"twice", blob)
        + entry("100644", b"twice", evil),
    )
    commit = repo.raw_commit(f"tree {root}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n".encode())
    assert export_tree(repo.git_dir, commit, tmp_path / "tree").impossible == (
        ("..", "a part of the path is empty, `.` or `..`"),
        (".GIT/escaped", "a part of the path is `.git`"),
        ("lib", "another entry has this path, in this or in other letter case"),
        ("n" * 256, "File name too long"),
        ("null", "the link's target holds a NUL byte"),
        ("twice", "another entry has this path, in this or in other letter case"),
    )
    assert tree_of(tmp_path / "tree") == {b"good.py": b"good\n", b"lib/escaped": b"evil\n", b"twice": b"good\n"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.git", "tree"]


def test_a_tree_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    commit = repo.commit({"a": b"12345", "b": b"12345"})
    with pytest.raises(DataError, match=re.escape("disk_full: the tree has 10 bytes, the limit is 9")):
        export_tree(repo.git_dir, commit, tmp_path / "tree", max_bytes=9)
    assert export_tree(repo.git_dir, commit, tmp_path / "tree", max_bytes=10).size == 10


def test_a_missing_blob_leaves_no_folder_behind(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    commit = repo.commit({"a.py": b"one\n", "b.py": b"two\n"})
    repo.remove(repo.blob_of(commit, "b.py"))
    with pytest.raises(DataError) as raised:
        export_tree(repo.git_dir, commit, tmp_path / "tree")
    assert raised.value.reason in ("object_missing", "git_failed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.git"]


def test_a_folder_that_is_there_is_never_written_into(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "r.git")
    commit = repo.commit({"a.py": b"one\n"})
    (tmp_path / "tree").mkdir()
    with pytest.raises(PipelineError, match="is there already"):
        export_tree(repo.git_dir, commit, tmp_path / "tree")
    assert tree_of(tmp_path / "tree") == {}
