"""How alike the texts of two definitions are, and without a parser whether only documentation or layout differs."""

import re
import string

from miners.sketch import DOCSTRING, HEADER, STRINGLIKE, behind_trivia

# `\w` and `\s` of bytes; by translation the pieces cost a tenth of what an expression costs.
_WORD_BYTES = (string.ascii_letters + string.digits + "_").encode()
_WORDS = bytes(char if char in _WORD_BYTES else ord(" ") for char in range(256))
_NO_SYMBOL = _WORD_BYTES + string.whitespace.encode()
_SYMBOLS = [bytes([char]) for char in range(256)]
# White space but blanks and line feeds, and lines that are joined to the next one: left to the parser.
_UNUSUAL = re.compile(rb"[\t\f\v\r]|\\\n")
# In a text without strings over several lines, the first such line is the definition's own.
_FIRST = re.compile(rb"(?:\A|\n) *+(?:async +)?(?=def )")
_RAW = (b"r", b"R")
_IDLE_LINE = re.compile(rb"\n *+(?:#[^\n]*+)?(?=\n|\Z)")
_F_STRING = re.compile(rb"(?<![A-Za-z0-9_])(?:[fFtT][rR]?|[rR][fFtT])[\"']")


def similarity(one: bytes, other: bytes) -> float:
    """Return the Jaccard similarity of two definitions' texts, 0 to 1, comments and docstrings included.

    It is that of the sets of words (`[A-Za-z0-9_]+`) and of single other characters (bytes) that are no white space.
    """
    return 1.0 if one == other else jaccard(pieces(one), pieces(other))


def pieces(text: bytes) -> frozenset[bytes]:
    """Return the words and other characters by which texts are compared."""
    words = text.translate(_WORDS).split()
    return frozenset(words).union(_SYMBOLS[char] for char in set(text.translate(None, _NO_SYMBOL)))


def jaccard(mine: frozenset[bytes], its: frozenset[bytes]) -> float:
    """Return the Jaccard similarity of two sets that are not both empty."""
    n_common = len(mine & its)
    return n_common / (len(mine) + len(its) - n_common)


def same_but_idle(one: bytes, other: bytes) -> bool:
    """Tell whether two definitions differ in the docstring and in blank and comment lines alone, or not at all.

    Both are free of syntax errors. False for many texts that would need a closer look.
    """
    mine, its = _parts(one), _parts(other)
    if mine is None or its is None or mine[0] != its[0]:
        return False
    if mine[1] == its[1]:
        return True
    if any(b'"""' in rest or b"'''" in rest or _F_STRING.search(rest) for rest in (mine[1], its[1])):
        return False  # a string may go on over lines that look like comments
    return _IDLE_LINE.sub(b"", b"\n" + mine[1]) == _IDLE_LINE.sub(b"", b"\n" + its[1])


def _parts(text: bytes) -> tuple[bytes, bytes] | None:
    """Return a definition up to its colon, and what follows behind the docstring; None when that is not clear."""
    first = None if _UNUSUAL.search(text) else _FIRST.search(text)
    if first is None or b'"""' in (before := text[: first.start()]) or b"'''" in before:
        return None
    header = HEADER.match(text, first.end())
    if header is None:
        return None
    at = header.end()
    body = behind_trivia(text, at)
    docstring = DOCSTRING.match(text, body)
    if docstring is None:
        return None if STRINGLIKE.match(text, body) else (text[:at], text[at:])  # it may be one of several pieces
    if b"\\" in docstring.group() and not docstring.group().startswith(_RAW):
        return None  # an escape that is none makes it another statement
    return text[:at], text[docstring.end() :]
