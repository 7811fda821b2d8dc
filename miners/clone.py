"""Owns GitPython: bare clones of places, made whole or fetched incrementally."""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from miners.commits import count_commits, parse_header, walk
from miners.git_process import NO_GIT, ObjectReader, check_branch, git_environment, run_git
from miners.places import Place, identify
from schemas.errors import ConfigError, DataError, PipelineError, TransientError
from schemas.records import RepositoryRecord


@contextmanager
def _import_settings() -> Iterator[None]:
    """Keep GitPython's import from running the caller's git in the caller's environment, and from failing without.

    It runs `git version` and raises ImportError when that fails. A command that cannot be run at all and its quiet
    mode leave it with plain `git`, which is looked for in our environment at each call.
    """
    ours = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": os.devnull}
    callers = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in callers.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _import_settings():
    from git import Git, GitCommandNotFound

__all__ = ["Clone", "Place", "check_shallow", "identify", "open_clone", "shallow_boundary"]

DETACHED = "HEAD"
_DETACHED_REF = "refs/postquem/detached"
_STREAM_HASH = "postquem-stream-sha256"

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
_NETWORK = re.compile(
    r"unable to access|could not resolve|connect|timed out|timeout|early EOF|RPC failed|hung up|empty reply|disconnect"
    r"|reset by peer|\b(?:SSL|TLS|curl|HTTP)\b|error: (?:429|5\d\d)|fetch-pack|index-pack failed",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clone:
    """A bare clone, ready for the walk."""

    git_dir: Path
    """Its folder."""
    record: RepositoryRecord
    """The repository's row."""


def open_clone(place: Place, repos: Path, former: Sequence[str] = ()) -> Clone:
    """Return the place's bare clone below `repos`, cloned now or brought up to date.

    A clone under one of its `former` names is renamed and brought up to date; no other place may have that name. A
    clone is made under a temporary name and renamed when whole, so that a kill leaves none that looks whole.
    Raises ConfigError (no repository there, no branch of the configured name, access refused), TransientError
    (network), DataError (`repository_empty`, `branch_missing`, `history_broken`, `git_failed`) and PipelineError
    (disk full).
    """
    target = place.git_dir(repos)
    with _explained(place):
        target.parent.mkdir(parents=True, exist_ok=True)
        for leftover in (*target.parent.glob(f"{_new_prefix(target)}*"), _old_name(target)):
            shutil.rmtree(leftover, ignore_errors=True)
        if not target.exists():
            _rename_former(place, repos, former)
        if place.kind == "fast_import":
            _import_stream(place, target)
        else:
            _clone_or_fetch(place, target)
        return _describe(place, target)


def _rename_former(place: Place, repos: Path, former: Sequence[str]) -> None:
    """Take over the clone of a repository that was renamed; what it points to comes from the source at once."""
    for name in former:
        clone = place.git_dir(repos, name)
        if clone.is_dir():
            clone.rename(place.git_dir(repos))
            return


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
    try:
        status, output, stderr = _CleanGit(str(cwd)).execute(
            ["git", command, *args], with_extended_output=True, with_exceptions=False
        )
    except GitCommandNotFound:
        raise ConfigError(NO_GIT) from None
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
        if place.kind == "path" and _has_objects(Path(place.url)):
            return DataError("branch_missing", f"HEAD of {place.url} is missing or damaged; point it to a branch")
        return ConfigError(f"{place.url} is no git repository; correct it in [[sources]] ({text})")
    if place.kind == "https" and _AUTHENTICATION.search(text):
        return ConfigError(
            f"{place.url} does not exist, is private or is refused ({text}); "
            "a private repository can be cloned by hand and given as a path"
        )
    if place.kind == "https" and _NETWORK.search(text):
        return TransientError(f"{place.url}: {text}")
    return DataError("git_failed", text)


def _has_objects(path: Path) -> bool:
    """Say whether a folder is a repository but for its HEAD, without which git takes it for none."""
    return any((folder / "objects").is_dir() and (folder / "refs").is_dir() for folder in (path, path / ".git"))


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn errors of the file system into ones that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _meaning(place, "No space left on device") from error
        raise ConfigError(f"cannot keep the clone of {place.url}: {error}; choose another --workspace") from error


def _clone_or_fetch(place: Place, target: Path) -> None:
    ref = _remote_ref(place, target.parent)
    if target.exists() and not shallow_boundary(target):
        try:
            _fetch(place, ref, target)
            return
        except (DataError, ConfigError):
            # A damaged clone, the lock of a killed git, or a source that cannot pack what is new because it lacks
            # blobs: copy it as a whole.
            pass
    with _fresh_folder(target) as fresh:
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
        usable = [name for name in branches[:20] if _can_be_set(name)]
        raise ConfigError(f"{place.url} has no branch {place.branch!r}; it has {', '.join(usable) or 'none'}")
    symbolic = [value.removeprefix("ref: ") for value, name in pairs if name == "HEAD" and value.startswith("ref: ")]
    head = symbolic[0] if symbolic else DETACHED
    if head in refs:
        return head
    if branches:
        example = next((f", for example {name!r}" for name in branches if _can_be_set(name)), "")
        raise DataError("branch_missing", f"HEAD of {place.url} names no branch; set branch in [[sources]]{example}")
    raise DataError("repository_empty", f"{place.url} has no commits")


def _can_be_set(branch: str) -> bool:
    """Say whether the configuration takes a branch's name; git itself lets plumbing make others."""
    try:
        check_branch(branch)
    except ConfigError:
        return False
    return True


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


@contextmanager
def _fresh_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder beside the target under a name of its own: the git of a killed run may still write."""
    fresh = Path(tempfile.mkdtemp(prefix=_new_prefix(target), dir=target.parent))
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _new_prefix(target: Path) -> str:
    return f".{target.name}.new-"


def _old_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _import_stream(place: Place, target: Path) -> None:
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
    with _fresh_folder(target) as fresh:
        _fill(place, stream, ref, fresh)
        (fresh / _STREAM_HASH).write_text(digest, encoding="ascii")
        _replace(target, fresh)


def _fill(place: Place, stream: bytes, ref: str, fresh: Path) -> None:
    """Make a bare repository of a stream and point its HEAD to the ref."""
    try:
        run_git(None, "init", "--quiet", "--bare", str(fresh))
        # raw-permissive: samples have zones and dates on purpose that other formats refuse.
        run_git(fresh, "fast-import", "--quiet", "--force", "--date-format=raw-permissive", input=stream)
        run_git(fresh, "symbolic-ref", "HEAD", ref)
    except DataError as error:
        if _DISK_FULL.search(error.detail):
            raise _meaning(place, error.detail) from None
        raise ConfigError(f"{place.url} is no valid fast-import stream ({error.detail}); correct it") from None


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
    head = _head_commit(place, git_dir)
    symbolic = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    branch = symbolic.removeprefix("ref: refs/heads/") if symbolic.startswith("ref: ") else DETACHED
    try:
        n_commits = count_commits(git_dir, head)
    except DataError:
        n_commits = len(walk(git_dir, head))  # an unreadable commit on the way, which the walk gets past
    record = RepositoryRecord(
        place.repo, place.host, place.repo_id, place.web_url, branch, head, n_commits, place.aliases
    )
    return Clone(git_dir, record)


def _head_commit(place: Place, git_dir: Path) -> str:
    """Return the commit that HEAD leads to; what HEAD names tells an empty branch from a broken one."""
    try:
        named = run_git(git_dir, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
    except DataError:
        raise DataError("repository_empty", f"{place.url} has no commits on its branch") from None
    try:
        return run_git(git_dir, "rev-parse", "--verify", f"{named}^{{commit}}").decode().strip()
    except DataError as error:
        # The workspace's place is no part of the data.
        raise DataError("history_broken", error.detail.replace(str(git_dir), place.url)) from None
