"""Real functions of the standard library, and what its `ast` and `tokenize` say about cuts; no tree-sitter here."""

import ast
import io
import re
import sysconfig
import textwrap
import tokenize
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hypothesis import assume
from hypothesis import strategies as st

STDLIB = Path(sysconfig.get_path("stdlib"))
SKIPPED_FOLDERS = {"site-packages", "dist-packages", "lib2to3", "idlelib", "__pycache__"}
# Before Python 3.12 tokenize splits identifiers at variation selectors, which this file has.
SKIPPED_FILES = {"test_unicode_identifiers.py"}
# The standard library's modules, its tests and their oddities included, in a fixed order.
FILES = sorted(
    path for path in STDLIB.rglob("*.py") if not (SKIPPED_FOLDERS & set(path.parts) or path.name in SKIPPED_FILES)
)
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
# Since Python 3.12 an f-string comes in parts; before, it is one STRING.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


@dataclass(frozen=True, slots=True)
class Span:
    """A token by the standard library's tokenizer; offsets are bytes."""

    start: int
    end: int
    text: str


def parses(code: str) -> bool:
    try:
        _tree(code)
    except SyntaxError:
        return False
    return True


def _tree(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _line_starts(code: str) -> list[int]:
    return [0] + [match.end() for match in re.finditer(rb"\r\n|\r|\n", code.encode())]


def code_tokens(code: str) -> list[Span]:
    """Return the tokens of code, each string literal (an f-string too) as one, layout and comments left out."""
    starts = _line_starts(code)
    lines = list(io.StringIO(code, newline=""))

    def offset(position: tuple[int, int]) -> int:
        row, column = position
        return starts[row - 1] + len(lines[row - 1][:column].encode())

    spans: list[Span] = []
    depth, opened = 0, (0, 0)
    for token in tokenize.generate_tokens(iter([*lines, ""]).__next__):
        if token.type == _FSTRING_START:
            opened = opened if depth else token.start
            depth += 1
        elif token.type == _FSTRING_END:
            depth -= 1
            if not depth:
                spans.append(Span(offset(opened), offset(token.end), "f-string"))
        elif not depth and token.type not in _LAYOUT and token.string:
            spans.append(Span(offset(token.start), offset(token.end), token.string))
    return spans


def body_span(code: str) -> tuple[int, int]:
    """Return the byte offsets of the first statement behind the docstring and of the end of the last one."""
    function = _tree(code).body[0]
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError("the code is no function")
    starts = _line_starts(code)
    first = function.body[1 if ast.get_docstring(function, clean=False) is not None else 0]
    line, column = first.lineno, first.col_offset
    decorators = getattr(first, "decorator_list", [])
    if decorators:  # a definition begins at its first `@`
        line = decorators[0].lineno
        column = len(code.encode()[starts[line - 1] :]) - len(code.encode()[starts[line - 1] :].lstrip(b" \t\f"))
    last = function.body[-1]
    return starts[line - 1] + column, starts[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0)


def statement_spans(code: str) -> list[Span]:
    """Return the tokens of the body's statements behind the docstring."""
    start, _ = body_span(code)
    return [token for token in code_tokens(code) if token.start >= start]


def allowed_cuts(code: str) -> list[int]:
    """Return, by the rule's words, every offset at which the body may be cut."""
    tokens = statement_spans(code)
    wordy = [token.text == "..." or re.search(r"[\w\"']", token.text) is not None for token in tokens]
    for needed in (3, 1):
        cuts = [token.end for index, token in enumerate(tokens[:-1]) if sum(wordy[index + 1 :]) >= needed]
        if cuts:
            return cuts
    return []


@lru_cache(maxsize=64)
def _functions(path: Path) -> tuple[list[str], list[tuple[int, int]], list[tuple[int, int]]]:
    """Return a file's lines, the first line and the line behind the last of every function, and of the documented."""
    source = path.read_bytes().decode("utf-8", "replace")
    if not parses(source):
        return [], [], []
    lines = [line + end for line, end in re.findall(r"([^\r\n]*)(\r\n|\r|\n|$)", source)]
    spans: dict[tuple[int, int], bool] = {}
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            spans[first, node.end_lineno or 0] = ast.get_docstring(node) is not None
    return lines, list(spans), [span for span, documented in spans.items() if documented]


def _alone(lines: list[str], span: tuple[int, int]) -> str | None:
    """Return the dedented function if it parses alone and has more than a docstring."""
    code = textwrap.dedent("".join(lines[slice(*span)])).rstrip("\r\n")
    usable = code.startswith(("def", "async", "@")) and parses(code) and _has_statements(code)
    return code if usable else None


def functions_of(path: Path) -> list[str]:
    """Return all functions of a file that parse alone once dedented and have more than a docstring."""
    lines, spans, _ = _functions(path)
    return [code for span in spans if (code := _alone(lines, span)) is not None]


def any_function(data: st.DataObject, *, documented: bool = False) -> str:
    """Draw one function of the standard library, with a docstring if so asked; it parses alone."""
    lines, spans, with_docstring = _functions(data.draw(st.sampled_from(FILES)))
    spans = with_docstring if documented else spans
    assume(spans)
    code = _alone(lines, data.draw(st.sampled_from(spans)))
    assume(code is not None)
    return code or ""


def _has_statements(code: str) -> bool:
    function = _tree(code).body[0]
    has_docstring = ast.get_docstring(function, clean=False) is not None  # type: ignore[arg-type] # it is a function
    return len(function.body) > has_docstring  # type: ignore[attr-defined] # it is a function
