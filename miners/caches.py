"""What the miner keeps at hand of a repository: source texts and the Python files of trees, both bounded."""

import re
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from miners.changes import display_path
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.sources import SourceFile, load_source
from miners.trees import Entry, Trees, is_folder
from schemas.errors import DataError

# A commit's files, their versions before and the files that its candidates stand in; more is seldom touched.
_MAX_TEXT_BYTES = 32_000_000
# A walk in topological order alternates between the parents of a few open branches.
_MAX_TREES = 8
_REGULAR = (b"100644", b"100755", b"100664")  # git once wrote group-writable files as 100664
# Python files in `ls-tree -z` output: blob and path. Regular files only.
_PYTHON_FILE = re.compile(rb"(?:\A|(?<=\0))(?:100644|100755|100664) blob ([0-9a-f]+)\t([^\0]*\.py)\0")
# The paths of a large tree; consecutive trees have almost all of them in common.
_display_path = lru_cache(maxsize=50_000)(display_path)

Tree = Mapping[str, Sequence[str]]  # paths by blob


class _Listed(NamedTuple):
    """The Python files of a tree."""

    root: str | None
    """The tree, None when git had to list it."""
    files: Tree
    """What is in it."""


class _Difference(NamedTuple):
    """A Python file that one of two trees has and the other has not."""

    blob_id: str
    path: str
    is_new: bool


_NOTHING = _Listed(None, {})


class SourceCache:
    """Source files by blob; the least recently used ones are dropped."""

    def __init__(self, reader: ObjectReader, max_file_bytes: int) -> None:
        self._reader = reader
        self._max_file_bytes = max_file_bytes
        self._files: OrderedDict[str, SourceFile] = OrderedDict()
        self._size = 0

    def get(self, blob_id: str) -> SourceFile:
        """Return a blob's source; raise DataError as `load_source` does."""
        found = self._files.get(blob_id)
        if found is not None:
            self._files.move_to_end(blob_id)
            return found
        found = self._files[blob_id] = load_source(self._reader, blob_id, self._max_file_bytes)
        self._size += len(found.utf8)
        while self._size > _MAX_TEXT_BYTES and len(self._files) > 1:
            self._size -= len(self._files.popitem(last=False)[1].utf8)
        return found


class TreeCache:
    """The Python files of commits' trees; the least recently used ones are dropped.

    A tree is made from the one before: a commit changes few folders, and git would list all of them anew.
    """

    def __init__(self, trees: Trees) -> None:
        self._folders = trees
        self._trees: OrderedDict[str, _Listed] = OrderedDict()

    def get(self, commit_id: str) -> Tree:
        """Return a commit's Python files as `list_python` does."""
        found = self._trees.get(commit_id)
        if found is None:
            found = self._trees[commit_id] = self._list(commit_id)
            if len(self._trees) > _MAX_TREES:
                self._trees.popitem(last=False)
        self._trees.move_to_end(commit_id)
        return found.files

    def _list(self, commit_id: str) -> "_Listed":
        last = next((item for item in reversed(self._trees.values()) if item.root is not None), _NOTHING)
        try:
            root = self._folders.reader.root(commit_id)
            return _Listed(root, _changed(last.files, self._differences(last.root, root)))
        except DataError:  # git lists it or says what is wrong
            return _Listed(None, list_python(self._folders.reader.git_dir, commit_id))

    def _differences(
        self, old: str | None, new: str | None, prefix: str = "", depth: int = 0
    ) -> Iterator[_Difference]:  # fmt: skip
        """Yield in what two folders differ, None standing for one that is not there.

        Raises DataError when a folder is not a usual one or cannot be read.
        """
        before, after = self._entries(old, depth), self._entries(new, depth)
        folders: dict[bytes, list[str | None]] = {}
        for entries, is_new in ((before - after, False), (after - before, True)):
            for mode, name, object_id in entries:
                if is_folder(mode):
                    folders.setdefault(name, [None, None])[is_new] = object_id.hex()
                elif mode in _REGULAR and name.endswith(b".py"):
                    yield _Difference(object_id.hex(), prefix + _display_path(name), is_new)
        for name, (one, other) in folders.items():
            yield from self._differences(one, other, f"{prefix}{_display_path(name)}/", depth + 1)

    def _entries(self, tree_id: str | None, depth: int) -> frozenset[Entry]:
        entries = () if tree_id is None else self._folders.entries(tree_id, depth)
        if len({name for _, name, _ in entries}) < len(entries):
            raise DataError("object_corrupt", f"{tree_id} has a name twice")
        return frozenset(entries)


def _changed(tree: Tree, differences: Iterable[_Difference]) -> Tree:
    """Return a tree with some files more and some less."""
    files = dict(tree)
    for blob_id, path, is_new in differences:
        paths = [*files.get(blob_id, ())]
        if is_new:
            insort(paths, path)
        else:
            paths.remove(path)
        files[blob_id] = paths
    return {blob_id: paths for blob_id, paths in files.items() if paths}


def _by_blob(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return paths by blob, sorted."""
    paths: dict[str, list[str]] = {}
    for blob_id, path in files:
        if blob_id in paths:
            insort(paths[blob_id], path)
        else:
            paths[blob_id] = [path]
    return paths


def list_python(git_dir: Path, commit_id: str) -> dict[str, list[str]]:
    """Return the Python files of a commit's tree as sorted paths by blob; links and submodules are left out.

    Raises DataError `git_failed` when a tree on the way is missing or corrupt.
    """
    listing = run_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", check_object_id(commit_id))
    return _by_blob((blob_id.decode(), _display_path(path)) for blob_id, path in _PYTHON_FILE.findall(listing))
