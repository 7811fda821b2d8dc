"""What the loopback Hub keeps: repositories of commits, branches and tags over content-addressed files."""

import hashlib
import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

GITATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
_XET_RECORD = 48  # bytes of a header, an entry and an extension alike in a shard of Xet
_HAS_VERIFICATION, _HAS_SHA256 = 1 << 31, 1 << 30  # flags of a file's header in a shard of Xet


class HubError(Exception):
    """An answer that is an error, as the Hub words it."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


@dataclass(frozen=True)
class Blob:
    """A file of a commit: its bytes, or the hash of an object in large-file storage."""

    size: int
    content: bytes = b""
    sha256: str | None = None

    @property
    def oid(self) -> str:
        data = self.content if self.sha256 is None else pointer(self.sha256, self.size)
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pointer(sha256: str, size: int) -> bytes:
    """Return the text that git holds in place of a large file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    title: str
    files: Mapping[str, Blob]


@dataclass
class Repository:
    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def commit(self, branch: str, title: str, files: Mapping[str, Blob]) -> Commit:
        """Put a commit on a branch."""
        parent = self.branches.get(branch)
        text = json.dumps([parent, title, sorted((path, blob.oid) for path, blob in files.items())])
        made = Commit(hashlib.sha1(text.encode()).hexdigest(), parent, title, dict(files))
        self.commits[made.oid] = made
        self.branches[branch] = made.oid
        return made

    def find(self, revision: str) -> Commit:
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        if oid not in self.commits:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[oid]

    def history(self, branch: str = "main") -> list[str]:
        """Return the titles of a branch's commits, newest first."""
        titles, oid = [], self.branches.get(branch)
        while oid is not None:
            titles.append(self.commits[oid].title)
            oid = self.commits[oid].parent
        return titles


@dataclass
class Store:
    """All repositories, who may write where, and the folder of Xet's storage."""

    xet: Path | None = None
    repositories: dict[str, Repository] = field(default_factory=dict)
    writers: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"hf_writer": ("me",), "hf_reader": ()})

    def get(self, name: str, token: str | None, *, write: bool = False) -> Repository:
        """Return a repository; the Hub answers 404 (401 to strangers) for one that may not be seen."""
        spaces = self.namespaces(token)
        found = self.repositories.get(name)
        own = name.split("/")[0] in spaces
        if found is None or (found.private and not own):
            status = 401 if token is None else 404
            raise HubError(status, "Repository not found", "RepoNotFound")
        if write and not own:
            raise HubError(403, f"You don't have the rights to write to {name}")
        return found

    def namespaces(self, token: str | None) -> tuple[str, ...]:
        if token is not None and token not in self.writers:
            raise HubError(401, "Invalid credentials in Authorization header")
        return () if token is None else self.writers[token]

    def create(self, name: str, private: bool, token: str | None) -> Repository:
        if name.split("/")[0] not in self.namespaces(token):
            raise HubError(403, f"You don't have the rights to create a dataset under the namespace {name}")
        if name in self.repositories:
            raise HubError(409, "You already created this dataset repo")
        made = self.repositories[name] = Repository(name, private)
        made.commit("main", "initial commit", {".gitattributes": Blob(len(GITATTRIBUTES), GITATTRIBUTES)})
        return made

    def holds(self, repository: Repository, sha256: str) -> bool:
        return sha256 in repository.objects or sha256 in self.xet_hashes()

    def xet_hashes(self) -> dict[str, str]:
        """Return the Xet hash of every file that is stored by Xet, by SHA-256."""
        shards = [] if self.xet is None else sorted(self.xet.rglob("shards/*.mdb"))
        return dict(itertools.chain.from_iterable(_shard_hashes(path.read_bytes()) for path in shards))


def _shard_hashes(shard: bytes) -> Iterator[tuple[str, str]]:
    """Yield SHA-256 and Xet hash of the files of a shard (its layout: the specification of Xet's shards)."""
    at = _XET_RECORD  # behind the shard's own header
    while (name := shard[at : at + 32]) != b"\xff" * 32:
        flags, n_entries = struct.unpack_from("<II", shard, at + 32)
        at += _XET_RECORD * (1 + n_entries * (2 if flags & _HAS_VERIFICATION else 1))
        if flags & _HAS_SHA256:
            yield _hex(shard[at : at + 32]), _hex(name)
            at += _XET_RECORD


def _hex(value: bytes) -> str:
    """Return a hash as Xet writes it: four little-endian numbers in hexadecimal."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", value))
