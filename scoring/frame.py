"""Where an answer goes: what the text before a body says about it. The solution is never looked at."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from schemas.errors import DataError
from scoring.lines import NEWLINE, Line, columns, logical_lines

DEFINITION = re.compile(r"(?:async[ \t\f]+)?def[ \t\f]+(\w+)")
SCOPE = re.compile(r"(?:class|(?:async[ \t\f]+)?def)[ \t\f]+(\w+)")
# PEP 8, for a file whose other lines show none.
_DEFAULT_UNIT = "    "
_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)[ \t\f]*\Z")


@dataclass(frozen=True, slots=True)
class Frame:
    """What is known of a body before it is written."""

    header: str
    """The left context from the line of `def` on."""
    name: str
    """The function's name."""
    scope: tuple[str, ...]
    """Names of the classes and functions around it, the outermost first."""
    def_indent: str
    """Indentation of `def`."""
    body_indent: str
    """Indentation of the body's statements: the docstring's, or one unit of the file more than `def`'s."""
    inline: bool
    """The body begins on a line that has the colon or the docstring already."""
    own_lines: bool
    """Statements may stand on lines of their own; not behind a docstring on the line of `def`."""
    newline: str
    """Line end of the file."""
    docstring: str | None
    """Source of the docstring's statement, null without one."""


def frame_of(left_context: str) -> Frame:
    """Read what a file's text up to a body says. DataError `no_definition` when it does not end in a definition."""
    lines = logical_lines(left_context)
    place = len(lines) - 1 if lines and DEFINITION.match(lines[-1].code) else len(lines) - 2
    if place < 0 or (definition := DEFINITION.match(lines[place].code)) is None:
        raise DataError("no_definition", "the left context does not end with a definition")
    header = lines[place]
    docstring = lines[-1] if place == len(lines) - 2 else None
    inline = NEWLINE.search(left_context, lines[-1].end) is None
    colon_ends = _CONTINUED.sub("", left_context).rstrip(" \t\f").endswith(":")
    newline = NEWLINE.search(left_context)
    return Frame(
        header=left_context[header.start :],
        name=definition[1],
        scope=tuple(_scope(lines[:place], header)),
        def_indent=header.indent,
        body_indent=header.indent + _unit(lines[: place + 1], header) if docstring is None else docstring.indent,
        inline=inline,
        own_lines=not inline or docstring is not None or colon_ends,
        newline="\n" if newline is None else newline.group(),
        docstring=None if docstring is None else docstring.code.rstrip("; \t\f"),
    )


def _scope(before: list[Line], header: Line) -> list[str]:
    """Return the names of the definitions around a header, the outermost first."""
    names: list[str] = []
    level = columns(header.indent)
    for line in reversed(before):
        if columns(line.indent) < level:
            level = columns(line.indent)
            if (found := SCOPE.match(line.code)) is not None:
                names.insert(0, found[1])
    return names


def _unit(lines: list[Line], header: Line) -> str:
    """Return the indentation that most blocks of a file add to that of their header; the nearest of equally many."""
    steps = [
        inner.indent.removeprefix(outer.indent)
        for outer, inner in pairwise(lines)
        if outer.opens and inner.indent.startswith(outer.indent) and inner.indent != outer.indent
    ]
    if not steps:
        return "\t" if header.indent.endswith("\t") else _DEFAULT_UNIT
    counts = Counter(reversed(steps))
    return max(counts, key=lambda step: counts[step])
