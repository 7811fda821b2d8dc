"""A body's place: which lines of a text belong to it and at what indentation they go."""

import re
from dataclasses import dataclass
from itertools import pairwise

from scoring.frame import Frame
from scoring.lines import NEWLINE, Line, columns, logical_lines
from scoring.prose import is_fence, is_prose

_ENDS_MARGIN = re.compile(r"if[ \t]+__name__\b")
_LEADING_BLANKS = re.compile(r"\A(?:[ \t\f]*(?:\r\n|\r|\n))+")
_DEFINES = re.compile(r"(?:class|def|async[ \t]+def)\b|@")


@dataclass(frozen=True, slots=True)
class Aligned:
    """A body at its place."""

    body: str
    """The text, without a line end behind it."""
    changes: tuple[str, ...]
    """Rules that changed something, in order."""


def stands(text: str, frame: Frame) -> bool:
    """Return whether the indentation of a text is sound where it is: Python would not complain of it."""
    lines = logical_lines(text)
    if not lines or text != text.rstrip():
        return False
    if frame.inline:
        return lines[0].start == 0 and not lines[0].indent
    if frame.docstring is not None and lines[0].indent != frame.body_indent:
        return False
    stack = [(columns(frame.def_indent), len(frame.def_indent))]
    opened = True
    for line in lines:
        if opened:
            if not (line.level[0] > stack[-1][0] and line.level[1] > stack[-1][1]):
                return False
            stack.append(line.level)
        while len(stack) > 2 and stack[-1] != line.level:
            stack.pop()
        if stack[-1] != line.level:
            return False
        opened = line.opens
    return not lines[-1].opens


def align(code: str, frame: Frame) -> Aligned:
    """Take the body from the beginning of a text and move it to its place.

    The body ends before the first line that is indented less than it; at the margin, before a sentence, a fence, the
    `__main__` guard, and definitions that nothing of the body follows.
    """
    code = _LEADING_BLANKS.sub("", code)
    lines = logical_lines(code)
    if not lines:
        return Aligned("", ())
    changes = []
    level = _level(lines, frame)
    if level != lines[0].indent:
        changes.append("first_line")
    kept = _kept(code, lines, level)
    if kept < len(lines):
        changes.append("trailing")
    target = frame.body_indent if frame.own_lines else ""
    if frame.inline and kept == 1 and not lines[0].opens:
        target = level
    body = _moved(code, lines[:kept], level, target)
    if level != target:
        changes.append("indent")
    ends = NEWLINE.sub(frame.newline, body)
    if ends != body:
        changes.append("line_ends")
    return Aligned(ends, tuple(changes))


def _level(lines: list[Line], frame: Frame) -> str:
    """Return the indentation of the body's own level; another than the first line's when that one lost its own."""
    first = lines[0].indent
    if len(lines) == 1:
        return first
    second = lines[1].indent
    if not lines[0].opens:
        if columns(second) > columns(first):
            return second
        return second if second == frame.body_indent and columns(second) < columns(first) else first
    seen = [columns(first), columns(second)]
    for before, line in pairwise(lines[1:]):
        width = columns(line.indent)
        if width <= columns(first):
            return first
        if before.opens:
            seen.append(width)
        elif width not in seen and width < columns(second):
            return line.indent
    return first


def _kept(code: str, lines: list[Line], level: str) -> int:
    """Return how many of the lines belong to the body."""
    width = columns(level)
    kept = 1
    for line in lines[1:]:
        if columns(line.indent) < width or (not width and _ends_at_margin(code, line)):
            break
        kept += 1
    return kept if width else _without_definitions(lines[:kept])


def _ends_at_margin(code: str, line: Line) -> bool:
    if line.indent:
        return False
    return bool(_ENDS_MARGIN.match(line.code)) or is_fence(line.code) or is_prose(code[line.start : line.end])


def _without_definitions(lines: list[Line]) -> int:
    """Return how many lines are left without the definitions at the end, if anything is left."""
    for place in range(len(lines) - 1, -1, -1):
        if not lines[place].indent and not _DEFINES.match(lines[place].code):
            return _block_end(lines, place)
    return len(lines)


def _block_end(lines: list[Line], place: int) -> int:
    """Return the number of lines up to the end of the statement that begins at a place of the margin."""
    end = place + 1
    while end < len(lines) and lines[end].indent:
        end += 1
    return end


def _moved(code: str, lines: list[Line], level: str, target: str) -> str:
    """Return the text of the lines, comments and blank lines between them included, moved from a level to another."""
    pieces = []
    position = 0
    for place, line in enumerate(lines):
        pieces.append(_moved_comments(code[position : line.start], level, target))
        indent = level if place == 0 else line.indent
        pieces.append(_moved_indent(indent, level, target) + code[line.start + len(line.indent) : line.end])
        position = line.end
    return "".join(pieces)


def _moved_indent(indent: str, level: str, target: str) -> str:
    if indent.startswith(level):
        return target + indent[len(level) :]
    return target + " " * max(0, columns(indent) - columns(level))


def _moved_comments(between: str, level: str, target: str) -> str:
    """Move comment lines; blank lines stay as they are."""
    if level == target:
        return between
    ends = NEWLINE.findall(between)
    lines = NEWLINE.split(between)
    moved = []
    for line in lines:
        text = line.lstrip(" \t\f")
        moved.append(_moved_indent(line[: len(line) - len(text)], level, target) + text if text else line)
    return "".join(line + end for line, end in zip(moved, [*ends, ""], strict=True))
