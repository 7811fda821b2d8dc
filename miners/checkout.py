"""Writes the tree of a commit to a folder: the bytes of its blobs, no filters or attributes, no link followed."""

import errno
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from miners.changes import display_path
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.partial import fetch_files
from schemas.errors import DataError, PipelineError

_SYMLINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
_FOLDER = 0o755
# What the system says to names that it cannot hold: too long, of bytes that it refuses.
_IMPOSSIBLE = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Checkout:
    """What was written."""

    files: int
    """Regular files."""
    size: int
    """Their bytes."""
    symlinks: int
    """Symbolic links, written with whatever target they have."""
    submodules: tuple[str, ...]
    """Paths of submodules, which are empty folders, sorted."""
    impossible: tuple[tuple[str, str], ...]
    """(path, why) of entries that no folder can hold and that were left out, sorted."""


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    object_id: str
    size: int
    path: bytes


def export_tree(git_dir: Path, commit_id: str, target: Path, max_bytes: int | None = None) -> Checkout:
    """Write the tree of a commit to the new folder `target`.

    Files hold the bytes of their blobs and the executable bit, nothing else of git: no line ends are changed, no
    keywords expanded, no large files fetched. Links are written last and never followed, so that nothing outside
    `target` can be written. The folder is made under another name and renamed when whole. Raises DataError
    `object_missing`, `object_corrupt` or `git_failed` where git cannot read the commit, `disk_full` when its files
    have more than `max_bytes`, and PipelineError when the folder cannot be written or is there already.
    """
    fetch_files(git_dir, check_object_id(commit_id))
    entries = _list_tree(git_dir, commit_id)
    size = sum(entry.size for entry in entries)
    if max_bytes is not None and size > max_bytes:
        raise DataError("disk_full", f"the tree has {size} bytes, the limit is {max_bytes}")
    made = target.with_name(f".{target.name}.{os.getpid()}")
    if target.exists():
        raise PipelineError(f"{target} is there already; remove it and run again")
    shutil.rmtree(made, ignore_errors=True)
    try:
        made.mkdir(parents=True)
        checkout = _write(git_dir, entries, made)
        made.rename(target)
    except OSError as error:
        raise PipelineError(f"cannot write the tree of {commit_id} to {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return checkout


def _list_tree(git_dir: Path, commit_id: str) -> list[_Entry]:
    """Return the entries of a commit's tree: all but folders."""
    listing = run_git(git_dir, "ls-tree", "-r", "-z", "-l", "--full-tree", check_object_id(commit_id))
    entries = []
    for line in listing.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, object_id, size = head.split()
        entries.append(_Entry(mode.decode(), object_id.decode(), int(size) if size.isdigit() else 0, path))
    return entries


def _write(git_dir: Path, entries: Iterable[_Entry], root: Path) -> Checkout:
    """Write files and folders first, links last: a tree that names a link twice cannot lead outside."""
    impossible: list[tuple[str, str]] = []
    submodules: list[str] = []
    written = {"files": 0, "links": 0, "size": 0}
    with ObjectReader(git_dir) as reader:
        for entry in sorted(entries, key=lambda entry: entry.mode == _SYMLINK):
            problem = _problem(entry.path)
            if problem is None:
                problem = _write_entry(reader, entry, root, written)
            if problem is not None:
                impossible.append((display_path(entry.path), problem))
            elif entry.mode == _SUBMODULE:
                submodules.append(display_path(entry.path))
    return Checkout(
        written["files"], written["size"], written["links"], tuple(sorted(submodules)), tuple(sorted(impossible))
    )


def _problem(path: bytes) -> str | None:
    """Say why git itself would refuse to check a path out, if it would."""
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts):
        return "a part of the path is empty, `.` or `..`"
    if any(part.lower() == b".git" for part in parts):
        return "a part of the path is `.git`"
    return None


def _write_entry(reader: ObjectReader, entry: _Entry, root: Path, written: dict[str, int]) -> str | None:
    """Write one entry and count it; say why it is impossible, if it is."""
    place = os.fsencode(root) + b"/" + entry.path
    data = b"" if entry.mode == _SUBMODULE else reader.read(entry.object_id)[1]
    try:
        _make_folders(place, len(os.fsencode(root)) + 1)
        if entry.mode == _SUBMODULE:
            os.mkdir(place, _FOLDER)  # noqa: PTH102 - a path of bytes
            return None
        if entry.mode == _SYMLINK:
            os.symlink(data, place)  # noqa: PTH211 - a path of bytes
            written["links"] += 1
            return None
        mode = 0o755 if entry.mode == _EXECUTABLE else 0o644
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)  # whatever the umask
    except (FileExistsError, NotADirectoryError):
        return "another entry has this path, in this or in other letter case"
    except ValueError:
        return "the link's target holds a NUL byte"
    except OSError as error:
        if error.errno in _IMPOSSIBLE:
            return error.strerror or str(error)
        raise
    written["files"] += 1
    written["size"] += len(data)
    return None


def _make_folders(place: bytes, start: int) -> None:
    """Make the folders above a path; `start` is where the path below the root begins."""
    end = place.find(b"/", start)
    while end != -1:
        try:
            os.mkdir(place[:end], _FOLDER)  # noqa: PTH102 - a path of bytes
            os.chmod(place[:end], _FOLDER)  # noqa: PTH101 - a path of bytes; whatever the umask
        except FileExistsError:
            pass
        end = place.find(b"/", end + 1)
