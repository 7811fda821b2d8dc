"""Owns GitPython: where a location leads, and its bare clone, made whole or fetched incrementally."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from git import Git

from miners.commits import count_commits, parse_header, walk
from miners.git_process import NO_GIT, ObjectReader, check_branch, git_environment, run_git
from schemas.config import SourceConfig
from schemas.errors import ConfigError, DataError, PipelineError, TransientError
from schemas.records import RepositoryRecord

LOCAL = "local"
DETACHED = "HEAD"
_ALLOWED = "a location is a local path, a file:// or an https:// URL"
_DETACHED_REF = "refs/postquem/detached"
_STREAM_HASH = "postquem-stream-sha256"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)|[\w.-]+@[\w.-]+:")
_URL_NAME = re.compile(r"[A-Za-z0-9._~+-]+")

# What git and curl print, and what it means for the user. The first match counts.
_AUTHENTICATION = re.compile(
    r"could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|error: 40[134]"
    r"|repository .*not found|certificate|not allowed",
    re.IGNORECASE,
)
_NO_REPOSITORY = re.compile(
    r"does not appear to be a git repository|not a git repository|is not a valid repository|invalid gitfile format"
    r"|unrecognized header|does not look like a v2",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one repository comes from and under which name its clone is kept."""

    kind: str
    """`path`, `https` or `fast_import`."""
    url: str
    """What git is given: an absolute path or an https URL."""
    host: str
    """Host name, `local` for paths and imported streams."""
    owner: str
    """Owner (for nested groups all of them, slash-separated)."""
    name: str
    """Name without `.git`."""
    web_url: str | None
    """Base of permalinks, null without one."""
    branch: str | None
    """Branch to walk, null for the source's HEAD."""
    repo_id: int | None
    """The host's numeric id, null when there is none."""

    @property
    def repo(self) -> str:
        """Return owner/name."""
        return f"{self.owner}/{self.name}"

    def git_dir(self, repos: Path) -> Path:
        """Return the folder of the clone below `repos`; a port becomes part of the host's folder."""
        port = urlsplit(self.url).port if self.kind == "https" else None
        return repos / (f"{self.host}_{port}" if port else self.host) / self.owner / f"{self.name}.git"


@dataclass(frozen=True, slots=True)
class Clone:
    """A bare clone, ready for the walk."""

    git_dir: Path
    """Its folder."""
    record: RepositoryRecord
    """The repository's row."""


def identify(source: SourceConfig, location: str, base: Path) -> Place:
    """Parse one location of a source; a relative path starts at `base`, the configuration's folder.

    Raises ConfigError that says what is allowed for every other protocol, for options in disguise, for
    credentials in the URL and for a path that does not exist.
    """
    if source.branch is not None:
        check_branch(source.branch)
    if not location or location.startswith("-") or any(ord(char) < 32 for char in location):
        raise ConfigError(f"{location!r} is no location; {_ALLOWED}")
    if source.fast_import:
        path = _existing(location, base)
        return _local_place(source, "fast_import", path, ("samples", path.stem))
    if location.lower().startswith("https://"):
        return _https_place(source, location)
    if location.lower().startswith("file://"):
        parts = urlsplit(location)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise ConfigError(f"{location!r} names another machine; write file:///absolute/path")
        location = unquote(parts.path)
    elif _SCHEME.match(location):
        raise ConfigError(f"{location!r} is not allowed: {_ALLOWED}")
    path = _existing(location, base)
    folders = [part for part in path.parts[1:] if part != ".git"]
    return _local_place(source, "path", path, (folders[-2] if len(folders) > 1 else LOCAL, folders[-1]))


def _existing(location: str, base: Path) -> Path:
    """Return the absolute path of a location, `..` resolved but symbolic links kept for the name's sake."""
    path = Path(os.path.abspath(base / Path(location).expanduser()))  # noqa: PTH100 - resolve() follows links
    if not path.exists():
        raise ConfigError(f"{path} does not exist; correct it in [[sources]] or set optional = true there")
    if len(path.parts) < 2:
        raise ConfigError(f'{path} has no name; set repo = "owner/name" and give the repository\'s folder')
    return path


def _local_place(source: SourceConfig, kind: str, path: Path, derived: tuple[str, str]) -> Place:
    owner, name = source.repo.split("/", 1) if source.repo else derived
    owner, name = _file_name(owner), _file_name(name.removesuffix(".git"))
    return Place(kind, str(path), LOCAL, owner, name, source.web_url, source.branch, source.repo_id)


def _file_name(text: str) -> str:
    """Return a name that is safe as one folder and readable in row ids."""
    name = re.sub(r"[^\w.+~-]", "-", text).lstrip(".-")
    if not name:
        raise ConfigError(f'{text!r} cannot be part of a repository\'s name; set repo = "owner/name"')
    return name


def _https_place(source: SourceConfig, location: str) -> Place:
    try:
        parts = urlsplit(location)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{location!r} is no valid URL: {error}") from None
    if "@" in parts.netloc:
        raise ConfigError(
            f"the URL for {host} holds credentials, which would be stored with the clone; "
            "private repositories are not fetched: clone it by hand and give the path"
        )
    path = parts.path.rstrip("/").removesuffix(".git")
    names = path.strip("/").split("/")
    safe = all(_URL_NAME.fullmatch(name) and not name.startswith((".", "-")) for name in names)
    if not host or len(names) < 2 or not safe or parts.query or parts.fragment:
        raise ConfigError(f"{location!r} is no repository URL; write https://host/owner/name")
    owner, name = source.repo.split("/", 1) if source.repo else ("/".join(names[:-1]), names[-1])
    web = f"https://{parts.netloc.lower()}{path}"
    url = f"https://{parts.netloc.lower()}{parts.path.rstrip('/')}"
    return Place("https", url, host, owner, name, source.web_url or web, source.branch, source.repo_id)


def open_clone(place: Place, repos: Path) -> Clone:
    """Return the place's bare clone below `repos`, cloned now or brought up to date.

    A clone is made under a temporary name and renamed when whole, so that a kill leaves none that looks whole.
    Raises ConfigError (no repository there, no such branch, access refused), TransientError (network),
    DataError (`repository_empty`, `history_broken`, `git_failed`) and PipelineError (disk full).
    """
    target = place.git_dir(repos)
    fresh = target.with_name(f".{target.name}.new")
    with _explained(place):
        target.parent.mkdir(parents=True, exist_ok=True)
        for leftover in (fresh, _old_name(target)):
            shutil.rmtree(leftover, ignore_errors=True)
        if place.kind == "fast_import":
            _import_stream(place, target, fresh)
        else:
            _clone_or_fetch(place, target, fresh)
        return _describe(place, target)


def shallow_boundary(git_dir: Path) -> list[str]:
    """Return the commits at which a shallow clone's history is cut off; empty for a whole one."""
    path = git_dir / "shallow"
    return sorted(path.read_text(encoding="ascii").split()) if path.exists() else []


def check_shallow(clone: Clone, since: datetime) -> None:
    """Raise DataError `repository_shallow` unless all boundary commits were committed before `since`.

    The commits at the boundary look as if they had brought every file of the repository.
    """
    with ObjectReader(clone.git_dir) as reader:
        for commit_id in shallow_boundary(clone.git_dir):
            committed = parse_header(commit_id, reader.read(commit_id)[1]).committer_date
            if committed is None or committed >= since:
                raise DataError(
                    "repository_shallow",
                    f"history ends at {commit_id} inside the window; run `git fetch --unshallow` in the source",
                )


class _CleanGit(Git):
    """GitPython's command runner in our environment alone: GitPython itself adds ours to the caller's."""

    def execute(self, command: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - GitPython's own signature
        """Run git through `env -u`, so that GIT_DIR and the like of the caller do not reach it."""
        ours = git_environment()
        drop = [flag for name in sorted(set(os.environ) - set(ours)) for flag in ("-u", name)]
        return super().execute(["env", *drop, *command], *args, **(kwargs | {"env": ours}))


def _git(place: Place, cwd: Path, command: str, *args: str) -> str:
    """Run a git command that talks to the source through GitPython; return its output or raise what it means."""
    Git.check_unsafe_protocols(place.url)
    answer: Any = _CleanGit(str(cwd))._call_process(command, *args, with_extended_output=True, with_exceptions=False)
    status, output, stderr = answer
    if status != 0:
        raise _meaning(place, str(stderr))
    return str(output)


def _meaning(place: Place, stderr: str) -> PipelineError:
    """Return the error that git's words stand for."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    text = "; ".join(line for line in lines if not line.startswith("Cloning into"))[:500]
    if "No such file or directory" in text and "env:" in text:
        return ConfigError(NO_GIT)
    if _DISK_FULL.search(text):
        return PipelineError(f"no space left for the clone of {place.url}; free some or choose another --workspace")
    if _NO_REPOSITORY.search(text):
        return ConfigError(f"{place.url} is no git repository; correct it in [[sources]] ({text})")
    if place.kind == "https" and _AUTHENTICATION.search(text):
        return ConfigError(
            f"{place.url} does not exist, is private or is refused ({text}); "
            "a private repository can be cloned by hand and given as a path"
        )
    if place.kind == "https":
        return TransientError(f"{place.url}: {text}")
    return DataError("git_failed", text)


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn errors of the file system into ones that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _meaning(place, "No space left on device") from error
        raise ConfigError(f"cannot keep the clone of {place.url}: {error}; choose another --workspace") from error


def _clone_or_fetch(place: Place, target: Path, fresh: Path) -> None:
    ref = _remote_ref(place, target.parent)
    if target.exists() and not shallow_boundary(target):
        try:
            _fetch(place, ref, target)
            return
        except (DataError, ConfigError):
            # A damaged clone, or a source that cannot pack what is new (it lacks blobs): copy it as a whole.
            pass
    _create(place, ref, fresh)
    _replace(target, fresh)


def _remote_ref(place: Place, cwd: Path) -> str:
    """Return the source's ref to walk: `refs/heads/<branch>`, or `HEAD` when that is detached."""
    listing = _git(place, cwd, "ls-remote", "--symref", "--", place.url, "HEAD", "refs/heads/*")
    pairs = [line.split("\t", 1) for line in listing.splitlines() if "\t" in line]
    refs = {name: value for value, name in pairs if not value.startswith("ref: ")}
    branches = sorted(name.removeprefix("refs/heads/") for name in refs if name.startswith("refs/heads/"))
    if place.branch is not None:
        if place.branch in branches:
            return f"refs/heads/{place.branch}"
        raise ConfigError(f"{place.url} has no branch {place.branch!r}; it has {', '.join(branches[:20]) or 'none'}")
    symbolic = [value.removeprefix("ref: ") for value, name in pairs if name == "HEAD" and value.startswith("ref: ")]
    head = symbolic[0] if symbolic else DETACHED
    if head in refs:
        return head
    if branches:
        raise ConfigError(
            f"HEAD of {place.url} names no branch; set branch in [[sources]], for example {branches[0]!r}"
        )
    raise DataError("repository_empty", f"{place.url} has no commits")


def _create(place: Place, ref: str, fresh: Path) -> None:
    """Clone the one branch; a local source by copying its objects, which works even when it lacks some."""
    options = ["--bare", "--quiet", "--single-branch", "--no-tags"]
    if ref.startswith("refs/heads/"):
        options.append(f"--branch={ref.removeprefix('refs/heads/')}")
    if place.kind == "path":
        options.append("--no-hardlinks")
    Git.check_unsafe_options(options, ["--upload-pack", "-u", "--config", "-c", "--template"])
    _git(place, fresh.parent, "clone", *options, "--", place.url, str(fresh))
    if ref == DETACHED:
        head = run_git(fresh, "rev-parse", "--verify", "HEAD").decode().strip()
        run_git(fresh, "update-ref", _DETACHED_REF, head)


def _fetch(place: Place, ref: str, target: Path) -> None:
    """Bring an existing clone up to date, rewritten history included, and point HEAD to the ref."""
    local = _DETACHED_REF if ref == DETACHED else ref
    options = ["--quiet", "--no-tags", "--force", "--no-write-fetch-head", "--no-recurse-submodules"]
    _git(place, target, "fetch", *options, "--", place.url, f"+{ref}:{local}")
    if ref == DETACHED:
        head = run_git(target, "rev-parse", "--verify", local).decode().strip()
        run_git(target, "update-ref", "--no-deref", "HEAD", head)
    else:
        run_git(target, "symbolic-ref", "HEAD", ref)


def _replace(target: Path, fresh: Path) -> None:
    """Put a whole clone in its place; a kill in between leaves either one or none, never a mixture."""
    if target.exists():
        target.rename(_old_name(target))
    fresh.rename(target)
    shutil.rmtree(_old_name(target), ignore_errors=True)


def _old_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _import_stream(place: Place, target: Path, fresh: Path) -> None:
    """Import a `git fast-import` stream unless the clone was made of the same bytes."""
    try:
        stream = Path(place.url).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {place.url}: {error.strerror}") from error
    digest = hashlib.sha256(stream).hexdigest()
    stamp = target / _STREAM_HASH
    if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        return
    ref = f"refs/heads/{place.branch}" if place.branch else _first_ref(stream)
    if ref is None:
        raise DataError("repository_empty", f"{place.url} holds no commit command")
    try:
        run_git(None, "init", "--quiet", "--bare", str(fresh))
        # raw-permissive: samples have zones and dates on purpose that other formats refuse.
        run_git(fresh, "fast-import", "--quiet", "--force", "--date-format=raw-permissive", input=stream)
        run_git(fresh, "symbolic-ref", "HEAD", ref)
    except DataError as error:
        raise ConfigError(f"{place.url} is no valid fast-import stream ({error.detail}); correct it") from None
    (fresh / _STREAM_HASH).write_text(digest, encoding="ascii")
    _replace(target, fresh)


def _first_ref(stream: bytes) -> str | None:
    """Return the ref of the first `commit` command, data blocks skipped."""
    position = 0
    while position < len(stream):
        end = stream.find(b"\n", position)
        end = len(stream) if end < 0 else end
        line = stream[position:end]
        position = end + 1
        if line.startswith(b"commit "):
            return line[len(b"commit ") :].decode("utf-8", "surrogateescape").strip()
        if line.startswith(b"data <<"):
            mark = b"\n" + line[len(b"data <<") :] + b"\n"
            found = stream.find(mark, end)
            position = len(stream) if found < 0 else found + len(mark)
        elif line.startswith(b"data ") and line[5:].isdigit():
            position += int(line[5:])
    return None


def _describe(place: Place, git_dir: Path) -> Clone:
    """Return the clone with its row; the branch is what HEAD points to."""
    try:
        head = run_git(git_dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
    except DataError:
        raise DataError("repository_empty", f"{place.url} has no commits on its branch") from None
    symbolic = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    branch = symbolic.removeprefix("ref: refs/heads/") if symbolic.startswith("ref: ") else DETACHED
    try:
        n_commits = count_commits(git_dir, head)
    except DataError:
        n_commits = len(walk(git_dir, head))  # an unreadable commit on the way, which the walk gets past
    record = RepositoryRecord(place.repo, place.host, place.repo_id, place.web_url, branch, head, n_commits)
    return Clone(git_dir, record)
