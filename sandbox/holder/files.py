"""Files in folders that untrusted code could write to: no symbolic link is ever followed."""

import contextlib
import os
import shutil
import stat


def copy_tree(source: str, target: str, owner: tuple[int, int] | None) -> None:
    """Copy folders, files and symbolic links (as links) with modes and times; other kinds are left out."""
    with os.scandir(source) as entries:
        for entry in entries:
            path, info = os.path.join(target, entry.name), entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                os.symlink(os.readlink(entry.path), path)
            elif stat.S_ISDIR(info.st_mode):
                os.mkdir(path)
                copy_tree(entry.path, path, owner)
            elif stat.S_ISREG(info.st_mode):
                shutil.copyfile(entry.path, path, follow_symlinks=False)
            else:
                continue
            if owner:
                os.chown(path, *owner, follow_symlinks=False)
            if not stat.S_ISLNK(info.st_mode):
                os.chmod(path, stat.S_IMODE(info.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
                os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def give(folder: str, owner: tuple[int, int]) -> None:
    """Make an unprivileged user the owner of a folder that was made for it, and of what is in it."""
    for path, _, names in os.walk(folder):
        os.chown(path, *owner)
        for name in names:
            os.chown(os.path.join(path, name), *owner, follow_symlinks=False)


def open_beneath(root: str, path: str, *, make: bool, owner: tuple[int, int] | None) -> tuple[int, str]:
    """Return a descriptor of the folder that holds `path` below `root`, and the last name; follows no symbolic link."""
    *folders, name = [part for part in path.split("/") if part]
    if not name or ".." in (*folders, name):
        raise OSError(22, f"no file can be called {path}")
    at = os.open(root, os.O_PATH | os.O_DIRECTORY)
    for folder in folders:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=at)
                if owner:
                    os.chown(folder, *owner, dir_fd=at, follow_symlinks=False)
        try:
            below = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at, name


def write_file(root: str, path: str, data: bytes, owner: tuple[int, int] | None) -> None:
    """Put a new file at a path below a folder that untrusted code could write to."""
    at, name = open_beneath(root, path, make=True, owner=owner)
    try:
        mode = 0o644
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode) & 0o777 | 0o600
            os.unlink(name, dir_fd=at)
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        try:
            os.fchmod(file, mode)
            if owner:
                os.fchown(file, *owner)
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)
    finally:
        os.close(at)


def read_file(root: str, path: str, max_bytes: int) -> bytes | None:
    """Return the first bytes of a regular file below a folder that untrusted code could write to."""
    try:
        at, name = open_beneath(root, path, make=False, owner=None)
    except OSError:
        return None
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    except OSError:
        return None
    finally:
        os.close(at)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        with open(file, "rb", closefd=False) as stream:
            return stream.read(max_bytes)
    finally:
        os.close(file)
