"""Definitions of a file from those of another version of it: only the statements between are parsed."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Tree

from miners.methods import MethodSpan, TextKeys, scan
from miners.syntax import parse

_BLANK = b" \t\f\r\n"
_LINE_FEED = ord("\n")


@dataclass(frozen=True, slots=True)
class Scanned:
    """What one parse of a file says, enough to take over its unchanged statements."""

    spans: tuple[MethodSpan, ...]
    """All definitions in source order, nested ones included."""
    starts: "array[int]"
    """Offsets of the top-level statements that begin a line, ascending; empty when the file has a syntax error."""


def scan_file(source: bytes, known: dict[bytes, TextKeys]) -> Scanned:
    """Return the definitions of a file by parsing all of it."""
    tree = parse(source)
    starts = [] if tree.root_node.has_error else _statement_starts(source, tree)
    return Scanned(tuple(scan(source, tree, known)), array("I", starts))


def rescan(source: bytes, old_source: bytes, old: Scanned, known: dict[bytes, TextKeys]) -> Scanned:
    """Return exactly what `scan_file` returns, parsing only the top-level statements that differ from `old_source`.

    The grammar is in one and the same state before every top-level statement. So statements of an error-free file
    stand for themselves: those in the common prefix are taken over, and those in the common suffix when the part
    between is free of errors on its own, which means that it leaves no bracket, string or block open.
    """
    first, last = _boundaries(source, old_source, old.starts)
    shift = len(source) - len(old_source)
    middle = source[first : last + shift]
    if len(middle) == len(source) or middle.rstrip(_BLANK).endswith(b"\\"):
        return scan_file(source, known)
    tree = parse(middle)
    if tree.root_node.has_error:
        return scan_file(source, known)
    n_before, more = n_line_ends(source[:first]), n_line_ends(source) - n_line_ends(old_source)
    spans = [span for span in old.spans if span.end_byte <= first]
    spans += [_moved(span, first, n_before) for span in scan(middle, tree, known)]
    spans += [_moved(span, shift, more) for span in old.spans if span.start_byte >= last]
    starts = [start for start in old.starts if start < first]
    starts += [first + start for start in _statement_starts(middle, tree)]
    starts += [shift + start for start in old.starts if start >= last]
    return Scanned(tuple(spans), array("I", starts))


def _boundaries(source: bytes, old_source: bytes, starts: Sequence[int]) -> tuple[int, int]:
    """Return the statements' starts in the old file that enclose all differences: 0 and its length where none do.

    The first one's first character is still there, so that what stands at it is no indented line or comment; the
    line end before the last one is still there.
    """
    shorter = min(len(source), len(old_source))
    head = _common_prefix(source, old_source, shorter)
    tail = _common_suffix(source, old_source, shorter - head)
    index = bisect_left(starts, head)
    first = starts[index - 1] if index else 0
    index = bisect_right(starts, len(old_source) - tail)
    last = starts[index] if index < len(starts) else len(old_source)
    return first, last


def _common_prefix(one: bytes, other: bytes, limit: int) -> int:
    """Return the length of the common prefix, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: bytes, other: bytes, limit: int) -> int:
    """Return the length of the common suffix, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def n_line_ends(text: bytes) -> int:
    """Return the number of LF, CRLF and CR."""
    return text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)


def _statement_starts(source: bytes, tree: Tree) -> list[int]:
    """Return the offsets of the top-level statements that begin a line."""
    starts = [
        node.start_byte for node in tree.root_node.named_children if node.type not in ("comment", "line_continuation")
    ]
    return [start for start in starts if start == 0 or source[start - 1] == _LINE_FEED]


def _moved(span: MethodSpan, n_bytes: int, n_lines: int) -> MethodSpan:
    """Return a span at another place of the file."""
    if n_bytes == 0 and n_lines == 0:
        return span
    return MethodSpan(
        fun_name=span.fun_name,
        start_byte=span.start_byte + n_bytes,
        end_byte=span.end_byte + n_bytes,
        start_line=span.start_line + n_lines,
        end_line=span.end_line + n_lines,
        nested=span.nested,
        scope_known=span.scope_known,
        keys=span.keys,
    )
