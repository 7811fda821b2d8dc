"""Cutting a body out of a file and putting another one in, byte for byte."""

import ast
import sysconfig
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given

from miners.methods import find_methods, scan
from miners.syntax import parse
from sandbox.splice import Spliced, splice, split_body
from schemas.errors import DataError
from tests.miners.python_files import files


def cut(source: bytes, name: str = "f") -> Spliced:
    span = next(span for span in scan(source, parse(source), {}) if span.fun_name == name)
    return split_body(source, span.start_byte)


def test_body_on_its_own_lines_begins_with_its_indentation_and_ends_with_its_last_statement() -> None:
    assert cut(b"import os\n\ndef f(a):\n    b = a\n    return b\n\nx = 1\n") == Spliced(
        left=b"import os\n\ndef f(a):\n",
        body=b"    b = a\n    return b",
        right=b"\n\nx = 1\n",
        inline=False,
        indent=b"    ",
        newline=b"\n",
    )


@pytest.mark.parametrize(
    ("source", "left", "body"),
    [
        (b"def f(): return 1\n", b"def f(): ", b"return 1"),
        (b"def f():return 1", b"def f():", b"return 1"),
        (b"def f(): x = 1; return x;  # why\nf()\n", b"def f(): ", b"x = 1; return x;  # why"),
        (b'def f(): "Doc."; return 1\n', b'def f(): "Doc."; ', b"return 1"),
        (b'def f():\n    "Doc."; return 1\n', b'def f():\n    "Doc."; ', b"return 1"),
        (b"def f(): \\\n    return 1\n", b"def f(): \\\n    ", b"return 1"),
    ],
)
def test_body_on_the_line_of_the_colon_or_docstring_is_inline(source: bytes, left: bytes, body: bytes) -> None:
    spliced = cut(source)
    assert (spliced.left, spliced.body, spliced.inline) == (left, body, True)
    assert spliced.left + spliced.body + spliced.right == source


@pytest.mark.parametrize(
    ("source", "left", "body"),
    [
        # A docstring stays, so do the blank lines and comments of its line; a comment on a line below goes.
        (b'def f():\n    """Doc."""\n    return 1\n', b'def f():\n    """Doc."""\n', b"    return 1"),
        (b'def f():\n  "Doc."  # c\n\n \n  return 1\n', b'def f():\n  "Doc."  # c\n\n \n', b"  return 1"),
        (b'def f():\n  "a" \\\n  "b"\n  # c\n\n  return 1', b'def f():\n  "a" \\\n  "b"\n', b"  # c\n\n  return 1"),
        (b"def f():  # c\n    # d\n    return 1  # e\n    # g\n", b"def f():  # c\n", b"    # d\n    return 1  # e"),
        (b"def f():\n    return 1  \n", b"def f():\n", b"    return 1"),
        (b"def f():\n    return 1;  \n", b"def f():\n", b"    return 1;"),
        (b"def f():\n    if x:\n        return 1\n    # c\n\ny = 1", b"def f():\n", b"    if x:\n        return 1"),
        (b"def f():\n    x = '''\n#'''\n", b"def f():\n", b"    x = '''\n#'''"),
        (b"def f():\n    ...\n", b"def f():\n", b"    ..."),
        (b"@a\n@b(1)\nasync def f():\n    return 1\n", b"@a\n@b(1)\nasync def f():\n", b"    return 1"),
        (b"def f(a=lambda: 0,\n      b={1: 2}) -> {1: 2}:\n\treturn 1\n", None, b"\treturn 1"),
        (b"def f():\r\n\treturn 1\r\nx = 1\r\n", b"def f():\r\n", b"\treturn 1"),
        (b"def f():\r    return 1\rx = 1\r", b"def f():\r", b"    return 1"),
        (b"def f():\n\x0c    return 1\n", b"def f():\n", b"\x0c    return 1"),
        (b"\xef\xbb\xbfdef f():\n    return '\xc3\xa9'\n", b"\xef\xbb\xbfdef f():\n", b"    return '\xc3\xa9'"),
        (b"# -*- coding: latin-1 -*-\ndef f():\n    return '\xe9'\n", None, b"    return '\xe9'"),
        (b"def f():\n    def g():\n        pass\n    return g\n", None, b"    def g():\n        pass\n    return g"),
    ],
)  # fmt: skip
def test_body_starts_behind_the_docstring_and_its_blank_lines(source: bytes, left: bytes | None, body: bytes) -> None:
    spliced = cut(source)
    assert (spliced.body, spliced.inline) == (body, False)
    assert left is None or spliced.left == left
    assert spliced.left + spliced.body + spliced.right == source


def test_indentation_and_line_end_are_those_of_the_body() -> None:
    source = b"class A:\r\n\tdef f(self):\r\n\t\treturn 1\r\n\tdef g(self): return 2\r\n"
    assert (cut(source, "A.f").indent, cut(source, "A.f").newline) == (b"\t\t", b"\r\n")
    assert (cut(source, "A.g").indent, cut(source, "A.g").newline) == (b"\t", b"\r\n")


def test_nested_function_and_the_function_around_it_have_bodies_of_their_own() -> None:
    source = b"def f():\n    def g():\n        return 1\n    return g\n"
    assert cut(source, "f.<locals>.g").body == b"        return 1"
    assert splice(source, 0, b"    pass") == b"def f():\n    pass\n"


def test_function_without_statements_and_a_place_without_function_are_refused() -> None:
    with pytest.raises(DataError, match="trivial_body: f has no statement behind its docstring"):
        cut(b'def f():\n    """Doc."""\n')
    with pytest.raises(DataError, match="no_definition: no function definition starts at byte 1"):
        split_body(b"def f():\n    pass\n", 1)


@given(files())
def test_parts_are_the_file_whatever_it_looks_like(lines: list[str]) -> None:
    for newline in ("\n", "\r\n", "\r"):
        source = newline.join(lines).encode()
        for span in scan(source, parse(source), {}):
            with suppress(DataError):
                spliced = split_body(source, span.start_byte)
                assert spliced.left + spliced.body + spliced.right == source


STDLIB = Path(sysconfig.get_path("stdlib"))
REAL = ["ast.py", "dataclasses.py", "contextlib.py", "enum.py", "typing.py", "json/decoder.py", "asyncio/tasks.py"]
_PER_FILE = 25  # spread over the file: two parses and dumps of a whole file for each function


@pytest.mark.parametrize("name", REAL)
def test_real_functions_change_in_their_body_alone(name: str) -> None:
    source = (STDLIB / name).read_bytes()
    replaced = 0
    spans = find_methods(source, parse(source))
    for span in spans[:: 1 + len(spans) // _PER_FILE]:
        try:
            spliced = split_body(source, span.start_byte)
        except DataError:
            assert ast.get_docstring(_function(_parse(source), span.start_line)) is not None
            continue
        mock = b"pass" if spliced.inline else spliced.indent + b"pass"
        assert ast.dump(_parse(spliced.left + mock + spliced.right)) == _with_pass(source, span.start_line)
        replaced += 1
    assert replaced > 5


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _function(tree: ast.Module, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the function whose first decorator or `def` stands on a line."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next(node for node in functions if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == line)


def _with_pass(source: bytes, line: int) -> str:
    """Return the dump of a file with `pass` for the statements of the function that starts on a line."""
    tree = _parse(source)
    node = _function(tree, line)
    node.body = [*node.body[: ast.get_docstring(node, clean=False) is not None], ast.Pass()]
    return ast.dump(tree)
