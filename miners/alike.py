"""Whether two definitions have the same tokens, told without a parser where only documentation or layout differs."""

import re

from miners.sketch import DOCSTRING, HEADER, TRIVIA

# White space but blanks and line feeds, and lines that are joined to the next one: left to the parser.
_UNUSUAL = re.compile(rb"[\t\f\v\r]|\\\n")
# In a text without strings over several lines, the first such line is the definition's own.
_FIRST = re.compile(rb"(?:\A|\n) *+(?:async +)?(?=def )")
_RAW = (b"r", b"R")
_IDLE_LINE = re.compile(rb"\n *+(?:#[^\n]*+)?(?=\n|\Z)")
_F_STRING = re.compile(rb"(?<![A-Za-z0-9_])(?:[fFtT][rR]?|[rR][fFtT])[\"']")


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
    gap = TRIVIA.match(text, at)
    body = at if gap is None else gap.end()
    docstring = DOCSTRING.match(text, body)
    if docstring is None:
        return text[:at], text[at:]
    if b"\\" in docstring.group() and not docstring.group().startswith(_RAW):
        return None  # an escape that is none makes it another statement
    return text[:at], text[docstring.end() :]
