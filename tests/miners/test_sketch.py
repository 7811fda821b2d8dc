"""Definitions found by how they begin: none with equal tokens is missed, and few others are found."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miners.methods import indentation, token_hashes
from miners.rescan import scan_file
from miners.sketch import Sketch, SketchIndex, opening, sketch

BODY = "(self, n):\n    total = n * 2\n    return total\n"
LONG = "(x, y):\n" + "".join(f"    value_{i} = x + y * {i}\n" for i in range(12))


def found(code: str, *files: str, sound: bool = True) -> dict[str, bool]:
    """Return the files that may hold a definition's tokens, and whether under its name."""
    index = SketchIndex()
    for file in files:
        index.add(file, file.encode())
    return index.find(code.encode().rstrip(), sound=sound)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(self, n):\n    return n", (b"f", [b"(self,n):returnn\0"])),
        ("def f(a):\n    '''Doc.\n\ndef g(): 1'''\n    # why\n    return '# no'  # yes", (
            b"f", [b"(a):return'#no'\0"]
        )),
        ("async def f(): pass", (b"f", [b"():pass\0"])),
        ("def f(a, g=h(1, ')')) -> 'X':\n    return a.f(f)", (
            b"f", [b"(a,g=h(1,')'))->'X':returna.f(f)\0", b"(a,g=h(1,')'))->'X':returna."]
        )),
        ("def f():\n    print('f', f)", (b"f", [b"():print('f',f)\0", b"():print('"])),
        ("def f():\n    (a, b)", (b"f", [b"():"])),
        ("def f(a: {1: 2}):\n    return 1", (b"f", [b"(a:{1:2}):return1\0"])),
        ("def f(a=lambda (x): 1", (b"f", [b"(a=lambda(x)"])),
        ("def f\\\n(): 1", (b"f", [b""])),
        ("def", (b"", [b""])),
        ("def f" + LONG, (b"f", [("(x,y):" + "".join(f"value_{i}=x+y*{i}" for i in range(12))).encode()[:80]])),
        ("def f():\n    x = f'{a}'  # b\n    return x", (b"f", [b"():x=f", b"():x=?"])),
    ],
)  # fmt: skip
def test_how_a_definition_begins(text: str, expected: tuple[bytes, list[bytes]]) -> None:
    mine = sketch(text.encode(), text.index("def"), whole=True)
    stops = tuple(not (item.endswith(b"\0") or len(item) == 80) for item in expected[1])
    assert mine == Sketch(expected[0], tuple(expected[1]), stops)


@pytest.mark.parametrize(
    "file",
    [
        f"x = 1\n\n\ndef f{BODY}\nclass A:\n    pass\n",
        "class A:\n    @property\n    def f" + BODY.replace("\n", "\n    ") + "\nz = 1\n",
        "class A:\n\tdef f" + BODY.replace("\n", "\n\t").replace("    ", "\t") + "\n",
        f"def f{BODY}".replace("\n", "\r\n") + "def g(): pass\r\n",
        f"def f{BODY}".replace("\n", "\r"),
        f"def f{BODY}".replace("    total =", "    '''Doc.\n    def no(): 1\n'''\n\n    # why\n\n    total \\\n ="),
        f"\ufeffdef f{BODY}",
        f"def f{BODY}".replace("(self, n)", "(\n    self,  # it's\n    n\n)") + "x = 1\n",
        "def g():\n    def f" + BODY.replace("\n    ", "\n        ") + "    return f\n",
    ],
)  # fmt: skip
def test_the_same_tokens_are_found_however_they_are_written(file: str) -> None:
    assert found(f"def f{BODY}", file) == {file: True}
    assert found(f"def other{BODY}", file) == {file: False}


def test_others_are_not_found() -> None:
    files = [
        f"def f{BODY.replace('2', '3')}",
        f"def f{BODY}    more()\n",
        "def f(self): pass\n",
        "x = 'def f'\n",
    ]
    assert found(f"def f{BODY}", *files) == {}
    assert found("def f(self): pass", *files) == {files[2]: True}


def test_a_decorator_may_hold_words_that_end_like_a_definition_begins() -> None:
    files = [f"def f{BODY}", "def g(x): pass\n"]
    assert found(f"@setup('{{% partialdef x %}}')\ndef f{BODY}", *files) == {files[0]: True}


def test_a_definition_cut_short_by_an_error_may_go_on() -> None:
    longer = f"def f{BODY}    more()\n"
    assert found(f"def f{BODY}", longer, sound=False) == {longer: True}


def test_recursion_under_another_name() -> None:
    before = "def f(n):\n    return f(n - 1)\n"
    assert found("def g(n):\n    return g(n - 1)", before) == {before: False}
    assert found("def g(n):\n    return f(n - 1)", before) == {before: False}
    assert found("def g(n):\n    return h(n - 1)", before) == {}


def test_a_decorator_may_hold_anything() -> None:
    file = f"@call('def x(): 1')\ndef f{BODY}"
    assert found(file, file) == {file: True}


def test_the_word_def_inside_a_decorated_definition_begins_none_unless_it_is_broken() -> None:
    index = SketchIndex()
    index.add("other", b"def g(a):\n    return a\n")
    text = b'@d\ndef f():\n    return {"token": "def"}'
    assert index.find(text, sound=True) == {}
    assert index.find(text, sound=False) == {"other": True}  # nobody knows the name behind that word


@pytest.mark.parametrize("first", ["(a, b) = g(c)", "(a).b('c')", "('x')[0]", "(a) + b"])
def test_what_goes_on_behind_parentheses_is_no_docstring(first: str) -> None:
    index = SketchIndex()
    index.add("other", b"def f(c):\n    return c\nx = 1\n")
    index.add("same", f"class A:\n    def f(c):\n        {first}  # so\n        return c\n".encode())
    code = f"def f(c):\n    {first}\n    return c"
    assert index.find(code.encode(), sound=True) == {"same": True}


@pytest.mark.parametrize("first", ["(a, b)", "('Doc')", "(a), 'b'", "(a)  # what"])
def test_parentheses_alone_may_be_a_docstring(first: str) -> None:
    index = SketchIndex()
    index.add("other", b"def f(c):\n    return c\nx = 1\n")
    code = f"def f(c):\n    {first}\n    return c"
    assert index.find(code.encode(), sound=True) == {"other": True}


@pytest.mark.parametrize(
    ("code", "file"),
    [
        ("def f(a): return a", "def f(a):\n    'Doc'\n    return a  # so\n\nx = 1\n"),
        ("def f(a):\n    (a)\n    return 1", "def f(a):\n    # what\n    (a)\n    return 1\n"),
        ("def f" + LONG.rstrip(), "async def f" + LONG.replace("x + y", "x  +  y") + "z = 1\n"),
    ],
)
def test_of_openings_with_equal_tokens_one_begins_with_the_other(code: str, file: str) -> None:
    mine = opening(code.encode(), 0)
    its = opening(file.encode(), file.index("def"))
    assert mine.startswith(its) or its.startswith(mine)
    assert not opening(b"def f(b): return b", 0).startswith((mine, its))


def test_a_million_definitions_on_one_line_take_no_time() -> None:
    index = SketchIndex()
    index.add("blob", b"def " * 1_000_000)
    assert index.find(b"def f(): pass", sound=True) == {"blob": False}  # nobody knows what follows


LINES = [
    "a = g(1)\n", "return 'x'\n", "# it's a note\n", '"""Doc."""\n', "if a:\n    b = [\n1]\n", "f(a)\n", "\n",
    "def h(): return g\n", "x = f'{a}'  # f\n", "'''\ntext\n'''\n", "(a)\n",
    "(a, 'b') = g\n", "(a).b('c')\n", "('Doc')\n", "(a), 'b'\n", "('def', \"d\") [0]\n",
]  # fmt: skip
HEADS = [
    "def f(a):\n",
    "def g(a):\n",
    "async def f(a, b='#'):\n",
    "def f(a,  # one\n      b):\n",
    "@d(1)\ndef f(a: x) -> 'y':\n",
]
DEFINITIONS = st.tuples(st.sampled_from(HEADS), st.lists(st.sampled_from(LINES), min_size=1, max_size=4))


@given(st.lists(st.tuples(DEFINITIONS, st.sampled_from(["", "    ", "\t"])), min_size=2, max_size=6))
@settings(deadline=None, max_examples=100)
def test_no_definition_with_equal_tokens_is_missed(
    definitions: list[tuple[tuple[str, list[str]], str]],
) -> None:
    index, known, openings = SketchIndex(), [], []
    for number, ((head, lines), indent) in enumerate(definitions):
        body = "".join(f"    {line}" for text in lines for line in text.splitlines(keepends=True)) + "    pass\n"
        code = "".join(indent + line for line in (head + body).splitlines(keepends=True))
        source = ((f"class C:\n{code}" if indent else code) + "z = 1\n").encode()
        index.add(str(number), source)
        scanned = scan_file(source, {})
        for span in scanned.spans:
            text = source[span.start_byte : span.end_byte]
            known.append(
                (str(number), text, bool(scanned.starts), token_hashes(text, indentation(source, span.start_byte)))
            )
            at = source.index(b"def", span.start_byte)
            openings.append((known[-1][3].exact, opening(text, at - span.start_byte), opening(source, at)))
    for (exact, alone, _), (other_exact, _, inside) in product(openings, repeat=2):
        assert exact != other_exact or alone.startswith(inside) or inside.startswith(alone)
    for _, text, sound, hashes in known:
        same = {
            blob_id
            for blob_id, _, _, other in known
            if hashes.nameless == other.nameless or hashes.nameless_everywhere == other.nameless_everywhere
        }
        assert same - index.find(text, sound=sound).keys() == set()
