"""A filter of system calls that no test suite needs and that reach past what namespaces isolate.

Namespaces leave open: sockets of families that no network namespace covers (AF_VSOCK reaches a virtual machine's host),
keyrings, bpf, performance counters, io_uring (which makes system calls that no filter sees), reading and changing
processes of the same user (a test could forge the report that its supervisor writes), and new user namespaces where
bubblewrap is too old to forbid them. Calls that are refused fail as if they were not allowed or not there; nothing is
killed, so that a suite that merely tries goes on.
"""

import errno
import functools
import json
import platform
import struct
from collections.abc import Mapping

# <linux/filter.h>, <linux/seccomp.h>, <linux/audit.h>
_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_SET, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers of the x32 interface on x86-64 have this bit: another table, so everything above is refused.
_X32 = 0x40000000
# CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} of <linux/sched.h>.
_CLONE_NEW_BITS = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_CLONE_NEW = sum(_CLONE_NEW_BITS)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (read by getifaddrs).
_FAMILIES = (1, 2, 10, 16)

# System calls by name: number on x86-64 and on arm64 (arch/x86/entry/syscalls/syscall_64.tbl, <asm-generic/unistd.h>).
_REFUSED: Mapping[str, tuple[int, int]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "lookup_dcookie": (212, 18),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "quotactl": (179, 60), "acct": (163, 89), "syslog": (103, 116),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "vhangup": (153, 58), "iopl": (172, -1), "ioperm": (173, -1), "nfsservctl": (180, 42), "uselib": (134, -1),
    "modify_ldt": (154, -1), "fanotify_init": (300, 262),
}  # fmt: skip
# Programs have other ways where the kernel does not know these: io_uring_setup/_enter/_register, clone3 (its flags lie
# in memory, where no filter sees them; the C library goes on with clone).
_UNKNOWN = {"io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
            "clone3": (435, 435)}  # fmt: skip
_CLONE, _SOCKET, _SOCKETPAIR, _IOCTL = (56, 220), (41, 198), (53, 199), (16, 29)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _on(number: int, block: bytes) -> bytes:
    """Run a block of instructions, which returns on every path, when the call is that one."""
    return _instruction(_JUMP_EQUAL, number, 0, len(block) // 8) + block


def _argument(position: int) -> bytes:
    """Load the lower half of an argument; both machines are little-endian."""
    return _instruction(_LOAD, _ARGUMENTS_AT + 8 * position)


def _families() -> bytes:
    allowed = len(_FAMILIES)
    block = _argument(0)
    for position, family in enumerate(_FAMILIES):
        block += _instruction(_JUMP_EQUAL, family, allowed - position, 0)
    return block + _refuse(errno.EAFNOSUPPORT) + _instruction(_RETURN, _ALLOW)


@functools.cache
def build_filter(machine: str | None = None) -> bytes | None:
    """Return the program for a machine, this one when none is named; null for machines whose calls are not listed."""
    machine = machine or platform.machine()
    if machine not in _AUDIT:
        return None
    column = 0 if machine == "x86_64" else 1
    program = _instruction(_LOAD, _ARCHITECTURE_AT)
    program += _instruction(_JUMP_EQUAL, _AUDIT[machine], 1, 0) + _refuse(errno.ENOSYS)
    program += _instruction(_LOAD, _NUMBER_AT)
    if column == 0:
        program += _instruction(_JUMP_GREATER, _X32 - 1, 0, 1) + _refuse(errno.ENOSYS)
    for numbers in _REFUSED.values():
        if (number := numbers[column]) >= 0:
            program += _on(number, _refuse(errno.EPERM))
    for numbers in _UNKNOWN.values():
        program += _on(numbers[column], _refuse(errno.ENOSYS))
    allow = _instruction(_RETURN, _ALLOW)
    new_namespace = _argument(0) + _instruction(_JUMP_SET, _CLONE_NEW, 0, 1) + _refuse(errno.EPERM) + allow
    terminal = _argument(1)
    terminal += _instruction(_JUMP_EQUAL, _TIOCSTI, 1, 0) + _instruction(_JUMP_EQUAL, _TIOCLINUX, 0, 1)
    terminal += _refuse(errno.EPERM) + allow
    program += _on(_CLONE[column], new_namespace) + _on(_IOCTL[column], terminal)
    program += _on(_SOCKET[column], _families()) + _on(_SOCKETPAIR[column], _families())
    return program + allow


def build_profile(machine: str | None = None) -> str | None:
    """Return the same filter as a profile of container engines; null for machines whose calls are not listed."""
    machine = machine or platform.machine()
    if machine not in _AUDIT:
        return None

    def rule(names: list[str], number: int, operator: str = "", index: int = 0, *values: int) -> dict[str, object]:
        compared = {"index": index, "op": operator, "value": values[0] if values else 0, "valueTwo": sum(values[1:])}
        return {
            "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": number, "args": [compared] if operator else [],
        }  # fmt: skip

    families = [family for family in range(max(_FAMILIES)) if family not in _FAMILIES]
    sockets = ["socket", "socketpair"]
    rules = [rule(sorted(_REFUSED), errno.EPERM), rule(sorted(_UNKNOWN), errno.ENOSYS)]
    rules += [rule(["clone"], errno.EPERM, "SCMP_CMP_MASKED_EQ", 0, bit, bit) for bit in _CLONE_NEW_BITS]
    rules += [rule(["ioctl"], errno.EPERM, "SCMP_CMP_EQ", 1, request) for request in (_TIOCSTI, _TIOCLINUX)]
    rules += [rule(sockets, errno.EAFNOSUPPORT, "SCMP_CMP_EQ", 0, family) for family in families]
    rules.append(rule(sockets, errno.EAFNOSUPPORT, "SCMP_CMP_GT", 0, max(_FAMILIES)))
    architecture = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}[machine]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "architectures": [architecture], "syscalls": rules})
