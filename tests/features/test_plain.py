"""Counts and metrics read from words, against those counted node by node."""

import keyword
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.ast_counts import AstCounts, count_nodes
from features.complexity import Metrics, measure
from features.parsing import ParsedCode, parse_method
from features.plain import count_and_measure, read_plain
from schemas.errors import DataError
from tests.features.golden import GOLDEN

CODES = [code for code, _ in GOLDEN.values()]


def counted_by_nodes(parsed: ParsedCode) -> tuple[AstCounts, Metrics]:
    """Return what `count_and_measure` returns, from all nodes."""
    counts, landmarks = count_nodes(parsed.tree)
    return counts, measure(parsed, landmarks)


def agrees(code: str) -> bool | None:
    """Return whether both ways agree on a method; None when the text is none."""
    try:
        parsed = parse_method(code)
    except DataError:
        return None
    return count_and_measure(parsed) == counted_by_nodes(parsed)


@pytest.mark.parametrize("code", CODES, ids=GOLDEN.keys())
def test_golden_code_is_counted_as_by_nodes(code: str) -> None:
    assert agrees(code) is True


PLAIN = [
    "def f(x):\n    return x",
    "@d('x', y=1)\n@e\nasync def f(x: int = 0x1F, *, y=1.5e3) -> None:\n    await x\n    return 1if x else y",
    'def f(b, r):\n    return b"x" + rb\'y\' + r + u"z"',
    "def f(x):\n    \"\"\"Doc.\n\n    def g():\n    \"\"\"\n    '''text\n    # alone'''\n    return '''a\n    b'''",
    "def f(x):\n    def g(y):\n        return f'{y!r:>{x}}'\n    return g",
    "def f(x):\n    return rf'if {x[\"a\"]!s:if #\\'} and {{y}}' f\"{x=:%d}\" 'for'",
    "def f(type, match, _):\n    re.match(type(_))\n    self.type = match\n    case = match.type",
    'def f(x):\n    return f"""a\n    {x.real:.2f} b\n    """',
]
TREE_NEEDED = [
    "def f(x):\n    print x",
    "def f(x):\n    match x:\n        case [_, y]: return y\n        case _: return 1",
    "def f(x):\n    type X = int",
    "def f(x):\n    type (X) = int",
    "def f(x):\n    await = x",
    "def f(x):\n    await (x)",
    "def f(x):\n    return 1.e5 + 1.j",
    "def f(x):\n    return f'{x:{y!r}}'",
    "@d(f'{x}')\ndef f(x): pass",
    "def f(x):\n    'a''''b'''",
    "def f(x):\n    é = 1",
    "def f(x):\r\n    return 1",
    "def f(x):\n    return $",
    "def f(:\n    return 1",
    "async def f(x):\n    async with x: pass",
]


@pytest.mark.parametrize("code", PLAIN)
def test_words_tell_the_counts_of_plain_code(code: str) -> None:
    parsed = parse_method(code)
    assert read_plain(parsed) == counted_by_nodes(parsed)


@pytest.mark.parametrize("code", TREE_NEEDED)
def test_code_whose_words_do_not_tell_is_counted_by_nodes(code: str) -> None:
    parsed = parse_method(code)
    assert read_plain(parsed) is None
    assert count_and_measure(parsed) == counted_by_nodes(parsed)


def test_counts_by_hand() -> None:
    parsed = parse_method("@d\ndef f(x):\n    '''Doc.'''\n    return b'' if x else x.y + 1")
    assert read_plain(parsed) == (AstCounts(34, 9, 0, 0, 4), Metrics(2, 2, 17))


# Everywhere that a name or a statement may stand.
CONTEXTS = [
    "{} = 1", "x.{} = 1", "f({}=1)", "import {}", "from {} import x", "from x import {} as y", "import x as {}",
    "global {}", "del {}", "for {} in x: pass", "with x as {}: pass", "lambda {}: 1", "[{} for x in y]", "{}: int = 1",
    "class {}: pass", "x[{}]", "x = {}", "return {}", "{}", "{} x", "{} (x)", "{} (x), y", "{} [x] = 1", "{} x = 1",
    "{}.x", "{}, x = 1, 2", "x: {} = 1", "raise {}", "assert {}, x", "'''a'''; {} x", "{}'x'", "f'{{{}}}'",
    "f'{{x!r:{}}}'", "f'{{x:{{{}}}}}'", "@{}\n    class C: pass", "try: pass\n    except {}: pass", "x if {} else y",
    "(yield {})", "{} not in x", "{} for x in y", "x = ({}\n    )", "x = (1, \\\n    {} x)", "if x: {} y", "1{} x",
    "match x:\n        case {}: pass", "match x:\n        case C({}=1): pass", "{} x: int", "{} -x", "{} *x, y",
    "{} {}",
]  # fmt: skip
WORDS = [*keyword.kwlist, *keyword.softkwlist, "print", "exec", "__future__", "b", "f", "rb", "x1", "e5", "0", "1.e5"]


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_keyword_in_every_place_is_counted_as_by_nodes(context: str) -> None:
    results = {}
    for head in ("def f(x):\n    ", "async def f(x):\n    y = 1\n    "):
        for word in WORDS:
            code = head + context.replace("{{", "\0").replace("}}", "\1").replace("{}", word)
            results[word, head] = agrees(code.replace("\0", "{").replace("\1", "}"))
    assert {key: value for key, value in results.items() if value is False} == {}
    assert True in results.values()


PIECES = st.sampled_from(
    [*"\"'\\#\n.,:()[]{}=!_x1fb", "'''", '"""', "f'", 'rf"', "\\\n", "\r", "{x!r}", "{x:d}", " def g(): ", " case ",
     " match ", " type ", " await ", " if ", "\n    ", "é", " print ", "1.e5", " async ", "b'"]
)  # fmt: skip


@given(st.sampled_from([*CODES, *PLAIN, *TREE_NEEDED]), st.integers(0, 400), st.integers(0, 3), PIECES)
def test_damaged_code_is_counted_as_by_nodes(code: str, place: int, cut: int, piece: str) -> None:
    at = place % (len(code) + 1)
    assert agrees(code[:at] + piece + code[at + cut :]) is not False


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_body_is_counted_as_by_nodes(body: str) -> None:
    assert agrees(f"def f(x):\n    y = {body}\n    return 1") is not False


@given(st.lists(st.tuples(st.sampled_from(CONTEXTS), st.sampled_from(WORDS)), min_size=1, max_size=4), st.integers())
def test_statements_side_by_side_are_counted_as_by_nodes(statements: list[tuple[str, str]], seed: int) -> None:
    filled = [
        context.replace("{{", "\0").replace("}}", "\1").replace("{}", word).replace("\0", "{").replace("\1", "}")
        for context, word in statements
    ]
    separator = random.Random(seed).choice(["\n    ", "; "])
    assert agrees("def f(x):\n    " + separator.join(filled)) is not False
