"""Changed files: which Python files a commit touches, before and after, from one streamed `git diff-tree`."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from miners.commits import CommitHeader
from miners.git_process import run_git, start_git
from schemas.config import MiningConfig
from schemas.errors import DataError
from schemas.records import Exclusion

_REGULAR, _SYMLINK, _SUBMODULE, _ABSENT = "100", "120000", "160000", "000000"
_RAW = ("-r", "-z", "--raw", "--no-abbrev")
# Names that are looked at. One pattern for all of them, sorted out here: git tries its patterns one by one, and six of
# them cost half as much again as one (41,431 commits of sympy: 2.9 s against 1.9 s, this one 1.7 s).
_CANDIDATES = ("--", "*.[pi]*")
_PYTHON = b".py"
PYTHON_ONLY = ("--", "*.py")
"""Names of Python files, for `stream_changes`."""
# Files of Python's kin that hold no method to be mined.
_NOTEBOOK, _TYPE_STUB, _CYTHON = b".ipynb", b".pyi", (b".pyx", b".pxd", b".pxi")
_SUFFIXES = (_PYTHON, _NOTEBOOK, _TYPE_STUB, *_CYTHON)
_KIN_REASONS = frozenset({"notebook", "type_stub", "cython"})
_CHUNK = 1 << 16
# git's own default of diff.renameLimit since 2.35, stated because it decides which renames are seen.
_RENAME_LIMIT = "-l1000"
_TARGETS = {_SYMLINK: "target in blob", _SUBMODULE: "commit"}


# Named tuples: a plan has many, and frozen dataclasses cost twice as much to make and to hand to a worker.
class OldFile(NamedTuple):
    """The file at the same path in one parent."""

    mode: str
    """Octal mode, such as `100644`."""
    blob_id: str
    """Its blob."""


class FileChange(NamedTuple):
    """One Python path that a commit changes; for a merge one that differs from every parent."""

    path: bytes
    """Path as git stores it."""
    mode: str | None
    """Octal mode after the commit, null when the file is deleted."""
    blob_id: str | None
    """Blob after the commit, null when the file is deleted."""
    before: tuple[OldFile | None, ...]
    """The regular file in each parent, null where there is none; one null for a root commit."""

    @property
    def has_new_contents(self) -> bool:
        """Say whether there is a regular file after the commit, with other contents than in every parent."""
        if self.blob_id is None or self.mode in (_SYMLINK, _SUBMODULE):
            return False
        return all(old is None or old.blob_id != self.blob_id for old in self.before)


class CommitChanges(NamedTuple):
    """The Python files of one commit."""

    commit_id: str
    """The commit."""
    parent_ids: tuple[str, ...]
    """Its parents."""
    files: tuple[FileChange, ...] = ()
    """Regular files that stand after the commit with new contents, sorted by path."""
    deleted: tuple[FileChange, ...] = ()
    """Regular files that the first parent has and the commit has not, sorted by path."""
    renames: tuple[tuple[bytes, bytes], ...] = ()
    """(new path, old path in the first parent) of added files that are renamed ones, sorted; see `with_renames`."""
    excluded: tuple[Exclusion, ...] = ()
    """Paths left out (stage `files`: `symlink`, `submodule`, `notebook`, `type_stub`, `cython`), or the whole commit
    (stage `commits`)."""

    @property
    def has_python(self) -> bool:
        """Say whether the commit touches a path `*.py`, or may do so because it cannot be read."""
        return bool(self.files or self.deleted) or any(item.reason not in _KIN_REASONS for item in self.excluded)

    @property
    def is_too_large(self) -> bool:
        """Say whether the commit is left out because it changes too many files."""
        return any(item.reason == "too_many_files" for item in self.excluded)


def changed_files(
    git_dir: Path, commits: Sequence[CommitHeader], repo: str, config: MiningConfig
) -> Iterator[CommitChanges]:
    """Yield the changed Python files (`*.py`, case matters) of each commit, in the given order, renames not yet found.

    A merge brings only paths that differ from all parents. A change of mode alone is no change. Notebooks, type stubs
    and Cython files with new contents are excluded (`notebook`, `type_stub`, `cython`) and do not count for the limit.
    A commit whose trees git cannot read is yielded with the exclusion `commit_unreadable`, one that changes more
    Python files than `config.max_files_per_commit` with `too_many_files`; both without files.
    """
    by_id = {header.commit_id: header for header in commits}
    for commit_id, records, problem in stream_changes(git_dir, list(by_id), _CANDIDATES):
        header = by_id[commit_id]
        row_id = f"{repo}@{commit_id}"
        if problem is not None:
            excluded = (Exclusion(row_id, "commits", "commit_unreadable", problem),)
            yield CommitChanges(commit_id, header.parent_ids, excluded=excluded)
            continue
        changes = _sort_out(CommitChanges(commit_id, header.parent_ids), records, row_id)
        count = len(changes.files) + sum(item.reason not in _KIN_REASONS for item in changes.excluded)
        if count > config.max_files_per_commit:
            detail = f"{count} Python files, the limit is {config.max_files_per_commit}"
            excluded = (Exclusion(row_id, "commits", "too_many_files", detail),)
            yield CommitChanges(commit_id, header.parent_ids, excluded=excluded)
            continue
        yield changes


def with_renames(git_dir: Path, changes: CommitChanges) -> CommitChanges:
    """Return a commit's changes with the renames among them found; this asks git for each commit that needs it."""
    return changes._replace(renames=_renames(git_dir, changes))


def display_path(path: bytes) -> str:
    r"""Return a path as text, different for different paths: bytes that are not UTF-8 as `\xff`, backslashes doubled.

    Backslashes are rare in paths of Python files, so almost every path stays as it is.
    """
    return path.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def _sort_out(changes: CommitChanges, records: Sequence[FileChange], row_id: str) -> CommitChanges:
    """Split a commit's paths into files with new contents, deleted files and exclusions."""
    files, deleted, excluded = [], [], []
    for change in sorted(records, key=lambda item: item.path):
        kin = _kin_reason(change.path)
        if change.mode in (_SYMLINK, _SUBMODULE):
            if kin is None:
                reason = "symlink" if change.mode == _SYMLINK else "submodule"
                excluded.append(_exclusion(row_id, change, reason))
        elif change.blob_id is None:
            if change.before[0] is not None and kin is None:
                deleted.append(change)
        elif all(old is None or old.blob_id != change.blob_id for old in change.before):
            if kin is None:
                files.append(change)
            else:
                excluded.append(_exclusion(row_id, change, kin))
    return changes._replace(files=tuple(files), deleted=tuple(deleted), excluded=tuple(excluded))


def _kin_reason(path: bytes) -> str | None:
    """Return why a path that is no `*.py` is left out; null for one that is."""
    if path.endswith(_NOTEBOOK):
        return "notebook"
    if path.endswith(_TYPE_STUB):
        return "type_stub"
    return "cython" if path.endswith(_CYTHON) else None


def _exclusion(row_id: str, change: FileChange, reason: str) -> Exclusion:
    detail = f"mode {change.mode}, {_TARGETS.get(change.mode or '', 'blob')} {change.blob_id}"
    return Exclusion(f"{row_id}:{display_path(change.path)}", "files", reason, detail)


Streamed = tuple[str, list[FileChange], str | None]


def stream_changes(git_dir: Path, commit_ids: Sequence[str], names: Sequence[str]) -> Iterator[Streamed]:
    """Yield (commit, changes, problem) for every commit, a merge's changes being those against all of its parents.

    `names` are pathspecs as git takes them. git is started anew behind a commit that it dies of.
    """
    start = 0
    while start < len(commit_ids):
        done = 0
        for streamed in _stream(git_dir, commit_ids[start:], names):
            yield streamed
            done += 1
        start += done
        # git died: the commit whose output was cut short is next, and alone it says why.
        if start < len(commit_ids):
            yield _single(git_dir, commit_ids[start], names)
            start += 1


def _stream(git_dir: Path, commit_ids: Sequence[str], names: Sequence[str]) -> Iterator[Streamed]:
    """Yield commits as long as git's output is whole; the one at which git dies is not yielded."""
    with tempfile.TemporaryFile() as ids:
        # A file, not a pipe: nobody has to write while the output is read.
        ids.write("".join(f"{commit_id}\n" for commit_id in commit_ids).encode())
        ids.seek(0)
        process = start_git(
            git_dir, "diff-tree", "--stdin", *_RAW, "--no-renames", "--root", "-c", "--always", *names,
            stdin=ids, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with process:
            current: Streamed | None = None
            for streamed in _parse(process):
                if current is not None:
                    yield current
                current = streamed
        if current is not None and process.returncode == 0:
            yield current


def _single(git_dir: Path, commit_id: str, names: Sequence[str]) -> Streamed:
    """Return one commit's changes, or why git cannot tell them."""
    try:
        output = run_git(git_dir, "diff-tree", *_RAW, "--no-renames", "--root", "-c", "--always", commit_id, *names)
    except DataError as error:
        return commit_id, [], error.detail
    changes = list(_records(iter(output.split(b"\0")[:-1])))
    return commit_id, changes[0][1] if changes else [], None


def _parse(process: subprocess.Popen[bytes]) -> Iterator[Streamed]:
    yield from _records(_tokens(process))


def _tokens(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield the NUL-terminated pieces of a process's output; an unfinished last one is dropped."""
    rest = b""
    while process.stdout is not None and (chunk := os.read(process.stdout.fileno(), _CHUNK)):
        pieces = (rest + chunk).split(b"\0")
        rest = pieces.pop()
        yield from pieces


def _records(tokens: Iterator[bytes]) -> Iterator[Streamed]:
    """Group `git diff-tree --stdin -z --raw -c` output by commit."""
    commit_id = ""
    changes: list[FileChange] = []
    for token in tokens:
        if not token.startswith(b":"):
            if commit_id:
                yield commit_id, changes, None
            commit_id, changes = token.decode(), []
            continue
        path = next(tokens, None)
        if path is not None and path.endswith(_SUFFIXES):
            changes.append(_change(token, path))
    if commit_id:
        yield commit_id, changes, None


def _change(record: bytes, path: bytes) -> FileChange:
    """Parse one raw record: a colon per parent, then modes, ids (parents first, the commit last) and status."""
    n_parents = len(record) - len(record.lstrip(b":"))
    parts = record[n_parents:].decode().split(" ")
    modes, ids = parts[: n_parents + 1], parts[n_parents + 1 : 2 * n_parents + 2]
    before = tuple(
        OldFile(mode, blob_id) if mode.startswith(_REGULAR) else None
        for mode, blob_id in zip(modes[:-1], ids[:-1], strict=True)
    )
    if modes[-1] == _ABSENT:
        return FileChange(path, None, None, before)
    return FileChange(path, modes[-1], ids[-1], before)


def _renames(git_dir: Path, changes: CommitChanges) -> tuple[tuple[bytes, bytes], ...]:
    """Return renamed files: equal blobs first, then git's similarity where its blobs are all there."""
    added = {change.path: change.blob_id for change in changes.files if change.before[0] is None}
    deleted = {change.path: change.before[0].blob_id for change in changes.deleted if change.before[0] is not None}
    if not added or not deleted:
        return ()
    found: dict[bytes, bytes] = {}
    for path, blob_id in added.items():
        same = [old for old, old_id in deleted.items() if old_id == blob_id]
        if same:
            name = path.rpartition(b"/")[2]
            old = min(same, key=lambda item: (item.rpartition(b"/")[2] != name, item))
            found[path] = old
            del deleted[old]
    if deleted and len(found) < len(added):
        for new, old in _similar(git_dir, changes):
            if new in added and new not in found and old in deleted:
                found[new] = old
                del deleted[old]
    return tuple(sorted(found.items()))


def _similar(git_dir: Path, changes: CommitChanges) -> list[tuple[bytes, bytes]]:
    """Return (new, old) of git's rename detection against the first parent; none when a blob is missing."""
    try:
        output = run_git(
            git_dir, "diff-tree", *_RAW, "-M", _RENAME_LIMIT, changes.parent_ids[0], changes.commit_id, *PYTHON_ONLY
        )
    except DataError:
        return []
    tokens = iter(output.split(b"\0"))
    pairs = []
    for token in tokens:
        if not token.startswith(b":"):
            continue
        old = next(tokens, b"")
        if token.rpartition(b" ")[2].startswith(b"R"):
            pairs.append((next(tokens, b""), old))
    return sorted(pairs)
