import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import miners.rescan
import miners.units
from miners.methods import TextKeys
from miners.rescan import Scanned, n_line_ends, rescan, scan_file
from tests.miners.python_files import versions

OLD = b"""\
import os

@a
def f():
    return 1
# comment

class A:
    def m(self):
        def inner(): pass
        return inner

    x = '''
def no(): pass
'''

if os:
    def g(): return 2
else:
    def h(): return 3
x = (1,
2)
def last():
    pass
"""


def both(new: bytes, old: bytes = OLD) -> tuple[Scanned, Scanned]:
    known: dict[bytes, TextKeys] = {}
    return rescan(new, old, scan_file(old, known), known), scan_file(new, {})


def names(scanned: Scanned) -> list[str]:
    return [span.fun_name for span in scanned.spans]


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        b"",
        b"\n" + OLD,
        OLD + b"def more(): pass\n",
        OLD.replace(b"return 1", b"return 10"),
        OLD.replace(b"import os\n", b""),
        OLD.replace(b"# comment\n", b"# comment\n    return 5\n"),
        OLD.replace(b"# comment\n", b"@late\n"),
        OLD.replace(b"# comment\n", b"x = 1 \\\n"),
        OLD.replace(b"# comment\n", b"x = '''\n"),
        OLD.replace(b"# comment\n", b"x = (\n"),
        OLD.replace(b"# comment\n", b"if x:\n"),
        OLD.replace(b"    return 1\n", b"    return 1\n    if x:\n        pass\nelse:\n    pass\n"),
        OLD.replace(b"if os:\n    def g(): return 2\n", b""),
        OLD.replace(b"if os:\n    def g(): return 2\nelse:", b"try:\n    def g(): return 2\nfinally:"),
        OLD.replace(b"class A:\n", b"class A:\n    def new(self): pass\n\n"),
        OLD.replace(b"class A:\n", b"class B:\n"),
        OLD.replace(b"class A:\n", b""),
        OLD.replace(b"'''\ndef no", b"''\ndef no"),
        OLD.replace(b"2)\n", b"2)"),
        OLD.replace(b"\n", b"\r\n"),
        OLD.replace(b"def last", b"    def last"),
        OLD.replace(b"def last", b"\x0cdef last"),
        OLD + OLD,
        OLD[: len(OLD) // 2],
        OLD[len(OLD) // 2 :],
        b"\xef\xbb\xbf" + OLD,
    ],
)
def test_gives_what_a_whole_parse_gives(new: bytes) -> None:
    quick, whole = both(new)
    assert quick == whole


@pytest.mark.parametrize("old", [OLD.replace(b"\n", b"\r\n"), OLD.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + OLD])
def test_other_line_ends_and_byte_order_mark(old: bytes) -> None:
    quick, whole = both(old.replace(b"return 1", b"return 10"), old)
    assert quick == whole
    assert names(quick) == ["f", "A.m", "A.m.<locals>.inner", "g", "h", "last"]


@pytest.mark.parametrize(
    ("new", "parsed"),
    [
        (OLD, []),
        (OLD.replace(b"return 1", b"return 10"), [b"@a\ndef f():\n    return 10\n# comment\n\n"]),
        (OLD.replace(b"import os\n\n", b""), []),
        (
            OLD.replace(b"return inner", b"return inner()"),
            [b"class A:\n    def m(self):\n        def inner(): pass\n        return inner()\n\n    pass\n"],
        ),
        (
            OLD.replace(b"    x = ", b"    def n(self): pass\n\n    x = "),
            [b"class A:\n    pass\n    def n(self): pass\n\n    pass\n"],
        ),
        (
            OLD.replace(b"'''\n\nif", b"'''\n    def n(self): pass\n\nif"),
            [b"class A:\n    pass\n    x = '''\ndef no(): pass\n'''\n    def n(self): pass\n\n"],
        ),
        (OLD.replace(b"class A", b"class B"), [OLD[OLD.index(b"class A") : OLD.index(b"if os")].replace(b"A", b"B")]),
        (
            OLD.replace(b"return 1", b"return 10").replace(b"2)\n", b"3)\n"),
            [b"@a\ndef f():\n    return 10\n# comment\n\n", b"x = (1,\n3)\n"],
        ),
    ],
)
def test_parses_only_what_differs(new: bytes, parsed: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    real = miners.rescan.parse
    known: dict[bytes, TextKeys] = {}
    old = scan_file(OLD, known)
    monkeypatch.setattr("miners.rescan.parse", lambda source: seen.append(source) or real(source))  # type: ignore[func-returns-value]  # append returns None, on purpose
    monkeypatch.setattr("miners.units._MIN_GAP", 0)
    assert rescan(new, OLD, old, known) == scan_file(new, {})
    assert seen[:-1] == parsed


def test_statements_of_a_class_body_are_known_by_their_lines() -> None:
    source = (
        b"@a\nclass A(b,\n  c):  # c\n    # c\n    '''doc'''\n    x = 1; y = 2\n\n    @d\n    def f(self):\n"
        b"        pass\n      # c\n    class B:\n        def g(self): pass\nclass C: x = 1\nif x:\n    def h(): pass\n"
    )
    lines = [source[start:].split(b"\n")[0] for start in scan_file(source, {}).starts]
    assert lines == [
        b"@a", b"    '''doc'''", b"    x = 1; y = 2", b"    @d", b"    class B:", b"class C: x = 1", b"if x:"
    ]  # fmt: skip


def test_a_long_class_header_is_no_header_to_parse_again() -> None:
    source = b"class A:\n" + b"    # comment\n" * 400 + b"    def f(self): pass\n"
    assert list(scan_file(source, {}).starts) == [0]


def test_a_file_with_a_syntax_error_lends_nothing() -> None:
    broken = OLD.replace(b"import os", b"import = os")
    assert len(scan_file(broken, {}).starts) == 0
    quick, whole = both(broken.replace(b"return 1", b"return 10"), broken)
    assert quick == whole


LINES = st.sampled_from(
    [
        b"def f(): pass", b"def g():", b"    return 1", b"        return 2", b"class A:", b"    def m(self): return 1",
        b"# comment", b"    # comment", b"if x:", b"else:", b"    pass", b"@a", b"x = '''", b"'''", b"x = (", b")", b"",
        b"x = 1 \\", b"\x0c", b"\tpass", b"x = 1; y = 2", b"async def h(): pass", b"try:", b"finally:", b"match x:",
        b"    case 1: pass", b"case = 1", b"'doc'", b"x = [", b"]", b"   ", b"print", b"lambda: 0",
    ]
)  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r", b""])
FILES = st.lists(st.tuples(LINES, ENDS), max_size=14).map(lambda lines: b"".join(line + end for line, end in lines))


@settings(max_examples=600)
@given(FILES, FILES, FILES, FILES)
@example(b"def f():\n    x\n", b"# c\n", b"# c\n    y\n", b"def g(): pass\n")
def test_any_edit_gives_what_a_whole_parse_gives(before: bytes, old: bytes, new: bytes, behind: bytes) -> None:
    quick, whole = both(before + new + behind, before + old + behind)
    assert quick == whole


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(versions())
@example(
    (
        b"class A:\n    x\n    def f(self):\n        y\n",
        b"class A:\n    x\n        # c\n    z\n  def f(self):\n        y\n",
    )
)
@example(
    (b"class A:\n    def f(self):\n        y\n", b"class A:\n    def f(self):\n        y\n\n    def g(self): pass\n")
)
@example((b"class A:\n    x\n    y\nz\n", b"class A:\nz\n"))
@example((b"class A:\n    x\n    y\n", b"class B:\n    x\n    y\n"))
def test_any_version_gives_what_a_whole_parse_gives(pair: tuple[bytes, bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # So that the search for statements inside a change runs on short files too.
        patch.setattr("miners.units._MIN_GAP", 0)
        patch.setattr("miners.units._MIN_UNIT", 1)
        for new, old in (pair, pair[::-1]):
            quick, whole = both(new, old)
            assert quick == whole


@given(st.data())
@settings(max_examples=60)
def test_edits_of_real_files(data: st.DataObject) -> None:
    folder = Path(sysconfig.get_paths()["stdlib"])
    name = data.draw(st.sampled_from(["argparse.py", "dataclasses.py", "textwrap.py", "enum.py", "contextlib.py"]))
    source = (folder / name).read_bytes()
    lines = source.splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines)))
    n_cut = data.draw(st.integers(0, 12))
    new = data.draw(FILES)
    quick, whole = both(b"".join(lines[:at]) + new + b"".join(lines[at + n_cut :]), source)
    assert quick == whole


@pytest.mark.parametrize(("text", "count"), [(b"", 0), (b"a\nb\r\nc\rd", 3), (b"\r\r\n\n", 3)])
def test_line_ends(text: bytes, count: int) -> None:
    assert n_line_ends(text) == count
