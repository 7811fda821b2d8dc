"""Take a function's body out of a file and put another text in its place, byte for byte.

    left + body + right == the file

`left` ends behind the docstring: with its line (and the blank lines after it) when the body stands on lines of its own,
with the colon or semicolon and the spaces after it when it stands on the same line. So a body on lines of its own
begins with its indentation, as completions of the published benchmarks do, and comments between docstring and first
statement belong to it. It ends with its last statement and a comment behind that on the same line; comment lines
below and the line end belong to `right`.
"""

import re
from dataclasses import dataclass

from tree_sitter import Node

from miners.methods import indentation
from miners.syntax import Definition, definition_of, parse
from schemas.errors import DataError

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE = re.compile(rb"[ \t\f]*(?:\r\n|\n|\r)")
_CONTINUATION = re.compile(rb"\\(?:\r\n|\n|\r)")
_COMMENT = re.compile(rb"#[^\r\n]*")
# Behind the last statement on its line: a semicolon and a comment belong to the body, bare white space does not.
_TAIL = re.compile(rb"(?:[ \t\f]*;)?(?:[ \t\f]*#[^\r\n]*)?")


@dataclass(frozen=True, slots=True)
class Spliced:
    """A file cut around a function's body."""

    left: bytes
    """The file up to the body."""
    body: bytes
    """The body behind the docstring."""
    right: bytes
    """The rest of the file."""
    inline: bool
    """The body stands on the line of the colon or docstring; statements that need lines of their own cannot."""
    indent: bytes
    """White space before a statement of the body; of an inline body that of its `def` line."""
    newline: bytes
    """Line end of the body's lines: the first one of the file."""


def split_body(source: bytes, start_byte: int) -> Spliced:
    """Cut a file around the body of the definition that starts at `start_byte` (its first decorator or `def`).

    DataError `no_definition` when none starts there or the grammar does not see its parts, `trivial_body` when nothing
    but a docstring is inside.
    """
    definition = _definition_at(source, start_byte)
    statements = definition.statements
    if not statements:
        raise DataError("trivial_body", f"{definition.name} has no statement behind its docstring")
    docstring = definition.docstring
    anchor = definition.header_end if docstring is None else docstring.end_byte
    first, inline = _body_start(source, anchor, statements[0].start_byte)
    end = _body_end(source, statements[-1])
    ends = _LINE_END.search(source)
    return Spliced(
        left=source[:first],
        body=source[first:end],
        right=source[end:],
        inline=inline,
        indent=indentation(source, definition.function.start_byte if inline else statements[0].start_byte),
        newline=b"\n" if ends is None else ends.group(),
    )


def splice(source: bytes, start_byte: int, body: bytes) -> bytes:
    """Return the file with `body` in place of the body of the definition that starts at `start_byte`."""
    cut = split_body(source, start_byte)
    return cut.left + body + cut.right


def _definition_at(source: bytes, start_byte: int) -> Definition:
    """Return the outermost definition that starts at an offset."""
    node: Node | None = parse(source).root_node
    while node is not None:
        if node.start_byte == start_byte and (definition := definition_of(node)) is not None:
            return definition
        node = next((child for child in node.named_children if child.start_byte <= start_byte < child.end_byte), None)
    raise DataError("no_definition", f"no function definition starts at byte {start_byte}")


def _body_start(source: bytes, anchor: int, first: int) -> tuple[int, bool]:
    """Return where the body begins, given the end of what precedes it and the first statement, and if it is inline."""
    position = anchor
    while position < first:
        if (skipped := _CONTINUATION.match(source, position) or _COMMENT.match(source, position)) is not None:
            position = skipped.end()
        elif (line_end := _LINE_END.match(source, position)) is not None:
            position = line_end.end()
            while (blank := _BLANK_LINE.match(source, position)) is not None:
                position = blank.end()
            return position, False
        else:
            position += 1
    return first, True


def _body_end(source: bytes, last: Node) -> int:
    """Return the end of the last statement with what belongs to it on its line."""
    end = _last_token_end(last)
    tail = _TAIL.match(source, end)
    return end if tail is None else tail.end()


def _last_token_end(node: Node) -> int:
    """Return the end of the last token below a node: blocks may reach over comments and white space behind them."""
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in ("comment", "line_continuation") or current.end_byte == current.start_byte:
            continue
        if not current.child_count or current.type == "string":
            return current.end_byte
        stack.extend(current.children)
    return node.end_byte
