"""Tokens, lines and conditions counted without a token list, against a list of tokens."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features import lexical
from features.lexical import Tally, lex
from tests.features.golden import GOLDEN
from tests.features.plain_tally import plain_tally


def tally(text: bytes) -> Tally:
    return lexical.tally(lex(text))


CODES = [code.replace("\r\n", "\n").replace("\r", "\n").encode() for code, _ in GOLDEN.values()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", Tally(0, 0, 0)),
        (b" \n\t\r\n\f", Tally(0, 0, 0)),
        (b"# if", Tally(0, 0, 0)),
        (b"x", Tally(1, 1, 0)),
        (b"if x:\n\n    # or\n    y  # and\n", Tally(4, 2, 1)),
        (b"'if'", Tally(1, 1, 0)),
        (b"b'if' or 'x'", Tally(4, 1, 1)),
        (b"'''a\n\nb'''", Tally(1, 3, 0)),
        (b"'a\\\nb'", Tally(1, 2, 0)),
        (b"'a\n", Tally(2, 1, 0)),
        (b'"""a\n', Tally(3, 1, 0)),
        (b"x = \\\n\n1", Tally(4, 3, 0)),
        (b"x = \\\r\n1", Tally(4, 2, 0)),
        (b"x = \\ \n1", Tally(4, 2, 0)),
        (b"x = \\#c\n1", Tally(4, 2, 0)),
        (b"a:::=b", Tally(4, 1, 0)),
        (b"a**=b", Tally(4, 1, 0)),
        (b"a: :b", Tally(4, 1, 0)),
        (b"a....b", Tally(4, 1, 0)),
        (b"a<<=b>>c", Tally(6, 1, 0)),
        (b"1if x", Tally(2, 1, 0)),
        (b"iforand", Tally(1, 1, 0)),
        (b"\xc3\x9f1_\xe9 \x00", Tally(2, 1, 0)),
    ],
)
def test_counts_by_hand(text: bytes, expected: Tally) -> None:
    assert tally(text) == expected
    assert plain_tally(text) == expected


@pytest.mark.parametrize("code", CODES, ids=GOLDEN.keys())
def test_counts_of_code_equal_those_of_its_token_list(code: bytes) -> None:
    assert tally(code) == plain_tally(code)


PIECES = st.sampled_from(
    [*"\"'\\#\n \t\f.:=*<>!-+^&|/(),x1", "'''", '"""', "\\\n", "\\\r\n", "\r\n", "if", " or ", "é", "#c\n", "\0"]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_counts_of_any_text_equal_those_of_its_token_list(text: str) -> None:
    assert tally(text.encode()) == plain_tally(text.encode())


@given(st.sampled_from(CODES), st.integers(0, 400), PIECES)
def test_counts_of_damaged_code_equal_those_of_its_token_list(code: bytes, place: int, piece: str) -> None:
    at = place % (len(code) + 1)
    damaged = code[:at] + piece.encode() + code[at + 1 :]
    assert tally(damaged) == plain_tally(damaged)


@pytest.mark.parametrize("text", [b" " * 200_000, b"\\" * 200_000, b"'\\n" * 100_000, b"x" * 200_000 + b"'"])
def test_long_runs_are_counted_without_going_back(text: bytes) -> None:
    # Minutes otherwise.
    assert tally(text).n_lines == (1 if text.strip() else 0)


@given(st.lists(st.one_of(PIECES, st.sampled_from(['\\"', "\\'", '\\"""', "\\'" + "''"])), max_size=60).map("".join))
def test_counts_of_text_full_of_escaped_quotes_equal_those_of_its_token_list(text: str) -> None:
    # So many that strings are cut in one go.
    long = text.encode() + b"\n# " + b"\\'" * 60
    assert tally(long) == plain_tally(long)


class _Counting:
    """A pattern that sums up how many bytes it matched."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        """Wrap a pattern."""
        self.pattern = pattern
        self.n_bytes = 0

    def match(self, text: bytes, start: int) -> re.Match[bytes] | None:
        """Match as the pattern does."""
        found = self.pattern.match(text, start)
        self.n_bytes += 0 if found is None else found.end() - found.start()
        return found


@pytest.mark.parametrize(
    "text",
    [
        b'"\\' * 20_000,
        b'"\\' + b"'\\" * 20_000,
        b"\"\\'\\" * 10_000,
        b'"""' + b'\\""" x' * 5_000,
        b"'" * 3 + b'\\"' + b"\\''' y\\\"" * 5_000,
    ],
)
def test_no_byte_is_read_again_for_each_quote_of_a_broken_string(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = {opening: _Counting(pattern) for opening, pattern in lexical._UNTIL_END.items()}
    monkeypatch.setattr(lexical, "_UNTIL_END", counting)
    pieces = lexical.cut(text)
    assert b"".join(pieces) == text
    read = sum(pattern.n_bytes for pattern in counting.values())
    assert 0 < read <= len(counting) * len(text)  # at most once for each kind of opening
