"""What the miner keeps at hand of a repository: source texts and the Python files of trees, both bounded."""

import re
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from miners.changes import display_path
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.sources import SourceFile, load_source
from schemas.errors import DataError

# A commit's files, their versions before and the files that its candidates stand in; more is seldom touched.
_MAX_TEXT_BYTES = 32_000_000
# A walk in topological order alternates between the parents of a few open branches.
_MAX_TREES = 8
# Files of folders kept at hand, about 100 bytes each; a large project has some thousand in a tree.
_MAX_FILES = 200_000
# Deeper trees are left to git, which has a limit of its own.
_MAX_DEPTH = 200
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_ENTRY_SHA256 = re.compile(rb"([0-7]+) ([^\0]+)\0(.{32})", re.DOTALL)
_SHA1_DIGITS = 40
_REGULAR = (b"100644", b"100755", b"100664")  # git once wrote group-writable files as 100664
# Python files in `ls-tree -z` output: blob and path. Regular files only.
_PYTHON_FILE = re.compile(rb"(?:\A|(?<=\0))(?:100644|100755|100664) blob ([0-9a-f]+)\t([^\0]*\.py)\0")
# The paths of a large tree; consecutive trees have almost all of them in common.
_display_path = lru_cache(maxsize=50_000)(display_path)

Tree = Mapping[str, Sequence[str]]  # paths by blob
_File = tuple[str, str]  # blob and path


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

    Folders are read once each: a commit changes few, and git would list all of them anew.
    """

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._folders: OrderedDict[str, list[_File]] = OrderedDict()
        self._n_files = 0

    def get(self, commit_id: str) -> Tree:
        """Return a commit's Python files as `list_python` does."""
        found = self._trees.get(commit_id)
        if found is None:
            found = self._trees[commit_id] = self._list(commit_id)
            if len(self._trees) > _MAX_TREES:
                self._trees.popitem(last=False)
        self._trees.move_to_end(commit_id)
        return found

    def _list(self, commit_id: str) -> Tree:
        try:
            return _by_blob(self._folder(self._reader.root(commit_id), _MAX_DEPTH))
        except DataError:
            return list_python(self._reader.git_dir, commit_id)  # git lists it or says what is wrong

    def _folder(self, tree_id: str, depth: int) -> list[_File]:
        """Return the Python files below a tree; raise DataError when it is not a usual one or cannot be read."""
        found = self._folders.get(tree_id)
        if found is None:
            found = self._folders[tree_id] = self._read_folder(tree_id, depth)
            self._n_files += len(found) + 1
            while self._n_files > _MAX_FILES and len(self._folders) > 1:
                self._n_files -= len(self._folders.popitem(last=False)[1]) + 1
        else:
            self._folders.move_to_end(tree_id)
        return found

    def _read_folder(self, tree_id: str, depth: int) -> list[_File]:
        kind, data = self._reader.read(tree_id)
        entries = (_ENTRY if len(tree_id) == _SHA1_DIGITS else _ENTRY_SHA256).findall(data)
        length = sum(len(mode) + len(name) + len(object_id) + 2 for mode, name, object_id in entries)
        if kind != "tree" or length != len(data) or not depth:
            raise DataError("object_corrupt", f"{tree_id} is no usual tree")
        files: list[_File] = []
        for mode, name, object_id in entries:
            if mode.endswith(b"40000"):  # 040000 in trees that old programs wrote
                below = self._folder(object_id.hex(), depth - 1)
                if below:
                    folder = display_path(name) + "/"
                    files += [(blob_id, folder + path) for blob_id, path in below]
            elif mode in _REGULAR and name.endswith(b".py"):
                files.append((object_id.hex(), display_path(name)))
        return files


def _by_blob(files: Iterable[_File]) -> dict[str, list[str]]:
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
