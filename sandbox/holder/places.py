"""Where a session's files are: in mounts that nobody else sees, or (unsafe-local) in a plain folder.

Both are below one folder, the working folder: `src` is the tree with its changes, `disk` holds what else is written.
"""

import contextlib
import os
import shutil
from typing import Any

from sandbox.holder.files import copy_tree, give, write_file
from sandbox.holder.mounts import (
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    MS_REMOUNT,
    enter_namespaces,
    has_user_attributes,
    mount,
    umount,
)

_OVERLAY = "lowerdir=base,upperdir=disk/upper,workdir=disk/work"
# The session's own folders and a handful of a test suite's, on however small a disk.
_FEWEST_FILES = 1_024
_TMPFS = MS_NOSUID | MS_NODEV


class MountedPlace:
    """A private mount namespace: `base` is the tree, `disk` a file system of limited size, `src` both together."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.stage: str = request["stage"]
        self.source: str | None = request["source"]
        self.disk_bytes: int = request["disk_bytes"]
        # Files belong to the user that commands run as: root is never the one.
        self.owner = (request["uid"], request["uid"]) if os.getuid() == 0 else None
        self.overlay: bool = request["overlay"]
        self.copied_bytes = 0

    def prepare(self, request: dict[str, Any]) -> None:
        """Mount everything that lasts as long as the session."""
        enter_namespaces()
        mount("tmpfs", self.stage, "tmpfs", _TMPFS, "mode=755")
        os.chdir(self.stage)
        for name in ("base", "disk", "src", "binds", "etc"):
            os.mkdir(name)
        for name, text in request["etc"].items():
            write_file("etc", name, text.encode(), None)
        for number, (host, writable) in enumerate(request["binds"]):
            if writable and self.owner and os.stat(host).st_uid != self.owner[0]:
                give(host, self.owner)
            target = f"binds/{number}"
            if os.path.isdir(host):
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
            mount(host, target, "", MS_BIND | MS_REC)
        if self.source:
            self._mount_base(self.source)
        self._mount_disk()

    def _mount_base(self, source: str) -> None:
        """Show the tree; root copies it once, since commands run as a user who could not change root's files."""
        if self.owner is None or not self.overlay:
            mount(source, "base", "", MS_BIND | MS_REC)
            return
        mount("tmpfs", "base", "tmpfs", _TMPFS, "mode=755")
        os.chown("base", *self.owner)
        copy_tree(source, "base", self.owner)

    def _mount_disk(self) -> None:
        """Mount what commands write to, with its limit, and the tree over it."""
        mount("tmpfs", "disk", "tmpfs", _TMPFS, f"mode=755,{room(self.disk_bytes)}")
        make_folders(self.owner)
        options = _OVERLAY + ("" if self.owner else ",userxattr")
        # Without extended attributes a folder that was removed and made again would show its old files.
        self.overlay = self.overlay and (bool(self.owner) or has_user_attributes("disk/upper"))
        if self.source and self.overlay:
            try:
                mount("overlay", "src", "overlay", _TMPFS, options)
            except OSError:
                self.overlay = False  # not in this kernel, or not without root
            else:
                return
        self.copied_bytes = 0
        if self.source:
            self.copied_bytes = tree_bytes(self.source)
            self._resize(self.disk_bytes + self.copied_bytes)
            copy_tree("base", "disk/upper", self.owner)
        mount("disk/upper", "src", "", MS_BIND)

    def reset(self) -> None:
        """Forget everything that was written."""
        umount("src")
        umount("disk")
        self._mount_disk()

    def limit_disk(self, size: int) -> None:
        """Give the disk another limit; never below what is on it."""
        if size != self.disk_bytes:
            state = os.statvfs("disk")
            self._resize(max(size + self.copied_bytes, (state.f_blocks - state.f_bfree) * state.f_frsize))
            self.disk_bytes = size

    @staticmethod
    def _resize(size: int) -> None:
        mount("tmpfs", "disk", "tmpfs", MS_REMOUNT | _TMPFS, room(size))

    @staticmethod
    def is_full() -> bool:
        """Tell whether nothing more can be written."""
        state = os.statvfs("disk")
        return state.f_bavail == 0 or state.f_favail == 0

    def clean(self) -> None:
        """Remove what does not go with the mount namespace."""
        os.chdir("/")
        with contextlib.suppress(OSError):
            umount(self.stage, MNT_DETACH)
        with contextlib.suppress(OSError):
            os.rmdir(self.stage)


class PlainPlace:
    """A copy of the tree in a folder of the host; nothing is hidden and nothing limits the disk."""

    owner = None

    def __init__(self, request: dict[str, Any]) -> None:
        self.stage: str = request["stage"]
        self.source: str | None = request["source"]

    def prepare(self, request: dict[str, Any]) -> None:
        """Copy the tree."""
        del request
        os.chdir(self.stage)
        self._fill()

    def _fill(self) -> None:
        for name in ("disk", "src"):
            os.mkdir(name)
        make_folders(None)
        if self.source:
            copy_tree(self.source, "src", None)

    def reset(self) -> None:
        """Forget everything that was written."""
        for name in ("disk", "src"):
            remove_tree(name)
        self._fill()

    def limit_disk(self, size: int) -> None:
        """Do nothing: the backend says that it cannot."""

    @staticmethod
    def is_full() -> bool:
        """Return no: there is no disk of its own."""
        return False

    def clean(self) -> None:
        """Remove the folder."""
        os.chdir("/")
        remove_tree(self.stage)


def most_files(size: int) -> int:
    """Return how many files a disk of a size may hold: one for each page, as if none were empty."""
    return max(_FEWEST_FILES, size // os.sysconf("SC_PAGE_SIZE"))


def room(size: int) -> str:
    """Return the mount options that limit a file system in memory."""
    return f"size={size},nr_inodes={most_files(size)}"


def make_folders(owner: tuple[int, int] | None) -> None:
    """Make the folders of what is written."""
    for name in ("upper", "work", "tmp", "shm", "in"):
        os.mkdir(f"disk/{name}")
        if owner:
            os.chown(f"disk/{name}", *owner)
    for name in ("tmp", "shm"):
        os.chmod(f"disk/{name}", 0o1777)  # noqa: S103 - as on every system


def remove_tree(folder: str) -> None:
    """Remove a folder, also when untrusted code took away the right to."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            below = os.path.join(path, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)


def tree_bytes(folder: str) -> int:
    """Return what a copy of a tree takes, in whole pages."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for path, folders, files in os.walk(folder):
        total += page * len(folders)
        total += sum(max(1, -(-os.lstat(os.path.join(path, name)).st_size // page)) * page for name in files)
    return total
