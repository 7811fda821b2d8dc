"""Reads a method's own text: one tree-sitter parse for every feature, and CPython's verdict."""

import ast
import symtable
import warnings
from typing import NamedTuple

from tree_sitter import Tree

from miners.syntax import Definition, definition_of, parse
from schemas.errors import DataError


class ParsedCode(NamedTuple):
    """A method's text, parsed once; byte offsets of the tree are offsets of `source`."""

    source: bytes
    """The code as UTF-8."""
    tree: Tree
    """The tree-sitter tree of the code alone."""
    definition: Definition
    """The single definition that the code consists of."""


def parse_method(code: str) -> ParsedCode:
    """Parse a method's own text.

    Raises DataError: `code_not_utf8` for lone surrogates (no Parquet string can hold them), `no_definition` when
    the text is anything but one function definition (comments around it are allowed).
    """
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError("code_not_utf8", f"character {error.start}: {error.reason}") from None
    tree = parse(source)
    statements = [child for child in tree.root_node.named_children if child.type != "comment"]
    definition = definition_of(statements[0]) if len(statements) == 1 else None
    if definition is None:
        found = ", ".join(item.type for item in statements[:5]) or "nothing"
        raise DataError("no_definition", f"one function definition expected, found: {found}")
    return ParsedCode(source, tree, definition)


def accepted_by_cpython(code: str) -> bool:
    """Return whether the running CPython's parser (`ast.parse`) accepts the text.

    The symbol table is asked first: it comes from the same parser without building Python objects for every node
    (0.75 of ast.parse's time) and refuses more (a second pass over the tree), so only its refusals need ast.parse.
    Text too deep for the interpreter's own limits counts as not accepted.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" or `x is 1` in mined code is no business of the user's terminal
        try:
            symtable.symtable(code, "<code>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return _ast_accepts(code)
    return True


def _ast_accepts(code: str) -> bool:
    """Return whether ast.parse accepts the text; ValueError is NUL before 3.12, the others are depth limits."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
