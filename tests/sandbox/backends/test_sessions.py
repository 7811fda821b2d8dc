"""What a session does for well-behaved commands."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.protocol import Bind, Limits, Session
from schemas.errors import SandboxError
from schemas.execution import KilledBy
from tests.sandbox.backends.conftest import LIMITS, Box, contained, everywhere, sh


@everywhere
def test_a_command_runs_in_the_tree(session: Session) -> None:
    assert sh(session, "ls; cat pkg/a.txt; ./run.sh; echo oops >&2; exit 3") == (
        3, "outside\npkg\nrun.sh\noriginal\nran\n", "oops\n",
    )  # fmt: skip


@contained
def test_paths_user_and_host_are_the_same_everywhere(session: Session) -> None:
    assert sh(session, "pwd; hostname; id -un; getent passwd user | cut -d: -f6; ls /w") == (
        0, "/w/src\npostquem\nuser\n/tmp\nin\npython\nsrc\n", "",
    )  # fmt: skip
    user, group, groups = sh(session, "id -u; id -g; id -G")[1].split()
    assert user == group == groups
    assert int(user) >= 1000


@everywhere
def test_a_command_has_the_given_environment_and_nothing_else(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTQUEM_SECRET", "s3cret")
    lines = session.exec(("env",), env={"A": "1 2"}).stdout.decode().splitlines()
    assert sorted(line for line in lines if not line.startswith(("PWD=", "TMPDIR="))) == [
        "A=1 2", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin",
    ]  # fmt: skip


@everywhere
def test_changes_stay_until_reset_and_never_reach_the_original(session: Session, tree: Path) -> None:
    assert sh(session, "echo changed > pkg/a.txt; echo new > b.txt; rm run.sh; echo t > /tmp/t") == (0, "", "")
    assert sh(session, "cat pkg/a.txt b.txt /tmp/t; ls") == (0, "changed\nnew\nt\nb.txt\noutside\npkg\n", "")
    session.reset()
    assert sh(session, "cat pkg/a.txt; ls; ls /tmp") == (0, "original\noutside\npkg\nrun.sh\n", "")
    assert sorted(path.name for path in tree.iterdir()) == ["outside", "pkg", "run.sh"]
    assert (tree / "pkg" / "a.txt").read_text() == "original\n"


@everywhere
def test_files_are_handed_in_before_the_command_runs(session: Session) -> None:
    files = {
        "/w/in/deep/x": b"in",
        "/w/src/pkg/a.txt": b"spliced",
        "/tmp/y": b"\xff",
        "/w/src/run.sh": b"#!/bin/sh\necho 2\n",
    }
    assert sh(session, "cat /w/in/deep/x pkg/a.txt; ./run.sh; od -An -tx1 /tmp/y", files=files) == (
        0, "inspliced2\n ff\n", "",
    )  # fmt: skip


@everywhere
def test_files_cannot_be_handed_in_elsewhere(session: Session) -> None:
    for path in ("/etc/passwd", "/w/src/../x", "/w/src", "relative", "/w/env/x"):
        with pytest.raises(SandboxError):
            session.exec(("true",), files={path: b""})


@everywhere
def test_a_file_is_read_back(session: Session) -> None:
    sh(session, "printf 0123456789 > pkg/new; mkfifo pipe; ln -s /etc/passwd link")
    assert session.read("/w/src/pkg/new", 4) == b"0123"
    assert session.read("/w/src/pkg/new", 100) == b"0123456789"
    assert [session.read(f"/w/src/{name}", 9) for name in ("pipe", "link", "pkg", "none", "outside")] == [None] * 5


@everywhere
def test_neither_files_nor_reads_follow_links_that_the_code_made(session: Session, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    sh(session, f"rm -r pkg && ln -s {tmp_path}/host pkg; ln -s {tmp_path}/host /tmp/d; ln -s {tmp_path}/host/f leaf")
    for path in ("/w/src/pkg/a.txt", "/tmp/d/x"):
        with pytest.raises(SandboxError):
            session.exec(("true",), files={path: b"escaped"})
    session.exec(("true",), files={"/w/src/leaf": b"kept inside"})
    assert session.read("/w/src/leaf", 99) == b"kept inside"
    assert list((tmp_path / "host").iterdir()) == []


@everywhere
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", 137), ("kill -11 $$", 139), ("exec nothere", 127)],
)
def test_exit_codes_are_those_of_a_shell(session: Session, script: str, code: int) -> None:
    assert session.exec(("sh", "-c", script)).returncode == code


@everywhere
def test_a_missing_command_is_127_and_one_that_may_not_run_126(session: Session) -> None:
    assert session.exec(("no-such-command",)).returncode == 127
    assert session.exec(("/w/src/none",)).returncode == 127
    assert session.exec(("/w/src/pkg/a.txt",)).returncode == 126


@everywhere
def test_output_is_bytes_and_keeps_its_end(session: Session) -> None:
    result = session.exec(("sh", "-c", r"printf '\377\376\000x'; printf '\200' >&2"))
    assert (result.stdout, result.stderr, result.truncated) == (b"\xff\xfe\x00x", b"\x80", False)
    result = session.exec(("sh", "-c", "seq 1 100000"), limits=replace(LIMITS, output_bytes=20_000))
    assert (result.stdout, result.truncated, result.killed_by) == (
        "".join(f"{number}\n" for number in range(1, 100_001)).encode()[-20_000:],
        True,
        KilledBy.NONE,
    )


@everywhere
def test_standard_input_is_empty(session: Session) -> None:
    assert sh(session, "cat; echo $?") == (0, "0\n", "")


@everywhere
def test_no_open_file_of_the_host_is_inherited(session: Session) -> None:
    code, listing, errors = sh(session, "ls /proc/self/fd")
    assert (code, listing.split(), errors) == (0, ["0", "1", "2", "3"], "")  # 3 is the listing itself


@everywhere
def test_twenty_thousand_arguments_reach_the_command(session: Session) -> None:
    arguments = ["a b'\"$x\n", "ä", *(f"tests/test_{number}.py::test[{number} x]" for number in range(20_000))]
    result = session.exec(
        ("sh", "-c", 'printf "%s\\0" "$#" "$1" "$2" "$20002" | head -c 60; shift 20001; echo "$1"', "sh", *arguments)
    )
    assert result.stdout.startswith("20002\0a b'\"$x\n\0ä\0".encode())
    assert result.stdout.endswith(b"tests/test_19999.py::test[19999 x]\n")


@everywhere
def test_a_command_that_takes_too_long_is_ended(session: Session) -> None:
    result = session.exec(("sh", "-c", "echo started; sleep 60"), limits=replace(LIMITS, wall_seconds=0.5))
    assert (result.returncode, result.killed_by, result.stdout) == (137, KilledBy.TIMEOUT, b"started\n")
    assert 0.5 <= result.wall_seconds < 5
    assert sh(session, "echo next") == (0, "next\n", "")


@contained
@pytest.mark.usefixtures("groups")
def test_limits_of_one_command_do_not_outlast_it(session: Session) -> None:
    hog = "head -c 60M /dev/zero | tail -c 60M | wc -c"
    small = replace(LIMITS, memory_bytes=40 << 20)
    assert session.exec(("sh", "-c", hog), limits=small).killed_by is KilledBy.OOM
    again = session.exec(("sh", "-c", hog))
    assert (again.stdout, again.killed_by) == (b"62914560\n", KilledBy.NONE)


def fill(session: Session, limits: Limits) -> tuple[bool, KilledBy]:
    result = session.exec(("sh", "-c", "head -c 2000000 /dev/zero > /tmp/a"), limits=limits)
    return result.returncode == 0, result.killed_by


@pytest.mark.parametrize("box", ["bubblewrap"], indirect=True)
def test_a_command_may_get_less_of_the_disk_than_its_session(session: Session) -> None:
    assert fill(session, replace(LIMITS, disk_bytes=1 << 20)) == (False, KilledBy.DISK)
    session.reset()
    assert fill(session, LIMITS) == (True, KilledBy.NONE)


@pytest.mark.parametrize("box", ["docker"], indirect=True)
def test_an_engine_cannot_give_less_of_the_disk_and_says_so(session: Session) -> None:
    with pytest.raises(SandboxError, match="limits the disk of a session"):
        fill(session, replace(LIMITS, disk_bytes=1 << 20))
    assert fill(session, replace(LIMITS, disk_bytes=1 << 30)) == (True, KilledBy.NONE)


@contained
def test_the_sandbox_of_the_tests_is_as_small_as_it_says(session: Session) -> None:
    assert LIMITS.disk_bytes == 32 << 20
    code, size, _ = sh(session, "df -B1 --output=size /tmp | tail -1")
    assert (code, int(size)) == (0, 32 << 20)


@contained
def test_binds_are_read_only_unless_they_are_said_to_be_writable(box: Box, tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    binds = (Bind(tmp_path / "read", "/w/env"), Bind(tmp_path / "write", "/w/cache", writable=True))
    with box.backend.open(box.spec(None, *binds)) as session:
        code, out, errors = sh(session, "cat /w/env/file /w/cache/file; echo x > /w/cache/new; echo x > /w/env/new")
    assert (code, out) == (2, "readwrite")
    assert "Read-only file system" in errors
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["file", "file", "new"]


@everywhere
def test_what_cannot_be_bound_is_refused(box: Box, tmp_path: Path) -> None:
    for host in (tmp_path / "none", Path("/")):
        with pytest.raises(SandboxError), box.backend.open(box.spec(None, Bind(host, "/w/env"))):
            pass
