"""The walk over a syntax tree that finds function definitions and the scopes around them."""

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

# Nodes below which a definition can stand; everything else is an expression or a simple statement.
_CONTAINERS = frozenset(
    {
        "module", "block", "ERROR", "class_definition", "function_definition", "decorated_definition",
        "if_statement", "elif_clause", "else_clause", "for_statement", "while_statement", "try_statement",
        "except_clause", "except_group_clause", "finally_clause", "with_statement", "match_statement", "case_clause",
    }
)  # fmt: skip


class Scoped(NamedTuple):
    """A function definition with what encloses it."""

    function: Node
    outer: Node
    name: str
    nested: bool
    in_error: bool


def functions(source: bytes, root: Node, broken: bool) -> Iterator[Scoped]:
    """Yield the function definitions below a node in source order; a broken tree is searched everywhere."""
    stack = [(root, root.type, "", False, False)]
    while stack:
        node, kind, prefix, nested, in_error = stack.pop()
        function = node
        if kind == "decorated_definition":
            function = node.child_by_field_name("definition") or node
            kind = function.type
        if kind == "function_definition":
            name = prefix + _name(function)
            yield Scoped(function, node, name, nested, in_error)
            prefix, nested = f"{name}.<locals>.", True
        elif kind == "class_definition":
            prefix = f"{prefix}{_name(function)}."
        elif kind == "ERROR":
            in_error = True
        if not broken and source.find(b"def", _body_start(function), function.end_byte) < 0:
            continue  # no definition below it: listing the children of every function would cost the most
        for child in reversed(function.named_children):
            kind = child.type
            if broken or kind in _CONTAINERS:
                stack.append((child, kind, prefix, nested, in_error))


def _body_start(node: Node) -> int:
    """Return an offset in front of everything that a node can hold, behind its own `def`."""
    body = node.child_by_field_name("body") if node.type == "function_definition" else None
    return node.start_byte if body is None else body.start_byte


def _name(node: Node) -> str:
    """Return the name of a definition, in the NFKC form under which CPython knows it."""
    identifier = node.child_by_field_name("name")
    text = b"" if identifier is None or identifier.text is None else identifier.text
    name = text.decode("utf-8", "backslashreplace")
    return name if name.isascii() else unicodedata.normalize("NFKC", name)
