"""Builders for tests: tiny real git repositories with exact bytes and dates, and rows with sensible defaults."""

import hashlib
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from schemas.records import LOCAL, DataPoint, Method, Novelty, make_repository_key, make_row_id

FIRST_DATE = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
AUTHOR = "Ada Author <ada@example.org>"
COMMITTER = "Carl Committer <carl@example.org>"
SHA1_HEX = 40
# What git must not see from the outside, so that a test gives the same bytes on every machine.
GIT_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}

FileName = str | bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A tree entry that is no plain file: symbolic link, executable or submodule."""

    mode: str
    """Octal mode, `120000`, `100755` or `160000`."""
    data: bytes
    """Link target or contents; for a submodule the commit id in hexadecimal."""


def symlink(target: str) -> Entry:
    return Entry("120000", target.encode())


def executable(data: bytes) -> Entry:
    return Entry("100755", data)


def submodule(commit_id: str) -> Entry:
    return Entry("160000", commit_id.encode())


FileChange = bytes | Entry | None


def git(git_dir: Path, *args: str, stdin: bytes | None = None) -> bytes:
    """Run real git in a clean environment and return its standard output."""
    command = ["git", "-c", "safe.directory=*", f"--git-dir={git_dir}", *args]
    return subprocess.run(command, input=stdin, env=GIT_ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout


class RepoBuilder:
    """Writes objects and refs of a small git repository straight to disk: fast, exact, the same ids everywhere.

    `git_dir` is `<path>` itself when bare, else `<path>/.git`; HEAD points to `main` until `head` says otherwise.
    """

    def __init__(self, path: Path, *, bare: bool = True, object_format: str = "sha1") -> None:
        self.path = path
        self.git_dir = path if bare else path / ".git"
        path.mkdir(parents=True, exist_ok=True)
        options = ["--bare"] if bare else []
        command = ["git", "init", "-q", "--template=", "-b", "main", f"--object-format={object_format}", *options]
        subprocess.run([*command, str(path)], env=GIT_ENVIRONMENT, check=True)
        self.object_format = object_format
        self.tips: dict[str, str] = {}
        self._trees: dict[str, dict[bytes, tuple[str, str]]] = {}
        self._clock = FIRST_DATE

    # -- objects

    def write(self, kind: str, data: bytes) -> str:
        """Write a loose object, whatever its contents, and return its id."""
        store = f"{kind} {len(data)}".encode() + b"\0" + data
        object_id = hashlib.new(self.object_format, store).hexdigest()
        path = self.object_path(object_id)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(store, 1))
        return object_id

    def object_path(self, object_id: str) -> Path:
        return self.git_dir / "objects" / object_id[:2] / object_id[2:]

    def remove(self, object_id: str) -> None:
        """Make an object missing, as partial clones and damaged mirrors have it."""
        self.object_path(object_id).unlink()

    def corrupt(self, object_id: str) -> None:
        """Replace an object's bytes with rubbish."""
        self.object_path(object_id).write_bytes(b"not a zlib stream")

    def blob(self, data: bytes) -> str:
        return self.write("blob", data)

    def tree(self, files: Mapping[bytes, tuple[str, str]]) -> str:
        """Write the trees of `{path: (mode, id)}` and return the root's id."""
        entries: dict[bytes, tuple[str, str]] = {}
        folders: dict[bytes, dict[bytes, tuple[str, str]]] = {}
        for path, value in files.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                folders.setdefault(name, {})[rest] = value
            else:
                entries[name] = value
        for name, inside in folders.items():
            entries[name] = ("40000", self.tree(inside))
        ordered = sorted(entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == "40000" else b""))
        return self.write(
            "tree", b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in ordered)
        )

    # -- commits

    def commit(
        self,
        files: Mapping[FileName, FileChange] | Mapping[str, bytes] | None = None,
        message: str | bytes = "Change",
        author_date: datetime | str | None = None,
        committer_date: datetime | str | None = None,
        *,
        parents: Sequence[str] | None = None,
        branch: str = "main",
        author: str | bytes = AUTHOR,
        committer: str | bytes = COMMITTER,
        encoding: str | None = None,
    ) -> str:
        """Commit changes over the first parent's tree (None deletes a path) and return the commit's id.

        Parents default to the branch's tip. Dates are datetimes or raw text such as `1700000000 +0100` (any
        rubbish is written as it stands); left out, a clock advances one minute a commit; the committer date
        defaults to the author date.
        """
        tip = self.tips.get(branch)
        above = tuple(parents) if parents is not None else ((tip,) if tip else ())
        listing = dict(self._trees[above[0]]) if above else {}
        for name, change in (files or {}).items():
            self._apply(listing, name if isinstance(name, bytes) else name.encode(), change)
        if author_date is None:
            author_date, self._clock = self._clock, self._clock + timedelta(minutes=1)
        when = committer_date if committer_date is not None else author_date
        lines = [b"tree " + self.tree(listing).encode(), *(b"parent " + parent.encode() for parent in above)]
        lines.append(b"author " + _bytes(author) + b" " + _stamp(author_date))
        lines.append(b"committer " + _bytes(committer) + b" " + _stamp(when))
        if encoding is not None:
            lines.append(b"encoding " + encoding.encode())
        text = message if isinstance(message, bytes) else message.encode()
        commit_id = self.raw_commit(b"\n".join(lines) + b"\n\n" + text, branch=branch)
        self._trees[commit_id] = listing
        return commit_id

    def raw_commit(self, data: bytes, *, branch: str | None = None) -> str:
        """Write a commit object with exactly these bytes; move the branch when one is named."""
        commit_id = self.write("commit", data)
        if branch is not None:
            self.set_branch(branch, commit_id)
        return commit_id

    def root_tree(self, commit_id: str) -> str:
        """Return the id of a commit's root tree."""
        return self.tree(self._trees[commit_id])

    def blob_of(self, commit_id: str, path: FileName) -> str:
        """Return the id of the blob at a path of a commit."""
        return self._trees[commit_id][path if isinstance(path, bytes) else path.encode()][1]

    def set_branch(self, branch: str, commit_id: str) -> None:
        ref = self.git_dir / "refs" / "heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit_id + "\n")
        self.tips[branch] = commit_id

    def head(self, branch: str) -> None:
        """Point HEAD to a branch."""
        (self.git_dir / "HEAD").write_text(f"ref: refs/heads/{branch}\n")

    def _apply(self, listing: dict[bytes, tuple[str, str]], path: bytes, change: FileChange) -> None:
        if change is None:
            del listing[path]
        elif isinstance(change, bytes):
            listing[path] = ("100644", self.blob(change))
        elif change.mode == "160000":
            listing[path] = (change.mode, change.data.decode())
        else:
            listing[path] = (change.mode, self.blob(change.data))


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _stamp(date: datetime | str) -> bytes:
    if isinstance(date, str):
        return date.encode()
    return f"{int(date.timestamp())} {date.strftime('%z') or '+0000'}".encode()


_METHOD_CODE = 'def area(width, height):\n    """Return the area of a rectangle."""\n    return width * height'


def _row_id(values: Mapping[str, Any]) -> str:
    """Return the row id of a local repository's method."""
    key = make_repository_key(values["repo"], LOCAL, values["repo_id"], None)
    return make_row_id(key, values["commit_id"], values["path"], values["fun_name"], values["start_byte"])


def make_method(**overrides: Any) -> Method:  # noqa: ANN401 - each value has its field's type
    """Return an `added` method; the row id follows from the identification unless it is given."""
    start = overrides.get("start_byte", 0)
    path = overrides.get("path", "shapes/rectangle.py")
    code = overrides.get("code", _METHOD_CODE)
    values: dict[str, Any] = {
        "repo": "example/shapes",
        "repo_id": None,
        "url": None,
        "license": "MIT",
        "license_matches": ("LICENSE: MIT",),
        "copyrights": ("Copyright (c) 2020 Ada Author",),
        "commit_id": "a" * SHA1_HEX,
        "parent_id": "b" * SHA1_HEX,
        "author_date": datetime(2024, 3, 1, 12, tzinfo=UTC),
        "committer_date": datetime(2024, 3, 1, 13, tzinfo=UTC),
        "path": path,
        "file_name": path.rpartition("/")[2],
        "fun_name": "area",
        "language": "python",
        "blob_id": "c" * SHA1_HEX,
        "start_byte": start,
        "end_byte": start + len(code.encode()),
        "start_line": 1,
        "end_line": 1 + code.count("\n"),
        "novelty": Novelty.ADDED,
        "earlier_path": None,
        "earlier_fun_name": None,
        "earlier_commit_id": None,
        "similarity": None,
        "token_key": "00" * 16,
        "is_test": False,
        "commit_message": "Add the area of a rectangle, which the floor plan needs for its cost estimate\n",
        "author_is_bot": False,
        "code": code,
    } | overrides
    values.setdefault("row_id", _row_id(values))
    return Method(**values)


def make_point(**overrides: Any) -> DataPoint:  # noqa: ANN401 - each value has its field's type
    """Return a data point for `area`; counts belong to the default code and are not derived from overrides."""
    start = overrides.get("start_byte", 0)
    path = overrides.get("path", "shapes/rectangle.py")
    code = overrides.get("code", _METHOD_CODE)
    method = make_method(path=path, code=code, start_byte=start)
    shared = {name: getattr(method, name) for name in Method.__slots__ if name in DataPoint.__slots__}
    values: dict[str, Any] = (
        shared
        | {
            "docstring": "Return the area of a rectangle.",
            "doc_language": "en",
            "doc_language_confidence": 0.99,
            "doc_n_words": 6,
            "doc_vocab_size": 6,
            "doc_n_whitespaces": 5,
            "signature": "def area(width, height):",
            "n_ast_errors": 0,
            "n_ast_missing": 0,
            "n_ast_levels": 6,
            "n_ast_nodes": 22,
            "n_identifiers": 3,
            "n_words": 13,
            "vocab_size": 13,
            "n_whitespaces": 18,
            "token_count": 12,
            "parses": True,
            "nloc": 2,
            "complexity": 1,
        }
        | overrides
    )
    if "row_id" not in overrides:
        values["row_id"] = _row_id(values)
    return DataPoint(**values)
