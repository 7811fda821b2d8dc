"""What commands that mean harm cannot do. Each backend is held to what it promises."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.protocol import Session
from schemas.execution import ExecResult, KilledBy
from tests.sandbox.backends.conftest import LIMITS, Box, contained, everywhere, python, sh

QUICK = replace(LIMITS, wall_seconds=3)


def killed(result: ExecResult) -> tuple[int, KilledBy]:
    return result.returncode, result.killed_by


def assert_next_command_runs(session: Session) -> None:
    assert sh(session, "echo next") == (0, "next\n", "")


@everywhere
@pytest.mark.usefixtures("groups")
def test_a_fork_bomb_ends_at_its_limit(session: Session) -> None:
    result = python(
        session,
        """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except BlockingIOError:
    print(made)
""",
    )
    assert killed(result) == (0, KilledBy.PIDS)
    assert 40 <= int(result.stdout) < LIMITS.pids
    assert_next_command_runs(session)


@everywhere
@pytest.mark.usefixtures("groups")
def test_a_fork_bomb_that_never_stops_is_ended(session: Session) -> None:
    bomb = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    assert killed(python(session, bomb, limits=QUICK)) == (137, KilledBy.PIDS)
    assert_next_command_runs(session)


@everywhere
@pytest.mark.usefixtures("groups")
def test_a_memory_hog_is_killed_and_told_apart(session: Session) -> None:
    result = python(session, "x = bytearray(1 << 30); print(len(x))")
    assert (*killed(result), result.stdout) == (137, KilledBy.OOM, b"")
    assert_next_command_runs(session)


@everywhere
@pytest.mark.usefixtures("groups")
def test_a_child_that_takes_too_much_memory_leaves_its_parent_alive(session: Session) -> None:
    result = python(
        session,
        """
import os
child = os.fork()
if child == 0:
    bytearray(1 << 30)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    )
    assert (*killed(result), result.stdout) == (0, KilledBy.OOM, b"-9\n")


@everywhere
@pytest.mark.usefixtures("groups")
def test_memory_of_all_processes_counts_together(session: Session) -> None:
    result = python(
        session,
        """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(50 << 20)
        time.sleep(60)
try:
    while True:
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        break
finally:
    os._exit(0)
""",
    )
    assert (*killed(result), result.stdout) == (0, KilledBy.OOM, b"-9\n")


@contained
@pytest.mark.parametrize("folder", ["/w/src", "/tmp", "/dev/shm", "/w/src/pkg"])
def test_the_disk_cannot_be_filled(session: Session, folder: str) -> None:
    result = python(
        session,
        f"""
written = 0
try:
    with open({folder!r} + "/filler", "wb", buffering=0) as file:
        while True:
            written += file.write(bytes(1 << 20))
except OSError as error:
    print(error.errno, written)
""",
    )
    number, written = result.stdout.split()
    assert (*killed(result), number) == (0, KilledBy.DISK, b"28")
    assert LIMITS.disk_bytes // 2 < int(written) <= LIMITS.disk_bytes


@contained
def test_the_disk_cannot_be_filled_with_empty_files(session: Session) -> None:
    result = python(
        session,
        """
import os
for n in range(100_000):
    try:
        os.close(os.open(f"/tmp/{n}", os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        print(error.errno, n < 10_000)
        break
""",
    )
    assert (result.stdout, result.killed_by) == (b"28 True\n", KilledBy.DISK)


@everywhere
def test_an_endless_loop_ends_at_its_time(session: Session) -> None:
    result = python(session, "while True: pass", limits=replace(LIMITS, wall_seconds=1))
    assert killed(result) == (137, KilledBy.TIMEOUT)
    assert 1 <= result.wall_seconds < 6
    assert 0.05 < result.cpu_seconds < 3  # a loaded machine gives it little


@everywhere
@pytest.mark.usefixtures("groups")
def test_a_throttled_command_gets_its_share(session: Session) -> None:
    result = python(session, "while True: pass", limits=replace(LIMITS, wall_seconds=2, cpus=0.2))
    assert killed(result) == (137, KilledBy.TIMEOUT)
    assert 0 < result.cpu_seconds < 1.0


@everywhere
def test_endless_output_is_ended_and_only_its_end_kept(session: Session) -> None:
    result = session.exec(("sh", "-c", "while :; do echo 0123456789; done"), limits=replace(LIMITS, output_bytes=4096))
    assert (*killed(result), result.truncated, len(result.stdout)) == (137, KilledBy.OUTPUT, True, 4096)
    assert b"0123456789\n0123456789\n" in result.stdout


DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(0.01)
            with open("/tmp/alive", "a") as file:
                file.write("x")
    os._exit(0)
os.wait()
time.sleep(0.3)
"""


@everywhere
@pytest.mark.parametrize("ending", ["", "while True: pass"], ids=["that ends", "that is ended"])
def test_a_daemon_does_not_outlive_its_command(session: Session, ending: str) -> None:
    result = python(session, DAEMON + ending, limits=replace(LIMITS, wall_seconds=2))
    assert killed(result) == ((137, KilledBy.TIMEOUT) if ending else (0, KilledBy.NONE))
    before = session.read("/tmp/alive", 1 << 20)
    time.sleep(0.3)
    assert before
    assert session.read("/tmp/alive", 1 << 20) == before


@everywhere
def test_a_daemon_that_holds_the_output_open_does_not_hold_the_session_up(session: Session) -> None:
    result = session.exec(("sh", "-c", "sleep 60 & echo done"))
    assert (*killed(result), result.stdout) == (0, KilledBy.NONE, b"done\n")
    assert result.wall_seconds < 10


@pytest.fixture
def host_service() -> Iterator[int]:
    """A service on the host's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


def _accept(server: socket.socket) -> None:
    try:
        while True:
            server.accept()[0].close()
    except OSError:
        pass


CONNECT = """
import socket, sys
def tried(make):
    try:
        make()
        return "reached"
    except OSError as error:
        return type(error).__name__
def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("192.0.2.1", 53))
print(tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 3)))
print(tried(lambda: socket.create_connection(("192.0.2.1", 80), 3)))
print(tried(datagram))
print(tried(lambda: socket.getaddrinfo("example.org", 80)))
with socket.create_server(("127.0.0.1", 0)) as server:
    print(tried(lambda: socket.create_connection(server.getsockname(), 3)))
"""


@contained
def test_only_its_own_loopback_can_be_reached(session: Session, host_service: int) -> None:
    result = python(session, CONNECT, str(host_service))
    assert result.stdout.decode().split() == ["ConnectionRefusedError", "OSError", "OSError", "gaierror", "reached"]


@contained
def test_no_socket_of_the_host_can_be_reached(box: Box, session: Session, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(tmp_path / "host.sock"))
        named.listen()
        abstract.bind("\0postquem-test")
        abstract.listen()
        result = python(
            session,
            f"""
import socket
for name in ({str(tmp_path / "host.sock")!r}, "\\0postquem-test", "/var/run/docker.sock", "/run/docker.sock"):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("reached", name)
    except OSError as error:
        print(type(error).__name__)
""",
        )
    assert result.stdout.decode().split() == [
        "FileNotFoundError", "ConnectionRefusedError", "FileNotFoundError", "FileNotFoundError",
    ]  # fmt: skip


@contained
def test_nothing_of_the_host_can_be_read(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTQUEM_SECRET", "s3cret")
    (tmp_path / "file").write_text("s3cret")
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o555)
    hidden = [tmp_path / "file", "/etc/shadow", f"/proc/{os.getpid()}/environ", Path(__file__).resolve(), "/boot/."]
    hidden += ["/var/lib/dpkg/status", "/etc/machine-id", "/sys/firmware/.", "/run/docker.sock"]
    for place in hidden:
        result = session.exec(("cat", str(place)))
        assert (str(place), result.returncode, result.stdout) == (str(place), 1, b"")
    everything = session.exec(("sh", "-c", "ls -A /root /home 2>/dev/null; cat /proc/*/environ /proc/*/cmdline; env"))
    assert b"s3cret" not in everything.stdout
    assert b"pytest" not in everything.stdout


@contained
def test_nothing_outside_can_be_written(session: Session, tree: Path) -> None:
    assert sh(session, "id -u")[1] != "0\n"
    for place in ("/x", "/usr/x", "/usr/bin/x", "/etc/x", "/etc/passwd", "/w/x", "/w/in/x", "/w/python/x", "/var/x"):
        code, _, errors = sh(session, f"echo x >> {place}")
        assert (place, code) == (place, 2), errors
    assert sh(session, "ln -s /etc/passwd link; echo x >> link")[0] == 2
    assert sh(session, "echo x >> outside")[0] == 2
    assert not (tree / "link").exists()


@contained
def test_no_privilege_can_be_had(session: Session) -> None:
    status = sh(session, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")[1].split()
    assert dict(zip(status[::2], status[1::2], strict=True)) == {
        "CapInh:": "0" * 16, "CapPrm:": "0" * 16, "CapEff:": "0" * 16, "CapBnd:": "0" * 16, "CapAmb:": "0" * 16,
        "NoNewPrivs:": "1", "Seccomp:": "2",
    }  # fmt: skip
    attempts = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.chroot(b"/tmp"))
for family in (40, 38):  # AF_VSOCK, AF_ALG
    try:
        socket.socket(family, socket.SOCK_SEQPACKET if family == 38 else socket.SOCK_STREAM)
        print("opened", family)
    except OSError as error:
        print("refused")
try:
    os.setuid(0)
    print("root")
except OSError:
    print("refused")
"""
    assert python(session, attempts).stdout.decode().split() == ["-1", "-1", "-1", "refused", "refused", "refused"]


@everywhere
def test_two_sessions_do_not_see_each_other(box: Box, session: Session, tree: Path) -> None:
    with box.backend.open(box.spec(tree)) as other:
        sh(session, "echo first > /tmp/mine; echo first > pkg/a.txt")
        sh(other, "echo second > /tmp/mine; echo second > pkg/a.txt")
        assert sh(session, "cat /tmp/mine pkg/a.txt") == (0, "first\nfirst\n", "")
        assert sh(other, "cat /tmp/mine pkg/a.txt") == (0, "second\nsecond\n", "")


@contained
def test_processes_of_other_sessions_and_of_the_host_are_not_seen(box: Box, session: Session) -> None:
    with box.backend.open(box.spec()) as other:
        waiting = threading.Thread(target=sh, args=(other, "exec sleep 3"))
        waiting.start()
        time.sleep(0.5)
        seen = sh(session, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")[1]
        waiting.join()
    assert "sleep 3 " not in seen.replace("sleep 2147483647", "")
    assert "pytest" not in seen
