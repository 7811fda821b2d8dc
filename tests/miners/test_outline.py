"""Definitions found line by line, and which of them another version of the text changes."""

import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miners.outline import Outline, line_at, outline, revise

A, B, C = b"def a(x):\n    return 1\n", b"def b(y): pass\n", b"async def c():\n    return 3\n"
CLASS = b"class K:\n    def m(self):\n        def n(): return 1\n        return n\n\n    def o(self): pass\n"
LINES = [
    b"def a(x):\n", b"    def b(y): pass\n", b"class C:\n", b"    x = 1\n", b"\n", b"async def q():\n", b'    """doc\n',
    b"def z\r", b"\tdef t():\r\n", b"de", b"f (x)\n", b"xdef y\n", b"        def n(): 1\n",
    b"@one\n", b"    @two\n", b"    return 2\n", b"# def g\n",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(LINES), max_size=14)


def lines(text: bytes) -> list[bytes]:
    return [line_at(text, start) for start in outline(text).starts[1:]]


def brought(before: bytes, after: bytes) -> list[bytes]:
    old, new = outline(before), outline(after)
    found = revise(before, old, after)
    assert found[:2] == (old, new)
    assert [revise(before, *known) for known in ((old, after, new), (None, after, new), (None, after))] == [found] * 3
    return [line_at(after, new.starts[index]) for index in found.changed]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (A + B + C, [b"def a(x):", b"def b(y): pass", b"async def c():"]),
        (CLASS, [b"    def m(self):", b"        def n(): return 1", b"    def o(self): pass"]),
        (b"def a():\rdef b():\r\ndef\\\n c():", [b"def a():", b"def b():", b"def\\"]),
        (b"\xef\xbb\xbfdef a(): 1\n\xef\xbb\xbfdef b(): 1\n", [b"\xef\xbb\xbfdef a(): 1"]),
        (b"x = 'def no(): 1'\n# def no\nundef no\nasyncdef no\nasync\tdef yes():", [b"async\tdef yes():"]),
        (b"def a(): def b(): def c(): 1\n \f def d(): 1", [b"def a(): def b(): def c(): 1", b" \f def d(): 1"]),
    ],
)
def test_lines_that_begin_a_definition(text: bytes, expected: list[bytes]) -> None:
    assert lines(text) == expected


def test_columns_are_those_of_python() -> None:
    text = b"  def a(): 1\n\tdef b(): 1\n   \tdef c(): 1\n   \f def d(): 1\n  async def e(): 1\n"
    assert outline(text).columns == [0, 2, 8, 8, 1, 2]


def test_a_million_definitions_on_one_line_take_no_time() -> None:
    assert lines(b"def " * 1_000_000) == [b"def " * 1_000_000]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (A + B, A + B, []),
        (A + B, b"x = 1\n" + A + B, []),
        (b"", A, [b"def a(x):"]),
        (A + B, A + C + B, [b"async def c():"]),
        (A + B + C, A.replace(b"1", b"2") + B + C.replace(b"3", b"4"), [b"def a(x):", b"async def c():"]),
        (b"@x\n" + A + b"@y\n" + B, b"@z\n" + A + b"@y\n" + B, [b"def a(x):"]),
        (b"@x\n" + A + b"@y\n" + B, b"@x\n" + A + b"@z\n" + B, [b"def a(x):", b"def b(y): pass"]),
        (A + b"@y\n" + B, A + B, [b"def a(x):", b"def b(y): pass"]),
        (A + B, B + A, [b"def b(y): pass", b"def a(x):"]),  # in another order: whoever has to know compares them
        (CLASS, CLASS.replace(b"return 1", b"return 2"), [b"    def m(self):", b"        def n(): return 2"]),
        (CLASS, CLASS.replace(b"        def n(): return 1\n", b""), [b"    def m(self):"]),
        (
            b"def f():\n    def g(): 1\n    def h(): 1\n",
            b"def f():\n    def g(): 1\ndef i(): 1\n    def h(): 1\n",
            [b"def f():", b"def i(): 1"],
        ),
        (b"@one\n" + B, b"@one\n" + A + B, [b"def a(x):", b"def b(y): pass"]),
        (  # what followed the lost one belongs to the first one now
            A + b"    def b(y): pass\n" + C + b"    def d(y): pass\n",
            A + b"    def b(y): pass\n    def d(y): pass\n",
            [b"def a(x):"],
        ),
        (  # the first changed piece becomes what the one behind it was
            A + b"    def b(y): pass\ndedef a(x):\n    def b(y): pass\n",
            A + b"    def b(y): pass\ndef c(x):\nde    def b(y): pass\n",
            [b"def a(x):", b"    def b(y): pass", b"def c(x):"],
        ),
        (
            b"class K:\n    def m(self):\n        return '''\ndef s(): 1\ndef t(): 1\n'''\n",
            b"class K:\n    def m(self):\n        return '''\ndef s(): 1\ndef t(): 2\n'''\n",
            [b"    def m(self):", b"def s(): 1", b"def t(): 2"],  # inside a string lines prove nothing
        ),
    ],
)
def test_definitions_that_another_version_did_not_have(before: bytes, after: bytes, expected: list[bytes]) -> None:
    assert brought(before, after) == expected


def whole_definitions(text: bytes, found: Outline) -> dict[bytes, set[int]]:
    """Return the texts of definitions with those inside and the decorators before them, and where each begins."""
    texts = defaultdict(set)
    starts, columns = found.starts, [*found.columns, -1]
    for first in range(1, len(starts)):
        last = next(index for index in range(first + 1, len(columns)) if columns[index] <= columns[first])
        decorators = re.search(rb"(?:^[ \t]*@[^\n]*\n)*\Z", text[: starts[first]], re.MULTILINE)
        whole = text[starts[first] : [*starts, len(text)][last]]
        texts[(decorators.group() if decorators else b"") + whole].add(first)
    return texts


@given(TEXTS, st.data())
@settings(deadline=None, max_examples=500)
def test_no_definition_that_is_new_is_left_out(before: list[bytes], data: st.DataObject) -> None:
    after = list(before)
    for _ in range(data.draw(st.integers(0, 4))):
        place, new = data.draw(st.integers(0, len(after))), data.draw(TEXTS)
        after[place : place + data.draw(st.integers(0, 2))] = new[:2]
    old, new = b"".join(before), b"".join(after)
    revised = revise(old, outline(old), new)
    assert revised[:2] == (outline(old), outline(new))
    assert revise(old, None, new, outline(new)) == revised
    known, found = whole_definitions(old, outline(old)), set(revised.changed)
    missed = [
        text for text, places in whole_definitions(new, revised.new).items() if text not in known and not places & found
    ]
    assert missed == []
