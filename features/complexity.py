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

from features.ast_counts import Landmarks, node_kind
from features.lexical import lex, tally
from features.parsing import ParsedCode

_SPECIFIER_MARK = re.compile(rb"[#'\"\\]")
_LONE_CR = re.compile(rb"\r(?!\n)")
_INTERPOLATION = node_kind("interpolation")
TRIPLE = (b'"""', b"'''")
_NEWLINE = b"\n"


class Metrics(NamedTuple):
    """The software metrics of a data point."""

    nloc: int
    """Lines that hold code."""
    complexity: int
    """Cyclomatic complexity (CCN)."""
    token_count: int
    """Lexical tokens from the function's name on."""


class Edit(NamedTuple):
    """Bytes to replace before the text is split into tokens."""

    start: int
    end: int
    text: bytes
    n_tokens: int = 0
    """Tokens that the bytes count for beside those of `text`."""


def measure(parsed: ParsedCode, landmarks: Landmarks) -> Metrics:
    """Return lizard's metrics of a method."""
    source = _LONE_CR.sub(_NEWLINE, parsed.source) if b"\r" in parsed.source else parsed.source
    nested = function_edits(landmarks)
    name = parsed.definition.function.child_by_field_name("name")
    begin = parsed.definition.function.start_byte if name is None else name.start_byte
    text, n_left_out = apply_edits(source, begin, [*nested, *string_edits(source, landmarks)])
    found = tally(lex(text))
    n_cases = sum(not any(edit.start <= case.start_byte < edit.end for edit in nested) for case in landmarks.cases)
    return Metrics(found.n_lines, 1 + found.n_conditions + n_cases, found.n_tokens + n_left_out)


def function_edits(landmarks: Landmarks) -> list[Edit]:
    """Return the edits that leave out what is a nested function's own: from behind its name to its end."""
    named = [(name, item) for item in landmarks.functions[1:] if (name := item.child_by_field_name("name")) is not None]
    return [Edit(name.end_byte, function.end_byte, b"") for name, function in named]


def string_edits(source: bytes, landmarks: Landmarks) -> Iterator[Edit]:
    """Yield the replacements that make one pattern enough for the strings: f-strings, and strings as statements."""
    parents = {node.start_byte: node for item in landmarks.interpolations if (node := item.parent) is not None}
    for string in landmarks.strings:
        if string.start_byte in parents:
            yield from _formatted(source, string)
        elif source[string.end_byte - 3 : string.end_byte] in TRIPLE and _stands_alone(string):
            opening = string.children[0]
            prefixed = opening.end_byte - opening.start_byte > len(TRIPLE[0])
            yield Edit(string.start_byte, string.end_byte, b" ", 1 + prefixed)


def _stands_alone(string: Node) -> bool:
    """Return whether a string is a statement of its own, alone or implicitly joined with others."""
    node = string.parent
    while node is not None and node.type in ("concatenated_string", "parenthesized_expression"):
        node = node.parent
    return node is not None and node.type == "expression_statement" and node.named_child_count == 1


def _formatted(source: bytes, string: Node) -> Iterator[Edit]:
    """Yield the edits that turn an f-string into prefix, a token per literal part and the contents of the braces."""
    opening, *parts, closing = string.children
    position = opening.end_byte
    prefix = source[opening.start_byte : position].rstrip(b"\"'")
    yield Edit(opening.start_byte + len(prefix), position, b" ")
    for part in parts:
        if part.kind_id == _INTERPOLATION:
            start, end = part.start_byte, part.end_byte
            yield from _literal(source, position, start)
            yield Edit(start, start + 1, b" ")
            yield Edit(end - 1, end, b" ")
            yield from _specifier(source, part)
            position = end
    yield from _literal(source, position, closing.start_byte)
    yield Edit(closing.start_byte, closing.end_byte, b" ")


def _specifier(source: bytes, interpolation: Node) -> Iterator[Edit]:
    """Yield edits that keep `#` and quotes of a format specifier from being read as comments and strings."""
    node = interpolation.named_children[-1]
    if node.type == "format_specifier":
        nested = [(child.start_byte, child.end_byte) for child in node.named_children]
        for match in _SPECIFIER_MARK.finditer(source, node.start_byte, node.end_byte):
            if not any(start <= match.start() < end for start, end in nested):
                yield Edit(match.start(), match.end(), b"?")


def _literal(source: bytes, start: int, end: int) -> Iterator[Edit]:
    """Yield the edit of an f-string's literal part: one token over the same number of lines, none when empty."""
    if end > start:
        yield Edit(start, end, b'"""%s"""' % (_NEWLINE * source.count(_NEWLINE, start, end)))


def apply_edits(source: bytes, begin: int, edits: Sequence[Edit]) -> tuple[bytes, int]:
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
