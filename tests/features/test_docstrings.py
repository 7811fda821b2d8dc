"""Docstrings, signatures, code without docstring, bodies without meaning."""

import ast
import inspect
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from features.docstrings import (
    code_without_docstring,
    docstring_of,
    is_trivial_body,
    is_valid_docstring,
    signature_of,
)
from features.parsing import parse_method
from schemas.errors import DataError
from tests.features.golden import GOLDEN
from tests.features.real_code import methods_of

ENDINGS = ("\n", "\r\n", "\r")


def docstring(code: str) -> str | None:
    return docstring_of(parse_method(code))


def signature(code: str) -> str:
    return signature_of(parse_method(code))


# -- the text


@given(
    st.sampled_from(["'", '"', "'''", '"""']),
    st.lists(st.sampled_from([*"'\"a \n\\\r\f{x}é", "''", '""', "\\n"]), max_size=8).map("".join),
)
def test_the_text_is_the_one_that_cpython_reads(quotes: str, content: str) -> None:
    code = f"def f():\n    {quotes}{content}{quotes}\n    return 1"
    try:
        expected = ast.get_docstring(ast.parse(code).body[0])  # type: ignore[arg-type]  # a function definition
        parsed = parse_method(code)
    except (SyntaxError, DataError):
        reject()
    assert docstring_of(parsed) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("'''One.'''", "One."),
        ('"""\n    One.\n\n      Two.\n    """', "One.\n\n  Two."),
        ('r"""A \\d."""', "A \\d."),
        ("u'One.'", "One."),
        ("'One \\'quoted\\'.'", "One 'quoted'."),
        ("'One ' 'two'", "One two"),
        ("('One ' 'two')", "One two"),
        ("(('One'))", "One"),
        ("'tab\\tone'", "tab     one"),
        ("# why\n    'One.'", "One."),
        ("''", ""),
        ("b'One.'", None),
        ("f'One.'", None),
        ("'One {}.'.format(1)", None),
        ("'One', 'two'", None),
        ("x = 'One.'", None),
        ("pass\n    'One.'", None),
        ("'One' f'two'", None),
        ("...", None),
    ],
)
def test_a_docstring_is_what_cpython_takes_for_one_cleaned(body: str, expected: str | None) -> None:
    code = f"def f():\n    {body}"
    assert docstring(code) == expected
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function, clean=True) == expected


@pytest.mark.parametrize(
    ("text", "valid"),
    [(None, False), ("", False), ("One two three", False), ("One two three four", True), ("a\nb\tc  d", True)],
)
def test_a_valid_docstring_has_more_than_three_words(text: str | None, valid: bool) -> None:
    assert is_valid_docstring(text) is valid


# -- the header


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): pass", "def f():"),
        ("async def f(): pass", "async def f():"),
        ("async  def  f ( ) :\n  pass", "async  def  f ( ) :"),
        ("@deco(x=':')\n@other\ndef f(a):\n    pass", "def f(a):"),
        (
            "def f(a: int = {1: 2}[1], b=lambda: 0) -> dict[str, 'x:y']: pass",
            "def f(a: int = {1: 2}[1], b=lambda: 0) -> dict[str, 'x:y']:",
        ),
        ("def f(\n    a,  # first: one\n    b,\n):\n    pass", "def f(\n    a,  # first: one\n    b,\n):"),
        ("def f(\r\n    a,\r\n):\r\n    pass", "def f(\r\n    a,\r\n):"),
        ("def f(\r    a,\r):\r    pass", "def f(\r    a,\r):"),
        ("def f[T: (int, str), *Ts, **P](x: T) -> T: return x", "def f[T: (int, str), *Ts, **P](x: T) -> T:"),
        ("def f(a, /, *, b): pass", "def f(a, /, *, b):"),
        ("def größe(名): pass", "def größe(名):"),
        ("def f() -> \\\n    int: return 1", "def f() -> \\\n    int:"),
        ("def f():  # comment: here\n    x: int = 1", "def f():"),
    ],
)
def test_the_signature_ends_with_the_headers_colon(code: str, expected: str) -> None:
    assert signature(code) == expected


# -- the code without it


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # alone on its lines
        ("def f():\n    'Doc.'\n    return 1", "def f():\n    return 1"),
        ('def f():\n    """Doc.\n\n    More.\n    """\n    return 1\n', "def f():\n    return 1\n"),
        ('def f():\n\n    """Doc."""\n\n    return 1', "def f():\n\n\n    return 1"),
        ("def f():\n    'Doc.'  \n    return 1", "def f():\n    return 1"),
        ("def f():\n    ('Doc '\n     'two')\n    return 1", "def f():\n    return 1"),
        ("def f():\n\t'Doc.'\n\treturn 1", "def f():\n\treturn 1"),
        ("def f():\n\x0c    'Doc.'\n    return 1", "def f():\n    return 1"),
        (
            "def f():\n    # why\n    'Doc.'\n    # because\n    return 1",
            "def f():\n    # why\n    # because\n    return 1",
        ),
        ("def f():  # why\n    'Doc.'\n    return 1", "def f():  # why\n    return 1"),
        # decorated, async, long header
        (
            "@d\n@e(1)\nasync def f(\n    a: int = 1,\n) -> int:\n    'Doc.'\n    return a",
            "@d\n@e(1)\nasync def f(\n    a: int = 1,\n) -> int:\n    return a",
        ),
        # not alone
        ("def f(): 'Doc.'; return 1", "def f(): return 1"),
        ("def f(): 'Doc.' ; x = 1; return x", "def f(): x = 1; return x"),
        ("def f():\n    'Doc.'; x = 1\n    return x", "def f():\n    x = 1\n    return x"),
        ("def f():\n    'Doc.';\n    return 1", "def f():\n    return 1"),
        ("def f():\n    'Doc.'  # said\n    return 1", "def f():\n      # said\n    return 1"),
        ("def f():\n    'Doc.'; \\\n    return_(1)", "def f():\n    return_(1)"),
        ("def f():\n    'Doc.' \\\n\n    return 1", "def f():\n    return 1"),
        # the whole body
        ("def f(): 'Doc.'", "def f(): pass"),
        ("def f():\n    'Doc.'", "def f():\n    pass"),
        ("def f():\n    'Doc.';", "def f():\n    pass;"),
        ('def f():\n    """Doc.\n    """\n    # end\n', "def f():\n    pass\n    # end\n"),
        ("def f(): \\\n    'Doc.'", "def f(): \\\n    pass"),
        # nothing to remove
        ("def f():\n    return 'Doc.'", "def f():\n    return 'Doc.'"),
        ("def f():\n    b'Doc.'\n    return 1", "def f():\n    b'Doc.'\n    return 1"),
        ("def f():\n    def g():\n        'Doc.'\n        return 1\n    return g",) * 2,
        ("def f():\n    q = '''\n    'Doc.'\n    '''\n    return q",) * 2,
    ],
)
def test_the_docstring_goes_and_nothing_else(code: str, expected: str) -> None:
    assert code_without_docstring(code) == expected
    ast.parse(expected)


@pytest.mark.parametrize("ending", ENDINGS)
def test_line_endings_are_kept(ending: str) -> None:
    lines = ["def f():", "    '''Doc.", "", "    More.", "    '''", "    x = '''a", "b'''", "    return x", ""]
    kept = [lines[0], *lines[5:]]
    assert code_without_docstring(ending.join(lines)) == ending.join(kept)


def test_code_that_is_no_definition_is_refused_with_a_reason() -> None:
    with pytest.raises(DataError) as caught:
        code_without_docstring("x = 1")
    assert caught.value.reason == "no_definition"


def without_docstring_node(code: str) -> str:
    """Return the tree of the code with its docstring taken out by `ast`; `pass` stands for an empty body."""
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    if ast.get_docstring(function, clean=False) is not None:
        del function.body[0]
        function.body = function.body or [ast.Pass()]
    return ast.dump(function)


PARSED_GOLDEN = [code for code, expected in GOLDEN.values() if expected.parses]


@pytest.mark.parametrize("code", PARSED_GOLDEN)
def test_golden_code_without_docstring_is_the_tree_without_it(code: str) -> None:
    assert ast.dump(ast.parse(code_without_docstring(code)).body[0]) == without_docstring_node(code)


@pytest.mark.parametrize("module", [ast, inspect, Path], ids=["ast", "inspect", "pathlib"])
def test_real_code_without_docstring_is_the_tree_without_it(module: object) -> None:
    codes = methods_of(Path(inspect.getfile(module)))  # type: ignore[arg-type]  # modules and classes alike have a file
    assert len(codes) > 20
    for code in codes:
        assert ast.dump(ast.parse(code_without_docstring(code)).body[0]) == without_docstring_node(code)


@given(
    header=st.sampled_from(["def f():", "async def f(a,\n  b=':'):", "@d\ndef f() -> int:", "def f():  # why"]),
    before=st.sampled_from(["", "\n", "    # note\n", "\n\n"]),
    quote=st.sampled_from(["'", '"', "'''", '"""', 'r"', 'U"""']),
    tail=st.sampled_from(["", "  ", "  # said", ";", " ;  # said"]),
    body=st.sampled_from(["return 1", "x = '''a\nb'''\n    return x", "if 1:\n        pass", ""]),
    ending=st.sampled_from(ENDINGS),
)
def test_any_layout_loses_its_docstring_only(
    header: str, before: str, quote: str, tail: str, body: str, ending: str
) -> None:
    closing = quote.lstrip("rU")
    lines = f"{header}\n{before}    {quote}Doc: f().{closing}{tail}\n" + (f"    {body}\n" if body else "")
    code = lines.replace("\n", ending)
    result = code_without_docstring(code)
    assert ast.dump(ast.parse(result).body[0]) == without_docstring_node(code)
    assert "Doc" not in result
    assert code_without_docstring(result) == result


# -- bodies without meaning


@pytest.mark.parametrize(
    ("body", "trivial"),
    [
        ("pass", True),
        ("...", True),
        ("'Doc.'", True),
        ("'Doc.'\n    pass", True),
        ("'Doc.'\n    ...\n    # later", True),
        ("'Doc.'\n    'More.'", True),
        ("raise NotImplementedError", True),
        ("raise NotImplementedError()", True),
        ("'Doc.'; raise NotImplementedError('later')", True),
        ("raise NotImplementedError(f'{x}') from None", True),
        ("pass; pass", True),
        ("return", False),
        ("return None", False),
        ("raise", False),
        ("raise ValueError", False),
        ("raise errors.NotImplementedError", False),
        ("raise NotImplementedErrors", False),
        ("'Doc.'\n    return 1", False),
        ("print()", False),
        ("'a'.upper()", False),
        ("x = ...", False),
        ("if x:\n        pass", False),
        ("return NotImplementedError", False),
    ],
)
def test_a_trivial_body_says_nothing(body: str, trivial: bool) -> None:
    assert is_trivial_body(f"def f(x):\n    {body}") is trivial


def test_a_one_line_body_is_judged_too() -> None:
    assert is_trivial_body("@overload\ndef f(x: int) -> int: ...")
    assert not is_trivial_body("def f(x): return x")
