"""The functions of a file and digests of their tokens by the standard library's `ast` and `tokenize`."""

import ast
import hashlib
import io
import re
import sys
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

LINE_END = re.compile(rb"\r\n|\r|\n")
NO_TOKENS = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Signatures = tuple[bytes, bytes, bytes]


@dataclass(frozen=True, slots=True)
class Function:
    """A function as `ast` sees it."""

    name: str
    start: int
    end: int
    nested: bool
    text: bytes
    """Digest of its text in UTF-8."""
    signatures: Signatures
    """Digests of its tokens: exact, own name replaced at the definition, own name replaced everywhere."""


def decoded(raw: bytes) -> tuple[str, str]:
    """Return a file's text and its encoding; raise SyntaxError, ValueError or LookupError when it has none."""
    encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    return raw.decode(encoding), encoding


def functions_of(raw: bytes, names: frozenset[str] | None = None) -> list[Function] | None:
    """Return the functions of a file in source order, None when it does not parse; `names` keeps those that end so."""
    try:
        text, encoding = decoded(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(raw)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return None
    lines = Lines(text)
    found = [function for statement in module.body for function in lines.functions(statement, names)]
    if lines.source != raw:
        found = [
            replace(item, start=lines.raw_offset(item.start, encoding), end=lines.raw_offset(item.end, encoding))
            for item in found
        ]
    return sorted(found, key=lambda item: (item.start, -item.end))


# Functions by their statement's lines, offsets from its start: most statements of a file stand in its other versions.
_STATEMENTS: dict[bytes, tuple[Function, ...]] = {}


class Lines:
    """A file's text in UTF-8, cut where `ast` counts a line."""

    def __init__(self, text: str) -> None:
        self.source = text.encode("utf-8")
        self._starts = [0, *(found.end() for found in LINE_END.finditer(self.source))]
        self._bom = len("\ufeff".encode()) if text.startswith("\ufeff") else 0

    def functions(self, statement: ast.stmt, names: frozenset[str] | None) -> list[Function]:
        """Return the functions in a top-level statement; those that end with one of the names when these are given."""
        if not isinstance(statement, AnyFunction | ast.ClassDef | ast.If | ast.Try | ast.TryStar | ast.With | ast.For
                          | ast.While | ast.Match | ast.AsyncWith | ast.AsyncFor):  # fmt: skip
            return []
        decorators = getattr(statement, "decorator_list", [])
        first = min(node.lineno for node in (statement, *decorators))
        start, end = self._starts[first - 1], self._offset(statement.end_lineno or 0, statement.end_col_offset or 0)
        if first == 1 or names is not None:
            return list(self._walk(statement, names))
        key = _digest_of(self.source[start:end])
        if key not in _STATEMENTS:
            found = list(self._walk(statement, None))
            if any(item.start < start for item in found):
                return found  # the `@` stands on a line before its decorator
            _STATEMENTS[key] = tuple(replace(item, start=item.start - start, end=item.end - start) for item in found)
        return [
            Function(item.name, item.start + start, item.end + start, item.nested, item.text, item.signatures)
            for item in _STATEMENTS[key]
        ]

    def _walk(self, statement: ast.stmt, names: frozenset[str] | None) -> Iterator[Function]:
        holder = ast.Module([statement], [])
        for node, name, nested in walk(holder, "", False):
            if names is None or node.name in names:
                yield self._function(node, name, nested)

    def _function(self, node: AnyFunction, name: str, nested: bool) -> Function:
        start = self._offset(node.lineno, node.col_offset)
        if node.decorator_list:
            first = node.decorator_list[0]
            start = self.source.rindex(b"@", 0, self._offset(first.lineno, first.col_offset))
        end = self._offset(node.end_lineno or 0, node.end_col_offset or 0)
        line_start = self._starts[bisect_right(self._starts, start) - 1]
        signatures = signatures_of(self.source[line_start:end], len(self.source[line_start:start].decode()))
        return Function(sys.intern(name), start, end, nested, _digest_of(self.source[start:end]), signatures)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column + (self._bom if line == 1 else 0)

    def raw_offset(self, at: int, encoding: str) -> int:
        """Return the offset in the file's own encoding."""
        return len(self.source[:at].decode("utf-8").encode(encoding))


def walk(node: ast.AST, prefix: str, nested: bool) -> Iterator[tuple[AnyFunction, str, bool]]:
    """Yield every function below a node with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction):
            name = prefix + child.name
            yield child, name, nested
            yield from walk(child, f"{name}.<locals>.", True)
        elif isinstance(child, ast.ClassDef):
            yield from walk(child, f"{prefix}{child.name}.", nested)
        elif not isinstance(child, ast.expr):
            yield from walk(child, prefix, nested)


_SIGNATURES: dict[bytes, Signatures] = {}


def signatures_of(lines: bytes, column: int) -> Signatures:
    """Return the token digests of a function from its lines; it starts at a column of the first one."""
    key = _digest_of(b"%d:" % column + lines)
    if key not in _SIGNATURES:
        # Form feeds in the indentation reset the column; blanks would not.
        text = LINE_END.sub(b"\n", lines).decode("utf-8").removeprefix("\ufeff")
        text = text.lstrip(" \t\f") if column == 0 else text
        blank = text[: len(text) - len(text.lstrip(" \t\f"))]
        own_indent = blank.rsplit("\f", 1)[-1]
        wrapped = ("if 1:\n" if own_indent else "") + own_indent + text[len(blank) :] + "\n"
        _SIGNATURES[key] = _digests(list(_significant(wrapped)))
    return _SIGNATURES[key]


def _significant(text: str) -> Iterator[str]:
    """Yield the texts of a function's tokens and markers of its structure, the docstring left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(text)
    function = next(node for node in ast.walk(module) if isinstance(node, AnyFunction))
    lines = text.split("\n")
    skip = _docstring_range(function, lines)
    depths = dict(_statement_depths(function, lines, 0))
    wrapped = text.startswith("if 1:\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NO_TOKENS or (wrapped and token.start[0] == 1) or skip[0] <= token.start < skip[1]:
            continue
        if token.start in depths:
            yield f"\n{depths[token.start]}"
        yield token.string


def _statement_depths(node: ast.AST, lines: Sequence[str], depth: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the (line, character) of each statement below a node and the number of statements around it.

    That is the block structure, whether a block of one statement stands on its header's line or on its own.
    """
    for child in ast.iter_child_nodes(node):
        inside = depth
        if isinstance(child, ast.stmt):
            inside = depth + 1
            yield (child.lineno, len(lines[child.lineno - 1].encode()[: child.col_offset].decode())), inside
        yield from _statement_depths(child, lines, inside)


def _docstring_range(function: AnyFunction, lines: list[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the docstring statement's (line, character) range, an empty one without a docstring."""
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is None:
        return (0, 0), (0, 0)

    def character(line: int, column: int) -> int:
        return len(lines[line - 1].encode()[:column].decode())

    start = (first.lineno, character(first.lineno, first.col_offset))
    end_line = first.end_lineno or first.lineno
    return start, (end_line, character(end_line, first.end_col_offset or 0))


def _digests(tokens: list[str]) -> Signatures:
    """Return the three digests of a token sequence."""
    name_at = tokens.index("def") + 1
    own = tokens[name_at]
    at_definition = [*tokens[:name_at], "\n?", *tokens[name_at + 1 :]]
    everywhere = ["\n?" if token == own else token for token in tokens]
    return _digest(tokens), _digest(at_definition), _digest(everywhere)


def _digest(tokens: Iterable[str]) -> bytes:
    return _digest_of("\0".join(tokens).encode("utf-8", "surrogatepass"))


def _digest_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]
