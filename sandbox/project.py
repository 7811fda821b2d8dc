"""Reads what a repository says about itself: metadata, dependencies, where its test dependencies stand.

Nothing is executed. What only running a build backend tells (dynamic dependencies, `setup.py`) is asked later, inside a
sandbox (sandbox/project_build.py).
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from packaging.utils import canonicalize_name

from sandbox.local_packages import local_sources, redirect, redirect_all
from sandbox.pytest_settings import PytestSettings, read_pytest_settings
from sandbox.requirements import Needs, merge, poetry_specifier, sort_lines
from sandbox.test_needs import find_test_needs
from sandbox.tree_files import python_files, read_ini, read_text, read_toml, strings, table

_LEGACY_BACKEND = "setuptools.build_meta:__legacy__"
_LEGACY_REQUIRES = ("setuptools>=40.8.0",)
# Build backends that take the version from git: packages that must be there for it, and settings that say so.
_GIT_VERSIONS = re.compile(
    r"setuptools[-_]scm|hatch[-_]vcs|versioningit|dynamic[-_]versioning|pbr\b|setuptools[-_]git|vcs[-_]versioning"
    r"|source\s*=\s*[\"'](?:scm|vcs)[\"']|provider\s*=\s*[\"']scikit_build_core\.metadata\.setuptools_scm[\"']"
)


@dataclass(frozen=True, slots=True)
class Project:
    """A tree as a Python project."""

    name: str | None
    """Canonical name, null when no file states it."""
    requires_python: str
    """Specifier of interpreters, empty when none is stated."""
    installable: bool
    """There is a file that a build backend can work from."""
    backend: str
    """Import path of the build backend."""
    backend_path: tuple[str, ...]
    """Folders of the tree that the backend is imported from."""
    build_requires: Needs
    """What the build backend needs."""
    dependencies: Needs | None
    """What the project needs to run; null when only the build backend knows."""
    extras: Mapping[str, tuple[str, ...]] | None
    """Requirements of each extra by canonical name; null when only the build backend knows."""
    tests: tuple[Needs, ...]
    """Where requirements of tests are stated, in order of preference."""
    development: tuple[Needs, ...]
    """Where requirements of development in general are stated."""
    last_resort: tuple[Needs, ...]
    """Requirements files that are neither: a first guess where packages are missing."""
    pytest: PytestSettings
    """Its pytest configuration."""
    git_version: bool
    """Its version comes from git."""
    source_roots: tuple[str, ...]
    """Folders that hold its importable code: `src`, `.`."""
    has_tests: bool
    """Some file may hold tests."""
    sources: Mapping[str, str | None]
    """Requirements that stand for a folder of the tree or (null) a URL, by canonical name."""


def read_project(root: Path) -> Project:
    """Read a tree's packaging files; whatever is malformed counts as not there."""
    pyproject = read_toml(root, "pyproject.toml")
    setup_cfg = read_ini(root, "setup.cfg")
    metadata = table(pyproject, "project")
    poetry = table(pyproject, "tool", "poetry")
    setup_py = read_text(root, "setup.py")
    name = _name(metadata, poetry, pyproject, setup_cfg, setup_py)
    backend, path, requires = _build_system(pyproject, setup_cfg, setup_py)
    extras = _extras(metadata, name)
    tests, development, last = find_test_needs(root, name)
    sources = local_sources(root, pyproject)
    dependencies = _dependencies(metadata, name)
    pytest = read_pytest_settings(root)
    files = tuple(python_files(root))
    return Project(
        name,
        _requires_python(metadata, poetry, pyproject, setup_cfg, setup_py),
        bool(metadata or poetry or setup_py is not None or table(pyproject, "tool", "flit") or "metadata" in setup_cfg),
        backend,
        path,
        sort_lines("build-system", requires, None),
        None if dependencies is None else redirect(dependencies, sources),
        extras,
        redirect_all(tests, sources),
        redirect_all(development, sources),
        redirect_all(last, sources),
        pytest,
        _has_git_version(root, pyproject, setup_cfg, setup_py),
        _source_roots(files),
        _has_tests(files, pytest),
        sources,
    )


def _name(
    metadata: Mapping[str, object],
    poetry: Mapping[str, object],
    pyproject: Mapping[str, object],
    setup_cfg: Mapping[str, Mapping[str, str]],
    setup_py: str | None,
) -> str | None:
    """Return the project's canonical name where a file states it."""
    flit = table(pyproject, "tool", "flit", "metadata")
    candidates = (
        metadata.get("name"),
        poetry.get("name"),
        flit.get("dist-name") or flit.get("module"),
        setup_cfg.get("metadata", {}).get("name"),
        _setup_argument(setup_py, "name"),
    )
    name = next((item for item in candidates if isinstance(item, str) and item), None)
    return canonicalize_name(name) if name else None


def _build_system(
    pyproject: Mapping[str, object], setup_cfg: Mapping[str, object], setup_py: str | None
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the backend, its path and requirements; without a [build-system] they are those of PEP 517."""
    system = table(pyproject, "build-system")
    requires = strings(system.get("requires"))
    backend = system.get("build-backend")
    if not isinstance(backend, str) or not backend:
        return _LEGACY_BACKEND, (), requires or _LEGACY_REQUIRES
    return backend, strings(system.get("backend-path")), requires


def _dependencies(metadata: Mapping[str, object], name: str | None) -> Needs | None:
    """Return [project] dependencies, null when they are not stated there for good."""
    if not metadata or "dependencies" in strings(metadata.get("dynamic")):
        return None
    return sort_lines("project", strings(metadata.get("dependencies")), name)


def _extras(metadata: Mapping[str, object], name: str | None) -> Mapping[str, tuple[str, ...]] | None:
    """Return [project] optional-dependencies by canonical name, null when they are not stated there for good."""
    if not metadata or "optional-dependencies" in strings(metadata.get("dynamic")):
        return None
    return {
        canonicalize_name(extra): strings(lines) for extra, lines in table(metadata, "optional-dependencies").items()
    }


def expand_extras(extras: Mapping[str, tuple[str, ...]], asked: Iterable[str], name: str | None, found: str) -> Needs:
    """Return the requirements of extras, with those of the extras of the project itself that they name."""
    parts: list[Needs] = []
    waiting, done = [canonicalize_name(extra) for extra in asked], set[str]()
    while waiting:
        extra = waiting.pop(0)
        if extra in done:
            continue
        done.add(extra)
        part = sort_lines(found, extras.get(extra, ()), name)
        parts.append(part)
        waiting.extend(canonicalize_name(inner) for inner in part.extras)
    return merge(found, parts)


def _requires_python(
    metadata: Mapping[str, object],
    poetry: Mapping[str, object],
    pyproject: Mapping[str, object],
    setup_cfg: Mapping[str, Mapping[str, str]],
    setup_py: str | None,
) -> str:
    """Return the specifier of interpreters, empty when no file states one."""
    python = table(poetry, "dependencies").get("python")
    candidates = (
        metadata.get("requires-python"),
        poetry_specifier(python) if isinstance(python, str) else None,
        table(pyproject, "tool", "flit", "metadata").get("requires-python"),
        setup_cfg.get("options", {}).get("python_requires"),
        _setup_argument(setup_py, "python_requires"),
    )
    return next((item for item in candidates if isinstance(item, str) and item), "")


def _setup_argument(setup_py: str | None, argument: str) -> str | None:
    """Return a string that `setup()` is called with, when it stands there literally."""
    try:
        tree = ast.parse(setup_py or "")
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == "setup":
            for keyword in node.keywords:
                value = keyword.value
                if keyword.arg == argument and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return value.value
    return None


def _has_git_version(
    root: Path, pyproject: Mapping[str, object], setup_cfg: Mapping[str, object], setup_py: str | None
) -> bool:
    """Say whether a packaging file asks git for the version."""
    texts = (read_text(root, "pyproject.toml"), read_text(root, "setup.cfg"), setup_py)
    return any(_GIT_VERSIONS.search(text) for text in texts if text)


def _source_roots(files: Iterable[str]) -> tuple[str, ...]:
    """Return `src` before `.` when importable code stands there."""
    in_src = any(path.startswith("src/") for path in files)
    return ("src", ".") if in_src else (".",)


def _has_tests(files: Iterable[str], pytest: PytestSettings) -> bool:
    """Say whether a file has a name that pytest would look into."""
    if pytest.doctests:
        return True
    return any(
        fnmatch(path if "/" in pattern else path.rpartition("/")[2], pattern)
        for path in files
        for pattern in pytest.python_files
    )
