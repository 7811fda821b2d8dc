"""Clones that hold a part of a repository: all commits, and the trees and blobs that were fetched by their names.

git would fetch what is missing one object at a time, when it meets it. It cannot here: the clone's configuration names
no remote, and whoever reads fetches before, all at once. A note beside the clone's objects says where from.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from miners.git_process import run_git
from miners.places import Place
from miners.remote import Limits, ask
from schemas.errors import DataError

_NOTE = "postquem-partial.json"
# Deltas are made among the objects of one answer, so that few large ones are small; a killed one is asked for again.
_IDS_A_FETCH = 25_000
_OBJECTS = "blob:none"  # with a tree come the trees below it
_COMMITS = "tree:0"
_REMOTE = "postquem-source"  # a copy of a clone has an `origin`, which is the clone
_PIECE = 1 << 20
# Seconds: a host that packs many objects by their names says next to nothing meanwhile (sympy's: a minute and more).
SILENCE = "600"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rest of a clone can be had."""

    place: Place
    limits: Limits


def make_partial(place: Place, ref: str, local: str, fresh: Path, limits: Limits) -> None:
    """Fill an empty folder with a bare repository of all commits of a ref; raise as `remote.ask`."""
    run_git(None, "init", "--quiet", "--bare", str(fresh))
    write_note(fresh, place, limits)
    fetch_commits(place, ref, local, fresh, limits)


def write_note(git_dir: Path, place: Place, limits: Limits) -> None:
    """Note where the rest of a clone can be had, and within which limits."""
    text = {"url": place.url, "timeout": limits.timeout, "max_bytes": limits.max_bytes}
    (git_dir / _NOTE).write_text(json.dumps(text), encoding="utf-8")


def copy_note(git_dir: Path, copy: Path) -> None:
    """Let the copy of a partial clone be one too: what it lacks can be had where the clone has it from."""
    if is_partial(git_dir):
        shutil.copyfile(git_dir / _NOTE, copy / _NOTE)


def is_partial(git_dir: Path) -> bool:
    """Say whether a clone holds a part only."""
    return (git_dir / _NOTE).is_file()


def source_of(git_dir: Path) -> Source | None:
    """Return where the rest of a clone can be had, None for a whole one."""
    try:
        note = json.loads((git_dir / _NOTE).read_text(encoding="utf-8"))
        place = Place("https", note["url"], "", "", git_dir.stem, None, None, None)
        return Source(place, Limits(note["timeout"], note["max_bytes"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError("git_failed", f"the note of {git_dir.name} is damaged: {error}") from None


def clones_below(repos: Path) -> list[Path]:
    """Return the folders of all clones, whole ones too, sorted."""
    return sorted(path.parent for path in repos.rglob("HEAD") if path.parent.suffix == ".git")


def fetch_commits(place: Place, ref: str, local: str, git_dir: Path, limits: Limits) -> None:
    """Bring the commits of a partial clone up to date, rewritten history included; raise as `remote.ask`."""
    _clean(git_dir)
    options = ["--quiet", "--no-tags", "--force", "--no-write-fetch-head", "--no-recurse-submodules"]
    command = ["fetch", *options, f"--filter={_COMMITS}", _REMOTE, f"+{ref}:{local}"]
    ask(place, git_dir, *_origin(git_dir, place), *command, limits=limits)


def fetch_objects(git_dir: Path, object_ids: Iterable[str]) -> int:
    """Fetch what a partial clone lacks of some trees, with all trees below them, and blobs; return how many it lacked.

    Neighbours in the given order should be alike. What the source does not have stays missing, for the reader to
    say. Nothing happens in a whole clone. Raises as `remote.ask`.
    """
    source = source_of(git_dir)
    if source is None:
        return 0
    lacking = missing(git_dir, object_ids)
    for start in range(0, len(lacking), _IDS_A_FETCH):
        _fetch(source, git_dir, lacking[start : start + _IDS_A_FETCH])
    return len(lacking)


def _fetch(source: Source, git_dir: Path, object_ids: Sequence[str]) -> None:
    command = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
    command += ["--no-recurse-submodules", f"--filter={_OBJECTS}", "--stdin", _REMOTE]
    lines = "".join(f"{object_id}\n" for object_id in object_ids).encode()
    ask(source.place, git_dir, *_origin(git_dir, source.place), *command, limits=source.limits, input=lines)


def fetch_trees(git_dir: Path, commit_ids: Iterable[str]) -> None:
    """Fetch the trees of commits, without blobs, where a partial clone lacks them; raise as `remote.ask`."""
    if is_partial(git_dir):
        fetch_objects(git_dir, tree_ids(git_dir, commit_ids))


def fetch_files(git_dir: Path, commit_id: str, suffix: bytes = b"") -> None:
    """Fetch a commit's tree and its regular files and links with a suffix, as `fetch_objects` does."""
    if is_partial(git_dir):
        fetch_trees(git_dir, [commit_id])
        fetch_objects(git_dir, (blob_id for path, blob_id in list_blobs(git_dir, commit_id) if path.endswith(suffix)))


def list_blobs(git_dir: Path, commit_id: str) -> list[tuple[bytes, str]]:
    """Return (path, blob) of a commit's tree; none when git cannot list it."""
    try:
        listing = run_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", commit_id)
    except DataError:
        return []
    entries = (line.partition(b"\t") for line in listing.split(b"\0")[:-1])
    return [(path, head.split()[2].decode()) for head, _, path in entries if head.split()[1] == b"blob"]


def tree_ids(git_dir: Path, commit_ids: Iterable[str]) -> list[str]:
    """Return the trees of those commits that can be read, each once, whether they are there or not."""
    lines = "".join(f"{commit_id}\n" for commit_id in dict.fromkeys(commit_ids)).encode()
    shown = run_git(git_dir, "cat-file", "--batch", "--buffer", input=lines)
    found: dict[str, None] = {}
    position = 0
    while position < len(shown):
        head, _, _ = shown[position : position + 200].partition(b"\n")
        parts = head.split()
        position += len(head) + 1
        if len(parts) == 3 and parts[2].isdigit():
            if parts[1] == b"commit":
                found[shown[position : shown.index(b"\n", position)].split()[1].decode()] = None
            position += int(parts[2]) + 1
    return list(found)


def missing(git_dir: Path, object_ids: Iterable[str]) -> list[str]:
    """Return the objects that a clone lacks, each once, in the given order."""
    ids = list(dict.fromkeys(object_ids))
    lines = "".join(f"{object_id}\n" for object_id in ids).encode()
    shown = run_git(git_dir, "cat-file", "--batch-check", "--buffer", input=lines).splitlines() if ids else []
    return [object_id for object_id, line in zip(ids, shown, strict=True) if line.endswith(b" missing")]


def drop_contents(git_dir: Path, fresh: Path) -> None:
    """Make in an empty folder what a partial clone is without trees and blobs."""
    run_git(None, "init", "--quiet", "--bare", str(fresh))
    commits = run_git(git_dir, "rev-list", "HEAD")
    pack = run_git(git_dir, "pack-objects", "--quiet", "--stdout", input=commits)
    name = run_git(fresh, "index-pack", "--stdin", "--promisor=commits", input=pack).split()[-1].decode()
    if not (fresh / "objects" / "pack" / f"pack-{name}.idx").is_file():
        raise DataError("git_failed", f"git made no pack of the commits of {git_dir.name}")
    for line in run_git(git_dir, "for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines():
        commit_id, _, ref = line.partition(" ")
        run_git(fresh, "update-ref", ref, commit_id)
    shutil.copyfile(git_dir / "HEAD", fresh / "HEAD")
    shutil.copyfile(git_dir / _NOTE, fresh / _NOTE)


def check_packs(git_dir: Path) -> None:
    """Raise DataError `object_corrupt` when a pack of a clone is not what git wrote: it ends with its own digest."""
    for path in sorted((git_dir / "objects" / "pack").glob("*.pack")):
        with path.open("rb") as file:
            rest = path.stat().st_size
            digest, trailer = hashlib.sha1(usedforsecurity=False), b""
            while rest > 20 and (piece := file.read(min(_PIECE, rest - 20))):
                digest.update(piece)
                rest -= len(piece)
            trailer = file.read()
        if digest.digest() != trailer or not path.with_suffix(".idx").is_file():
            raise DataError("object_corrupt", f"{path.name} of the clone is damaged")


def _origin(git_dir: Path, place: Place) -> list[str]:
    """Return the options that name the source for one command, as one that has what is missing."""
    origin = {"url": place.url, "promisor": "true", "partialclonefilter": _COMMITS}
    settings = {f"remote.{_REMOTE}.{key}": value for key, value in origin.items()} | {"http.lowSpeedTime": SILENCE}
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return [f"--git-dir={git_dir}", *words]


def _clean(git_dir: Path) -> None:
    """Remove what a killed git left: unfinished packs and locks; the workspace is this run's alone."""
    for pattern in ("objects/pack/tmp_*", "objects/tmp_*", "*.lock", "refs/**/*.lock", "objects/pack/*.keep"):
        for path in git_dir.glob(pattern):
            path.unlink(missing_ok=True)
