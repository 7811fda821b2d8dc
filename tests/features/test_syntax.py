"""Counts and metrics read from words, against those of the nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features import syntax
from features.ast_counts import AstCounts, count_nodes
from features.complexity import Metrics, measure
from features.parsing import ParsedCode, parse_method
from features.syntax import count_levels, measure_syntax
from miners.syntax import parse
from schemas.errors import DataError
from tests.features.golden import GOLDEN

CODES = [code for code, _ in GOLDEN.values()]
# Each is the body of a function whose words alone tell.
PLAIN = [
    "pass",
    "'''Doc of words.'''",
    "r'''Doc\\d''' ; x = 1",
    '"""Doc."""\n    return "x"  # a "comment"',
    "'short doc'",
    "('''in brackets''')",
    "'''joined''' 'docs'",
    "x = 1\n    '''no docstring'''\n    return '''a\n    value'''",
    "return None, True, False, ...",
    "return 1 if x else 2if y else 0x1or z",
    "return 1_000, 0xFFl, 1e5, 1E-5j, .5e3, 2.5j, 1j, 5 .real, 1..real",
    "return b'b', rb'x', R'\\'', u'', u.b",
    "b = b''; r = r''",
    "return f'a' 'b'",
    "return f'{f!r:>{width}.{d}f}' f'{x:d}'",
    "return f'{x:{y:d}}{d}'",
    "return f'{x:%Y-%m-%d}' + Y",
    "return f'{x!r:r}' f'{x!s}', s",
    "return f'{x[\"a\"]}' f\"{x['b']}\"",
    "return f'''{x  # comment f\n    }'''",
    "return f'{x:\"#}' if 0 else f'{x}'",
    "return f'{f\"{x}\"}', f'{ {1: 2}[1] }', f'{x = }'",
    "return \"f'{x}'\", 'if', \"self\"",
    "return t'a' + t",
    "def g(a): return a + b\n    return g",
    "def g(a):\n        def h(): return f'{c}'\n        return h\n    async def k(): pass",
    "@d('def ')\n    def g(): '''Doc.'''\n    return 'def '",
    "class A:\n        def m(self): return self.x",
    "return type(x), type.y",
    "type X = int\n    return X",
    "match = re.match(x)\n    return match",
    "exec(x); print(exec)",
    "print(x)\n    print.y",
    "print x",
    "exec 'x' in y",
    "print >>f, x",
    "async with a as b: await c\n    async for d in await e: pass",
    "return f(async=1)",
    "from __future__ import division",
    "return __future__.division",
    "return [a async for a in b]",
    "x = a\\\n        .b",
    "return a if not b else c is not d and e not in f or g",
    "return lambda *a, b=1, **c: a",
    "global g; nonlocal h; del i; assert j",
    "try: pass\n    except* A as e: raise B from e\n    finally: pass",
    "x: int = 1\n    (y := 2)\n    z @= 3",
    "return x  # é",
    "return 'é'",
    "return a--b, a **-b, x[::-1], x[...]",
    "\n\n\n    return x\n\n\n    # end",
]
# Each needs nodes: the grammar reads some of its characters otherwise than the words say.
NEEDS_NODES = [
    "return 1.e5, 1.E5, 1_0.j",
    "match x:\n        case 1: pass",
    "case = 1",
    "return é",
    "return x\u00a0+ y",
    "return `a b`",
    "return '\\N{' + x + '}'",
    'return "\nfoo"',
    "return 'a\\n\nb'",
    "return fr'{x[1]}'",
    "return F'{a}'",
    "return t'{x}' + t",
    "return rF'{x['y']}'",
    "return f'{{x}}'",
    "x = 1\r\n    return x",
    "return 'a\0b'",
    "return ?",
]


def by_nodes(parsed: ParsedCode) -> tuple[AstCounts, Metrics]:
    counts, landmarks = count_nodes(parsed.tree)
    return counts, measure(parsed, landmarks)


def from_words(parsed: ParsedCode) -> tuple[AstCounts, Metrics] | None:
    root = parsed.tree.root_node
    return None if root.has_error else syntax._from_words(parsed, root)


@pytest.mark.parametrize("body", PLAIN)
def test_words_say_what_nodes_say(body: str) -> None:
    parsed = parse_method(f"def name(x):\n    {body}\n")
    assert from_words(parsed) == by_nodes(parsed)


@pytest.mark.parametrize("body", NEEDS_NODES)
def test_words_say_nothing_where_the_grammar_reads_otherwise(body: str) -> None:
    parsed = parse_method(f"def name(x):\n    {body}\n")
    assert from_words(parsed) is None
    assert measure_syntax(parsed) == by_nodes(parsed)


@pytest.mark.parametrize(
    "head",
    [
        "async def",
        "async  def",
        "async \\\n  def",
        "# Who, what\n@a.b('c d', r'e')  # f\n@g\ndef",
        "@type(x)\nasync def",
        "@print\ndef",
        "@h(f'{i!r}')\ndef",
        "@h(f'''{i['j']}''')\ndef",
        "@h('''k l''')\nasync  def",
    ],
)
def test_decorators_and_comments_before_the_name_count(head: str) -> None:
    parsed = parse_method(f"{head} name(x): return x.r\n# end")
    assert measure_syntax(parsed) == by_nodes(parsed)


@pytest.mark.parametrize("code", CODES, ids=GOLDEN.keys())
def test_golden_examples_have_the_values_of_their_nodes(code: str) -> None:
    parsed = parse_method(code)
    assert measure_syntax(parsed) == by_nodes(parsed)


PIECES = [
    *"\"'\\#\n .:=*(){}[],xfrt1$`?",
    "'''",
    '"""',
    "f'",
    'f"',
    "{x}",
    "def ",
    "type",
    " if ",
    "1.e5",
    "é",
    "\0",
    "\r\n",
]


@given(
    st.sampled_from(CODES), st.lists(st.tuples(st.integers(0, 400), st.sampled_from(PIECES)), min_size=1, max_size=3)
)
def test_damaged_code_has_the_values_of_its_nodes(code: str, edits: list[tuple[int, str]]) -> None:
    for place, piece in edits:
        at = place % (len(code) + 1)
        code = code[:at] + piece + code[at + 1 :]
    try:
        parsed = parse_method(code)
    except DataError:
        return
    assert measure_syntax(parsed) == by_nodes(parsed)


WORDS = [
    "f",
    "r",
    "type",
    "print",
    "match",
    "async",
    "x.f",
    "1",
    "1.e5",
    "d",
    "a.type",
    "not",
    "None",
    "b''",
    "f'{d!r}'",
]
TOKENS = ["=", "+", ",", "(", ")", ":", " if ", " else ", "f'{x:d}'", '"""y"""', "\n    ", "\\\n", "# c\n    "]


@given(st.lists(st.sampled_from([*WORDS, *TOKENS]), max_size=12).map(" ".join))
def test_any_row_of_words_has_the_values_of_its_nodes(body: str) -> None:
    try:
        parsed = parse_method(f"def f(d):\n    {body}")
    except DataError:
        return
    assert measure_syntax(parsed) == by_nodes(parsed)


@pytest.mark.parametrize("word", sorted(syntax._RESERVED))
def test_what_the_grammar_reserves_is_never_a_name(word: bytes) -> None:
    places = ["a.%s", "f(%s=1)", "import %s", "import a as %s", "from a import %s", "%s = 1", "a[%s]", "global %s"]
    for place in places:
        tree = parse(b"def f():\n    " + place.encode() % word)
        assert tree.root_node.has_error or count_nodes(tree)[0].n_identifiers <= 2  # f, and a


def test_levels_of_five_thousand_nested_brackets_are_counted() -> None:
    tree = parse(b"def f():\n    return " + b"(" * 5_000 + b"1" + b")" * 5_000)
    assert count_levels(tree) == 4 + 5_000 + 1
