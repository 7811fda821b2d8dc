"""The body in a model's answer: found among chat, fences and repeated code, and brought to the place it goes to.

Every repair follows a rule of docs/scoring.md and sees only the answer and the text before the body, never the
solution. A text that stands in its place as it is is never changed.
"""

import ast
import inspect
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from miners.syntax import check_comment_runs, parse
from sandbox.splice import split_body
from schemas.errors import DataError
from scoring.align import align, stands
from scoring.fences import Block, fenced_blocks
from scoring.frame import DEFINITION, SCOPE, Frame, frame_of
from scoring.lines import Line, columns, logical_lines
from scoring.prose import drop_leading_prose, is_fence, without_tokens

_SIMPLE_ONLY = re.compile(r"(?:if|for|while|with|try|def|class|async|match|@)\b|@")


class Rule(StrEnum):
    """A repair of an answer; docs/scoring.md shows an example of each."""

    TOKENS = "tokens"
    """What a model thinks aloud and its end-of-text marks are left out."""
    FENCE = "fence"
    """The code of a fenced block is taken."""
    PREAMBLE = "preamble"
    """Sentences before the code are left out."""
    SIGNATURE = "signature"
    """Of a repeated definition, class or file the body behind the docstring is taken."""
    DOCSTRING = "docstring"
    """A docstring that stands before the body already is left out."""
    FIRST_LINE = "first_line"
    """The first line gets the indentation that the other lines tell."""
    TRAILING = "trailing"
    """What follows the body is left out."""
    INDENT = "indent"
    """The body is moved to the indentation of its place."""
    LINE_ENDS = "line_ends"
    """Line ends become those of the file."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A body to be spliced."""

    body: str
    """Text that goes between left and right context."""
    rules: tuple[Rule, ...]
    """The repairs that changed something, in order."""


@lru_cache(maxsize=64)
def _frame(left_context: str) -> Frame:
    return frame_of(left_context)


def extract_answer(answer: str, left_context: str) -> Extracted:
    """Return the body that an answer holds for the definition at the end of `left_context`.

    An answer without a statement gives the empty body. DataError `no_definition` when the left context ends in no
    definition.
    """
    frame = _frame(left_context)
    if stands(answer, frame) and _is_whole_body(answer, frame):
        return Extracted(answer, ())
    steps: list[Rule] = []
    code = _noted(steps, Rule.TOKENS, answer, without_tokens(answer))
    code = _isolated(code, frame, steps)
    code = _noted(steps, Rule.SIGNATURE, code, _body_of_definition(code, frame))
    code = _noted(steps, Rule.DOCSTRING, code, _without_docstring(code, frame))
    aligned = align(code, frame)
    steps += [Rule(name) for name in aligned.changes]
    return Extracted(_inline(aligned.body, frame), tuple(steps))


def _noted(steps: list[Rule], rule: Rule, before: str, after: str) -> str:
    """Return `after`, and note the rule if it changed more than surrounding white space."""
    if before.strip() != after.strip():
        steps.append(rule)
    return after


def _is_whole_body(text: str, frame: Frame) -> bool:
    """Return whether the text, put behind the header, is exactly what would be cut out as the body."""
    opening = f"if 1:{frame.newline}".encode() if frame.def_indent else b""
    prefix = opening + frame.header.encode("utf-8", "surrogatepass")
    body = text.encode("utf-8", "surrogatepass")
    source = prefix + body + frame.newline.encode()
    try:
        check_comment_runs(source)
        cut = split_body(source, len(opening) + len(frame.def_indent.encode()))
    except DataError:
        return False
    if (cut.left, cut.body) != (prefix, body):
        return False
    sloppy = frame.inline or without_tokens(text) != text
    return not sloppy or not parse(source).root_node.has_error


def _isolated(text: str, frame: Frame, steps: list[Rule]) -> str:
    """Return the part of an answer that is code."""
    if _continues(text, frame) or _is_code(text, frame):
        return text
    blocks = fenced_blocks(text)
    if blocks and not blocks[0].language and not blocks[-1].closed and len(blocks) == 1:
        before = text[: blocks[0].start]
        if logical_lines(drop_leading_prose(before)):  # a fence that closes what the prompt had opened
            blocks, text = [], before
            steps.append(Rule.FENCE)
    if blocks:
        steps.append(Rule.FENCE)
        return _chosen(blocks, frame).code
    return _noted(steps, Rule.PREAMBLE, text, drop_leading_prose(text))


def _continues(text: str, frame: Frame) -> bool:
    """Return whether an answer goes on where the prompt ended: its first statement has the body's indentation."""
    lines = logical_lines(text)
    if not lines or frame.inline or is_fence(lines[0].code):
        return False
    return lines[0].indent == frame.body_indent


def _is_code(text: str, frame: Frame) -> bool:
    """Return whether a text is Python as a whole and defines the function: fences in it stand in strings."""
    if not any(_name(line) == frame.name for line in logical_lines(text)):
        return False
    source = text.encode("utf-8", "surrogatepass")
    try:
        check_comment_runs(source)
    except DataError:  # an endless answer would take minutes to parse
        return False
    return not parse(source).root_node.has_error


def _chosen(blocks: list[Block], frame: Frame) -> Block:
    """Return the first block that defines the function, else the first in Python, else in no language, else the first.

    A block in another language counts only when there is no other.
    """
    ours = [block for block in blocks if block.is_python] or [block for block in blocks if not block.language] or blocks
    pool = [block for block in blocks if block.is_python or not block.language] or blocks
    defining = (block for block in pool if any(_name(line) == frame.name for line in logical_lines(block.code)))
    return next(defining, ours[0])


def _name(line: Line) -> str | None:
    found = DEFINITION.match(line.code)
    return None if found is None else found[1]


def _body_of_definition(code: str, frame: Frame) -> str:
    """Return the body of the definition that repeats the function; the code itself when none does."""
    lines = logical_lines(code)
    candidates = [place for place, line in enumerate(lines) if _name(line) == frame.name]
    candidates = [place for place in candidates if not _is_part_of_a_body(lines, place, frame)]
    if not candidates:
        return code
    place = max(candidates, key=lambda place: (*_rank(lines, place, frame), place))
    start = lines[place].start + len(lines[place].indent)
    end = next((line.start for line in lines[place + 1 :] if not _deeper(line, lines[place])), len(code))
    return _split(code[lines[place].start : end], start - lines[place].start)


def _deeper(line: Line, than: Line) -> bool:
    return columns(line.indent) > columns(than.indent)


def _is_part_of_a_body(lines: list[Line], place: int, frame: Frame) -> bool:
    """Return whether a definition of the function's name is a helper inside a body: its level returns something."""
    level = lines[place].indent
    for step in (1, -1):
        for line in lines[place + step :: step] if place + step >= 0 else ():
            if columns(line.indent) < columns(level):
                break
            if line.indent == level and re.match(r"(?:return|yield)\b", line.code):
                return True
    # So are all definitions behind a statement that stands where the body's go.
    first = lines[0]
    return not frame.inline and first.indent == frame.body_indent and not _begins_definition(first) and place > 0


def _begins_definition(line: Line) -> bool:
    return bool(SCOPE.match(line.code)) or line.code.startswith(("@", "import ", "from "))


def _rank(lines: list[Line], place: int, frame: Frame) -> tuple[bool, bool, bool]:
    """Return how well a definition fits: no overload stub, in the same scope, in a class of the same name."""
    scope: list[str] = []
    level = columns(lines[place].indent)
    for line in reversed(lines[:place]):
        if columns(line.indent) < level:
            level = columns(line.indent)
            if (found := SCOPE.match(line.code)) is not None:
                scope.insert(0, found[1])
    above = lines[place - 1] if place and lines[place - 1].indent == lines[place].indent else None
    overload = above is not None and re.fullmatch(r"@(?:\w+\.)*overload", above.code) is not None
    return not overload, tuple(scope) == frame.scope, scope[-1:] == list(frame.scope[-1:])


def _split(definition: str, start: int) -> str:
    """Return the body of a definition behind its docstring; empty when there is none."""
    source = definition.encode("utf-8", "surrogatepass")
    opening = b"if 1:\n" if start else b""
    try:
        check_comment_runs(source)
        cut = split_body(opening + source, len(opening) + len(definition[:start].encode()))
    except DataError as error:
        if error.reason == "trivial_body":
            return ""
        header = logical_lines(definition)[0]
        return definition[header.end :]
    # An inline body keeps what is below it, where a sloppy answer goes on.
    return cut.body.decode("utf-8", "surrogatepass")


def _without_docstring(code: str, frame: Frame) -> str:
    """Leave out a first statement that is the docstring which stands before the body."""
    lines = logical_lines(code)
    if frame.docstring is None or not lines:
        return code
    ours, theirs = _string(frame.docstring), _string(lines[0].code)
    return code if theirs is None or theirs != ours else code[lines[0].end :]


def _string(code: str) -> str | None:
    """Return the cleaned value of a string literal, null for anything else."""
    try:
        value = ast.literal_eval(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return inspect.cleandoc(value) if isinstance(value, str) else None


def _inline(body: str, frame: Frame) -> str:
    """Bring a body to a line that is begun already: one simple line as it is, others below where that may be."""
    lines = logical_lines(body)
    if not frame.inline or not lines:
        return body
    simple = not any(line.opens or _SIMPLE_ONLY.match(line.code) for line in lines)
    if simple and (len(lines) == 1 or not frame.own_lines):
        return "; ".join(body[line.start + len(line.indent) : line.end].rstrip("; ") for line in lines)
    return frame.newline + body
