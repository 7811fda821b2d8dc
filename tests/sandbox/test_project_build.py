"""What a build hands out is taken for what it is: bytes of a stranger."""

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox.attempt import _copy_with, _fewer
from sandbox.environment import SourceCommit
from sandbox.project import read_project
from sandbox.project_build import BuiltProject, _extra_files, _read_wheel, _unpack, build_variables
from schemas.errors import DataError
from tests.sandbox.index import wheel
from tests.sandbox.trees import write_tree

SCRIPT = Path(__file__).parents[2] / "sandbox" / "inside" / "build_hooks.py"


def tar(*members: tuple[str, bytes | str]) -> bytes:
    """Return an archive: bytes are files, text is a link's target."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, contents in members:
            info = tarfile.TarInfo(name)
            if isinstance(contents, bytes):
                info.size = len(contents)
                archive.addfile(info, io.BytesIO(contents))
            else:
                info.type, info.linkname = tarfile.SYMTYPE, contents
                archive.addfile(info)
    return buffer.getvalue()


def test_only_files_below_the_tree_are_unpacked() -> None:
    archive = tar(
        ("pkg/_fast.so", b"binary"), ("./a//b", b"x"), ("../outside", b"x"), ("/etc/passwd", b"x"), ("a/../../b", b"x"),
        ("link", "/etc/passwd"), ("", b"x"), (".", b"x"),
    )  # fmt: skip
    assert _unpack(archive) == {"pkg/_fast.so": b"binary", "a/b": b"x"}
    with pytest.raises(DataError, match=r"^project_build_failed: what the build left cannot be read: "):
        _unpack(b"no archive at all" * 100)


def test_the_metadata_of_a_wheel_is_read() -> None:
    name, data = wheel("My-Package", "1.2", {"x.py": ""}, ("attrs>=1", "mock; extra == 'test'"))
    built = _read_wheel(name, data, {"left": b"x"})
    assert built == BuiltProject(
        name, data, "my-package", "1.2", ("attrs>=1", "mock; extra == 'test'"), (), {"left": b"x"}
    )


@pytest.mark.parametrize("damage", ["empty", "rubbish", "no metadata", "cut"])
def test_what_is_no_wheel_is_the_projects_fault(damage: str) -> None:
    name, data = wheel("pkg", "1", {})
    if damage == "no metadata":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("x", "")
        data = buffer.getvalue()
    data = {"empty": b"", "rubbish": b"PK" * 50, "no metadata": data, "cut": data[:-30]}[damage]
    with pytest.raises(DataError, match=r"^project_build_failed: the backend made no wheel that can be read: "):
        _read_wheel(name, data, {})


def test_what_a_build_left_is_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("kept")
    source = write_tree(tmp_path / "source", {"pkg/__init__.py": "old", "tool": "#!/bin/sh\n"})
    (source / "tool").chmod(0o755)
    (source / "linked").symlink_to("../outside")
    (source / "file").symlink_to("../outside/kept")
    left = {
        "pkg/__init__.py": b"new", "pkg/deep/er/_fast.so": b"so", "linked/evil": b"x", "file": b"x", "tool": b"changed",
        "pkg": b"a folder already",
    }  # fmt: skip
    _copy_with(source, tmp_path / "copy", BuiltProject("w.whl", b"", "w", "1", (), (), left))
    found = {
        path.relative_to(tmp_path / "copy").as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    assert found == {
        "pkg/__init__.py": (b"new", 0o644),
        "pkg/deep/er/_fast.so": (b"so", 0o755),
        "tool": (b"changed", 0o755),
    }
    assert (tmp_path / "outside" / "kept").read_text() == "kept"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["kept"]
    assert (source / "pkg" / "__init__.py").read_text() == "old"


def test_a_folder_stands_for_its_files_where_none_of_its_tests_was_collected() -> None:
    broken = {"examples/a.py", "examples/b.py", "examples/c.py", "tests/x.py", "tests/y.py", "tests/z.py", "one.py"}
    assert _fewer(broken, ("tests/good.py::test", "other/t.py::test")) == (
        "examples", "one.py", "tests/x.py", "tests/y.py", "tests/z.py",
    )  # fmt: skip
    assert _fewer({"a.py", "b.py", "c.py"}, ()) == ("a.py", "b.py", "c.py")
    assert _fewer(set(), ("x",)) == ()


def test_tools_that_ask_git_are_told_a_version() -> None:
    at = SourceCommit("example/x", "0" * 40, datetime(2024, 1, 2, tzinfo=UTC))
    assert build_variables(at) == {
        "PATH": "/w/env/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC",
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "SOURCE_DATE_EPOCH": "1704153600",
        "VIRTUAL_ENV": "/w/env", "SETUPTOOLS_SCM_PRETEND_VERSION": "1.0.0", "VCS_VERSIONING_PRETEND_VERSION": "1.0.0",
        "PBR_VERSION": "1.0.0", "PDM_BUILD_SCM_VERSION": "1.0.0", "POETRY_DYNAMIC_VERSIONING_BYPASS": "1.0.0",
        "UV_DYNAMIC_VERSIONING_BYPASS": "1.0.0",
    }  # fmt: skip


def test_versioningit_reads_the_version_of_a_source_distribution(tmp_path: Path) -> None:
    text = '[build-system]\nrequires = ["setuptools", "versioningit~=3.0"]\n[project]\nname = "Own"\n'
    project = read_project(write_tree(tmp_path, {"pyproject.toml": text}))
    assert _extra_files(project) == {"PKG-INFO": "Metadata-Version: 2.1\nName: own\nVersion: 1.0.0\n"}
    assert _extra_files(read_project(write_tree(tmp_path / "other", {"setup.py": ""}))) == {}


BACKEND = """\
import os, sys, zipfile
def get_requires_for_build_editable(settings):
    return {requires}
def build_editable(folder, settings, metadata):
    {action}
    return "made.whl"
"""


def run_hooks(
    tmp_path: Path, action: str = "pass", requires: str = "[]", extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run the script that runs inside as it stands, with paths of this test; return its report."""
    tree = write_tree(
        tmp_path / "tree",
        {
            "_build/backend.py": BACKEND.format(action=action, requires=requires), "kept.txt": "kept",
            "build/x": "", "old.txt": "old",
        },
    )  # fmt: skip
    request = {
        "backend": "backend", "backend_path": ["_build"], "out": str(tmp_path / "out"), "skip_folders": ["build"],
        "extra_files": {}, "git": False, **(extra or {}),
    }  # fmt: skip
    (tmp_path / "request.json").write_text(json.dumps(request))
    script = SCRIPT.read_text().replace("/w/in/request.json", str(tmp_path / "request.json"))
    (tmp_path / "build.py").write_text(script)
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(
        [sys.executable, "-I", str(tmp_path / "build.py")], cwd=tree, env=environment, capture_output=True, check=True
    )
    report: dict[str, Any] = json.loads((tmp_path / "out" / "result.json").read_text())
    return report


def left(tmp_path: Path) -> dict[str, bytes]:
    return _unpack((tmp_path / "out" / "left.tar").read_bytes())


BUILT = {"stage": "build", "requires": [], "wheel": "made.whl", "error": None, "archive": 0}


def test_the_hooks_build_and_leave_nothing(tmp_path: Path) -> None:
    assert run_hooks(tmp_path) == BUILT
    assert not (tmp_path / "out" / "left.tar").exists()


def test_files_that_a_build_makes_or_changes_are_archived(tmp_path: Path) -> None:
    action = (
        "[os.makedirs(x) for x in ('build/y', 'pkg.egg-info', 'made/deep', '__pycache__')]; "
        "[open(x, 'w').write('new') for x in ('build/y/z', 'pkg.egg-info/PKG', 'made/deep/_f.so', 'old.txt', "
        "'__pycache__/p.pyc')]; os.symlink('kept.txt', 'link'); os.remove('kept.txt')"
    )
    assert run_hooks(tmp_path, action) == {**BUILT, "archive": 2}
    assert left(tmp_path) == {"made/deep/_f.so": b"new", "old.txt": b"new"}


def test_a_backend_that_asks_for_packages_is_not_run(tmp_path: Path) -> None:
    report = run_hooks(
        tmp_path, "raise RuntimeError", "['pytest>=1', 'Not_There[x]>=2; python_version > \"3\"', 'absent']"
    )
    assert report == {
        **BUILT, "stage": "metadata", "wheel": None,
        "requires": ['Not_There[x]>=2; python_version > "3"', "absent"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "requires", "stage", "error"),
    [
        ("raise RuntimeError('no compiler')", "[]", "build", "RuntimeError: no compiler"),
        ("sys.exit('stop')", "[]", "build", "SystemExit: stop"),
        ("pass", "1 / 0", "metadata", "ZeroDivisionError: division by zero"),
    ],
)
def test_whatever_a_backend_raises_is_its_result(
    tmp_path: Path, action: str, requires: str, stage: str, error: str
) -> None:
    report = run_hooks(tmp_path, action, requires)
    assert report == {"stage": stage, "requires": [], "wheel": None, "error": error, "archive": 0}


def test_a_backend_that_is_not_there_is_told(tmp_path: Path) -> None:
    report = run_hooks(tmp_path, extra={"backend": "nowhere.api:deep.attribute"})
    assert (report["stage"], report["error"]) == ("metadata", "ModuleNotFoundError: No module named 'nowhere'")


def test_a_file_that_stands_in_for_git_is_written_where_there_is_none(tmp_path: Path) -> None:
    action = "open('seen', 'w').write(open('PKG-INFO').read() + open('kept.txt').read())"
    run_hooks(tmp_path, action, extra={"extra_files": {"PKG-INFO": "told ", "kept.txt": "overwritten"}})
    assert left(tmp_path) == {"seen": b"told kept"}


def test_a_repository_is_made_where_it_is_asked_for(tmp_path: Path) -> None:
    action = "import subprocess; open('tag', 'wb').write(subprocess.check_output(['git', 'describe', '--tags']))"
    assert run_hooks(tmp_path, action, extra={"git": True}) == {**BUILT, "archive": 1}
    assert left(tmp_path) == {"tag": b"v1.0.0\n"}
