"""The history outside the window: which definitions stood there, to tell code that comes back from new code.

Old blobs are too many to parse, and too many for git's diffs. Each blob is read beside the one before it and only
what differs is searched for lines that begin a definition, which are remembered by digest. A method of the window whose
first `def` line stands there is then compared, token by token, with the definitions of the blobs that brought such a
line or changed what follows it.

Where only a part of the old commits is searched, what a commit takes away counts as well: a definition that stood
before that part began and is taken away in it, or in the window, is one of the blob before.
"""

import re
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from miners.changes import PYTHON_ONLY, FileChange, stream_changes
from miners.git_process import read_blobs
from miners.outline import Outline, line_at, outline, revise
from schemas.history import HistoricFile
from schemas.records import Exclusion

STAGE = "history"
_DEFINITION = re.compile(rb"[ \t\f]*(?:async[ \t]+)?def[ \t\\]")
_DIGEST_BYTES = 4  # a false match of two lines costs one more comparison and no more
# Versions of one path that are kept because a later one may follow on them; a path has few open branches at a time.
_MAX_TEXT_BYTES = 32_000_000


Parents = Mapping[str, Sequence[str]]


@dataclass(slots=True)
class History:
    """What the old commits of a repository brought."""

    files: list[HistoricFile] = field(default_factory=list)
    """Blobs that brought definitions."""
    excluded: list[Exclusion] = field(default_factory=list)
    """Commits that git cannot show."""
    n_commits: int = 0
    """Commits that it has shown."""


def header_digest(line: bytes) -> str:
    """Return the digest of a definition's first line without its white space, 8 hex digits."""
    return blake2b(b"".join(line.split()), digest_size=_DIGEST_BYTES).hexdigest()


def header_line(code: str) -> bytes | None:
    """Return the line of a method's code that begins the definition, None without one."""
    return next(filter(begins_definition, code.encode("utf-8", "surrogatepass").splitlines()), None)


def begins_definition(line: bytes) -> bool:
    """Tell whether a line begins a definition, decorators apart."""
    return _DEFINITION.match(line) is not None


def merged(files: Iterable[HistoricFile]) -> list[HistoricFile]:
    """Return one row for each commit and blob, sorted by both, with all their headers."""
    rows: list[HistoricFile] = []
    for place, same in groupby(sorted(files, key=_place), key=_place):
        rows.append(HistoricFile(*place, tuple(sorted({header for file in same for header in file.headers}))))
    return rows


def _place(file: HistoricFile) -> tuple[str, str, str]:
    return file.repo, file.commit_id, file.blob_id


def read_history(
    git_dir: Path, commit_ids: Sequence[str], repo: str, max_file_bytes: int, parents: Parents | None = None
) -> History:
    """Return the blobs with which commits brought or changed definitions, by commit in the given order and path.

    A merge brings what differs from all of its parents. Files above the limit are not looked into. A commit that git
    cannot show, with all blobs before and behind its changes, is an exclusion (`commit_unreadable`).

    With `parents`, the parents by commit, these commits' blobs before are returned too, with the definitions that the
    commit changes or takes away, as blobs of the parent. Commits that are there alone count for nothing else.
    """
    old_ids, broken = frozenset(commit_ids), set[str]()
    ids = [*commit_ids, *(commit_id for commit_id in parents or () if commit_id not in old_ids)]
    order = {commit_id: place for place, commit_id in enumerate(ids)}
    digests = _Digests()
    found: dict[tuple[int, bytes, str, str], tuple[str, ...]] = {}
    changes = _changes(git_dir, ids, broken)
    both = (side for change in changes for side in _sides(*change, parents or {}, of_old=change[0] in old_ids))
    for change, old, version in _versions(git_dir, both, max_file_bytes):
        if version is None or (old is None and change.old_id is not None):
            broken.add(change.by)
        elif lines := version.brought(old):
            headers = tuple(dict.fromkeys(map(digests.__getitem__, lines)))
            found[order[change.by], change.path, change.blob_id, change.commit_id] = headers
    files = [HistoricFile(repo, key[3], key[2], found[key]) for key in sorted(found) if ids[key[0]] not in broken]
    detail = "git cannot show its changes"
    excluded = [
        Exclusion(f"{repo}@{commit_id}", STAGE, "commit_unreadable", detail)
        for commit_id in commit_ids
        if commit_id in broken
    ]
    return History(files, excluded, len(commit_ids) - len(excluded))


class _Digests(dict[bytes, str]):
    """Digests of lines; a history repeats its `def` lines many times."""

    def __missing__(self, line: bytes) -> str:
        digest = self[line] = header_digest(line.removeprefix(BOM_UTF8))
        return digest


class _Change(NamedTuple):
    """A version of a path that is looked at beside another one."""

    commit_id: str
    """The commit whose tree holds it."""
    path: bytes
    """The path."""
    old_id: str | None
    """The other version: the blob in the first parent, or the one after the commit; None without one."""
    blob_id: str
    """The version: the blob after the commit, or the one in a parent."""
    by: str
    """The commit that makes the change."""


def _changes(git_dir: Path, commit_ids: Sequence[str], broken: set[str]) -> Iterator[tuple[str, FileChange]]:
    """Yield what commits change; those whose trees git cannot read are added to `broken`."""
    for commit_id, records, problem in stream_changes(git_dir, commit_ids, PYTHON_ONLY):
        if problem is not None:
            broken.add(commit_id)
        for record in records:
            yield commit_id, record


def _sides(commit_id: str, record: FileChange, parents: Parents, *, of_old: bool) -> Iterator[_Change]:
    """Yield the version that a change brings, when the commit is an old one, and those that it takes away."""
    if of_old and record.has_new_contents:
        old = record.before[0]
        yield _Change(commit_id, record.path, None if old is None else old.blob_id, record.blob_id or "", commit_id)
    if record.has_new_contents or record.blob_id is None:
        for parent_id, before in zip(parents.get(commit_id, ()), record.before, strict=False):
            if before is not None:
                yield _Change(parent_id, record.path, record.blob_id, before.blob_id, commit_id)


@dataclass(slots=True)
class _Version:
    """A version of a file at hand."""

    text: bytes
    """Its text; empty for one above the limit."""
    outline: Outline | None = None
    """Its outline, once it is known."""

    def brought(self, old: "_Version | None") -> list[bytes]:
        """Return the lines that begin the definitions which the version before did not have."""
        if old is None:
            self.outline = self.outline or outline(self.text)
            return [line_at(self.text, start) for start in self.outline.starts[1:]]
        old.outline, self.outline, changed = revise(old.text, old.outline, self.text, self.outline)
        starts = self.outline.starts
        return [line_at(self.text, starts[index]) for index in changed]


def _versions(
    git_dir: Path, changes: Iterable[_Change], max_file_bytes: int
) -> Iterator[tuple[_Change, _Version | None, _Version | None]]:
    """Yield each change, path by path, with the versions before and after it; None for one that git cannot read."""
    by_path: dict[bytes, list[_Change]] = defaultdict(list)
    for change in changes:
        by_path[change.path].append(change)
    groups = [by_path[path] for path in sorted(by_path)]
    wanted = [
        [blob_id for change in group for blob_id in (change.old_id, change.blob_id) if blob_id] for group in groups
    ]
    stream = read_blobs(git_dir, [blob_id for ids in wanted for blob_id in dict.fromkeys(ids)], max_file_bytes)
    for group, blob_ids in zip(groups, wanted, strict=True):
        versions = _Versions(git_dir, blob_ids, stream, max_file_bytes)
        for change in group:
            old = None if change.old_id is None else versions.get(change.old_id)
            yield change, old, versions.get(change.blob_id)


class _Versions:
    """The versions of one path, in the order in which they are asked for, each kept until it is asked for no more."""

    def __init__(
        self, git_dir: Path, blob_ids: Sequence[str], stream: Iterator[bytes | None], max_file_bytes: int
    ) -> None:
        self._git_dir, self._stream, self._max_file_bytes = git_dir, stream, max_file_bytes
        self._left = Counter(blob_ids)
        self._read: set[str] = set()
        self._kept: dict[str, _Version | None] = {}
        self._size = 0

    def get(self, blob_id: str) -> _Version | None:
        """Return a version, None when git cannot read it."""
        version = self._kept[blob_id] if blob_id in self._kept else self._load(blob_id)
        self._left[blob_id] -= 1
        if not self._left[blob_id]:
            self._drop(blob_id)
        return version

    def _load(self, blob_id: str) -> _Version | None:
        if blob_id in self._read:
            text = next(read_blobs(self._git_dir, [blob_id], self._max_file_bytes))
        else:
            text = next(self._stream)
            self._read.add(blob_id)
        version = self._kept[blob_id] = None if text is None else _Version(text)
        self._size += len(text or b"")
        while self._size > _MAX_TEXT_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return version

    def _drop(self, blob_id: str) -> None:
        version = self._kept.pop(blob_id)
        self._size -= len(version.text) if version is not None else 0
