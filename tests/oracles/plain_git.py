"""Commits, trees and blobs of a repository by `git log` and one `git cat-file --batch`; trees are compared here."""

import re
import subprocess
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import GIT_ENVIRONMENT

FILE_MODES = (b"100644", b"100755", b"100664")
FOLDER_MODES = (b"40000", b"040000")
# Folders kept in memory, about 5 kB each.
MAX_FOLDERS = 20_000
_ESCAPED = re.compile(r"\\(?:\\|x([0-9a-f]{2}))")


def command(git_dir: Path, *args: str) -> list[str]:
    return ["git", "-c", "safe.directory=*", f"--git-dir={git_dir}", *args]


def git(git_dir: Path, *args: str) -> bytes:
    """Return the output of a git command."""
    return subprocess.run(command(git_dir, *args), env=GIT_ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's place in the history."""

    commit_id: str
    tree: bytes
    """Object id of its root folder."""
    dates: tuple[int, ...]
    """Author's and committer's in seconds since 1970; fewer when git cannot read one."""
    parents: tuple[str, ...]


def history(git_dir: Path, head: str) -> dict[str, Commit]:
    """Return a commit and all that it descends from, parents first."""
    commits = {}
    for line in (
        git(git_dir, "log", "--topo-order", "--reverse", "--format=%H %T %at %ct %P", head).decode().splitlines()
    ):
        commit_id, tree, author, committer, *parents = line.split(" ")
        dates = tuple(int(date) for date in (author, committer) if date)
        commits[commit_id] = Commit(commit_id, bytes.fromhex(tree), dates, tuple(name for name in parents if name))
    return commits


def shown(path: bytes) -> str:
    r"""Return a path as the data contract writes it: bytes that are no UTF-8 as `\xff`, backslashes doubled."""
    return path.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def stored(path: str) -> bytes:
    """Return the path that `shown` has written."""
    pieces, at = [], 0
    for found in _ESCAPED.finditer(path):
        pieces += [path[at : found.start()].encode(), bytes.fromhex(found[1]) if found[1] else b"\\"]
        at = found.end()
    return b"".join([*pieces, path[at:].encode()])


@dataclass(slots=True)
class Folder:
    """The Python files and the folders of one tree object."""

    files: dict[bytes, bytes] = field(default_factory=dict)
    folders: dict[bytes, bytes] = field(default_factory=dict)


class Objects:
    """Reads blobs and trees."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._process = subprocess.Popen(
            command(git_dir, "cat-file", "--batch"), env=GIT_ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._folders: OrderedDict[bytes, Folder] = OrderedDict()

    def __enter__(self) -> "Objects":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self, object_id: bytes) -> bytes | None:
        """Return an object's contents, None when it is missing."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("git cat-file has no pipes")
        stdin.write(object_id.hex().encode() + b"\n")
        stdin.flush()
        head = stdout.readline().split()
        if len(head) != 3:
            return None
        return stdout.read(int(head[2]) + 1)[:-1]

    def folder(self, tree: bytes) -> Folder:
        """Return a tree object's entries that matter; raise LookupError when it is missing."""
        folder = self._folders.get(tree)
        if folder is None:
            data = self.read(tree)
            if data is None:
                raise LookupError(f"tree {tree.hex()} is missing: audit a whole clone")
            folder = self._folders[tree] = _entries(data, len(tree))
            if len(self._folders) > MAX_FOLDERS:
                self._folders.popitem(last=False)
        return folder

    def find(self, tree: bytes, path: bytes) -> bytes | None:
        """Return the blob at a path of a tree, None without one."""
        *folders, name = path.split(b"/")
        at: bytes | None = tree
        for part in folders:
            at = self.folder(at).folders.get(part)
            if at is None:
                return None
        return self.folder(at).files.get(name) if at is not None else None

    def changed(
        self, tree: bytes, before: Sequence[bytes | None], prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield (path, blob) of the files of a tree that differ from all of some earlier trees."""
        if tree in before:
            return
        here = self.folder(tree)
        olds = [self.folder(old) if old is not None else Folder() for old in before]
        for name, blob in here.files.items():
            if all(old.files.get(name) != blob for old in olds):
                yield prefix + name, blob
        for name, folder in here.folders.items():
            yield from self.changed(folder, [old.folders.get(name) for old in olds], prefix + name + b"/")

    def renamed_from(self, parent: str, commit_id: str) -> dict[bytes, bytes]:
        """Return {new path: old path} of Python files that git's rename detection pairs; none if a blob is missing."""
        args = ("diff-tree", "-r", "-z", "-M", "-l1000", "--name-status", "--diff-filter=R", parent, commit_id)
        try:
            pieces = git(self.git_dir, *args, "--", "*.py").split(b"\0")[:-1]
        except subprocess.CalledProcessError:
            return {}
        return {new: old for _, old, new in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)}


def _entries(data: bytes, id_bytes: int) -> Folder:
    """Return the Python files and folders of a tree object's contents."""
    folder, at = Folder(), 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, name = data[at:end].split(b" ", 1)
        at = end + 1 + id_bytes
        if mode in FOLDER_MODES:
            folder.folders[name] = data[end + 1 : at]
        elif mode in FILE_MODES and name.endswith(b".py"):
            folder.files[name] = data[end + 1 : at]
    return folder


class Lineage:
    """Which commits descend from which."""

    def __init__(self, commits: dict[str, Commit]) -> None:
        self._parents = {commit_id: commit.parents for commit_id, commit in commits.items()}
        self._place = {commit_id: place for place, commit_id in enumerate(commits)}

    def ancestors_among(self, commit_id: str, others: Iterable[str]) -> set[str]:
        """Return which of some commits a commit descends from; itself is none of them."""
        wanted = set(others) - {commit_id}
        oldest = min((self._place[other] for other in wanted), default=len(self._place))
        found, seen, pending = set(), {commit_id}, [commit_id]
        while pending and len(found) < len(wanted):
            for parent in self._parents[pending.pop()]:
                # Parents come first, so whatever stands before the oldest wanted commit leads to none.
                if parent not in seen and self._place.get(parent, -1) >= oldest:
                    seen.add(parent)
                    pending.append(parent)
                    if parent in wanted:
                        found.add(parent)
        return found
