"""What is left when a run is killed: nothing, at the latest when the next one starts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.backends import owners
from sandbox.backends.cgroups import Cgroups, Group, find_cgroups, remove_leftovers
from sandbox.backends.held import stages
from sandbox.backends.owners import is_orphan, owned_name
from sandbox.protocol import Limits
from tests.sandbox.backends.conftest import Box, everywhere, running, sh, why_no_bubblewrap

SLEEP = "sleep 6174"  # found among the processes of the machine
OWNER = """
import sys
from pathlib import Path
from sandbox.backends import open_backend
from sandbox.protocol import SandboxSpec
from schemas.execution import BackendName, RealCodeConfig
backend = open_backend(RealCodeConfig(backend=BackendName(sys.argv[1]), image=sys.argv[2]))
spec = SandboxSpec(source=Path(sys.argv[3]), env={"PATH": "/usr/bin:/bin"})
with backend.open(spec) as session:
    session.exec(("true",))
    print("open", flush=True)
    session.exec(("sh", "-c", "(trap '' TERM HUP; sleep 6174) & sleep 6174"))
"""


def of_process(process: int) -> list[str]:
    """Return the folders, groups, and commands that a process's sandboxes left."""
    marker = f"-{process}-"
    found = [str(path) for path in stages().glob(f"{owners.PREFIX}*") if marker in path.name]
    for parent in find_cgroups().parents.values():
        found += [str(path) for path in parent.glob(f"{owners.PREFIX}*") if marker in path.name]
    return found + [line for _, line in running().values() if line == SLEEP]


def wait_until_gone(process: int, seconds: float = 10.0) -> list[str]:
    deadline = time.monotonic() + seconds
    while (left := of_process(process)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def start_owner(name: str, image: str, tree: Path) -> "subprocess.Popen[str]":
    root = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(
        (sys.executable, "-c", OWNER, name, image, str(tree)), stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout
    assert process.stdout.readline() == "open\n"
    deadline = time.monotonic() + 10
    while sum(line == SLEEP for line in of_process(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("name", ["bubblewrap", "unsafe-local"])
def test_nothing_outlives_an_owner_that_was_killed(name: str, tree: Path) -> None:
    if name == "bubblewrap" and (why := why_no_bubblewrap()):
        pytest.skip(why)
    with start_owner(name, "", tree) as process:
        assert len(of_process(process.pid)) > 2
        process.kill()
        assert wait_until_gone(process.pid) == []


@everywhere
def test_the_next_start_removes_what_a_killed_owner_and_its_holder_left(
    request: pytest.FixtureRequest, box: Box, tree: Path
) -> None:
    image = request.getfixturevalue("image") if box.backend.name == "docker" else ""
    with start_owner(box.backend.name, image, tree) as process:
        children = [child for child, (parent, _) in running().items() if parent == process.pid]
        process.kill()
        for child in children:
            os.kill(child, signal.SIGKILL)
    time.sleep(0.2)
    with box.backend.open(box.spec(tree)) as session:
        assert sh(session, "echo next") == (0, "next\n", "")
    assert wait_until_gone(process.pid) == []


def test_names_tell_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    name = owned_name()
    assert name.startswith(f"{owners.PREFIX}{Path('/proc/self/ns/pid').stat().st_ino}-{os.getpid()}-")
    assert owned_name() != name
    assert not is_orphan(name)
    with subprocess.Popen(("sleep", "60")) as other:
        started = owners._started(other.pid)
        theirs = name.replace(f"-{os.getpid()}-{owners._started(os.getpid())}-", f"-{other.pid}-{started}-")
        assert not is_orphan(theirs)
        other.kill()
    assert is_orphan(theirs)
    assert is_orphan(name.replace(f"-{owners._started(os.getpid())}-", "-1-"))  # the number was given to another


@pytest.mark.parametrize(
    "name", ["", "postquem-sandbox-", "postquem-sandbox-1-2-3", "other-1-2-3-4", "postquem-sandbox-1-1-1-1"]
)
def test_what_is_not_ours_is_left_alone(name: str) -> None:
    assert not is_orphan(name)


def test_groups_of_the_dead_are_emptied_and_removed() -> None:
    cgroups = find_cgroups()
    if cgroups.version == "none":
        pytest.skip(cgroups.why_not)
    name = f"{owners.PREFIX}{Path('/proc/self/ns/pid').stat().st_ino}-{os.getpid()}-1-abcd"
    group = Group(cgroups, name)
    group.open()
    group.start(Limits())
    with subprocess.Popen(("sleep", "60")) as process:
        for file in group.join:
            Path(file).write_text(str(process.pid))
        remove_leftovers(cgroups)
        assert process.wait(10) == -signal.SIGKILL
    assert [folder for folder in group.folders if Path(folder).exists()] == []
    remove_leftovers(Cgroups("none"))
