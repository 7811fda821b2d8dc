"""Control groups of this machine, and those of version 2 on files that stand for the kernel's."""

import os
from pathlib import Path

import pytest

from sandbox.backends import cgroups
from sandbox.backends.cgroups import Cgroups, Group, Usage
from sandbox.protocol import Limits

LIMITS = Limits(memory_bytes=64 << 20, pids=20, cpus=0.3)


def version_2(folder: Path, controllers: str = "cpuset cpu io memory pids", handed_down: str = "") -> Path:
    """Make what a group of version 2 looks like."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers + "\n")
    (folder / "cgroup.subtree_control").write_text(handed_down + "\n")
    (folder / "cgroup.procs").write_text("")
    return folder


def files(folder: Path, **texts: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_this_machine_says_what_it_has_or_why_not() -> None:
    found = cgroups.find_cgroups()
    if found.version == "none":
        assert found.why_not
    else:
        assert all(os.access(parent, os.W_OK) for parent in found.parents.values())
        assert (found.version, set(found.parents)) in [("v1", set(cgroups._CONTROLLERS)), ("v2", {"v2"})]


def test_a_command_of_version_2_gets_its_limits_and_tells_its_use(tmp_path: Path) -> None:
    group = Group(Cgroups("v2", {"v2": version_2(tmp_path)}), "name")
    assert group.folders == [f"{tmp_path}/name/run", f"{tmp_path}/name"]
    files(tmp_path / "name", cgroup__subtree_control="", memory__max="", memory__swap__max="")
    files(tmp_path / "name" / "run", pids__max="", cpu__max="", cgroup__procs="", cgroup__kill="")
    group.open()
    group.start(LIMITS)
    read = {path.name: path.read_text() for path in (tmp_path / "name").rglob("*") if path.is_file()}
    assert read == {
        "cgroup.subtree_control": "+cpu +memory +pids", "memory.max": str(64 << 20), "memory.swap.max": "0",
        "pids.max": "20", "cpu.max": "30000 100000", "cgroup.procs": "", "cgroup.kill": "",
    }  # fmt: skip
    files(
        tmp_path / "name" / "run", memory__events="low 0\noom 2\noom_kill 1\n", pids__events="max 0\n",
        cpu__stat="usage_usec 1500000\nuser_usec 1000000\n", memory__peak="4096\n",
    )  # fmt: skip
    assert group.usage() == Usage(True, False, 1.5, 4096)
    (tmp_path / "name" / "run" / "memory.peak").unlink()  # Linux before 5.19
    assert group.usage().memory_bytes is None
    assert group.join == [f"{tmp_path}/name/run/cgroup.procs"]


def test_a_kernel_without_swap_is_no_error(tmp_path: Path) -> None:
    group = Group(Cgroups("v2", {"v2": tmp_path}), "name")
    files(tmp_path / "name", memory__max="")
    files(tmp_path / "name" / "run", pids__max="", cpu__max="")
    group.start(LIMITS)
    assert (tmp_path / "name" / "memory.max").read_text() == str(64 << 20)


def test_the_smallest_share_is_one_the_kernel_takes(tmp_path: Path) -> None:
    group = Group(Cgroups("v2", {"v2": tmp_path}), "name")
    files(tmp_path / "name", memory__max="")
    files(tmp_path / "name" / "run", pids__max="", cpu__max="")
    group.start(Limits(cpus=0.0001))
    assert (tmp_path / "name" / "run" / "cpu.max").read_text() == "1000 100000"


def test_a_delegated_group_of_version_2_is_taken(tmp_path: Path) -> None:
    version_2(tmp_path)
    own = version_2(tmp_path / "user" / "scope", handed_down="cpu memory pids")
    (tmp_path / "cgroup.controllers").write_text("cpu\n")  # the top cannot be used
    assert cgroups._parent_v2((tmp_path, "/"), "/user/scope") == own


def test_processes_make_way_where_controllers_are_handed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = version_2(tmp_path)
    (own / "cgroup.procs").write_text("17\n18\n")
    leaf = own / "postquem"
    leaf.mkdir()
    (leaf / "cgroup.procs").touch()
    moved: list[str] = []
    real = cgroups._write

    def write(file: Path, text: str) -> None:
        if file == own / "cgroup.subtree_control" and len(moved) < 2:
            raise OSError(16, "Device or resource busy")
        if file == leaf / "cgroup.procs":
            moved.append(text)
        real(file, text)

    monkeypatch.setattr(cgroups, "_write", write)
    assert cgroups._parent_v2((own, "/"), "/") == own
    assert (moved, (own / "cgroup.subtree_control").read_text()) == (["17", "18"], "+cpu +memory +pids")


@pytest.mark.parametrize("controllers", ["", "cpu pids", "memory"])
def test_missing_controllers_are_named(tmp_path: Path, controllers: str) -> None:
    version_2(tmp_path, controllers)
    missing = ", ".join(sorted({"cpu", "memory", "pids"} - set(controllers.split())))
    with pytest.raises(OSError, match=f"has no controller {missing}"):
        cgroups._parent_v2((tmp_path, "/"), "/")


@pytest.mark.parametrize(
    ("root", "own", "folder"),
    [("/", "/", ""), ("/", "/a/b", "a/b"), ("/docker/x", "/docker/x", ""), ("/docker/x", "/docker/x/y", "y")],
)
def test_groups_are_found_where_only_a_part_is_mounted(root: str, own: str, folder: str) -> None:
    assert cgroups._folder((Path("/cg"), root), own) == Path("/cg") / folder


def test_without_groups_nothing_is_made_and_nothing_known() -> None:
    group = Group(Cgroups("none", why_not="no"), "name")
    group.open()
    group.start(LIMITS)
    assert (group.stop(), group.join, group.folders) == (Usage(), [], [])
    group.close()
