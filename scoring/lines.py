"""Logical lines of Python text that may be incomplete, wrong or followed by prose; needs no valid syntax."""

import re
from dataclasses import dataclass
from itertools import pairwise

NEWLINE = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"[ \t\f]*")
# Strings come before plain text; a comment or a line continuation is skipped.
_TOKEN = re.compile(
    r"""(?P<code>
        [^"'#()\[\]{}\\\r\n]++
        | \"{3}(?:[^"\\]++|\\.|"(?!""))*+(?:"{3}|)
        | '{3}(?:[^'\\]++|\\.|'(?!''))*+(?:'{3}|)
        | "(?:[^"\\\r\n]++|\\\r\n|\\.)*+"?
        | '(?:[^'\\\r\n]++|\\\r\n|\\.)*+'?
    )
    | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<newline>\r\n|\r|\n)
    | (?P<skipped>\#[^\r\n]*+|\\(?:\r\n|\r|\n))
    | (?P<stray>.)
    """,
    re.DOTALL | re.VERBOSE,
)
_TAB = 8  # columns, as Python's own tokenizer counts


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: a statement, a part of several on one line, or the header of a compound one."""

    start: int
    """Offset of its first physical line; behind a form feed, from which Python counts anew."""
    indent: str
    """White space before it."""
    code: str
    """Its text without indentation and without the comment behind it."""
    end: int
    """Offset behind its last character, the comment included, the line end not."""

    @property
    def opens(self) -> bool:
        """Whether a block on lines of its own follows."""
        return self.code.endswith(":")

    @property
    def level(self) -> tuple[int, int]:
        """Its columns with tabs of 8 and of 1: Python compares both, lest tabs and spaces be mistaken."""
        return columns(self.indent), len(self.indent)


def columns(indent: str) -> int:
    """Return how far an indentation reaches."""
    return len(indent.expandtabs(_TAB))


def physical_lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them, each with its line end."""
    ends = [found.end() for found in NEWLINE.finditer(text)]
    edges = [0, *ends] if ends and ends[-1] == len(text) else [0, *ends, len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def logical_lines(text: str) -> list[Line]:
    """Return the logical lines of a text in order; blank lines and lines with a comment alone are none.

    Strings and brackets span lines as in Python; a string in single quotes that is not closed ends with its line, so
    that an apostrophe in prose does no harm. What is never closed ends with the text.
    """
    found = []
    position = 0
    while position < len(text):
        indent = _INDENT.match(text, position)
        begin = position if indent is None else indent.end()
        start = max(position, text.rfind("\f", position, begin) + 1)
        code_end, end = _statement_end(text, begin)
        code = text[begin:code_end].rstrip()
        if code:
            found.append(Line(start, text[start:begin], code, end))
        newline = NEWLINE.match(text, end)
        position = len(text) if newline is None else newline.end()
    return found


def _statement_end(text: str, position: int) -> tuple[int, int]:
    """Return where a logical line's code ends and where it ends with its comment."""
    depth, code_end = 0, position
    while (token := _TOKEN.match(text, position)) is not None:
        kind = token.lastgroup
        if kind == "newline" and depth == 0:
            break
        position = token.end()
        if kind == "open":
            depth += 1
        elif kind == "close" and depth:
            depth -= 1
        if kind not in ("newline", "skipped"):
            code_end = position
    return code_end, position
