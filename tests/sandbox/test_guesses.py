"""Packages that are guessed come from a curated list, by evidence."""

from pathlib import Path

import pytest

from sandbox.guesses import package_of, packages_of, plugins_in_use
from tests.sandbox.trees import write_tree


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("yaml", "pyyaml"),
        ("yaml.loader", "pyyaml"),
        ("PIL.Image", "pillow"),
        ("google.protobuf.message", "protobuf"),
        ("google.cloud", None),
        ("numpy", "numpy"),
        ("numpy.testing", "numpy"),
        ("pytest_asyncio", "pytest-asyncio"),
        ("typing_extensions", "typing-extensions"),
        ("tests", None),
        ("modal", None),
        ("internal_tool", None),
        ("", None),
    ],
)
def test_a_module_is_looked_up_and_nothing_unknown_is_asked_for(module: str, package: str | None) -> None:
    assert package_of(module) == package


def test_several_modules_of_one_package_ask_for_it_once() -> None:
    assert packages_of(["yaml", "unknown", "requests", "yaml.nodes"]) == ("pyyaml", "requests")


def test_tests_show_by_markers_and_fixtures_what_they_use(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "tests/test_a.py": "import pytest\n@pytest.mark.asyncio\nasync def test_a(mocker): ...\n",
            "tests/conftest.py": "import pytest_httpserver\nfrom pytest_httpserver import HTTPServer\n",
            "tests/helpers.py": "def test_b(benchmark): ...\n",
            "src/pkg/code.py": "# @pytest.mark.trio\n",
            "pkg/b_test.py": "def test_c(\n    tmp_path, requests_mock\n): ...\n",
        },
    )
    assert plugins_in_use(root) == ("pytest-asyncio", "pytest-httpserver", "pytest-mock", "requests-mock")


def test_a_tree_without_such_tests_shows_nothing(tmp_path: Path) -> None:
    assert plugins_in_use(write_tree(tmp_path, {"test_a.py": "def test_a(tmp_path): ...\n"})) == ()
