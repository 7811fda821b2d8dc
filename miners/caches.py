"""What the miner keeps at hand of a repository: source texts and the Python files of trees, both bounded."""

import re
from bisect import insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from miners.changes import display_path
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.sources import SourceFile, load_source

# A commit's files, their versions before and the files that its candidates stand in; more is seldom touched.
_MAX_TEXT_BYTES = 32_000_000
# A walk in topological order alternates between the parents of a few open branches.
_MAX_TREES = 8
# Python files in `ls-tree -z` output: blob and path. Regular files only; git once wrote group-writable ones as 100664.
_PYTHON_FILE = re.compile(rb"(?:\A|(?<=\0))(?:100644|100755|100664) blob ([0-9a-f]+)\t([^\0]*\.py)\0")
# The paths of a large tree; consecutive trees have almost all of them in common.
_display_path = lru_cache(maxsize=50_000)(display_path)

Tree = Mapping[str, Sequence[str]]


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
    """The Python files of commits' trees; the least recently used ones are dropped."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._trees: OrderedDict[str, Tree] = OrderedDict()

    def get(self, commit_id: str) -> Tree:
        """Return a commit's Python files as `list_python` does."""
        found = self._trees.get(commit_id)
        if found is None:
            found = self._trees[commit_id] = list_python(self._git_dir, commit_id)
            if len(self._trees) > _MAX_TREES:
                self._trees.popitem(last=False)
        self._trees.move_to_end(commit_id)
        return found


def list_python(git_dir: Path, commit_id: str) -> dict[str, list[str]]:
    """Return the Python files of a commit's tree as sorted paths by blob; links and submodules are left out.

    Raises DataError `git_failed` when a tree on the way is missing or corrupt.
    """
    listing = run_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", check_object_id(commit_id))
    paths: dict[str, list[str]] = {}
    for blob_id, path in _PYTHON_FILE.findall(listing):
        name = _display_path(path)
        same = paths.setdefault(blob_id.decode(), [name])
        if same[0] is not name:
            insort(same, name)
    return paths
