"""Files of a foreign tree are read as they come, and nothing outside it."""

from pathlib import Path

import pytest

from sandbox.tree_files import inside, parse_ini, python_files, read_ini, read_text, read_toml, strings, table
from tests.sandbox.trees import write_tree


def test_text_is_read_whatever_its_bytes_are(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, {"plain": "one\n", "bom": b"\xef\xbb\xbftwo\r\n", "latin": b"caf\xe9", "empty": b"", "folder/x": ""}
    )
    assert [read_text(root, name) for name in ("plain", "bom", "latin", "empty", "folder", "missing", "a\0b")] == [
        "one\n", "two\r\n", "caf\ufffd", "", None, None, None,
    ]  # fmt: skip


def test_a_file_that_is_too_large_for_its_kind_is_none(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"limit": b"x" * (1 << 20), "more": b"x" * ((1 << 20) + 1)})
    assert read_text(root, "limit") == "x" * (1 << 20)
    assert read_text(root, "more") is None


def test_names_lead_nowhere_outside(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    root = write_tree(tmp_path / "tree", {"folder/file": "x"})
    (root / "out").symlink_to("../secret")
    (root / "over").symlink_to("..")
    (root / "circle").symlink_to("circle")
    (root / "within").symlink_to("folder/file")
    names = ("../secret", "out", "over/secret", "circle", "/etc/passwd", "folder/../../secret")
    assert [inside(root, name) for name in names] == [None] * 6
    assert inside(root, "folder/../folder") == root / "folder"
    assert read_text(root, "within") == "x"
    assert read_text(root, "x" * 5000) is None


@pytest.mark.parametrize("text", ["= 1", "[a", "a = 1\na = 2", "[" * 5000, "\0", "a = {b = 1"])
def test_malformed_toml_is_empty(tmp_path: Path, text: str) -> None:
    assert read_toml(write_tree(tmp_path, {"x.toml": text}), "x.toml") == {}


def test_toml_and_ini_are_read(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "x.toml": "[a.b]\nc = 1\n",
            "x.ini": """\
                [One]
                Key = value %(no)s
                other = a
                    b
                other = again
                bare =
                [DEFAULT]
                x = 1
                """,
            "bad.ini": "key = before any section\n",
        },
    )
    assert read_toml(root, "x.toml") == {"a": {"b": {"c": 1}}}
    assert read_ini(root, "x.ini") == {
        "One": {"key": "value %(no)s", "other": "again", "bare": ""},
        "DEFAULT": {"x": "1"},
    }
    assert read_ini(root, "bad.ini") == {}
    assert read_ini(root, "missing.ini") == {}
    assert parse_ini("[a\nb = 1") == {}


def test_tables_and_strings_take_only_what_they_are_for() -> None:
    data = {"a": {"b": {"c": 1}}, "text": "x", "list": ["x", 1, None, "y"], "none": None}
    assert table(data, "a", "b") == {"c": 1}
    assert [table(data, *keys) for keys in (("a", "b", "c"), ("text",), ("list",), ("missing", "x"), ("none",))] == [
        {}
    ] * 5
    assert [strings(data[key]) for key in ("text", "list", "none", "a")] == [("x",), ("x", "y"), (), ()]


def test_python_files_are_those_of_the_tree_itself(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "b.py": "", "a.py": "", "a.pyi": "", "pkg/c.py": "", "pkg/sub/d.py": "", ".venv/x.py": "", "venv/x.py": "",
            "pkg/__pycache__/x.py": "", "node_modules/x.py": "", "folder.py/e.py": "", ".hidden.py": "",
        },
    )  # fmt: skip
    (root / "link.py").symlink_to("a.py")
    (root / "loop").symlink_to(".")
    assert sorted(python_files(root)) == ["a.py", "b.py", "folder.py/e.py", "pkg/c.py", "pkg/sub/d.py"]
    assert list(python_files(root / "missing")) == []
