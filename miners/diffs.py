"""Unified diffs of single files, the same text whatever the user's configuration and the repository's attributes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from miners.commits import decode_text
from miners.git_process import check_object_id, run_git
from schemas.errors import DataError

# The empty tree's id, known to git without being stored (SHA-1 and SHA-256): `git hash-object -t tree /dev/null`.
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_FORMAT = (
    "-r", "-z", "--raw", "-p", "--no-abbrev", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
    "--text", "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--no-indent-heuristic",
    "--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none",
)  # fmt: skip
# Paths on one command line; Linux allows 2 MB of arguments and paths are at most 4 KB.
_PATHS_A_CALL = 200
# Paths of several commits in one call: git compares each name with each of them. 1,364 paths of django cost 1.3 CPU s
# with 30 to 60 a call, 1.6 with 200 or with 10.
_PATHS_A_BATCH = 40
# Longer ones are asked for commit by commit, so that what the operating system refuses is that commit's.
_MAX_PATH_BYTES = 20_000
# What goes before each commit's output; no line of a patch begins with a hexadecimal digit.
_COMMIT = re.compile(rb"^([0-9a-f]{40}(?:[0-9a-f]{24})?)\0", re.MULTILINE)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """One file whose diff is wanted."""

    path: bytes
    """Path after the commit."""
    old_path: bytes | None = None
    """Path in the first parent when the file was renamed, else null."""
    encoding: str = "utf-8"
    """The file's encoding, to decode the diff with."""


def file_diff(git_dir: Path, parent: str | None, commit: str, requests: Sequence[DiffRequest]) -> dict[bytes, str]:
    """Return the unified diff (three lines of context) of each file against the first parent.

    Without a parent the whole file is new. Bytes that are not in the file's encoding become U+FFFD; where the codec
    cannot do that, the text is taken as UTF-8 (`commits.decode_text`). A path is absent from the result when its
    diff cannot be made, because the repository lacks the blob, or is empty.
    """
    before = _EMPTY_TREE[len(commit)] if parent is None else check_object_id(parent)
    trees = (before, check_object_id(commit))
    diffs: dict[bytes, str] = {}
    for start in range(0, len(requests), _PATHS_A_CALL):
        batch = requests[start : start + _PATHS_A_CALL]
        try:
            diffs |= _diff(git_dir, trees, batch)
        except DataError:
            # One missing blob ends git: ask for each file alone, so that it costs only its own diff.
            for request in batch:
                diffs |= _diff_alone(git_dir, trees, request)
    return diffs


@dataclass(frozen=True, slots=True)
class CommitDiffs:
    """The files of one commit whose diffs are wanted."""

    parent: str | None
    """Its first parent, None for a root commit."""
    commit: str
    """The commit."""
    requests: tuple[DiffRequest, ...]
    """The files."""

    @property
    def can_wait(self) -> bool:
        """Say whether `file_diffs` takes it: few files, and none of them renamed."""
        paths = [request.path for request in self.requests]
        renamed = any(request.old_path is not None for request in self.requests)
        return not renamed and len(paths) <= _PATHS_A_CALL and sum(map(len, paths)) <= _MAX_PATH_BYTES


def file_diffs(git_dir: Path, wanted: Sequence[CommitDiffs]) -> dict[str, dict[bytes, str]]:
    """Return for each commit what `file_diff` returns, with one git process for many commits that can wait."""
    diffs: dict[str, dict[bytes, str]] = {}
    batch: list[CommitDiffs] = []
    n_paths = 0
    for item in wanted:
        if n_paths + len(item.requests) > _PATHS_A_BATCH:
            diffs |= _diff_batch(git_dir, batch)
            batch, n_paths = [], 0
        batch.append(item)
        n_paths += len(item.requests)
    return diffs | _diff_batch(git_dir, batch)


def _diff_batch(git_dir: Path, batch: Sequence[CommitDiffs]) -> dict[str, dict[bytes, str]]:
    """Ask for several commits at once, and again for each whose diffs are not all there."""
    lines = "".join(" ".join([item.commit, *([item.parent] if item.parent else [])]) + "\n" for item in batch)
    paths = dict.fromkeys(request.path for item in batch for request in item.requests)
    command = ("--literal-pathspecs", "diff-tree", "--stdin", "--root", *_FORMAT, "--no-renames", "--")
    try:
        output = run_git(git_dir, *command, *paths, input=lines.encode()) if batch else b""
    except DataError:
        output = b""
    pieces = _COMMIT.split(output)
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    diffs = {}
    for item in batch:
        found = _by_path(parts.get(item.commit.encode(), b""), {request.path: request for request in item.requests})
        complete = all(request.path in found for request in item.requests)
        diffs[item.commit] = found if complete else file_diff(git_dir, item.parent, item.commit, item.requests)
    return diffs


def _diff_alone(git_dir: Path, trees: tuple[str, str], request: DiffRequest) -> dict[bytes, str]:
    try:
        return _diff(git_dir, trees, [request])
    except DataError:
        return {}


def _diff(git_dir: Path, trees: tuple[str, str], requests: Sequence[DiffRequest]) -> dict[bytes, str]:
    """Run git once and cut its output into files."""
    wanted = {request.path: request for request in requests}
    old_paths = [request.old_path for request in requests if request.old_path is not None]
    renames = ("-M", "-l1000") if old_paths else ("--no-renames",)
    output = run_git(git_dir, "--literal-pathspecs", "diff-tree", *_FORMAT, *renames, *trees, "--", *wanted, *old_paths)
    return _by_path(output, wanted)


def _by_path(output: bytes, wanted: Mapping[bytes, DiffRequest]) -> dict[bytes, str]:
    """Cut the output for one commit into the files that are wanted."""
    records, patches = _raw_part(output)
    starts = [match.start() for match in _SECTION.finditer(patches)]
    sections = [patches[start:end] for start, end in pairwise([*starts, len(patches)])]
    diffs: dict[bytes, str] = {}
    for path, n_sections in records:
        mine, sections = b"".join(sections[:n_sections]), sections[n_sections:]
        if path in wanted and path not in diffs and mine:
            diffs[path] = _decode(mine, wanted[path].encoding)
    return diffs


def _raw_part(output: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """Split the output into raw records, as (new path, number of patch sections), and the patches."""
    records = []
    position = 0
    while output.startswith(b":", position):
        status, position = _piece(output, position)
        letter = status.rpartition(b" ")[2][:1]
        path, position = _piece(output, position)
        if letter in (b"R", b"C"):
            path, position = _piece(output, position)
        # A change of type (file to link) is shown as a deletion and a creation.
        records.append((path, 2 if letter == b"T" else 1))
    return records, output[position + 1 :]


def _piece(output: bytes, position: int) -> tuple[bytes, int]:
    end = output.index(b"\0", position)
    return output[position:end], end + 1


def _decode(section: bytes, encoding: str) -> str:
    """Decode a patch: the header with its paths as UTF-8, the contents by the file's encoding."""
    start = section.find(b"\n@@ ") + 1
    header = section[:start] if start else section
    body = section[start:] if start else b""
    text = decode_text(body, "utf-8" if encoding == "utf-8-sig" else encoding, "replace")
    return header.decode("utf-8", "backslashreplace") + text
