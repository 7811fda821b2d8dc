"""The filter of system calls, carried out instruction by instruction as the kernel does."""

import errno
import json
import struct

import pytest

from sandbox.backends.seccomp import build_filter, build_profile

X86, ARM = 0xC000003E, 0xC00000B7
ALLOWED = 0


def decide(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return the error that a call gets, 0 when it is allowed (Documentation/networking/filter.rst, classic BPF)."""
    values = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *values)
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            assert value in {0x7FFF0000} or value & 0xFFFF0000 == 0x00050000
            return 0 if value == 0x7FFF0000 else value & 0xFFFF
        else:
            holds = {0x15: accumulator == value, 0x25: accumulator > value, 0x45: bool(accumulator & value)}[code]
            at += if_true if holds else if_false


@pytest.fixture
def program() -> bytes:
    built = build_filter("x86_64")
    assert built is not None
    return built


@pytest.mark.parametrize("call", ["read 0", "write 1", "execve 59", "fork 57", "kill 62", "prctl 157", "seccomp 317"])
def test_calls_of_programs_are_allowed(program: bytes, call: str) -> None:
    assert decide(program, X86, int(call.split()[1])) == ALLOWED


@pytest.mark.parametrize(
    "call", ["ptrace 101", "mount 165", "bpf 321", "keyctl 250", "unshare 272", "setns 308", "process_vm_readv 310"]
)
def test_calls_that_reach_past_namespaces_are_refused(program: bytes, call: str) -> None:
    assert decide(program, X86, int(call.split()[1])) == errno.EPERM


@pytest.mark.parametrize("call", ["io_uring_setup 425", "io_uring_enter 426", "clone3 435"])
def test_calls_with_an_older_way_are_unknown(program: bytes, call: str) -> None:
    assert decide(program, X86, int(call.split()[1])) == errno.ENOSYS


@pytest.mark.parametrize(
    ("family", "decision"),
    [(1, ALLOWED), (2, ALLOWED), (10, ALLOWED), (16, ALLOWED)]
    + [(family, errno.EAFNOSUPPORT) for family in (0, 3, 9, 11, 15, 17, 29, 38, 40, 45)],
)
def test_only_sockets_that_a_network_namespace_covers_are_opened(program: bytes, family: int, decision: int) -> None:
    assert [decide(program, X86, call, family, 1) for call in (41, 53)] == [decision, decision]


def test_a_process_may_be_cloned_but_no_namespace(program: bytes) -> None:
    assert decide(program, X86, 56, 0x01200011) == ALLOWED  # fork of the C library
    assert decide(program, X86, 56, 0x003D0F00) == ALLOWED  # a thread
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(program, X86, 56, flag | 17) == errno.EPERM


def test_nothing_can_be_typed_into_a_terminal(program: bytes) -> None:
    assert decide(program, X86, 16, 0, 0x5401) == ALLOWED  # TCGETS
    assert decide(program, X86, 16, 0, 0x5412) == errno.EPERM
    assert decide(program, X86, 16, 0, 0x1_0000_5412) == errno.EPERM  # the kernel looks at the lower half only


def test_other_tables_of_calls_are_closed(program: bytes) -> None:
    assert decide(program, 0x40000003, 1) == errno.ENOSYS  # 32-bit x86
    assert decide(program, X86, 0x40000000 | 1) == errno.ENOSYS  # x32


def test_arm_has_its_own_numbers() -> None:
    program = build_filter("aarch64")
    assert program is not None
    assert [decide(program, ARM, number) for number in (63, 64, 221)] == [ALLOWED] * 3  # read, write, execve
    assert [decide(program, ARM, number) for number in (117, 40, 280, 97)] == [errno.EPERM] * 4
    assert decide(program, ARM, 198, 40) == errno.EAFNOSUPPORT
    assert decide(program, X86, 0) == errno.ENOSYS


def test_machines_without_a_table_have_no_filter() -> None:
    assert build_filter("riscv64") is None
    assert build_profile("riscv64") is None


def test_the_profile_of_container_engines_says_the_same() -> None:
    profile = json.loads(str(build_profile("x86_64")))
    assert (profile["defaultAction"], profile["architectures"]) == ("SCMP_ACT_ALLOW", ["SCMP_ARCH_X86_64"])
    refused = {name: rule["errnoRet"] for rule in profile["syscalls"] if not rule["args"] for name in rule["names"]}
    assert (refused["ptrace"], refused["mount"], refused["io_uring_setup"], refused["clone3"]) == (1, 1, 38, 38)
    families = [rule["args"][0] for rule in profile["syscalls"] if rule["names"] == ["socket", "socketpair"]]
    single = {argument["value"] for argument in families if argument["op"] == "SCMP_CMP_EQ"}
    assert single == set(range(16)) - {1, 2, 10}
    assert [argument["value"] for argument in families if argument["op"] == "SCMP_CMP_GT"] == [16]
