"""What a collection tells, without a word of text being parsed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.attempt import _failure
from sandbox.collecting import Collected, CollectError, _read
from tests.sandbox.trees import write_tree

SCRIPT = Path(__file__).parents[2] / "sandbox" / "inside" / "collect.py"


def collect(tmp_path: Path, files: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run the script that runs inside as it stands, with paths of this test; return its report."""
    tree = write_tree(tmp_path / "tree", {"pytest.ini": "[pytest]\n", **files})
    request = {
        "arguments": ["-p", "no:cacheprovider", *arguments],
        "out": str(tmp_path / "out"),
        "name": None,
        "roots": [],
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    script = SCRIPT.read_text().replace("/w/in/request.json", str(tmp_path / "request.json"))
    (tmp_path / "collect.py").write_text(script)
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, str(tmp_path / "collect.py")], cwd=tree, env=environment, capture_output=True, check=True
    )
    report: dict[str, Any] = json.loads((tmp_path / "out").read_text())
    return report


def told(tmp_path: Path, text: str) -> dict[str, Any]:
    """Return what is told of one module that cannot be imported."""
    errors = collect(tmp_path, {"test_a.py": text})["errors"]
    assert len(errors) == 1
    assert (errors[0].pop("node"), errors[0].pop("path")) == ("test_a.py", str(tmp_path / "tree" / "test_a.py"))
    error: dict[str, Any] = errors[0]
    return error


def test_ids_come_as_pytest_has_them(tmp_path: Path) -> None:
    files = {
        "test_a.py": """\
            import pytest
            @pytest.mark.parametrize("x", ["a b", "[c]", "d::e", "\\u00fc", "new\\nline"])
            def test_all(x): ...
            class TestClass:
                def test_method(self): ...
            """,
        "sub/test_b.py": "def test_b(): ...\n",
    }
    report = collect(tmp_path, files)
    assert report == {
        "ids": [
            "sub/test_b.py::test_b",
            "test_a.py::test_all[a b]", "test_a.py::test_all[[c]]", "test_a.py::test_all[d::e]",
            "test_a.py::test_all[\\xfc]", "test_a.py::test_all[new\\nline]", "test_a.py::TestClass::test_method",
        ],
        "errors": [], "start": None, "exit": 0, "copies": [],
    }  # fmt: skip


def test_deselected_tests_are_not_among_them(tmp_path: Path) -> None:
    report = collect(tmp_path, {"test_a.py": "def test_one(): ...\ndef test_two(): ...\n"}, "-k", "one")
    assert report["ids"] == ["test_a.py::test_one"]


def test_the_tree_is_on_the_path_as_for_python_m_pytest(tmp_path: Path) -> None:
    files = {"helper.py": "", "tests/test_a.py": "import helper\ndef test_a(): ...\n"}
    assert collect(tmp_path, files)["ids"] == ["tests/test_a.py::test_a"]


@pytest.mark.parametrize(
    ("text", "types", "missing", "variable", "message"),
    [
        ("import nothing_here.deeper", ["CollectError", "ModuleNotFoundError"], "nothing_here", None,
         "No module named 'nothing_here'"),
        ("from os import nothing", ["CollectError", "ImportError"], None, None, "cannot import name 'nothing'"),
        ("1 / 0", ["ZeroDivisionError"], None, None, "division by zero"),
        ("import os; os.environ['TOKEN']", ["KeyError"], None, "TOKEN", "'TOKEN'"),
        ("{}['TOKEN']", ["KeyError"], None, None, "'TOKEN'"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer\\nmore') from e",
         ["ValueError", "ZeroDivisionError"], None, None, "division by zero"),
        ("class Bad(Exception):\n    def __str__(self): raise OSError\nraise Bad", ["Bad"], None, None, "OSError"),
        ("raise ValueError", ["ValueError"], None, None, ""),
    ],
)  # fmt: skip
def test_an_error_is_told_with_its_causes(
    tmp_path: Path, text: str, types: list[str], missing: str | None, variable: str | None, message: str
) -> None:
    error = told(tmp_path, text + "\n")
    assert (error["types"], error["missing"], error["variable"]) == (types, missing, variable)
    assert error["message"].startswith(message)


def test_a_syntax_error_is_told(tmp_path: Path) -> None:
    error = told(tmp_path, "def broken(:\n")
    assert (error["types"], error["missing"]) == (["CollectError", "SyntaxError"], None)


@pytest.mark.parametrize(
    ("files", "types", "missing"),
    [
        ({"conftest.py": "import nothing_here\n"}, ["ConftestImportFailure", "ModuleNotFoundError"], "nothing_here"),
        ({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"}, ["UsageError"], None),
        ({"pytest.ini": "[pytest]\naddopts = -p nothing_here\n"}, ["ImportError"], "nothing_here"),
        ({"conftest.py": "raise SystemExit(3)\n"}, ["SystemExit"], None),
        ({"pytest.ini": "[pytest]\nrequired_plugins = nothing-here\n"}, ["UsageError"], None),
    ],
)  # fmt: skip
def test_a_start_that_fails_is_told(
    tmp_path: Path, files: dict[str, str], types: list[str], missing: str | None
) -> None:
    report = collect(tmp_path, {"test_a.py": "def test_a(): ...\n", **files})
    assert report["ids"] == []
    assert report["start"]["types"][0] in (*types, "UsageError")
    assert report["start"]["missing"] == missing


def test_a_conftest_below_breaks_only_its_folder(tmp_path: Path) -> None:
    files = {"sub/conftest.py": "import nothing_here\n", "sub/test_a.py": "", "test_b.py": "def test_b(): ...\n"}
    report = collect(tmp_path, files)
    assert report["start"] is None
    assert report["ids"] == ["test_b.py::test_b"]
    assert [error["missing"] for error in report["errors"]] == ["nothing_here"]


def test_some_modules_may_break_while_others_are_collected(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_a(): ...\n", "test_b.py": "1 / 0\n", "test_c.py": "import nothing_here\n"}
    report = collect(tmp_path, files)
    assert (report["ids"], report["exit"], report["start"]) == (["test_a.py::test_a"], 2, None)
    assert [error["node"] for error in report["errors"]] == ["test_b.py", "test_c.py"]


def error(**overrides: object) -> CollectError:
    values: dict[str, Any] = {
        "node": "t.py", "path": "t.py", "types": ("ValueError",), "missing": None, "variable": None, "message": "no",
    }  # fmt: skip
    return CollectError(**{**values, **overrides})


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (error(), "collection_error"),
        (error(missing="x"), "dependency_missing"),
        (error(variable="TOKEN"), "needs_env_secret"),
        (error(types=("ConnectError", "gaierror")), "needs_network"),
        (error(types=("ConnectionRefusedError",)), "needs_network"),
        (error(types=("TclError",)), "needs_display"),
        (error(missing="x", types=("gaierror",)), "dependency_missing"),
    ],
)
def test_errors_have_reasons(found: CollectError, reason: str) -> None:
    assert found.reason == reason


def collected(*errors: CollectError, ids: tuple[str, ...] = (), started: bool = True) -> Collected:
    return Collected(ids, errors, started, (), "")


def test_the_commonest_reason_counts_and_that_of_the_start_before_all() -> None:
    missing, network, other = error(missing="x"), error(types=("gaierror",)), error()
    failures = [
        _failure(collected()),
        _failure(collected(network, missing, network)),
        _failure(collected(other, missing, missing, missing)),
        _failure(collected(other, missing, missing, missing, started=False)),
        _failure(collected(error(node="", path="", message="usage"), started=False)),
    ]
    assert [(failure.reason, failure.detail) for failure in failures] == [
        ("no_tests", "pytest collects no test"),
        ("needs_network", "t.py: no; t.py: no; t.py: no"),
        ("dependency_missing", "t.py: no; t.py: no; t.py: no"),
        ("collection_error", "t.py: no; t.py: no; t.py: no"),
        ("collection_error", "pytest: usage"),
    ]


def test_missing_modules_are_named_once() -> None:
    found = collected(error(missing="b"), error(missing="a"), error(), error(missing="b"))
    assert found.missing == ("a", "b")


def test_a_report_is_read_and_its_paths_are_those_of_the_tree() -> None:
    item = {
        "node": "a/t.py",
        "path": "/w/src/a/t.py",
        "types": ["X"],
        "missing": None,
        "variable": None,
        "message": "m",
    }
    start = {"types": ["Y"], "missing": "z", "variable": None, "message": "s"}
    report = {"ids": ["a", "b"], "errors": [item, {**item, "path": "/etc/x"}], "start": start, "copies": ["pkg"]}
    assert _read(report, "log") == Collected(
        ("a", "b"),
        (
            CollectError("", "", ("Y",), "z", None, "s"),
            CollectError("a/t.py", "a/t.py", ("X",), None, None, "m"),
            CollectError("a/t.py", "", ("X",), None, None, "m"),
        ),
        False,
        ("pkg",),
        "log",
    )
