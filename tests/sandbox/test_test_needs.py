"""Where repositories state what their tests need: every place that people use."""

from pathlib import Path

import pytest

from sandbox.requirements import Needs
from sandbox.test_needs import expand_group, find_test_needs, is_development_name, is_test_name, setup_list
from tests.sandbox.trees import write_tree


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("test", "test"), ("tests", "test"), ("Testing", "test"), ("unit-tests", "test"), ("unittest", "test"),
        ("test-core", "test"), ("core_tests", "test"), ("pytest", "test"), ("hatch-test", "test"),
        ("dev", "dev"), ("Development", "dev"), ("dev-dependencies", "dev"), ("ci", "dev"), ("all", "dev"),
        ("docs", None), ("test-docs", None), ("lint", None), ("typing", None), ("dev-docs", None), ("contest", None),
        ("latest", None), ("attestation", None), ("fast", None), ("test-bench", None), ("device", None),
    ],
)  # fmt: skip
def test_names_tell_what_a_group_is_for(name: str, kind: str | None) -> None:
    test, development = is_test_name(name), not is_test_name(name) and is_development_name(name)
    assert ("test" if test else "dev" if development else None) == kind


def test_groups_include_groups_and_circles_end() -> None:
    groups = {
        "Test": ["pytest", {"include-group": "more_tools"}, {"include-group": "missing"}, {"odd": 1}, 3],
        "more-tools": ["mock", {"include-group": "test"}, "pytest"],
        "text": "not a list",
    }
    assert expand_group(groups, "test") == ["pytest", "mock"]
    assert expand_group(groups, "text") == []
    deep = {f"g{number}": [f"p{number}", {"include-group": f"g{number + 1}"}] for number in range(40)}
    assert expand_group(deep, "g0") == [f"p{number}" for number in range(16)]


def test_tools_have_places_of_their_own(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": """\
                [tool.uv]
                dev-dependencies = ["from-uv"]
                [tool.pdm.dev-dependencies]
                test = ["from-pdm", "-e file:///${PROJECT_ROOT}/packages/near#egg=near"]
                lint = ["ruff"]
                [tool.hatch.envs.test]
                dependencies = ["from-hatch"]
                extra-dependencies = ["more-hatch"]
                features = ["fast"]
                [tool.hatch.envs.docs]
                dependencies = ["mkdocs"]
                [tool.hatch.envs.default]
                dependencies = ["default-hatch"]
                """,
            "hatch.toml": '[envs.hatch-test]\nextra-dependencies = ["from-hatch-toml"]\n',
            "Pipfile": '[dev-packages]\nfrom-pipfile = "*"\npinned = {version = "==1.0", extras = ["x"]}\n',
        },
    )
    tests, development, last = find_test_needs(root, "own")
    assert tests == (
        Needs(
            "tool.pdm.dev-dependencies: test",
            ("from-pdm",),
            local=("packages/near",),
        ),
        Needs("tool.hatch.envs.test", ("from-hatch", "more-hatch"), extras=("fast",)),
        Needs("hatch.toml: envs.hatch-test", ("from-hatch-toml",)),
    )
    assert development == (
        Needs("tool.uv.dev-dependencies", ("from-uv",)),
        Needs("tool.hatch.envs.default", ("default-hatch",)),
        Needs("Pipfile: dev-packages", ("from-pipfile", "pinned[x]==1.0")),
    )
    assert last == ()


def test_tox(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "tox.ini": """\
                [tox]
                envlist = py39,py310
                [testenv]
                deps =
                    pytest>=7
                    # a comment
                    mock  # why
                    py38: backport
                    !py39: other
                    -r{toxinidir}/requirements/tests.txt
                    -c constraints.txt
                    -e.
                    .[fast,slow]
                    {env:EXTRA:}
                extras =
                    cli
                    {env:MORE}
                dependency_groups = test
                [testenv:docs]
                deps = sphinx
                """,
            "pyproject.toml": '[dependency-groups]\ntest = ["from-group"]\n',
            "requirements/tests.txt": "from-file\n",
            "constraints.txt": "attrs<23\n",
        },
    )
    tests, _, _ = find_test_needs(root, "own")
    assert tests == (
        Needs("dependency-groups: test", ("from-group",)),
        Needs(
            "tox.ini: testenv",
            ("from-group", "pytest>=7", "mock", "from-file"),
            ("attrs<23",),
            extras=("cli", "fast", "slow"),
        ),
        Needs("requirements/tests.txt", ("from-file",)),
    )


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {"pyproject.toml": '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ndeps =\n  pytest\n"""\n'},
            "tox.ini: testenv",
        ),
        ({"pyproject.toml": '[tool.tox.env_run_base]\ndeps = ["pytest"]\n'}, "tox: env_run_base"),
        ({"tox.toml": '[env_run_base]\ndeps = ["pytest"]\n'}, "tox: env_run_base"),
    ],
)
def test_tox_in_toml(tmp_path: Path, files: dict[str, str], found: str) -> None:
    assert find_test_needs(write_tree(tmp_path, files), None)[0] == (Needs(found, ("pytest",)),)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("requirements-test.txt", 0), ("requirements_tests.txt", 0), ("test-requirements.txt", 0),
        ("test_requirements.in", 0), ("tests/requirements.txt", 0), ("requirements/test.txt", 0),
        ("requirements/testing.txt", 0), ("ci/requirements-test.txt", 0), ("reqs/test.txt", 0),
        ("requirements-dev.txt", 1), ("dev-requirements.txt", 1), ("requirements/dev.txt", 1), ("devdeps.txt", 1),
        ("requirements.dev.txt", 1), ("requirements_development.txt", 1), ("requirements/local.txt", 1),
        ("requirements.txt", 2), ("requirements/base.txt", 2), ("requirements/common.in", 2),
        ("requirements-docs.txt", None), ("requirements/lint.txt", None), ("docs/requirements.txt", None),
        ("notes.txt", None), ("tests/data.txt", None), ("latest.txt", None), ("tests/fixtures/requirements.txt", None),
    ],
)  # fmt: skip
def test_requirements_files_are_told_apart_by_name_and_folder(tmp_path: Path, name: str, kind: int | None) -> None:
    places = find_test_needs(write_tree(tmp_path, {name: "one\n"}), None)
    expected: list[tuple[Needs, ...]] = [(), (), ()]
    if kind is not None:
        expected[kind] = (Needs(name, ("one",)),)
    assert list(places) == expected


def test_a_compiled_file_stands_for_its_source(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"requirements-test.in": "one\n", "requirements-test.txt": "one==1.0\ntwo==2.0\n"})
    assert find_test_needs(root, None)[0] == (Needs("requirements-test.txt", ("one==1.0", "two==2.0")),)


def test_places_that_ask_for_nothing_are_left_out(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, {"requirements-test.txt": "# nothing\n", "pyproject.toml": "[dependency-groups]\ntest = []\n"}
    )
    assert find_test_needs(root, None) == ((), (), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("setup(tests_require=['a', 'b'])", ["a", "b"]),
        ("T = ('a',)\nsetup(tests_require=T)", ["a"]),
        ("import setuptools\nsetuptools.setup(tests_require='''\na\nb''')", ["", "a", "b"]),
        ("setup(tests_require=['a', name, 3])", ["a"]),
        ("setup(tests_require=read('x'))", []),
        ("setup()", []),
        ("def f(:", []),
        (None, []),
    ],
)
def test_lists_of_setup_py_are_read_where_they_stand_literally(text: str | None, expected: list[str]) -> None:
    assert setup_list(text, "tests_require") == expected
