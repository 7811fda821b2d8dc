"""Software metrics by hand-checked values, one rule at a time."""

import lizard
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from features.ast_counts import count_nodes
from features.complexity import Metrics, measure
from features.lexical import CONDITIONS
from features.parsing import parse_method
from features.syntax import measure_syntax
from schemas.errors import DataError
from tests.features.golden import GOLDEN


def metrics(code: str) -> Metrics:
    parsed = parse_method(code)
    counts, landmarks = count_nodes(parsed.tree)
    by_nodes = measure(parsed, landmarks)
    assert measure_syntax(parsed) == (counts, by_nodes)
    return by_nodes


def complexity(body: str) -> int:
    return metrics(f"def f(x):\n    {body}").complexity


def nloc(code: str) -> int:
    return metrics(code).nloc


def tokens(expression: str) -> int:
    """Return the tokens of an expression: those of `f ( ) : return` taken off."""
    return metrics(f"def f():\n    return {expression}").token_count - 5


# -- complexity


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pass", 1),
        ("if x: pass", 2),
        ("if x: pass\n    else: pass", 2),
        ("if x: pass\n    elif y: pass\n    else: pass", 3),
        ("for i in x: pass\n    else: pass", 2),
        ("while x: pass", 2),
        ("try: pass\n    except A: pass\n    except B: pass\n    else: pass\n    finally: pass", 4),
        ("try: pass\n    except* A: pass", 2),
        ("with x: pass", 1),
        ("assert x", 1),
        ("assert x and y or z", 3),
        ("return a and b and c", 3),
        ("return not a", 1),
        ("return 1 if x else 2", 2),
        ("return [i for i in x if i if j]", 4),
        ("return {i for i in x for j in i}", 3),
        ("return (await i async for i in x)", 2),
        ("return lambda: x or y", 2),
        ("return x == y != z", 1),
        ("match x:\n        case 1: pass\n        case 2 | 3 if y: pass\n        case _: pass", 5),
        ("match = case = 1", 1),
        ("case(x)\n    match[x]", 1),
        ("return f'{1 if x else 2:{3 or 4}}'", 3),
        ("return 'if x and y or z'", 1),
        ("return x.if_and_or", 1),
        ("pass  # if x or y", 1),
        ("'''if x and y'''", 1),
    ],
)
def test_complexity_is_one_plus_conditions_and_cases(body: str, expected: int) -> None:
    assert complexity(body) == expected


def test_a_default_counts_and_a_decorator_does_not() -> None:
    assert metrics("@d(x if y else z)\ndef f(a=1 if b else 2): pass").complexity == 2


def test_a_nested_functions_conditions_are_its_own() -> None:
    code = (
        "def f(x):\n"
        "    @d(1 if x else 2)\n"
        "    def g(y=1 or 2):\n"
        "        match y:\n"
        "            case 1: pass\n"
        "        if y: pass\n"
        "        def h():\n"
        "            while 1: pass\n"
        "        return f'{y and 1}'\n"
        "    class C:\n"
        "        def m(self): return 1 or 2\n"
        "    for i in x: pass\n"
    )
    # the decorator's conditional expression and the loop
    assert metrics(code).complexity == 3
    # f(x): @d(1 if x else 2) def g | class C: def m | for i in x: pass
    assert metrics(code).token_count == 5 + 9 + 2 + 3 + 2 + 6
    # def f, decorator, def g, class C, def m, for
    assert metrics(code).nloc == 6


# -- nloc


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): pass", 1),
        ("def f():\n    pass", 2),
        ("def f():\n\n    # why\n\n    pass\n", 2),
        ("@d\n@e(\n1)\ndef f():\n    pass", 2),
        ("def f(\n    a,\n    # why\n    b,\n):\n    pass", 5),
        ("def f():\n    '''Doc.\n\n    More.'''\n    pass", 2),
        ("def f():\n    'Doc.'\n    pass", 3),
        ("def f():\n    r'''Doc.\n    '''\n    pass", 2),
        ("def f():\n    pass\n    '''A note\n    in between.'''\n    pass", 3),
        ("def f():\n    '''Doc.'''; pass", 2),
        ("def f():\n    x = '''a\n\n    b'''\n    pass", 5),
        ("def f():\n    g('''a\n    b''')", 3),
        ("def f():\n    return f'''a\n    {x}\n    b'''", 4),
        ("def f():\n    return b'''a\n    b'''", 3),
        ("def f():\n    return '''a\n    b'''.strip()", 3),
        ("def f():\n    return 1 + \\\n        2", 3),
        ("def f():\n    x = 1; y = 2", 2),
        ("def f():\n    '''Do''' '''c.'''\n    pass", 2),
        ("def f():\n    return f'''{\nx\n}'''", 2 + 1),
    ],
)
def test_lines_of_code_leave_out_comments_blank_lines_and_texts_that_stand_alone(code: str, expected: int) -> None:
    assert nloc(code) == expected


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
@pytest.mark.parametrize("code", [code for code, _ in GOLDEN.values()], ids=GOLDEN.keys())
def test_line_endings_change_no_metric(code: str, ending: str) -> None:
    plain = code.replace("\r\n", "\n").replace("\r", "\n")
    assert metrics(plain.replace("\n", ending)) == metrics(plain)


# -- token_count


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", 1),
        ("größe", 1),
        ("1_000", 1),
        ("1.5", 3),
        ("1e-5", 3),
        ("0xff", 1),
        ("x ** y", 3),
        ("x // y", 3),
        ("x << y", 4),
        ("x >= y", 3),
        ("x != y", 3),
        ("x @ y", 3),
        ("...", 1),
        ("x[::2]", 5),
        ("x[1:2]", 6),
        ("(y := 1)", 5),
        ("lambda: 1", 3),
        ("''", 1),
        ("'a b'", 1),
        ("'a \\' b'", 1),
        ("'''a ' b'''", 1),
        ("b'a'", 2),
        ("rb'a'", 2),
        ("'a' \"b\"", 2),
        ("f'a'", 2),
        ("f'{x}'", 2),
        ("f'a{x}b'", 4),
        ("f'a{{x}}b'", 2),
        ("f'{x}{y}'", 3),
        ("f'{x!r}'", 4),
        ("f'{x:.2f}'", 5),
        ("f'{x=}'", 3),
        ("f'{x:>{w}}'", 7),
        ("f'{x:#x}'", 5),
        ("f'{\"a\" + y}'", 4),
        ("f'\\N{BULLET}'", 2),
        ("x \\\n    + y", 4),
        ("x  # a comment", 1),
    ],
)
def test_an_expression_has_as_many_tokens_as_lizard_splits_it_into(expression: str, expected: int) -> None:
    assert tokens(expression) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [("x **= 2", 4), ("x //= 2", 3), ("x >>= 2", 3), ("x += 2", 3), ("x %= 2", 4), ("x: int = 2", 5)],
)
def test_assignment_operators_are_split_as_lizard_splits_them(statement: str, expected: int) -> None:
    assert metrics(f"def f():\n    {statement}").token_count - 4 == expected


def test_tokens_begin_with_the_name() -> None:
    assert metrics("@d(1, 2)\nasync def f(): pass").token_count == metrics("def f(): pass").token_count == 5


def test_type_parameters_and_annotations_count() -> None:
    # f [ T : int ] ( x : T ) -> T : pass
    assert metrics("def f[T: int](x: T) -> T: pass").token_count == 15


# -- properties

BLOCKS = (
    "x = 1",
    "if x: y",
    "for i in x: y",
    "x = '''a\n b'''",
    "return x and y",
    "# note",
    "'''A text.\n    '''",
    "return f'{x}a{y!r}'",
    "def g():\n        return 1 or 2",
    "with x as y: z",
)


@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=6))
def test_metrics_of_a_body_are_the_sums_over_its_statements(blocks: list[str]) -> None:
    alone = [metrics(f"def f():\n    pass\n    {block}") for block in blocks]
    together = metrics("def f():\n    pass\n    " + "\n    ".join(blocks))
    assert together == Metrics(
        nloc=2 + sum(item.nloc - 2 for item in alone),
        complexity=1 + sum(item.complexity - 1 for item in alone),
        token_count=5 + sum(item.token_count - 5 for item in alone),
    )


@given(st.text(alphabet="\"'{}[]()#\\\n:=!x1 fr", max_size=60))
def test_no_text_is_too_broken_to_be_measured(text: str) -> None:
    code = f"def f():\n    return {text}"
    try:
        parse_method(code)
    except DataError:
        reject()
    result = metrics(code)
    # f ( ) : return at least, on no more lines than there are
    assert result.token_count >= 5
    assert 2 <= result.nloc <= 2 + text.count("\n")
    assert result.complexity == 1


def test_the_conditions_are_lizards() -> None:
    names = lizard.get_reader_for("x.py")._build_conditions()
    assert frozenset(name.decode() for name in CONDITIONS) == names
