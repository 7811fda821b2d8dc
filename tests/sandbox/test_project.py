"""Trees as people lay them out, read as projects: every kind of metadata, nothing executed."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.project import Project, expand_extras, read_project
from sandbox.pytest_settings import PytestSettings
from sandbox.requirements import Needs
from tests.sandbox.trees import write_tree

LEGACY = "setuptools.build_meta:__legacy__"
NOTHING = Project(
    name=None,
    requires_python="",
    installable=False,
    backend=LEGACY,
    backend_path=(),
    build_requires=Needs("build-system", ("setuptools>=40.8.0",)),
    dependencies=None,
    extras=None,
    tests=(),
    development=(),
    last_resort=(),
    pytest=PytestSettings(),
    git_version=False,
    source_roots=(".",),
    has_tests=False,
    sources={},
)


def test_no_packaging_files_at_all(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"app.py": "", "test_app.py": "", "requirements.txt": "attrs\n"})
    assert read_project(root) == replace(NOTHING, has_tests=True, last_resort=(Needs("requirements.txt", ("attrs",)),))


def test_pep_621_with_src_layout_groups_and_extras(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [build-system]
                requires = ["hatchling", "hatch-vcs>=0.3"]
                build-backend = "hatchling.build"
                [project]
                name = "My.Package"
                requires-python = ">=3.9"
                dynamic = ["version"]
                dependencies = ["attrs>=22", "tomli; python_version < '3.11'"]
                [project.optional-dependencies]
                fast = ["orjson"]
                Test_ing = ["My.Package[fast]", "pytest-mock"]
                [dependency-groups]
                test = ["pytest>=8", {include-group = "common"}]
                common = ["hypothesis", {include-group = "Test"}]
                typing = ["mypy"]
                dev = [{include-group = "test"}, "ruff"]
                [tool.pytest.ini_options]
                addopts = "--cov"
                """,
            "src/my_package/__init__.py": "",
            "tests/test_a.py": "",
        },
    )
    assert read_project(root) == Project(
        name="my-package",
        requires_python=">=3.9",
        installable=True,
        backend="hatchling.build",
        backend_path=(),
        build_requires=Needs("build-system", ("hatchling", "hatch-vcs>=0.3")),
        dependencies=Needs("project", ("attrs>=22", 'tomli; python_version < "3.11"')),
        extras={"fast": ("orjson",), "test-ing": ("My.Package[fast]", "pytest-mock")},
        tests=(Needs("dependency-groups: test", ("pytest>=8", "hypothesis")),),
        development=(Needs("dependency-groups: dev", ("pytest>=8", "hypothesis", "ruff")),),
        last_resort=(),
        pytest=PytestSettings("pyproject.toml", ("--cov",), ("addopts",), ("pytest-cov",)),
        git_version=True,
        source_roots=("src", "."),
        has_tests=True,
        sources={},
    )


def test_pep_621_without_build_system_is_legacy_setuptools(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"pyproject.toml": '[project]\nname = "flat"\nversion = "1"\n', "flat.py": ""})
    assert read_project(root) == replace(
        NOTHING, name="flat", installable=True, dependencies=Needs("project"), extras={}
    )


def test_dynamic_dependencies_are_the_backends_to_tell(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [build-system]
                requires = ["setuptools>=61", "wheel"]
                build-backend = "backend"
                backend-path = ["_build"]
                [project]
                name = "dyn"
                dynamic = ["version", "dependencies", "optional-dependencies"]
                """
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        name="dyn",
        installable=True,
        backend="backend",
        backend_path=("_build",),
        build_requires=Needs("build-system", ("setuptools>=61", "wheel")),
    )


def test_setup_py_is_read_without_running_it(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "setup.py": """\
                import os, setuptools
                os.remove("canary")
                TESTS = ["pytest-mock", "responses"]
                setuptools.setup(
                    name="old_style", python_requires=">=3.6",
                    install_requires=["six"] , tests_require=TESTS,
                    extras_require={"x": ["y"]},
                )
                """,
            "canary": "",
            "old_style/tests/test_old.py": "",
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        name="old-style",
        requires_python=">=3.6",
        installable=True,
        tests=(Needs("tests_require", ("pytest-mock", "responses")),),
        last_resort=(Needs("install_requires", ("six",)),),
        has_tests=True,
    )
    assert (root / "canary").exists()


@pytest.mark.parametrize("text", ["def broken(:", "setup(name=NAME)", "setup(**CONFIG)", "x = 1\0", "print 'two'", ""])
def test_a_setup_py_that_tells_nothing_is_still_a_project(tmp_path: Path, text: str) -> None:
    assert read_project(write_tree(tmp_path, {"setup.py": text})) == replace(NOTHING, installable=True)


def test_setup_cfg(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "setup.cfg": """\
                [metadata]
                name = Declared
                [options]
                python_requires = >=3.8
                install_requires =
                    attrs
                tests_require =
                    pytest-timeout
                    mock
                [tool:pytest]
                timeout = 10
                """,
            "setup.py": "from setuptools import setup; setup(use_scm_version=True, setup_requires=['setuptools_scm'])",
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        name="declared",
        requires_python=">=3.8",
        installable=True,
        tests=(Needs("tests_require", ("pytest-timeout", "mock")),),
        last_resort=(Needs("install_requires", ("attrs",)),),
        pytest=PytestSettings("setup.cfg", (), ("timeout",), ("pytest-timeout",)),
        git_version=True,
    )


def test_poetry(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [build-system]
                requires = ["poetry-core"]
                build-backend = "poetry.core.masonry.api"
                [tool.poetry]
                name = "versed"
                [tool.poetry.dependencies]
                python = "^3.9"
                requests = "^2.28"
                [tool.poetry.dev-dependencies]
                black = "*"
                [tool.poetry.group.test.dependencies]
                pytest = "^8.0"
                helper = {path = "packages/helper", develop = true}
                [tool.poetry.group.docs.dependencies]
                mkdocs = "*"
                """,
            "tests/test_a.py": "",
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        name="versed",
        requires_python="<4,>=3.9",
        installable=True,
        backend="poetry.core.masonry.api",
        build_requires=Needs("build-system", ("poetry-core",)),
        tests=(Needs("tool.poetry.group.test", ("pytest<9,>=8.0",), local=("packages/helper",)),),
        development=(Needs("tool.poetry.dev-dependencies", ("black",)),),
        last_resort=(Needs("tool.poetry.dependencies", ("requests<3,>=2.28",)),),
        has_tests=True,
    )


def test_flit(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [build-system]
                requires = ["flit_core >=2,<4"]
                build-backend = "flit_core.buildapi"
                [tool.flit.metadata]
                module = "flitted"
                requires-python = ">=3.7"
                """,
            "flitted.py": "",
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        name="flitted",
        requires_python=">=3.7",
        installable=True,
        backend="flit_core.buildapi",
        build_requires=Needs("build-system", ("flit_core<4,>=2",)),
    )


def test_a_workspace_sends_requirements_to_its_members(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [project]
                name = "app"
                version = "1"
                dependencies = ["core-lib>=1", "forked", "pinned", "attrs"]
                [dependency-groups]
                test = ["pytest", "test_tools", "lost", "own-index"]
                [tool.uv.workspace]
                members = ["packages/*", "../outside/*"]
                [tool.uv.sources]
                core_lib = {workspace = true}
                forked = {git = "https://example.org/forked.git"}
                pinned = {url = "https://example.org/pinned.whl"}
                test-tools = {path = "./tools/testing"}
                lost = {workspace = true}
                own-index = {index = "private"}
                """,
            "packages/core/pyproject.toml": '[project]\nname = "Core.Lib"\nversion = "1"\n',
            "packages/readme.txt": "",
            "tools/testing/pyproject.toml": '[project]\nname = "test-tools"\n',
        },
    )
    project = read_project(root)
    assert project.sources == {
        "core-lib": "packages/core",
        "forked": None,
        "pinned": None,
        "test-tools": "tools/testing",
    }
    assert project.dependencies == Needs("project", ("attrs",), urls=("forked", "pinned"), local=("packages/core",))
    assert project.tests == (
        Needs("dependency-groups: test", ("pytest", "lost", "own-index"), local=("tools/testing",)),
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"test_a.py": ""}, True),
        ({"pkg/tests/a_test.py": ""}, True),
        ({"pkg/testing.py": "", "tests.py": ""}, False),
        ({"tests.py": "", "pytest.ini": "[pytest]\npython_files = tests.py"}, True),
        ({"pkg/a.py": "", "pytest.ini": "[pytest]\naddopts = --doctest-modules"}, True),
        ({"testing/python/a.py": "", "pytest.ini": "[pytest]\npython_files = testing/python/*.py"}, True),
        ({"test_a.txt": "", "tests/readme.md": "", ".hidden/test_a.py": "", "venv/test_a.py": ""}, False),
    ],
)
def test_tests_are_seen_by_their_names(tmp_path: Path, files: dict[str, str], expected: bool) -> None:
    assert read_project(write_tree(tmp_path, files)).has_tests is expected


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        ("setuptools_scm[toml]>=6", True),
        ("hatch-vcs", True),
        ("versioningit~=3.0", True),
        ("poetry-dynamic-versioning", True),
        ("uv-dynamic-versioning", True),
        ("pbr>=5", True),
        ("setuptools-git-versioning", True),
        ("setuptools", False),
        ("hatchling", False),
    ],
)
def test_a_version_from_git_is_seen(tmp_path: Path, requires: str, expected: bool) -> None:
    root = write_tree(tmp_path, {"pyproject.toml": f'[build-system]\nrequires = ["{requires}"]\n'})
    assert read_project(root).git_version is expected


def test_links_that_lead_outside_are_no_files_of_the_tree(tmp_path: Path) -> None:
    write_tree(tmp_path / "outside", {"pyproject.toml": '[project]\nname = "outside"\n', "test_a.py": ""})
    root = write_tree(tmp_path / "tree", {"a.py": ""})
    (root / "pyproject.toml").symlink_to("../outside/pyproject.toml")
    (root / "tests").symlink_to("../outside")
    (root / "setup.py").symlink_to("setup.py")
    assert read_project(root) == NOTHING


def test_malformed_files_count_as_not_there(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": b"\xff\xfe[project]",
            "setup.cfg": "no section\n[metadata\n",
            "tox.ini": "[testenv\n",
            "Pipfile": "[[[",
            "requirements-dev.txt": b"pytest\n\xff\xfe\n",
            "test_a.py": "",
        },
    )
    assert read_project(root) == replace(
        NOTHING,
        has_tests=True,
        development=(Needs("requirements-dev.txt", ("pytest",), unread=("\ufffd\ufffd",)),),
    )
    write_tree(
        root,
        {
            "pyproject.toml": """\
                project = 3
                build-system = "x"
                dependency-groups = ["a"]
                tool = {poetry = 1, uv = [2], hatch = {envs = 3}, pytest = 4}
                """
        },
    )
    assert read_project(root).name is None


def test_extras_that_name_extras_are_expanded_once() -> None:
    extras = {"all": ("Own[a,B]", "x"), "a": ("own[b]", "y"), "b": ("own[all]", "z", "u @ https://example.org/u.zip")}
    assert expand_extras(extras, ["All", "missing"], "own", "extra: all") == Needs(
        "extra: all", ("x", "z", "y"), extras=("B", "a", "all", "b"), urls=("u @ https://example.org/u.zip",)
    )
