"""Requirements as people write them: PEP 508, requirements files with everything pip reads, Poetry's constraints."""

from pathlib import Path

import pytest

from sandbox.requirements import (
    Needs,
    merge,
    poetry_requirements,
    poetry_specifier,
    read_requirements_file,
    sort_lines,
    words,
)
from tests.sandbox.trees import write_tree


def test_lines_are_sorted_by_what_can_serve_them() -> None:
    lines = [
        "attrs >= 22",
        "attrs>=22",
        "My_Package[test,Docs]",
        "tomli; python_version < '3.11'",
        "built @ git+https://example.org/built.git@main",
        "archive @ https://example.org/archive-1.0.zip",
        "near @ file:./packages/near",
        "outside @ file:../outside",
        "absolute @ file:///srv/absolute",
        "not a requirement",
        "",
    ]
    assert sort_lines("here", lines, "my-package") == Needs(
        "here",
        lines=("attrs>=22", 'tomli; python_version < "3.11"'),
        extras=("Docs", "test"),
        urls=(
            "built @ git+https://example.org/built.git@main",
            "archive @ https://example.org/archive-1.0.zip",
            "outside @ file:../outside",
            "absolute @ file:///srv/absolute",
        ),
        local=("packages/near",),
        unread=("not a requirement", ""),
    )


def test_needs_are_merged_in_order_each_line_once() -> None:
    first = Needs("a", lines=("one", "two"), extras=("x",), constraints=("c<1",))
    second = Needs("b", lines=("two", "three"), extras=("x", "y"), urls=("u",), local=("p",), unread=("?",))
    assert merge("both", [first, second]) == Needs(
        "both", ("one", "two", "three"), ("c<1",), ("x", "y"), ("u",), ("p",), ("?",)
    )


def test_a_requirements_file_is_read_with_everything_that_pip_reads(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "requirements/dev.txt": """\
                # comment
                -r test.txt
                -rbase.txt
                --requirement=more.txt
                -c ../constraints.txt
                -e .[extra, other]
                -e ./packages/sub
                .
                ./plugins/one
                --index-url https://example.org/simple
                -i https://example.org/simple
                --extra-index-url=https://example.org/simple
                --find-links ./wheels
                --no-binary :all:
                black==23.1.0 \\
                    --hash=sha256:0000 \\
                    --hash=sha256:1111   # via project
                colorama>=0.4 ; sys_platform == "win32"  # for colours
                uvloop[dev]~=0.17; sys_platform != "win32"
                git+https://example.org/tool.git#egg=tool
                https://example.org/built-1.0-py3-none-any.whl
                name @ https://example.org/name.zip
                -e git+ssh://git@example.org/private.git#egg=private
                -e ../../elsewhere
                ???
                """,
            "requirements/test.txt": "pytest>=7\n-r dev.txt\n",
            "requirements/base.txt": "attrs\r\nrich==13.*\r\n",
            "requirements/more.txt": "-r missing.txt\nmore\n",
            "constraints.txt": "attrs[tests]<23\n",
        },
    )
    assert read_requirements_file(root, "requirements/dev.txt", "project") == Needs(
        "requirements/dev.txt",
        lines=(
            "pytest>=7",
            "black==23.1.0",
            'colorama>=0.4; sys_platform == "win32"',
            'uvloop[dev]~=0.17; sys_platform != "win32"',
            "attrs",
            "rich==13.*",
            "more",
        ),
        constraints=("attrs<23",),
        extras=("extra", "other"),
        urls=(
            "git+https://example.org/tool.git#egg=tool",
            "https://example.org/built-1.0-py3-none-any.whl",
            "name @ https://example.org/name.zip",
            "git+ssh://git@example.org/private.git#egg=private",
            "../../elsewhere",
        ),
        local=("packages/sub", "plugins/one"),
        unread=("???",),
    )


def test_files_that_include_one_another_end(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"a.txt": "-r b.txt\none\n", "b.txt": "-r a.txt\ntwo\n"})
    assert read_requirements_file(root, "a.txt", None).lines == ("one", "two")


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "link.txt", "folder", "missing.txt", "circle.txt"])
def test_no_file_outside_the_tree_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.txt").write_text("secret\n")
    root = write_tree(tmp_path / "tree", {"folder/file": ""})
    (root / "link.txt").symlink_to("../outside.txt")
    (root / "circle.txt").symlink_to("circle.txt")
    assert read_requirements_file(root, name, None) == Needs(name)
    write_tree(root, {"all.txt": f"-r {name}\n"})
    assert read_requirements_file(root, "all.txt", None) == Needs("all.txt")


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        # The tables of https://python-poetry.org/docs/dependency-specification/.
        ("^1.2.3", "<2,>=1.2.3"),
        ("^1.2", "<2,>=1.2"),
        ("^1", "<2,>=1"),
        ("^0.2.3", "<0.3,>=0.2.3"),
        ("^0.0.3", "<0.0.4,>=0.0.3"),
        ("^0.0", "<0.1,>=0.0"),
        ("^0", "<1,>=0"),
        ("~1.2.3", "<1.3,>=1.2.3"),
        ("~1.2", "<1.3,>=1.2"),
        ("~1", "<2,>=1"),
        ("*", ""),
        ("1.*", "==1.*"),
        ("1.2.*", "==1.2.*"),
        ("1.2", "==1.2"),
        (">= 1.2.0", ">=1.2.0"),
        (">=1.2,<1.5", "<1.5,>=1.2"),
        (">=1.2 <1.5", "<1.5,>=1.2"),
        ("~=1.4", "~=1.4"),
        ("!=2.0", "!=2.0"),
        ("==3.0.0", "==3.0.0"),
        ("^1.0 || ^2.0", ""),
        ("latest", ""),
        ("^x", ""),
        ("", ""),
    ],
)
def test_poetrys_constraints_are_those_of_its_documentation(constraint: str, expected: str) -> None:
    assert poetry_specifier(constraint) == expected


def test_poetrys_tables_become_requirements() -> None:
    table = {
        "python": "^3.9",
        "plain": "^1.0",
        "detailed": {"version": "^2.1", "extras": ["fast", "all"], "markers": "sys_platform == 'linux'"},
        "old": {"version": "*", "python": ">=3.9,<3.11"},
        "optional": {"version": "^1", "optional": True},
        "several": [{"version": "<2", "python": "<3.10"}, {"version": ">=2", "python": ">=3.10"}],
        "near": {"path": "packages/near", "develop": True},
        "source": {"git": "https://example.org/source.git", "branch": "main"},
        "archive": {"url": "https://example.org/archive.whl"},
        "odd": 3,
    }
    assert poetry_requirements(table) == [
        "plain<2,>=1.0",
        "detailed[fast,all]<3,>=2.1; (sys_platform == 'linux')",
        'old; (python_version < "3.11") and (python_version >= "3.9")',
        'several<2; (python_version < "3.10")',
        'several>=2; (python_version >= "3.10")',
        "near @ file:packages/near",
        "source @ git+https://example.org/source.git",
        "archive @ https://example.org/archive.whl",
    ]
    assert sort_lines("poetry", poetry_requirements(table), None).unread == ()


def test_options_are_split_as_a_shell_does_and_broken_quotes_do_no_harm() -> None:
    assert words("-n auto -m 'not slow' --cov=src") == ["-n", "auto", "-m", "not slow", "--cov=src"]
    assert words("-m 'not slow") == ["-m", "'not", "slow"]
