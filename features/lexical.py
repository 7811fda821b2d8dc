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

# Possessive throughout: no text makes it go back. Where a string does not end it fails, and is tried again at the next
# quote: see `cut`.
_LITERAL = re.compile(
    rb'("(?:""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
    rb"|'(?:''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''|[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')"
    rb"|#[^\n]*+)",
    re.DOTALL,
)
# Openings of strings and comments; after an opening, all that can belong to the string but its end.
_OPENING = re.compile(rb"#|\"(?:\"\")?|'(?:'')?")
_UNTIL_END = {
    b'"': re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+', re.DOTALL),
    b"'": re.compile(rb"[^'\\\n]*+(?:\\.[^'\\\n]*+)*+", re.DOTALL),
    b'"""': re.compile(rb'[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+', re.DOTALL),
    b"'''": re.compile(rb"[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+", re.DOTALL),
    b"#": re.compile(rb"[^\n]*+"),
}
_MANY_ESCAPED_QUOTES = 50  # bounds the number of times that `_LITERAL` reads a byte
_OPERATOR = re.compile(
    rb":=|::|\*\*|<<=|<=|>>=|>=|==|!=|->|\+\+|\+=|--|-=|\^=|&=|\|=|//=?|\.\.\.",
)
_WORD_BYTES = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_"))
_OPERATORS_ONLY = bytes(byte if byte in b":*<=>!-+^&|/." else ord(" ") for byte in range(256))
_WHITE = b" \t\r\f\v"
_NO_CHARACTER = _WORD_BYTES + _WHITE + b"\n"
_WORDS_ONLY = bytes(byte if byte in _WORD_BYTES else ord(" ") for byte in range(256))
_QUOTES = b"\"'"
STRING = b"$"  # stands for a string: a character of its own, part of no operator, in no code of Python


class Lexed(NamedTuple):
    """A text without the contents of its strings and comments."""

    code: bytes
    """The text with a `$` for each string and a blank for each comment."""
    words: list[bytes]
    """Names, keywords, string prefixes and parts of numbers, in order."""
    vocabulary: set[bytes]
    """Distinct words."""
    literals: list[bytes]
    """What was cut out: strings without their prefixes, comments."""


class Tally(NamedTuple):
    """What a text holds."""

    n_tokens: int
    """Tokens; comments and line ends are none, a line continuation is one."""
    n_lines: int
    """Lines that hold a token or a part of one."""
    n_conditions: int
    """Tokens that are one of CONDITIONS."""


def lex(text: bytes) -> Lexed:
    """Cut a text whose line ends are LF or CRLF."""
    pieces = cut(text)
    literals = pieces[1::2]
    if b"#" in text:
        pieces[1::2] = [STRING if literal[0] in _QUOTES else b" " for literal in literals]
        text = b"".join(pieces)
    elif literals:
        text = STRING.join(pieces[::2])
    words = text.translate(_WORDS_ONLY).split()
    return Lexed(text, words, set(words), literals)


def tally(lexed: Lexed) -> Tally:
    """Return the counts of a text."""
    code, words, _, literals = lexed
    n_inner_lines = b"".join(literals).count(b"\n") if literals else 0
    symbols = b" ".join([row for row in code.translate(_OPERATORS_ONLY).split() if len(row) > 1])
    operators = _OPERATOR.findall(symbols) if symbols else []
    n_characters = len(code.translate(None, _NO_CHARACTER))
    n_tokens = len(words) + n_characters - len(b"".join(operators)) + len(operators)
    n_conditions = len(list(filter(CONDITIONS.__contains__, words)))
    if b"\\" in code:
        code = code.replace(b"\\\r\n", b"\\\n")
        n_inner_lines += code.count(b"\\\n")
        code = code.replace(b"\\\n", b"\\")
    n_lines = len(code.translate(None, _WHITE).split())  # all that is left to split at are line ends
    return Tally(n_tokens, n_lines + n_inner_lines, n_conditions)


def cut(text: bytes) -> list[bytes]:
    """Return code and literals (strings, comments) by turns; code is first and last.

    A quote that opens no string is code. Reading on from it to see that costs the rest of its line, or of the text
    when there are three; of such quotes only those behind a backslash can lie in what another has read.
    """
    if text.count(b'\\"') + text.count(b"\\'") > _MANY_ESCAPED_QUOTES:
        return _cut_in_one_go(text)
    return _LITERAL.split(text)


def _cut_in_one_go(text: bytes) -> list[bytes]:
    """Return what `cut` returns; of what was read in vain no byte is read again.

    From a quote that opens no string, all further quotes of its kind up to where reading stopped were read as escaped.
    Reading on from one of them would meet the same escapes, so it opens no string either.
    """
    pieces = []
    done = position = 0
    read = dict.fromkeys(_UNTIL_END, 0)  # no string of that kind opens before this offset
    while (found := _OPENING.search(text, position)) is not None:
        opening, start = found[0], found.start()
        end = _literal_end(text, start, opening, read)
        if end is None and len(opening) > 1:
            end = start + 2  # an empty string and a quote
        if end is None:
            position = start + 1
        else:
            pieces += [text[done:start], text[start:end]]
            done = position = end
    return [*pieces, text[done:]]


def _literal_end(text: bytes, start: int, opening: bytes, read: dict[bytes, int]) -> int | None:
    """Return where the literal ends that `opening` begins at `start`, None when it begins none."""
    if start < read[opening]:
        return None
    body = _UNTIL_END[opening].match(text, start + len(opening))
    end = start if body is None else body.end()
    if opening == b"#":
        return end
    if text.startswith(opening, end):
        return end + len(opening)
    read[opening] = end
    return None
