"""What a repository's pytest configuration says: options, settings, and the plugins that they need."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.requirements import words
from sandbox.tree_files import read_ini, read_text, read_toml, strings, table

# The files that pytest looks at, in its order, and the sections that make each one count
# (https://docs.pytest.org/en/stable/reference/customize.html#configuration-file-formats).
_TOML_FILES = (("pytest.toml", ("pytest",)), (".pytest.toml", ("pytest",)))
_INI_FILES = ("pytest.ini", ".pytest.ini")
_OTHER_INI = (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))

# Command-line options by their beginning, and settings, that only a plugin knows.
_OPTION_PLUGINS = (
    ("--cov", "pytest-cov"),
    ("--no-cov", "pytest-cov"),
    ("--benchmark", "pytest-benchmark"),
    ("--numprocesses", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--maxprocesses", "pytest-xdist"),
    ("--timeout", "pytest-timeout"),
    ("--reruns", "pytest-rerunfailures"),
    ("--only-rerun", "pytest-rerunfailures"),
    ("--randomly", "pytest-randomly"),
    ("--random-order", "pytest-random-order"),
    ("--mypy", "pytest-mypy"),
    ("--ruff", "pytest-ruff"),
    ("--flake8", "pytest-flake8"),
    ("--black", "pytest-black"),
    ("--isort", "pytest-isort"),
    ("--pylint", "pytest-pylint"),
    ("--asyncio-mode", "pytest-asyncio"),
    ("--ds", "pytest-django"),
    ("--nomigrations", "pytest-django"),
    ("--no-migrations", "pytest-django"),
    ("--reuse-db", "pytest-django"),
    ("--create-db", "pytest-django"),
    ("--html", "pytest-html"),
    ("--self-contained-html", "pytest-html"),
    ("--json-report", "pytest-json-report"),
    ("--disable-socket", "pytest-socket"),
    ("--allow-hosts", "pytest-socket"),
    ("--allow-unix-socket", "pytest-socket"),
    ("--record-mode", "pytest-recording"),
    ("--block-network", "pytest-recording"),
    ("--vcr-record", "pytest-vcr"),
    ("--snapshot-", "syrupy"),
    ("--inline-snapshot", "inline-snapshot"),
    ("--nbval", "nbval"),
    ("--nbmake", "nbmake"),
    ("--typeguard-packages", "typeguard"),
    ("--beartype-packages", "pytest-beartype"),
    ("--hypothesis-", "hypothesis"),
    ("--mpl", "pytest-mpl"),
    ("--codeblocks", "pytest-codeblocks"),
    ("--xdoctest", "xdoctest"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--doctest-rst", "pytest-doctestplus"),
    ("--remote-data", "pytest-remotedata"),
    ("--spec", "pytest-spec"),
    ("--picked", "pytest-picked"),
    ("--testmon", "pytest-testmon"),
    ("--md", "pytest-md"),
    ("--durations-path", "pytest-split"),
    ("--splits", "pytest-split"),
)
_SETTING_PLUGINS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "asyncio_default_test_loop_scope": "pytest-asyncio",
    "timeout": "pytest-timeout",
    "timeout_method": "pytest-timeout",
    "timeout_func_only": "pytest-timeout",
    "reruns": "pytest-rerunfailures",
    "reruns_delay": "pytest-rerunfailures",
    "env": "pytest-env",
    "env_files": "pytest-dotenv",
    "django_settings_module": "pytest-django",
    "django_find_project": "pytest-django",
    "flask_app": "pytest-flask",
    "trio_mode": "pytest-trio",
    "qt_api": "pytest-qt",
    "mock_use_standalone_module": "pytest-mock",
    "httpx_mock_assert_all_responses_were_requested": "pytest-httpx",
    "typeguard-packages": "typeguard",
    "beartype_packages": "pytest-beartype",
    "jsonschema_fixtures": "pytest-jsonschema",
    "mypy_plugins": "pytest-mypy",
    "bdd_features_base_dir": "pytest-bdd",
    "bdd_strict_gherkin": "pytest-bdd",
    "doctest_plus": "pytest-doctestplus",
    "remote_data_strict": "pytest-remotedata",
    "mpl-baseline-path": "pytest-mpl",
    "vcr_cassette_dir": "pytest-vcr",
    "markdown-docs-syntax": "pytest-markdown-docs",
    "pytester_example_dir": "pytest",
}
# Names given to `-p` that are modules of plugins.
_MODULE_PLUGINS = {
    "xdist": "pytest-xdist",
    "pytest_cov": "pytest-cov",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_mock": "pytest-mock",
    "pytest_benchmark": "pytest-benchmark",
    "pytest_timeout": "pytest-timeout",
    "randomly": "pytest-randomly",
    "pytest_randomly": "pytest-randomly",
    "pytest_httpserver": "pytest-httpserver",
    "anyio": "anyio",
    "hypothesis": "hypothesis",
    "syrupy": "syrupy",
}


@dataclass(frozen=True, slots=True)
class PytestSettings:
    """The configuration that pytest would take at the root of the tree."""

    file: str | None = None
    """File it comes from, null without one."""
    addopts: tuple[str, ...] = ()
    """Options that every run gets, split into words."""
    settings: tuple[str, ...] = ()
    """Names of the settings, in lower case, sorted."""
    plugins: tuple[str, ...] = ()
    """Packages that options and settings need, sorted; `required_plugins` with their versions."""
    python_files: tuple[str, ...] = ("test_*.py", "*_test.py")
    """Patterns of test modules."""
    doctests: bool = False
    """Tests are also taken from docstrings or text files."""


def read_pytest_settings(root: Path) -> PytestSettings:
    """Read the file that pytest would take for the tree's configuration, by pytest's own order."""
    file, values = _find(root)
    addopts = tuple(_options(values.get("addopts")))
    settings = tuple(sorted(name.lower() for name in values))
    required = [text for item in strings(values.get("required_plugins")) for text in words(item)]
    plugins = {*_implied(addopts, settings), *required}
    patterns = tuple(text for item in strings(values.get("python_files")) for text in words(item))
    return PytestSettings(
        file,
        addopts,
        settings,
        tuple(sorted(plugins)),
        patterns or PytestSettings().python_files,
        any(option.startswith("--doctest") or option.startswith("--xdoctest") for option in addopts),
    )


def _find(root: Path) -> tuple[str | None, Mapping[str, Any]]:
    """Return the file that counts and its settings."""
    for name, keys in _TOML_FILES:
        if read_text(root, name) is not None:
            return name, table(read_toml(root, name), *keys)
    for name in _INI_FILES:
        if read_text(root, name) is not None:
            return name, read_ini(root, name).get("pytest", {})
    tool = table(read_toml(root, "pyproject.toml"), "tool", "pytest")
    options = table(tool, "ini_options")
    if options or tool:
        return "pyproject.toml", options or tool
    for name, section in _OTHER_INI:
        sections = read_ini(root, name)
        if section in sections:
            return name, sections[section]
    return None, {}


def _options(value: object) -> Iterable[str]:
    """Return `addopts` as words, whether it is a string or a list."""
    if isinstance(value, str):
        return words(value)
    return strings(value)


def _implied(addopts: Iterable[str], settings: Iterable[str]) -> set[str]:
    """Return the packages that options and settings need."""
    found = {_SETTING_PLUGINS[name] for name in settings if name in _SETTING_PLUGINS}
    if "benchmark" in " ".join(settings):
        found.add("pytest-benchmark")
    after_p = False
    for option in addopts:
        module = option if after_p else option[2:].lstrip("=") if re.match(r"-p\w", option) else ""
        after_p = option == "-p"
        if module in _MODULE_PLUGINS:
            found.add(_MODULE_PLUGINS[module])
        found.update(package for start, package in _OPTION_PLUGINS if option.startswith(start))
        if re.fullmatch(r"-n(\d+|auto|logical|=.*)?", option):
            found.add("pytest-xdist")
    return found - {"pytest"}
