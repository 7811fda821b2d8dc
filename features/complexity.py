"""Software metrics by lizard's definitions, for every method, those that lizard misses included.

Reference: lizard 1.24 (lizard_core/file_analyzer.py, lizard_languages/python.py, python_tokens.py,
python_structure.py), which the tests compare with on thousands of functions. What it counts:

- token_count: lexical tokens from the function's name on. Line ends and comments are none, a line continuation is
  one; a number is split at `.`, `**=` is two; a string is one and its prefix another; of an f-string with
  interpolations, each literal part is one and the tokens inside the braces count.
- nloc: lines that hold such a token, all lines of a multi-line string among them. A triple-quoted string that stands
  alone as a statement (a docstring, a text used as a comment) holds no line.
- complexity: 1, plus `if`, `elif`, `for`, `while`, `except`, `finally`, `and`, `or` (in comprehensions, conditional
  expressions and f-strings too), plus one for each `case`.

Decorators belong to no function. The tokens of a nested function from behind its name on are its own, not the
enclosing method's.

Deliberate differences, where lizard's engine misses its own definition, are named in
tests/features/test_lizard_agreement.py.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from features.ast_counts import Landmarks
from features.lexical import tally
from features.parsing import ParsedCode

_SPECIFIER_MARK = re.compile(rb"[#'\"\\]")
_LONE_CR = re.compile(rb"\r(?!\n)")
_TRIPLE = (b'"""', b"'''")
_NEWLINE = b"\n"


class Metrics(NamedTuple):
    """The software metrics of a data point."""

    nloc: int
    """Lines that hold code."""
    complexity: int
    """Cyclomatic complexity (CCN)."""
    token_count: int
    """Lexical tokens from the function's name on."""


class _Edit(NamedTuple):
    """Bytes to replace before the text is split into tokens."""

    start: int
    end: int
    text: bytes
    n_tokens: int = 0
    """Tokens that the bytes count for beside those of `text`."""


def measure(parsed: ParsedCode, landmarks: Landmarks) -> Metrics:
    """Return lizard's metrics of a method."""
    source = _LONE_CR.sub(_NEWLINE, parsed.source) if b"\r" in parsed.source else parsed.source
    nested = [span for span in map(_own_span, landmarks.functions[1:]) if span is not None]
    edits = [_Edit(start, end, b"") for start, end in nested]
    edits.extend(_string_edits(source, landmarks))
    name = parsed.definition.function.child_by_field_name("name")
    begin = parsed.definition.function.start_byte if name is None else name.start_byte
    text, n_left_out = _apply(source, begin, edits)
    found = tally(text)
    n_cases = sum(not any(start <= case.start_byte < end for start, end in nested) for case in landmarks.cases)
    return Metrics(found.n_lines, 1 + found.n_conditions + n_cases, found.n_tokens + n_left_out)


def _own_span(function: Node) -> tuple[int, int] | None:
    """Return the bytes of a nested function that are its own: from behind its name to its end."""
    name = function.child_by_field_name("name")
    return None if name is None else (name.end_byte, function.end_byte)


def _string_edits(source: bytes, landmarks: Landmarks) -> Iterator[_Edit]:
    """Yield the replacements that make one pattern enough for the strings: f-strings, and strings as statements."""
    parents = {node.start_byte: node for item in landmarks.interpolations if (node := item.parent) is not None}
    for string in landmarks.strings:
        if string.start_byte in parents:
            yield from _formatted(source, string)
        elif source[string.end_byte - 3 : string.end_byte] in _TRIPLE and _stands_alone(string):
            opening = string.children[0]
            prefixed = opening.end_byte - opening.start_byte > len(_TRIPLE[0])
            yield _Edit(string.start_byte, string.end_byte, b" ", 1 + prefixed)


def _stands_alone(string: Node) -> bool:
    """Return whether a string is a statement of its own, alone or implicitly joined with others."""
    node = string.parent
    while node is not None and node.type in ("concatenated_string", "parenthesized_expression"):
        node = node.parent
    return node is not None and node.type == "expression_statement" and node.named_child_count == 1


def _formatted(source: bytes, string: Node) -> Iterator[_Edit]:
    """Yield the edits that turn an f-string into prefix, a token per literal part and the contents of the braces."""
    opening, *parts, closing = string.children
    prefix = (opening.text or b"").rstrip(b"\"'")
    yield _Edit(opening.start_byte + len(prefix), opening.end_byte, b" ")
    position = opening.end_byte
    for part in parts:
        if part.type == "interpolation":
            yield _literal(source, position, part.start_byte)
            yield _Edit(part.start_byte, part.start_byte + 1, b" ")
            yield _Edit(part.end_byte - 1, part.end_byte, b" ")
            yield from _specifier(source, part)
            position = part.end_byte
    yield _literal(source, position, closing.start_byte)
    yield _Edit(closing.start_byte, closing.end_byte, b" ")


def _specifier(source: bytes, interpolation: Node) -> Iterator[_Edit]:
    """Yield edits that keep `#` and quotes of a format specifier from being read as comments and strings."""
    node = interpolation.named_children[-1]
    if node.type == "format_specifier":
        nested = [(child.start_byte, child.end_byte) for child in node.named_children]
        for match in _SPECIFIER_MARK.finditer(source, node.start_byte, node.end_byte):
            if not any(start <= match.start() < end for start, end in nested):
                yield _Edit(match.start(), match.end(), b"?")


def _literal(source: bytes, start: int, end: int) -> _Edit:
    """Return the edit of an f-string's literal part: one token over the same number of lines, none when empty."""
    breaks = source.count(_NEWLINE, start, end)
    return _Edit(start, end, b'"""%s"""' % (_NEWLINE * breaks) if end > start else b"")


def _apply(source: bytes, begin: int, edits: Sequence[_Edit]) -> tuple[bytes, int]:
    """Return the source from `begin` on with the edits made, and the tokens that they count for beside their text.

    An edit inside one already made is dropped.
    """
    pieces = []
    position, n_tokens = begin, 0
    for edit in sorted(edits, key=lambda item: (item.start, -item.end)):
        if edit.start >= position:
            pieces.append(source[position : edit.start])
            pieces.append(edit.text)
            position = edit.end
            n_tokens += edit.n_tokens
    pieces.append(source[position:])
    return b"".join(pieces), n_tokens
