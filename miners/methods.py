"""Function definitions of a file: which count as methods, where they start and end, and their text on its own."""

import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from tree_sitter import Node, Query, QueryCursor, Tree

from miners.scopes import functions
from miners.syntax import PYTHON, Definition, definition_of, parse
from schemas.errors import DataError

_STRINGS = Query(PYTHON, "(string) @string")
_NO_TOKEN = ("comment", "line_continuation")
_WHITE = b" \t\f"
# Everything that may stand between two tokens, comments apart: white space, line ends, continuation backslashes.
_BETWEEN_TOKENS = b" \t\f\r\n\\"
# The same and whatever can belong to a name: what is left are operators, brackets and quotes.
_NO_SYMBOL = _BETWEEN_TOKENS + b"_" + bytes(char for char in range(256) if char >= 128 or chr(char).isalnum())
_DIGEST_BYTES = 16
# What `is_plain` does not look into: white space but blanks and line feeds, backslashes before a line end or a quote.
_UNUSUAL = (b"\t", b"\f", b"\v", b"\r", b"\\\n", b'\\"', b"\\'")
# From decorators and a header without quotes, comments and inner brackets to the string that opens the body.
_HEAD = rb"(?:@[^\n\"'#]*\n *)*(?:async +)?def +\w+ *\([^()\"'#]*\)[^()\"'#:\n]*: *\n\s*[rR]?"
_DOCSTRINGS = [(quotes, re.compile(_HEAD + quotes)) for quotes in (b'"""', b"'''")]
_ENDS_LINE = re.compile(rb" *(?:\n|\Z)")
_F_STRING = re.compile(rb"[fFtT][rR]?[\"'][^\n]*")


class TextKeys(NamedTuple):
    """What the bytes of a definition alone say, shared by all definitions with the same bytes."""

    text: bytes
    """Digest of the exact bytes."""
    nameless: bytes
    """Digest of the tokens' characters without own name and docstring; equal tokens always give equal digests."""
    symbols: bytes
    """For a text that repeats its own name (recursion): digest of its operators, brackets and quotes alone, which
    stay the same when the name is replaced everywhere; for others equal to `nameless`."""


class MethodSpan(NamedTuple):
    """One function definition; offsets are bytes of the parsed source.

    A named tuple: each version of a file has as many as it has definitions, and a frozen dataclass costs four times as
    much to make.
    """

    fun_name: str
    """Qualified name as CPython's `__qualname__` has it: `Class.method`, `outer.<locals>.inner`."""
    start_byte: int
    """Offset of the first decorator's `@`, else of `async` or `def`."""
    end_byte: int
    """Offset just behind the last token of the last statement; comments that follow it are outside."""
    start_line: int
    """Line of start_byte, counted from 1 over LF, CRLF and CR."""
    end_line: int
    """Line of the last token's end."""
    nested: bool
    """It stands inside another function, so it belongs to that one and is no method."""
    scope_known: bool
    """False when a syntax error around the definition hides which scope it belongs to."""
    keys: TextKeys
    """Digests of its text."""


@dataclass(frozen=True, slots=True)
class TokenHashes:
    """Digests of a definition's token sequence and block structure, comments and docstring left out."""

    exact: bytes
    """Every token as it stands."""
    nameless: bytes
    """The definition's own name replaced by a placeholder."""
    nameless_everywhere: bytes
    """Every identifier equal to the own name replaced, so that a renamed recursive function still matches."""


def find_methods(source: bytes, tree: Tree) -> list[MethodSpan]:
    """Return the methods of a file in source order.

    A method is a definition whose enclosing scopes are only classes; blocks such as `if`, `try`, `with`, `for` and
    `match` around it do not matter. One that has syntax errors inside is still a method (n_ast_errors counts them);
    one that lies inside an ERROR region is not, because its scope is unknown (`scan` returns it all the same).
    """
    return [span for span in scan(source, tree, {}) if not span.nested and span.scope_known]


def scan(source: bytes, tree: Tree, known: dict[bytes, TextKeys]) -> list[MethodSpan]:
    """Return every function definition of a file in source order, nested ones included.

    `known` caches `TextKeys` by text digest across files and grows by the texts it has not seen.
    """
    broken = tree.root_node.has_error
    spans = []
    for scoped in functions(source, tree.root_node, broken):
        node, outer = scoped.function, scoped.outer
        last = _last_token(node) if broken or _may_end_loosely(source, node) else node
        start, end = outer.start_byte, last.end_byte
        text = source[start:end]
        digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
        keys = known.get(digest)
        if keys is None:
            keys = known[digest] = _text_keys(digest, text, outer, node)
        spans.append(
            MethodSpan(
                fun_name=sys.intern(scoped.name),
                start_byte=start,
                end_byte=end,
                start_line=outer.start_point.row + 1,
                end_line=last.end_point.row + 1,
                nested=scoped.nested,
                scope_known=not (broken and (scoped.in_error or _is_stray(outer))),
                keys=keys,
            )
        )
    return spans


def _may_end_loosely(source: bytes, node: Node) -> bool:
    """Tell whether a node may end behind its last token: in a comment, white space or a continuation."""
    end = node.end_byte
    last_line = source[max(source.rfind(b"\n", 0, end), source.rfind(b"\r", 0, end)) + 1 : end]
    return b"#" in last_line or not last_line or source[end - 1] in b" \t\f\r\n\\"


def _last_token(node: Node) -> Node:
    """Return the last token below a node that is neither comment nor continuation nor of zero width."""
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in _NO_TOKEN or current.end_byte == current.start_byte:
            continue
        if not current.child_count or current.type == "string":
            return current
        stack.extend(current.children)
    return node


def _is_stray(outer: Node) -> bool:
    """Tell whether a definition in a broken tree is not where a statement can be: its scope was lost."""
    parent = outer.parent
    if parent is None or parent.type not in ("module", "block"):
        return True
    return parent.type == "module" and outer.start_point.column != 0 and outer.start_byte != len(BOM_UTF8)


def _text_keys(digest: bytes, text: bytes, outer: Node, function: Node) -> TextKeys:
    """Return the digests of a definition's text; `outer` is the definition with its decorators."""
    start = outer.start_byte
    name = function.child_by_field_name("name")
    cuts = []
    if b"#" in text:
        cuts = list(_comments(outer, text))
    cuts.extend(_leading_strings(function))
    if name is not None:
        cuts.append((name.start_byte, name.end_byte))
    pieces, position = [], 0
    for cut_start, cut_end in sorted(cuts):
        if cut_end - start <= position:
            continue
        pieces.append(text[position : max(cut_start - start, position)])
        position = cut_end - start
    pieces.append(text[position:])
    own = b"" if name is None or name.text is None else name.text
    characters = b"".join(pieces)
    nameless = _digest(characters, _BETWEEN_TOKENS)
    return TextKeys(digest, nameless, _digest(characters, _NO_SYMBOL) if own and own in characters else nameless)


def _comments(outer: Node, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the comments in a definition's text.

    Only what stands at a hash is looked at, which costs less than a walk over the tree.
    """
    start = outer.start_byte
    at = text.find(b"#")
    while at >= 0:
        node = outer.descendant_for_byte_range(start + at, start + at + 1)
        if node is not None and node.type == "comment":
            yield node.start_byte, node.end_byte
            at = node.end_byte - start - 1
        elif node is not None and node.type == "string_content" and not node.child_count:
            at = node.end_byte - start - 1
        at = text.find(b"#", at + 1)


def _leading_strings(function: Node) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the strings that open a body.

    Cutting them all, docstring or not, keeps the digest equal for two definitions that differ in the docstring only.
    """
    body = function.child_by_field_name("body")
    if body is None:
        return
    for index in range(body.named_child_count):
        statement = body.named_child(index)
        if statement is None or statement.type == "comment":
            continue
        inner = statement.named_child(0) if statement.type == "expression_statement" else None
        if inner is None or inner.type not in ("string", "concatenated_string", "parenthesized_expression"):
            return
        yield statement.start_byte, statement.end_byte


def _digest(characters: bytes, left_out: bytes) -> bytes:
    """Return the digest of characters without those of `left_out`."""
    return blake2b(characters.translate(None, left_out), digest_size=_DIGEST_BYTES).digest()


def indentation(source: bytes, start: int) -> bytes:
    """Return the white space before `start` on its line, from the last form feed on (it resets the column)."""
    line_start = max(source.rfind(b"\n", 0, start), source.rfind(b"\r", 0, start)) + 1
    prefix = source[line_start:start]
    white = prefix[len(prefix.rstrip(_WHITE)) :]
    return white[white.rfind(b"\f") + 1 :]


def dedent(source: bytes, span: MethodSpan, *, is_sound: bool = False) -> str:
    """Return a method's text with its own indentation removed, so that it parses alone.

    Every line loses the white space that stands before the first line, as far as it has it; lines inside a string
    literal other than the docstring keep their text. Line ends stay. Raises DataError `dedent_failed` when the
    token sequence or block structure of the result is not the original's; `is_sound` says that the source has no syntax
    error, which spares most methods the proof.
    """
    text = source[span.start_byte : span.end_byte]
    indent = indentation(source, span.start_byte)
    if not indent or not (b"\n" in text or b"\r" in text):
        return text.decode("utf-8")
    if is_sound and is_plain(text, indent):
        return _without_indent(text, indent, []).decode("utf-8")
    wrapped, offset = _alone(text, indent)
    node = _only(wrapped, offset)
    definition = None if node is None else definition_of(node)
    if definition is None:
        raise DataError("dedent_failed", f"{span.fun_name} does not parse on its own")
    kept = [(start - offset, end - offset) for start, end in _kept_strings(definition)]
    code = _without_indent(text, indent, kept)
    if not _same_tree(definition, text, code):
        raise DataError("dedent_failed", f"the tokens of {span.fun_name} change with its indentation removed")
    return code.decode("utf-8")


def is_plain(text: bytes, indent: bytes) -> bool:
    """Tell whether no line of an error-free definition starts inside a string, a docstring that opens the body apart.

    Then white space at the beginning of a line is all that an indentation can be, and nothing has to be parsed. False
    for most texts that would need a closer look: tabs, form feeds, carriage returns, backslashes at the end of a line,
    other strings in triple quotes, and f-strings with a brace open at the end of a line (PEP 701).
    """
    if any(char in text for char in _UNUSUAL) or indent.strip(b" "):
        return False
    for quotes, start in _DOCSTRINGS:
        count = text.count(quotes)
        if count:
            found = start.match(text)
            if count != 2 or found is None or _ENDS_LINE.match(text, text.rfind(quotes) + 3) is None:
                return False
    if b"{" not in text and b"}" not in text:
        return True
    lines = (text[text.rfind(b"\n", 0, found.start()) + 1 : found.end()] for found in _F_STRING.finditer(text))
    return all(line.count(b"{") == line.count(b"}") for line in lines)


def _same_tree(definition: Definition, text: bytes, code: bytes) -> bool:
    """Tell whether dedented code has the tokens and the block structure of the original text.

    Equal characters but for white space and equal syntax trees leave no room for another token; both comparisons
    run in C, which a comparison of token lists does not.
    """
    wrapped, offset = _alone(code, b"")
    alone = _only(wrapped, offset)
    if alone is None or str(alone) != str(definition.node):
        return False
    return text.translate(None, _BETWEEN_TOKENS) == code.translate(None, _BETWEEN_TOKENS)


def _kept_strings(definition: Definition) -> list[tuple[int, int]]:
    """Return the ranges of outermost string literals of more than one line, the docstring left out, in order."""
    ranges: list[tuple[int, int]] = []
    for node in QueryCursor(_STRINGS).captures(definition.node).get("string", []):
        if node.start_point.row != node.end_point.row:
            ranges.append((node.start_byte, node.end_byte))
    docstring = definition.docstring
    if docstring is not None:
        start, end = docstring.start_byte, docstring.end_byte
        ranges = [item for item in ranges if item[1] <= start or end <= item[0]]
    return sorted(ranges)


def _without_indent(text: bytes, indent: bytes, kept: list[tuple[int, int]]) -> bytes:
    """Remove the indentation from every line but the first and those that start inside a `kept` range."""
    pieces, position, index = [], 0, 0
    no_feed = b"\f" not in text
    for line in text.splitlines(keepends=True):
        while index < len(kept) and kept[index][1] <= position:
            index += 1
        inside = index < len(kept) and kept[index][0] < position
        if inside or position == 0:
            pieces.append(line)
        elif no_feed and line.startswith(indent):
            pieces.append(line[len(indent) :])
        else:
            pieces.append(_strip(line, indent))
        position += len(line)
    return b"".join(pieces)


def _strip(line: bytes, indent: bytes) -> bytes:
    """Remove `indent`, or at most as many white-space characters, from a line's effective indentation."""
    white = line[: len(line) - len(line.lstrip(_WHITE))]
    feed = white.rfind(b"\f") + 1
    count = min(len(indent), len(white) - feed)
    return line[:feed] + line[feed + count :]


def token_hashes(text: bytes, indent: bytes) -> TokenHashes:
    """Return the digests of a definition's tokens from its own bytes and the white space before its first line.

    A definition so broken that the grammar does not see it in its text alone counts as one token.
    """
    wrapped, offset = _alone(text, indent)
    node = _only(wrapped, offset)
    definition = None if node is None else definition_of(node)
    if definition is None:
        digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
        return TokenHashes(digest, digest, digest)
    return _hashes(definition)


def _alone(text: bytes, indent: bytes) -> tuple[bytes, int]:
    """Return source in which a definition stands alone at its own indentation, and its offset there."""
    head = b"if 1:\n" + indent if indent else b""
    return head + text + b"\n", len(head)


def _only(wrapped: bytes, offset: int) -> Node | None:
    """Return the node of the definition that starts at `offset`."""
    node: Node | None = parse(wrapped).root_node
    while node is not None and not (node.start_byte == offset and node.type.endswith("_definition")):
        node = next((child for child in node.named_children if child.start_byte <= offset < child.end_byte), None)
    return node


def _hashes(definition: Definition) -> TokenHashes:
    """Hash the token sequence three times: as it is, and with the own name replaced once and everywhere."""
    name = definition.function.child_by_field_name("name")
    own = b"" if name is None or name.text is None else name.text
    at = -1 if name is None else name.start_byte
    tokens = list(_structured_tokens(definition))
    exact = [text for _, text in tokens]
    nameless = [b"\n?" if start == at else text for start, text in tokens]
    everywhere = [b"\n?" if text == own else text for text in exact]
    return TokenHashes(
        _digest(b"\0".join(exact), b""), _digest(b"\0".join(nameless), b""), _digest(b"\0".join(everywhere), b"")
    )


def _structured_tokens(definition: Definition) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, text) of every token, and markers for statements and blocks, without comments and docstring.

    Markers begin with a line feed, which no token does. Line ends inside strings are LF, as CPython reads them.
    """
    skip = definition.docstring.start_byte if definition.docstring is not None else -1
    stack: list[Node | bytes] = [definition.node]
    while stack:
        current = stack.pop()
        if isinstance(current, bytes):
            yield -1, current
            continue
        kind = current.type
        if kind in _NO_TOKEN or current.end_byte == current.start_byte:
            continue
        if kind == "string" or not current.child_count:
            yield current.start_byte, (current.text or b"").replace(b"\r\n", b"\n")
            continue
        children = current.children
        if kind == "block":
            inside: list[Node | bytes] = [b"\n+"]
            for child in children:
                if child.is_named and child.type not in _NO_TOKEN:
                    if child.start_byte == skip:
                        continue
                    inside.append(b"\n")
                inside.append(child)
            inside.append(b"\n-")
            stack.extend(reversed(inside))
        else:
            if kind == "decorator":
                yield -1, b"\n"
            stack.extend(reversed(children))
