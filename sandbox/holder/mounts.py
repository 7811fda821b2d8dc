"""Mounts and namespaces, by the C library."""

import ctypes
import os

# <linux/mount.h>, <linux/sched.h>
MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000

# <linux/prctl.h>
PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE = 36, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Call mount(2)."""
    arguments = [os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options)), f"mount {kind or 'bind'} {target}")


def umount(target: str, flags: int = 0) -> None:
    """Call umount2(2)."""
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def enter_namespaces() -> None:
    """Leave the mount namespace, as root of a user namespace where that takes one."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)), "unshare")
    if uid:
        _map_user(f"0 {uid} 1", f"0 {gid} 1")
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def enter_user_namespace() -> None:
    """Start a new account of this user's processes, which counts those of other sandboxes no more."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(CLONE_NEWUSER), "unshare")
    _map_user(f"{uid} {uid} 1", f"{gid} {gid} 1")


def _map_user(uids: str, gids: str) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", uids), ("gid_map", gids)):
        at = os.open(f"/proc/self/{name}", os.O_WRONLY)  # no module can be loaded: it may be in a folder of root's
        os.write(at, text.encode())
        os.close(at)


def has_user_attributes(folder: str) -> bool:
    """Tell whether a file system keeps extended attributes of users; the one in memory does since Linux 6.6."""
    try:
        os.setxattr(folder, "user.postquem", b"1")
        os.removexattr(folder, "user.postquem")
    except OSError:
        return False
    return True


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ended, so that none escapes."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def make_dumpable() -> None:
    """Give this process's files in /proc to its user again, after it became another one."""
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")
