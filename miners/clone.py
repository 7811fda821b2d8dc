"""Bare clones of places: made whole or in part, fetched incrementally, thinned out when the disk is full."""

import errno
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from miners.commits import count_commits, parse_header, walk
from miners.git_process import ObjectReader, check_branch, run_git
from miners.partial import (
    SILENCE,
    check_packs,
    copy_note,
    drop_contents,
    fetch_commits,
    is_partial,
    make_partial,
    source_of,
    write_note,
)
from miners.places import Place, identify
from miners.remote import Limits, ask, is_disk_full, meaning
from schemas.errors import ConfigError, DataError, PipelineError, RefusedError, SourceError
from schemas.records import RepositoryRecord

__all__ = ["Clone", "Place", "check_shallow", "identify", "open_clone", "shallow_boundary", "thin_out"]

DETACHED = "HEAD"
_DETACHED_REF = "refs/postquem/detached"
_FINAL = frozenset({"clone_too_large", "repository_blocked", "repository_disabled"})
_STREAM_HASH = "postquem-stream-sha256"


@dataclass(frozen=True, slots=True)
class Clone:
    """A bare clone, ready for the walk."""

    git_dir: Path
    """Its folder."""
    record: RepositoryRecord
    """The repository's row."""


@dataclass(frozen=True, slots=True)
class CloneOptions:
    """How clones over https are made."""

    whole: bool = False
    """Fetch everything; otherwise commits only, and whoever reads more fetches it (`miners.partial`)."""
    limits: Limits = field(default_factory=Limits)
    """What a single fetch may cost."""


def open_clone(
    place: Place, repos: Path, former: Sequence[str] = (), options: CloneOptions | None = None
) -> Clone:  # fmt: skip
    """Return the place's bare clone below `repos`, cloned now or brought up to date.

    A clone under one of its `former` names is renamed and brought up to date; no other place may have that name. A
    clone is made under a temporary name and renamed when whole, so that a kill leaves none that looks whole.
    Raises SourceError (no repository there, no branch of the configured name; RefusedError), UnreachableError
    (network), DataError (`repository_empty`, `repository_blocked`, `repository_disabled`, `branch_missing`,
    `history_broken`, `clone_too_large`, `git_failed`) and PipelineError (disk full).
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
            _clone_or_fetch(place, target, options or CloneOptions())
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


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn errors of the file system into ones that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise meaning(place, "No space left on device") from error
        raise ConfigError(f"cannot keep the clone of {place.url}: {error}; choose another --workspace") from error


def thin_out(git_dir: Path) -> bool:
    """Take a partial clone's trees and blobs away; say whether there were any. Whole clones stay as they are."""
    if not is_partial(git_dir):
        return False
    with _fresh_folder(git_dir) as fresh:
        drop_contents(git_dir, fresh)
        _replace(git_dir, fresh)
    return True


def complete(git_dir: Path) -> None:
    """Fetch all of a partial clone, for a source that cannot give parts; raise as `open_clone`."""
    source = source_of(git_dir)
    if source is None:
        return
    head = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    ref = head.removeprefix("ref: ") if head.startswith("ref: ") else DETACHED
    with _explained(source.place), _fresh_folder(git_dir) as fresh:
        _create(source.place, ref, fresh, CloneOptions(limits=source.limits))
        _replace(git_dir, fresh)


def _clone_or_fetch(place: Place, target: Path, options: CloneOptions) -> None:
    ref = _remote_ref(place, target.parent)
    if target.exists() and not shallow_boundary(target) and not (options.whole and is_partial(target)):
        try:
            _fetch(place, ref, target, options)
            return
        except (DataError, ConfigError) as error:
            # A damaged clone, the lock of a killed git, or a source that cannot pack what is new because it lacks
            # blobs: copy it as a whole.
            if _is_final(error):
                raise
    with _fresh_folder(target) as fresh:
        if options.whole or place.kind != "https" or not _create_partial(place, ref, fresh, options):
            _create(place, ref, fresh, options)
        _replace(target, fresh)


def _is_final(error: PipelineError) -> bool:
    """Say whether fetching in another way would meet the same."""
    reason = error.reason if isinstance(error, DataError) else ""
    return isinstance(error, RefusedError) or reason in _FINAL


def _remote_ref(place: Place, cwd: Path) -> str:
    """Return the source's ref to walk: `refs/heads/<branch>`, or `HEAD` when that is detached."""
    listing = ask(place, cwd, "ls-remote", "--symref", "--", place.url, "HEAD", "refs/heads/*")
    pairs = [line.split("\t", 1) for line in listing.splitlines() if "\t" in line]
    refs = {name: value for value, name in pairs if not value.startswith("ref: ")}
    branches = sorted(name.removeprefix("refs/heads/") for name in refs if name.startswith("refs/heads/"))
    if place.branch is not None:
        if place.branch in branches:
            return f"refs/heads/{place.branch}"
        usable = [name for name in branches[:20] if _can_be_set(name)]
        raise SourceError(f"{place.url} has no branch {place.branch!r}; it has {', '.join(usable) or 'none'}")
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


def _create_partial(place: Place, ref: str, fresh: Path, options: CloneOptions) -> bool:
    """Clone the commits of the one branch; say whether the source can do that."""
    try:
        make_partial(place, ref, _local(ref), fresh, options.limits)
        _point_head(ref, fresh)
    except (DataError, ConfigError) as error:
        if _is_final(error):
            raise
        shutil.rmtree(fresh)
        fresh.mkdir()
        return False
    return True


def _create(place: Place, ref: str, fresh: Path, options: CloneOptions) -> None:
    """Clone the one branch; a local source by linking its objects, or copying them where that is impossible.

    Neither looks into them, which works even when some are missing. Objects are never changed in place.
    """
    flags = ["--bare", "--quiet", "--single-branch", "--no-tags"]
    if ref.startswith("refs/heads/"):
        flags.append(f"--branch={ref.removeprefix('refs/heads/')}")
    limits = replace(options.limits, folder=fresh)
    command = ["-c", f"http.lowSpeedTime={SILENCE}", "clone", *flags, "--", place.url, str(fresh)]
    ask(place, fresh.parent, *command, limits=limits)
    if place.kind == "path":
        copy_note(Path(place.url), fresh)
    if ref == DETACHED:
        head = run_git(fresh, "rev-parse", "--verify", "HEAD").decode().strip()
        run_git(fresh, "update-ref", _DETACHED_REF, head)


def _fetch(place: Place, ref: str, target: Path, options: CloneOptions) -> None:
    """Bring an existing clone up to date, rewritten history included, and point HEAD to the ref."""
    if is_partial(target) and place.kind == "https":
        check_packs(target)
        write_note(target, place, options.limits)
        fetch_commits(place, ref, _local(ref), target, options.limits)
        _point_head(ref, target)
        count_commits(target, _head_commit(place, target))
        return
    flags = ["--quiet", "--no-tags", "--force", "--no-write-fetch-head", "--no-recurse-submodules"]
    command = ["fetch", *flags, "--", place.url, f"+{ref}:{_local(ref)}"]
    ask(place, target, f"--git-dir={target}", *command, limits=options.limits)
    _point_head(ref, target)


def _local(ref: str) -> str:
    return _DETACHED_REF if ref == DETACHED else ref


def _point_head(ref: str, target: Path) -> None:
    """Point HEAD to the ref that is walked."""
    if ref == DETACHED:
        head = run_git(target, "rev-parse", "--verify", _DETACHED_REF).decode().strip()
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
        raise SourceError(f"cannot read {place.url}: {error.strerror}") from error
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
        if is_disk_full(error.detail):
            raise meaning(place, error.detail) from None
        raise SourceError(f"{place.url} is no valid fast-import stream ({error.detail}); correct it") from None


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
