"""One parse for all features, and CPython's verdict."""

import ast
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.parsing import accepted_by_cpython, parse_method
from schemas.errors import DataError
from tests.features.golden import GOLDEN

SEVEN = ", ".join(["function_definition"] * 5)  # of seven, five are named
SINCE_3_12 = sys.version_info >= (3, 12)


def test_offsets_are_bytes_of_the_source() -> None:
    parsed = parse_method("# größe\n@deco\ndef größe(): return 'ü'\n# end")
    function = parsed.definition.function
    assert parsed.source[function.start_byte : function.end_byte].decode() == "def größe(): return 'ü'"
    assert parsed.definition.name == "größe"


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        ("", "no_definition", "one function definition expected, found: nothing"),
        ("x = 1", "no_definition", "one function definition expected, found: expression_statement"),
        ("lambda: 1", "no_definition", "one function definition expected, found: expression_statement"),
        ("def f(): pass\n" * 7, "no_definition", "one function definition expected, found: " + SEVEN),
        ("def f(): '\udcff'", "code_not_utf8", "character 10: surrogates not allowed"),
    ],
)  # fmt: skip
def test_other_text_is_refused_with_a_reason(code: str, reason: str, detail: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_method(code)
    assert (caught.value.reason, caught.value.detail) == (reason, detail)


@pytest.mark.parametrize(
    ("code", "accepted"),
    [
        ("def f(): pass", True),
        ("", True),
        ("def f():\r    return 1", True),
        ("def f():\n\x0c    return 1", True),
        ("def f():\n    return '\\d'", True),
        ("def f(x):\n    return x is 1", True),
        ("def f[T](x: T) -> T: return x", SINCE_3_12),
        ("def f(d): return f'{d['a']}'", SINCE_3_12),
        # refused later than by the parser: by the symbol table or the compiler
        ("return 1", True),
        ("def f(x, x): pass", True),
        ("def f():\n    nonlocal x", True),
        ("def f():\n    x = 1\n    global x", True),
        ("def f():\n    break", True),
        ("def f():\n    from x import *", True),
        # what tree-sitter parses without an ERROR node and no Python 3 accepts
        ("def f(): print 'x'", False),
        ("def f(): exec 'x'", False),
        ("def f(): return 0xFFl", False),
        ("def f():\n    try: pass\n    except A, b: pass", False),
        ("def f():\n\tif x:\n        pass\n\tpass", False),
        ("def f(): g(**{}, *b)", False),
        ("def f(): pass\n  x", False),
        ("def f(): return '\x00'", False),
        ("def f(): return '", False),
        ("def f(): return '\ud83d'", False),
    ],
)
def test_the_verdict_is_that_of_ast_parse(code: str, accepted: bool) -> None:
    assert accepted_by_cpython(code) is accepted


@given(
    st.sampled_from([code for code, _ in GOLDEN.values()]),
    st.integers(0, 400),
    st.sampled_from(["", "(", "'", ":", "\n", " ", "\t", "return", "=", "\\", "*"]),
)
def test_damaged_code_gets_the_verdict_of_ast_parse(code: str, place: int, text: str) -> None:
    at = place % (len(code) + 1)
    damaged = code[:at] + text + code[at + 1 :]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(damaged)
    except SyntaxError:
        assert not accepted_by_cpython(damaged)
    else:
        assert accepted_by_cpython(damaged)


def test_warnings_of_the_mined_code_reach_nobody() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert accepted_by_cpython("def f(x):\n    return '\\d', x is 1, 1or x")
        assert not accepted_by_cpython("def f(x):\n    return '\\d', x is")
    assert seen == []


@pytest.mark.parametrize(
    ("code", "accepted"),
    [
        ("def f(): return " + "(" * 5_000 + "1" + ")" * 5_000, False),
        ("def f(): return " + "[" * 5_000, False),
        ("def f():\n" + "".join(" " * depth + "if x:\n" for depth in range(1, 100)) + " " * 100 + "pass", False),
        ("def f():\n" + "".join(" " * depth + "if x:\n" for depth in range(1, 90)) + " " * 90 + "pass", True),
        ("def f(): return " + "-" * 50_000 + "1", False),
        ("def f(): return " + "not " * 20_000 + "x", False),
        ("def f(): return " + "lambda: " * 10_000 + "x", False),
    ],
    ids=["brackets", "open", "indent", "ifs", "signs", "not", "lambda"],
)
def test_deep_code_gets_a_verdict_and_crashes_nothing(code: str, accepted: bool) -> None:
    assert accepted_by_cpython(code) is accepted


@pytest.mark.parametrize(
    "code", ["x" + ".y" * 30_000, "x" + "()" * 30_000, "1" + "+1" * 30_000], ids=["dot", "call", "sum"]
)
def test_long_chains_crash_nothing(code: str) -> None:
    # Depth limits differ between versions; a verdict is all that can be asked for.
    assert accepted_by_cpython(f"def f(): return {code}") in (True, False)
