"""Where a body may be cut: token boundaries strictly inside its statements."""

from dataclasses import dataclass

from miners.syntax import Definition, iter_tokens
from schemas.errors import DataError
from testbeds.order import draw
from testbeds.task import require_parsed

# A reviewer who read 100 cuts of real methods found 8 that ask for nothing, such as ` None`; 7 had one or two words.
TARGET_WORDS = 3


@dataclass(frozen=True, slots=True)
class Cut:
    """A code cut in two; prefix + target is the code."""

    prefix: str
    """Code before the cut; ends with a token of the body."""
    target: str
    """Code after the cut; begins with the white space before its first token."""
    cut_byte: int
    """Length of prefix in UTF-8 bytes."""
    answer: str
    """Texts of the target's tokens, comments left out, joined by spaces."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a body; offsets are bytes of the parsed code."""

    start: int
    """Offset of its first byte."""
    end: int
    """Offset just behind its last byte."""
    text: str
    """Its text."""


def statement_tokens(definition: Definition) -> list[Token]:
    """Return the tokens of the body's statements behind the docstring, in order.

    A string literal (an f-string too) is one token; comments and line continuations are none; the semicolon behind
    the docstring is none of the body's.
    """
    start = definition.body.start_byte if definition.docstring is None else definition.docstring.end_byte
    nodes = [node for node in iter_tokens(definition.body) if node.start_byte >= start]
    if definition.docstring is not None and nodes and nodes[0].type == ";":
        del nodes[0]
    return [Token(node.start_byte, node.end_byte, (node.text or b"").decode()) for node in nodes]


def admissible_cuts(tokens: list[Token]) -> list[int]:
    """Return the byte offsets at which a body with these statement tokens may be cut, ascending.

    Every one is the end of a token, with at least that token of the body before it. Behind it stand at least
    `TARGET_WORDS` words (name, keyword, number, string or `...`), in a body too short for that at least one: a target
    that only closes brackets or ends an expression would ask for nothing.
    """
    words = [index for index, token in enumerate(tokens) if _is_word(token.text)]
    for wanted in (TARGET_WORDS, 1):
        if len(words) >= wanted and words[-wanted] > 0:
            return [token.end for token in tokens[: words[-wanted]]]
    return []


def _is_word(text: str) -> bool:
    return text == "..." or any(char.isalnum() or char in "_\"'" for char in text)


def draw_cut(code: str, seed: int, row_id: str) -> Cut:
    """Cut code, a single definition, at one of its admissible boundaries, all equally likely.

    The boundary follows from seed and row_id alone. DataError `no_cut_point` when there is no boundary,
    those of `require_parsed` when the code cannot be cut safely.
    """
    parsed = require_parsed(code)
    source, tokens = parsed.source, statement_tokens(parsed.definition)
    offsets = admissible_cuts(tokens)
    if not offsets:
        raise DataError("no_cut_point", "the body's statements have fewer than two tokens")
    cut = offsets[draw(seed, "cut", row_id) % len(offsets)]
    answer = " ".join(token.text for token in tokens if token.start >= cut)
    return Cut(source[:cut].decode(), source[cut:].decode(), cut, answer)
