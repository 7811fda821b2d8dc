"""Definitions of a file from those of another version of it: only the statements that differ are parsed."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from tree_sitter import Node, Tree

from miners.methods import MethodSpan, TextKeys, scan
from miners.syntax import parse
from miners.units import Gap, Units, align

_BLANK = b" \t\f\r\n"
_INDENT = b" \t"
_LINE_FEED = ord("\n")
_NO_STATEMENT = ("comment", "line_continuation")
# A longer class header, which is one with long comments, would have to be parsed again with each change in its body.
_MAX_HEADER_BYTES = 4_000
_START = attrgetter("start_byte")
_span = partial(tuple.__new__, MethodSpan)  # without the Python function that a named tuple's class is


@dataclass(frozen=True, slots=True)
class Scanned:
    """What one parse of a file says, enough to take over its unchanged statements."""

    spans: tuple[MethodSpan, ...]
    """All definitions in source order, nested ones included."""
    starts: "array[int]"
    """Offsets of the lines that begin a top-level statement or one in the body of a top-level class, ascending; empty
    when the file has a syntax error."""
    parsed: tuple[MethodSpan, ...] = field(compare=False)
    """The definitions that were not taken over from another version, with offsets of where they were parsed."""


def scan_file(source: bytes, known: dict[bytes, TextKeys]) -> Scanned:
    """Return the definitions of a file by parsing all of it."""
    tree = parse(source)
    starts = [] if tree.root_node.has_error else _statement_starts(source, tree)
    spans = tuple(scan(source, tree, known))
    return Scanned(spans, array("I", starts), spans)


def rescan(source: bytes, old_source: bytes, old: Scanned, known: dict[bytes, TextKeys]) -> Scanned:
    """Return exactly what `scan_file` returns, parsing only the statements that differ from `old_source`.

    The parser and the grammar's scanner are in one and the same state before every top-level statement, and in one
    and the same before every statement of one class body. So statements of an error-free file stand for themselves:
    they are taken over when what lies between them is free of errors on its own, which means that it leaves no
    bracket, string or block open. What lies between statements of a class body is parsed below the class's header.
    """
    units = Units(old_source, old.starts)
    gaps, runs = align(source, units) if old.starts else ([], [])
    if not runs:
        return scan_file(source, known)
    spans: list[MethodSpan] = []
    starts: list[int] = []
    parsed: list[MethodSpan] = []
    n_more = 0  # how many more line ends there are so far than in the old file
    for gap, run in zip(gaps, [*runs, None], strict=True):
        text = source[gap.start : gap.end]
        found = _scan_gap(text, gap, known) if text else _NOTHING
        if found is None:
            return scan_file(source, known)
        if found.spans:
            spans += _moved(found.spans, gap.start, _lines_before(old, old_source, gap.old_start) + n_more)
        parsed += found.parsed
        starts += [gap.start + start for start in found.starts]
        n_more += n_line_ends(text) - n_line_ends(old_source[gap.old_start : gap.old_end])
        if run is not None:
            first, last = units.bounds[run.first], units.bounds[run.last]
            some = _between(old, first, last)
            spans += _moved(some.spans, run.at - first, n_more)
            starts += [run.at - first + start for start in some.starts]
    return Scanned(tuple(spans), array("I", starts), tuple(parsed))


def _lines_before(scanned: Scanned, source: bytes, at: int) -> int:
    """Return the number of line ends before the start of a line, counted from the definition before it."""
    before = bisect_left(scanned.spans, at, key=_START)
    if not before:
        return n_line_ends(source[:at])
    span = scanned.spans[before - 1]
    return span.start_line - 1 + n_line_ends(source[span.start_byte : at])


_NOTHING = Scanned((), array("I"), ())


def _between(scanned: Scanned, first: int, last: int) -> Scanned:
    """Return what lies between two offsets of a file."""
    spans, starts = scanned.spans, scanned.starts
    return Scanned(
        spans[bisect_left(spans, first, key=_START) : bisect_left(spans, last, key=_START)],
        starts[bisect_left(starts, first) : bisect_left(starts, last)],
        (),
    )


def _scan_gap(text: bytes, gap: Gap, known: dict[bytes, TextKeys]) -> Scanned | None:
    """Return the definitions of a gap, offsets and lines counted from its start; None when it cannot stand alone."""
    if text.rstrip(_BLANK).endswith(b"\\"):
        return None
    before, wrapped = gap.before, gap.before + text + gap.behind
    tree = parse(wrapped)
    if tree.root_node.has_error or (gap.behind and not _is_in_last_body(tree, len(before) + len(text))):
        return None
    spans = scan(wrapped, tree, known)
    starts = [start - len(before) for start in _statement_starts(wrapped, tree)]
    inside = array("I", (start for start in starts if 0 <= start < len(text)))
    return Scanned(tuple(_moved(spans, -len(before), -n_line_ends(before))), inside, tuple(spans))


def _is_in_last_body(tree: Tree, start: int) -> bool:
    """Tell whether a tree is one class, and its last statement the first one from an offset on."""
    statements = _statements(tree.root_node)
    body = _class_body(statements[0])
    return len(statements) == 1 and body is not None and _statements(body)[-1].start_byte >= start


def n_line_ends(text: bytes) -> int:
    """Return the number of LF, CRLF and CR."""
    return text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)


def _statement_starts(source: bytes, tree: Tree) -> list[int]:
    """Return the offsets of the lines that begin a top-level statement or one of a top-level class's body."""
    starts = []
    for node in _statements(tree.root_node):
        start = node.start_byte
        if start == 0 or source[start - 1] == _LINE_FEED:
            starts.append(start)
            starts.extend(_inner_starts(source, node))
    return starts


def _inner_starts(source: bytes, statement: Node) -> Iterator[int]:
    """Yield the offsets of the lines that begin a statement of a class's body and have the first one's indentation."""
    body = _class_body(statement)
    statements = _statements(body) if body is not None else []
    indent = b""
    for index, node in enumerate(statements):
        end = node.start_byte
        start = source.rfind(b"\n", statement.start_byte, end) + 1
        before = source[start:end]
        if index == 0:
            if not start or before.strip(_INDENT) or start - statement.start_byte > _MAX_HEADER_BYTES:
                return
            indent = before
        if before == indent:
            yield start


def _statements(block: Node) -> list[Node]:
    """Return the statements of a module or block."""
    return [node for node in block.named_children if node.type not in _NO_STATEMENT]


def _class_body(statement: Node) -> Node | None:
    """Return the body of a class definition, decorated or not; None for other statements."""
    if statement.type == "decorated_definition":
        inner = statement.child_by_field_name("definition")
        return None if inner is None else _class_body(inner)
    return statement.child_by_field_name("body") if statement.type == "class_definition" else None


def _moved(spans: "tuple[MethodSpan, ...] | list[MethodSpan]", n_bytes: int, n_lines: int) -> Iterator[MethodSpan]:
    """Yield spans at another place of the file."""
    if n_bytes == 0 and n_lines == 0:
        yield from spans
        return
    for name, start, end, first, last, nested, scope_known, keys in spans:
        moved = start + n_bytes, end + n_bytes, first + n_lines, last + n_lines
        yield _span((name, *moved, nested, scope_known, keys))
