"""What the miner keeps at hand of a repository: source texts and the Python files of trees, both bounded."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from miners.changes import display_path
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.sources import SourceFile, load_source

# A commit's files, their versions before and the files that its candidates stand in; more is seldom touched.
_MAX_TEXT_BYTES = 32_000_000
# A walk in topological order alternates between the parents of a few open branches.
_MAX_TREES = 8
# Regular files; git once wrote group-writable ones as 100664.
_FILE_MODES = (b"100644", b"100755", b"100664")

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
    entries = run_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", check_object_id(commit_id)).split(b"\0")
    paths: dict[str, list[str]] = {}
    for entry in entries:
        meta, _, path = entry.partition(b"\t")
        if path.endswith(b".py"):
            mode, _, blob_id = meta.split(b" ")
            if mode in _FILE_MODES:
                paths.setdefault(blob_id.decode(), []).append(display_path(path))
    return {blob_id: sorted(names) for blob_id, names in paths.items()}
