"""Counts lexical tokens, lines that hold one, and conditions of a text, as lizard splits it, without a token list.

The tokens are those of lizard's pattern (lizard_languages/token_pattern.py) without the alternatives of other
languages: names, keywords and parts of numbers (words), strings, the operators of more than one character that it
knows, line continuations, and any other character. Splitting by that pattern costs three times what is done here: cut
out strings and comments, then let C count words and characters. tests/features/test_lexical.py compares with the
pattern itself.
"""

import re
from typing import NamedTuple

# lizard 1.24, PythonReader._control_flow_keywords | _logical_operators.
CONDITIONS = frozenset((b"if", b"elif", b"for", b"while", b"except", b"finally", b"and", b"or"))

# Possessive throughout: no text makes it go back.
_LITERAL = re.compile(
    rb'("(?:""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
    rb"|'(?:''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''|[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')"
    rb"|#[^\n]*+)",
    re.DOTALL,
)
# Each begins with a literal character, so that `re` skips to it.
_OPERATOR = re.compile(
    rb":=|::|\*\*|<<=|<=|>>=|>=|==|!=|->|\+\+|\+=|--|-=|\^=|&=|\|=|//=?|\.\.\.",
)
_WORD_BYTES = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_"))
_WHITE = b" \t\r\f\v"
_WORDS_ONLY = bytes(byte if byte in _WORD_BYTES else ord(" ") for byte in range(256))
_COMMENT = ord("#")
_STRING = b'"'  # stands for a string: a character of its own, part of no operator


class Tally(NamedTuple):
    """What a text holds."""

    n_tokens: int
    """Tokens; comments and line ends are none, a line continuation is one."""
    n_lines: int
    """Lines that hold a token or a part of one."""
    n_conditions: int
    """Tokens that are one of CONDITIONS."""


def tally(text: bytes) -> Tally:
    """Return the counts of a text whose line ends are LF or CRLF."""
    pieces = _LITERAL.split(text)  # code and literals by turns
    n_inner_lines = 0
    if len(pieces) > 1:
        literals = pieces[1::2]
        n_inner_lines = b"".join(literals).count(b"\n")
        pieces[1::2] = [b" " if literal[0] == _COMMENT else _STRING for literal in literals]
        text = b"".join(pieces)
    words = text.translate(_WORDS_ONLY).split()
    operators = _OPERATOR.findall(text)
    n_characters = len(text.translate(None, _WORD_BYTES + _WHITE + b"\n"))
    n_tokens = len(words) + n_characters - len(b"".join(operators)) + len(operators)
    n_conditions = len(list(filter(CONDITIONS.__contains__, words)))
    if b"\\" in text:
        text = text.replace(b"\\\r\n", b"\\\n")
        n_inner_lines += text.count(b"\\\n")
        text = text.replace(b"\\\n", b"\\")
    n_lines = len(list(filter(None, text.translate(None, _WHITE).split(b"\n"))))
    return Tally(n_tokens, n_lines + n_inner_lines, n_conditions)
