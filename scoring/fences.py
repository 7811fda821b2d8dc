"""Fenced code blocks of a chat answer, as CommonMark has them, lists and unclosed blocks included."""

import re
from dataclasses import dataclass

from scoring.lines import physical_lines

_FENCE = re.compile(
    r"(?P<indent>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*\Z"
)
# What models and documents call Python, compared in lower case.
_PYTHON = frozenset({"python", "py", "python3", "py3", "{.python}", "{python}"})


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block."""

    language: str
    """First word of its info string in lower case; empty when it has none."""
    code: str
    """Its text, the fence's own indentation taken off."""
    start: int
    """Offset of its opening fence's line."""
    closed: bool
    """A closing fence ends it, not the text."""

    @property
    def is_python(self) -> bool:
        """Whether it says that it is Python."""
        return self.language in _PYTHON


def fenced_blocks(text: str) -> list[Block]:
    """Return the fenced code blocks of a text in order."""
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    content: list[str] = []
    start = offset = 0
    for line in physical_lines(text):
        fence = _FENCE.match(line.rstrip("\r\n"))
        if opening is None:
            if fence is not None:
                opening, content, start = fence, [], offset
        elif fence is not None and not fence["info"] and fence["mark"].startswith(opening["mark"]):
            blocks.append(_block(opening, content, start, closed=True))
            opening = None
        else:
            content.append(line)
        offset += len(line)
    if opening is not None:
        blocks.append(_block(opening, content, start, closed=False))
    return blocks


def _block(opening: re.Match[str], content: list[str], start: int, *, closed: bool) -> Block:
    marks = " \t>" if ">" in opening["indent"] else " \t"
    lines = [_outdented(line, len(opening["indent"]), marks) for line in content]
    return Block(opening["info"].split(" ")[0].lower(), "".join(lines), start, closed)


def _outdented(line: str, width: int, marks: str) -> str:
    """Take off what stands before the fence (white space, quote marks), where there is so much."""
    head = line[:width]
    return line[len(head) - len(head.lstrip(marks)) :]
