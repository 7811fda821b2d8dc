"""Lines that name the holders of a copyright, in licence texts and in the heads of source files."""

import re
from functools import cache

from identify.vendor.licenses import LICENSES

# A line that begins so and tells a year, a sign, or REUSE's tag (https://reuse.software/spec/); "copyright notice" at
# the start of a wrapped line is part of the terms.
_LINE = re.compile(
    r"^[^\w\n]*(?:SPDX-(?:File)?CopyrightText:|(?:portions\s+)?copyright\b(?=.*(?:\d{4}|\(c\)|©))|\(c\)\s|©)\s*\S.*$",
    re.IGNORECASE | re.MULTILINE,
)
_WORD = re.compile(r"[a-z0-9]+")
# Marks of comments and of headings around a line, and the end of a docstring.
_MARKS = re.compile(r"""^(?:[\s#*/;:!%|>=_'"-]|\.\.(?=\s))+|(?:[\s*/#|=]|-->|\"\"\"|''')+$""")
# A gap that whoever uses a licence's text has to fill in: <year>, [name of copyright owner], {{ holder }}, YYYY.
_GAP = re.compile(
    r"[<\[{]\W*(?:(?:name|copyright|program|of|the)\s+)*(?:years?|yyyy|(?:full)?names?|holders?|owners?|authors?)\b|\byyyy\b",
    re.IGNORECASE,
)
# Nobody lists more holders in a licence; bounds what a hostile file can put into every row.
_MAX_LINES = 50
_MAX_CHARACTERS = 300
_MAX_LINE = 1_000  # with marks and white space around


def copyright_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text that name a copyright's holder, each once, in its order, white space made single.

    Comment marks around them are no part of them. Lines that belong to the text of a known licence (who wrote the
    licence, or a gap to be filled in) name no holder of the code. At most 50 lines of at most 300 characters.
    """
    found: dict[str, None] = {}
    for match in _LINE.finditer(text):
        line = " ".join(_MARKS.sub("", match[0][:_MAX_LINE]).split())[:_MAX_CHARACTERS]
        if line and not _GAP.search(line) and _words(line) not in _of_licences():
            found[line] = None
        if len(found) == _MAX_LINES:
            break
    return tuple(found)


def _words(line: str) -> str:
    return " ".join(_WORD.findall(line.lower()))


@cache
def _of_licences() -> frozenset[str]:
    """Return the words of such lines in the texts of the licences themselves."""
    return frozenset(_words(match[0]) for _, text in LICENSES for match in _LINE.finditer(text))
