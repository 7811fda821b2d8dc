import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from miners.syntax import parse
from schemas.errors import DataError
from testbeds.cuts import Cut, admissible_cuts, draw_cut, statement_tokens
from testbeds.task import require_parsed
from tests.testbeds.awkward import AWKWARD, NEWER
from tests.testbeds.oracle import (
    FILES,
    allowed_cuts,
    any_function,
    body_span,
    code_tokens,
    functions_of,
    parses,
    statement_spans,
)

ROOT = Path(__file__).parents[2]
ALL_AWKWARD = AWKWARD | NEWER


def cuts_of(code: str) -> list[int]:
    return admissible_cuts(statement_tokens(require_parsed(code).definition))


def pieces(code: str) -> list[str]:
    """Return every prefix's part of the body, as the cut offsets split it."""
    source = code.encode()
    offsets = cuts_of(code)
    return [source[start:end].decode() for start, end in zip([0, *offsets], [*offsets, len(source)], strict=True)]


def check_cut(code: str, cut: Cut) -> None:
    """Check one cut against what `ast` and `tokenize` say."""
    assert cut.prefix + cut.target == code
    assert cut.cut_byte == len(cut.prefix.encode())
    start, end = body_span(code)
    assert start < cut.cut_byte < end
    assert cut.cut_byte in {token.end for token in code_tokens(code)}
    spans = statement_spans(code)
    assert any(token.end <= cut.cut_byte for token in spans)
    behind = [token for token in spans if token.start >= cut.cut_byte]
    assert any(token.text == "..." or re.search(r"[\w\"']", token.text) for token in behind)
    assert "".join(cut.answer.split()) == "".join(
        "".join(code.encode()[token.start : token.end].decode().split()) for token in behind
    )


@pytest.mark.parametrize("name", AWKWARD)
def test_admissible_cuts_of_awkward_functions_are_those_of_tokenize(name: str) -> None:
    code = AWKWARD[name]
    assert cuts_of(code) == allowed_cuts(code) != []


@pytest.mark.parametrize(
    ("name", "tokens", "n_cuts"),
    [
        ("generics", "type Alias [ U ] = list [ U ] return { x : a }", 10),
        ("nested quotes", "y = f'{x['a']} {f'{x!r}'}' return y", 2),
        ("generic default", "await x return x", 1),
    ],
)
def test_newer_syntax_is_cut_between_its_tokens(name: str, tokens: str, n_cuts: int) -> None:
    found = statement_tokens(require_parsed(NEWER[name]).definition)
    assert " ".join(token.text for token in found) == tokens
    assert cuts_of(NEWER[name]) == [token.end for token in found[:n_cuts]]
    if parses(NEWER[name]):
        assert cuts_of(NEWER[name]) == allowed_cuts(NEWER[name])


@pytest.mark.parametrize("name", ALL_AWKWARD)
@given(seed=st.integers(-(2**63), 2**63))
@settings(max_examples=20)
def test_any_seed_cuts_awkward_functions_inside_the_body(name: str, seed: int) -> None:
    code = ALL_AWKWARD[name]
    cut = draw_cut(code, seed, "row")
    assert cut.prefix + cut.target == code
    assert cut.cut_byte in cuts_of(code)
    if parses(code):
        check_cut(code, cut)


@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_functions_of_the_standard_library_are_cut_inside_the_body(data: st.DataObject, seed: int) -> None:
    code = any_function(data)
    assume(not parse(code.encode()).root_node.has_error)  # 2 of 54,721 of Python 3.11, both in test_compile.py
    allowed = allowed_cuts(code)
    assert cuts_of(code) == allowed
    if allowed:
        check_cut(code, draw_cut(code, seed, "row"))


def test_every_function_of_some_modules_agrees_with_tokenize() -> None:
    names = ["argparse.py", "asyncio/tasks.py", "email/header.py", "test/test_grammar.py"]
    wrong = [code for path in FILES if str(path).endswith(tuple(names)) for code in functions_of(path) if differs(code)]
    assert wrong == []


def differs(code: str) -> bool:
    return cuts_of(code) != allowed_cuts(code)


def test_cut_positions_of_a_small_function() -> None:
    assert pieces('@d(1)\ndef f(a: int = 2) -> int:\n    """Doc."""\n    # c\n    b = a  # d\n    return f"{b}"\n') == [
        '@d(1)\ndef f(a: int = 2) -> int:\n    """Doc."""\n    # c\n    b',
        " =",
        ' a  # d\n    return f"{b}"\n',
    ]


def test_strings_are_never_cut() -> None:
    assert pieces("def f():\n    return f'{a + b:>{w}}' 'c d'\n") == [
        "def f():\n    return",
        " f'{a + b:>{w}}'",
        " 'c d'\n",
    ]


def test_comments_and_continuations_go_into_the_target() -> None:
    assert pieces("def f():\n    x = \\\n    1  # one\n    # two\n    y\n    # three") == [
        "def f():\n    x",
        " =",
        " \\\n    1",
        "  # one\n    # two\n    y\n    # three",
    ]


def test_last_semicolon_is_no_statement_token() -> None:
    assert pieces("def f(): x; y;") == ["def f(): x", ";", " y;"]


def test_a_target_is_never_only_closing_brackets() -> None:
    assert pieces("def f(): return g((1,),)") == ["def f(): return", " g", "(", "(", "1,),)"]


def test_three_words_are_left_to_write_where_the_body_has_them() -> None:
    assert pieces("def f(): a.b.c.d") == ["def f(): a", ".", "b.c.d"]
    assert pieces("def f(): a.b") == ["def f(): a", ".", "b"]


def test_semicolon_behind_the_docstring_is_not_the_bodys() -> None:
    assert pieces('def f(): "doc"; x; y') == ['def f(): "doc"; x', ";", " y"]


def test_string_statement_behind_other_statements_is_a_token_of_the_body() -> None:
    assert pieces("def f():\n    'doc'\n    'text'\n    'more'\n") == [
        "def f():\n    'doc'\n    'text'",
        "\n    'more'\n",
    ]


def test_crlf_and_tabs_are_kept_byte_for_byte() -> None:
    code = "def f():\r\n\tx = 1\r\n\treturn x\r\n"
    assert [
        draw_cut(code, seed, "row").prefix for seed in range(40) if draw_cut(code, seed, "row").cut_byte == 14
    ] != []
    assert all(draw_cut(code, s, "r").prefix + draw_cut(code, s, "r").target == code for s in range(40))


def test_cut_byte_counts_utf8_bytes() -> None:
    code = "def ф(é):\n    return é\n"
    assert draw_cut(code, 1, "row") == Cut("def ф(é):\n    return", " é\n", 22, "é")


def test_same_seed_and_row_id_give_the_same_cut_and_others_another() -> None:
    code = AWKWARD["else branches"]
    assert draw_cut(code, 5, "row") == draw_cut(code, 5, "row")
    assert len({draw_cut(code, seed, "row").cut_byte for seed in range(200)}) > 20
    assert len({draw_cut(code, 5, f"row {index}").cut_byte for index in range(200)}) > 20


def test_boundaries_are_equally_likely() -> None:
    code = "def f():\n    a = b + c\n"
    times = Counter(draw_cut(code, seed, "row").cut_byte for seed in range(2000))
    assert sorted(times) == cuts_of(code) == [14, 16, 18, 20]
    # 2,000 draws over 4 boundaries: 500 each, standard deviation 19; the seeds are fixed, so this cannot flicker.
    assert all(420 < count < 580 for count in times.values())


@pytest.mark.parametrize("hash_seed", ["0", "1", "12345"])
def test_cuts_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    program = (
        "from testbeds.cuts import draw_cut\n"
        "from tests.testbeds.awkward import AWKWARD\n"
        "print([draw_cut(code, 99, name).cut_byte for name, code in AWKWARD.items()])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, capture_output=True)
    assert done.stdout.decode().strip() == str([draw_cut(code, 99, name).cut_byte for name, code in AWKWARD.items()])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(): yield", "no_cut_point"),
        ("def f(): pass;", "no_cut_point"),
        ("def f():\n    x\n    # more comments, none of them a token\n", "no_cut_point"),
        ("def f():\n    '''Only a docstring.'''\n", "no_cut_point"),
        ("def f(:\n    return 1\n", "syntax_errors"),
        ("x = 1\n", "no_definition"),
        ("", "no_definition"),
        ("def f():\n    return '\udcff'\n", "code_not_utf8"),
    ],
)
def test_code_that_cannot_be_cut_has_a_reason(code: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        draw_cut(code, 1, "row")
    assert caught.value.reason == reason
