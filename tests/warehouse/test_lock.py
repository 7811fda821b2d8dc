import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from warehouse.lock import Workspace, lock_workspace, open_workspace

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from warehouse.lock import lock_workspace, open_workspace
with lock_workspace(open_workspace(Path(sys.argv[1]))):
    print("locked", flush=True)
    time.sleep(600)
"""


@contextmanager
def other_run(workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of a workspace."""
    command = [sys.executable, "-c", HOLD, str(workspace)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "locked\n":
                pytest.fail("the other run did not get the lock")
            yield process
        finally:
            process.kill()


def test_a_workspace_is_created_with_its_folders(tmp_path: Path) -> None:
    root = tmp_path / "new" / "data"
    assert open_workspace(root) == Workspace(
        root, root / "repos", root / "tables", root / "releases", root / "postquem.duckdb"
    )
    assert sorted(path.name for path in root.iterdir()) == ["releases", "repos", "tables"]
    assert open_workspace(root) == open_workspace(root)


def test_a_relative_workspace_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_workspace(Path("data")).tables == tmp_path / "data" / "tables"


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_workspace(Path("~/data")).root == tmp_path / "data"


def test_a_path_that_the_catalogue_could_not_open_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"which DuckDB cannot open; choose another --workspace"):
        open_workspace(tmp_path / "what?")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_the_way_is_an_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "data").write_text("a file")
    path = tmp_path / "data" / below
    with pytest.raises(ConfigError) as raised:
        open_workspace(path)
    assert str(raised.value) == f"{path} cannot be a folder: a file is in the way; choose another --workspace"


def test_a_place_where_nothing_can_be_created_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"cannot create the workspace folder /proc/postquem: .*--workspace"):
        open_workspace(Path("/proc/postquem"))


def test_an_unwritable_workspace_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(ConfigError, match="is not writable; change its permissions or choose another --workspace"):
        open_workspace(tmp_path / "data")


def test_the_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    for _ in range(2):
        with lock_workspace(workspace):
            assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    with pytest.raises(KeyboardInterrupt), lock_workspace(workspace):
        raise KeyboardInterrupt
    with lock_workspace(workspace):
        assert (tmp_path / ".lock").is_file()


def test_a_second_run_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    with other_run(tmp_path) as process:
        with pytest.raises(ConfigError) as raised, lock_workspace(workspace):
            pytest.fail("two runs in one workspace")
        assert str(raised.value) == (
            f"another run (pid {process.pid}) is using {tmp_path}; wait for it to end or choose another --workspace"
        )


def test_a_killed_run_frees_the_lock(tmp_path: Path) -> None:
    with other_run(tmp_path) as process:
        process.kill()
        process.wait()
        with lock_workspace(open_workspace(tmp_path)):
            assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_two_workspaces_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = open_workspace(tmp_path / "a"), open_workspace(tmp_path / "b")
    with lock_workspace(first), lock_workspace(second):
        assert (first.root / ".lock").read_text() == (second.root / ".lock").read_text()


def test_a_lock_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    (tmp_path / ".lock").mkdir()
    with pytest.raises(ConfigError, match=r"cannot open .*\.lock: Is a directory"), lock_workspace(workspace):
        pytest.fail("locked a folder")


def test_locking_removes_the_catalogue_that_a_killed_run_left_half_written(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "data")
    for name in (".tmp-99999-postquem.duckdb", ".tmp-99999-postquem.duckdb.wal"):
        (workspace.root / name).write_bytes(b"half")
    with lock_workspace(workspace):
        assert sorted(path.name for path in workspace.root.iterdir()) == [".lock", "releases", "repos", "tables"]
