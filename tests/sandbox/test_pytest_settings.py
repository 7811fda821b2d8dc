"""pytest's configuration as pytest itself would find it, and the plugins that it implies."""

from pathlib import Path

import pytest

from sandbox.pytest_arguments import run_arguments
from sandbox.pytest_settings import PytestSettings, read_pytest_settings
from tests.sandbox.trees import write_tree

PYPROJECT = '[tool.pytest.ini_options]\naddopts = "--strict-markers"\n'


TOX = "[tox]\nenvlist = py\n"
QUIET = ("-q",)
ONLY = ("addopts",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, PytestSettings()),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, PytestSettings()),
        ({"pyproject.toml": PYPROJECT}, PytestSettings("pyproject.toml", ("--strict-markers",), ONLY)),
        ({"pyproject.toml": "[tool.pytest]\naddopts = ['-q']\n"}, PytestSettings("pyproject.toml", QUIET, ONLY)),
        (
            {"pytest.ini": "[pytest]\naddopts=-q", "pyproject.toml": PYPROJECT},
            PytestSettings("pytest.ini", QUIET, ONLY),
        ),
        ({"pytest.ini": "", "pyproject.toml": PYPROJECT}, PytestSettings("pytest.ini")),
        ({".pytest.ini": "[pytest]\nmarkers =\n    slow: x\n"}, PytestSettings(".pytest.ini", (), ("markers",))),
        ({"pytest.toml": "[pytest]\naddopts = ['-q']\n"}, PytestSettings("pytest.toml", QUIET, ONLY)),
        ({"tox.ini": TOX + "[pytest]\naddopts = -q\n"}, PytestSettings("tox.ini", QUIET, ONLY)),
        ({"tox.ini": TOX, "setup.cfg": "[tool:pytest]\naddopts = -q"}, PytestSettings("setup.cfg", QUIET, ONLY)),
        ({"setup.cfg": "[pytest]\naddopts = -q\n"}, PytestSettings()),
        ({"pytest.ini": "[pytest\naddopts = -q"}, PytestSettings("pytest.ini")),
        ({"pyproject.toml": "= broken"}, PytestSettings()),
    ],
)
def test_the_file_counts_that_pytest_would_take(
    tmp_path: Path, files: dict[str, str], expected: PytestSettings
) -> None:
    assert read_pytest_settings(write_tree(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("text", "plugins"),
    [
        ('addopts = "--cov=src --cov-report term-missing"', ("pytest-cov",)),
        ('addopts = ["-n", "auto", "--dist", "loadfile"]', ("pytest-xdist",)),
        ('addopts = "-n4"', ("pytest-xdist",)),
        ('addopts = "-nauto --timeout=30"', ("pytest-timeout", "pytest-xdist")),
        ('addopts = "--no-header -x"', ()),
        ('addopts = "--benchmark-disable --disable-socket"', ("pytest-benchmark", "pytest-socket")),
        ('addopts = "-p xdist -ppytest_cov -p no:randomly"', ("pytest-cov", "pytest-xdist")),
        ('addopts = "--ds=project.settings --reuse-db"', ("pytest-django",)),
        ('addopts = "--reruns 2 --mypy-ini-file=x"', ("pytest-mypy", "pytest-rerunfailures")),
        ('asyncio_mode = "auto"', ("pytest-asyncio",)),
        ('asyncio_default_fixture_loop_scope = "function"', ("pytest-asyncio",)),
        ('DJANGO_SETTINGS_MODULE = "project.settings"', ("pytest-django",)),
        ("timeout = 60", ("pytest-timeout",)),
        ('env = ["MODE=test"]', ("pytest-env",)),
        ('mock_use_standalone_module = "true"', ("pytest-mock",)),
        ('required_plugins = ["pytest-bdd>=6", "pytest-mock"]', ("pytest-bdd>=6", "pytest-mock")),
        ('required_plugins = "pytest-bdd pytest-mock"', ("pytest-bdd", "pytest-mock")),
        ('xfail_strict = true\ntestpaths = ["tests"]', ()),
    ],
)
def test_options_and_settings_imply_plugins(tmp_path: Path, text: str, plugins: tuple[str, ...]) -> None:
    root = write_tree(tmp_path, {"pyproject.toml": f"[tool.pytest.ini_options]\n{text}\n"})
    assert read_pytest_settings(root).plugins == plugins


def test_patterns_and_doctests_tell_where_tests_are(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, {"pytest.ini": "[pytest]\npython_files = check_*.py tests.py\naddopts = --doctest-modules\n"}
    )
    assert read_pytest_settings(root) == PytestSettings(
        "pytest.ini", ("--doctest-modules",), ("addopts", "python_files"), (), ("check_*.py", "tests.py"), doctests=True
    )


def test_only_plugins_that_are_there_are_quieted() -> None:
    cache = ("-p", "no:cacheprovider")
    every = {"pytest", "pytest-xdist", "pytest-cov", "pytest-randomly", "pytest-random-order", "pytest-benchmark",
             "pytest-rerunfailures", "pytest-sugar"}  # fmt: skip
    assert run_arguments((), {"pytest", "attrs"}, "project") == cache
    assert run_arguments(("-n", "4", "--cov"), every, "project") == (
        "-n0", "--no-cov", "-p", "no:randomly", "--random-order-bucket=none", "--benchmark-disable", "--reruns=0",
        "-p", "no:sugar", *cache,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("addopts", "installed", "expected"),
    [
        (("--ff",), set(), ()),
        (("--cache-clear",), set(), ()),
        (("-p", "randomly", "--randomly-seed=1"), {"pytest-randomly"}, ("-p", "no:cacheprovider")),
        (("--benchmark-only",), {"pytest-benchmark"}, ("-p", "no:cacheprovider")),
        (("--old-summary",), {"pytest-sugar"}, ("-p", "no:cacheprovider")),
    ],
)  # fmt: skip
def test_an_option_that_the_repository_asks_for_keeps_its_plugin(
    addopts: tuple[str, ...], installed: set[str], expected: tuple[str, ...]
) -> None:
    assert run_arguments(addopts, installed, None) == expected


def test_a_plugin_that_is_the_project_itself_is_not_quieted() -> None:
    assert run_arguments((), {"pytest-cov"}, "pytest-cov") == ("-p", "no:cacheprovider")
