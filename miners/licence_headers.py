"""The licence that a source file states itself, in the comments and the docstring it begins with."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from miners.copyrights import copyright_lines
from miners.licence_texts import embedded, licence_words, notices
from miners.spdx import NOASSERTION, canonical

_MAX_BYTES = 20_000
_TAG_LINES = 30
_TAG_NAME = b"spdx-license-identifier"
_TAG = re.compile(rb"^\W*SPDX-License-Identifier:\s*(?P<expression>[^*]*?)\s*(?:\*/|-->)?\s*$", re.IGNORECASE)
# Words without which there is neither a notice nor a text.
_SIGNS = re.compile(rb"licens|permission|redistribution", re.IGNORECASE)
_HOLDER = re.compile(rb"copyright|\(c\)|\xc2\xa9", re.IGNORECASE)
_DOCSTRING = re.compile(rb"""^[rRuU]?(?P<quotes>\"\"\"|''')""")
_BOM = b"\xef\xbb\xbf"


def header_licences(source: bytes) -> tuple[str, ...]:
    """Return what a file's head states: SPDX expressions in order of their spelling, empty when it states nothing.

    `SPDX-License-Identifier:` in the first 30 lines counts before the notices that the licences recommend and whole
    texts, which must stand in the comments or the docstring that the file begins with. A tag that is no SPDX
    expression gives `NOASSERTION`.
    """
    lines = _lines(source[:_MAX_BYTES])
    first = [*islice(lines, _TAG_LINES)]
    if any(_TAG_NAME in line.lower() for line in first):
        tags = [canonical(_text(match["expression"])) for match in map(_TAG.match, first) if match]
        if tags:
            return tuple(sorted({tag or NOASSERTION for tag in tags}))
    leading = b"\n".join(_leading_text(chain(first, lines)))
    if not _SIGNS.search(leading):
        return ()
    words = licence_words(_text(leading))
    return tuple(sorted({*notices(words), *embedded(words)}))


def header_copyrights(source: bytes) -> tuple[str, ...]:
    """Return the lines of a file's head that name holders of its copyright."""
    leading = b"\n".join(_leading_text(_lines(source[:_MAX_BYTES])))
    return copyright_lines(_text(leading)) if _HOLDER.search(leading) else ()


def _lines(head: bytes) -> Iterator[bytes]:
    """Yield the lines of a text, the first ones without a look at the others."""
    if b"\r" in head:
        yield from head.splitlines()
        return
    *first, rest = head.split(b"\n", _TAG_LINES)
    yield from first
    yield from rest.splitlines()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _leading_text(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the comments and the docstring that a file begins with, without comment marks."""
    closing = None
    seen_docstring = False
    for raw in lines:
        line = raw.removeprefix(_BOM).strip()
        if closing is not None:
            yield line
            closing = None if closing in line else closing
        elif not line or line.startswith(b"#"):
            yield line.lstrip(b"#")
        elif not seen_docstring and (match := _DOCSTRING.match(line)):
            seen_docstring = True
            rest = line[match.end() :]
            closing = None if match["quotes"] in rest else match["quotes"]
            yield rest
        else:
            return
