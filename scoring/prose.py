"""Sentences around code, told from broken code: a wrong first statement must never be taken for chat."""

import re

from miners.syntax import parse
from scoring.lines import physical_lines

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
# End-of-text marks that decoding leaves in: `<|im_end|>`, `<|endoftext|>`, `</s>`, `<eos>`.
_MARKS = re.compile(r"(?:[ \t]*(?:<\|[\w▁ .-]+\|>|</s>|<eos>|<end_of_turn>))+\s*\Z")
_QUOTED = re.compile(r"`[^`\n]*`")
_LIST_MARK = re.compile(r"(?:[*+>#-]+|\d+[.)])[ \t]+")
_CODE_SIGNS = re.compile(r"[=\[\]{}]|\w\(")


def without_tokens(text: str) -> str:
    """Leave out what precedes the end of a model's thinking, and marks of the text's end."""
    return _MARKS.sub("", _THOUGHT.sub("", text))


def is_fence(line: str) -> bool:
    """Return whether a line begins with a fence."""
    return line.lstrip().startswith(("```", "~~~"))


def is_prose(line: str) -> bool:
    """Return whether a line is a sentence: at the margin, with a capital first, no code sign, and no valid Python.

    What stands between backticks is not looked at. A comment is no sentence.
    """
    text = _QUOTED.sub("code", line.rstrip())
    text = _LIST_MARK.sub("", text, count=1) if not text.startswith("# ") else text[2:]
    text = text.strip("*_ ") if line[:1] not in (" ", "\t") else ""
    if not text[:1].isupper() or _CODE_SIGNS.search(text):
        return False
    return not line.startswith("#") and (parse(text.encode()).root_node.has_error or text.endswith(":"))


def drop_leading_prose(text: str) -> str:
    """Leave out the sentences and blank lines at the beginning of a text, up to the first line that is neither."""
    offset = 0
    for line in physical_lines(text):
        if line.strip() and not is_prose(line):
            break
        offset += len(line)
    return text[offset:]
