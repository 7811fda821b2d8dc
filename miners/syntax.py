"""Owns tree-sitter: the grammar, parsing, and what the syntax tree says about one definition."""

import ast
import re
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from typing import NamedTuple

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from schemas.errors import DataError

PYTHON = Language(tree_sitter_python.language())
GRAMMAR_VERSION = f"tree-sitter-python {version('tree-sitter-python')}"
_PARSER = Parser(PYTHON)
_PYTHON2 = Query(PYTHON, "[(print_statement) (exec_statement)] @statement")
# Lines times bytes, summed over a file's runs: 1 to 1.7 s with tree-sitter-python 0.25 (6 to 11 ns each);
# one run of 1,900 lines of 40 bytes or of 4,300 lines of 8 bytes.
MAX_COMMENT_RUN_COST = 150_000_000
# Most files have no run of more such lines; found in text without blanks.
_SHORT_RUN = 64
_LONGER_RUN = rb"\n[#\\][^\n]*+(?:\n++(?:#[^\n]*+|\\(?=\n|\Z))){%d}"
_LONE_CR = re.compile(rb"\r(?!\n)")

# A string whose value is its content: no prefix, no escape, no line end but LF. Most docstrings are such; each spares a
# call of CPython's parser.
_PLAIN_STRING = re.compile(
    r'"""([^"\\\r\0]*+(?:"(?!"")[^"\\\r\0]*+)*+)"""'
    r"|'{3}([^'\\\r\0]*+(?:'(?!'')[^'\\\r\0]*+)*+)'{3}"
    r'|"([^"\\\r\n\0]++)"'
    r"|'([^'\\\r\n\0]++)'"
)

# Nodes that the lexical view treats as one token, whatever the grammar shows inside.
_ATOMIC = frozenset({"string", "comment", "line_continuation"})
_NO_STATEMENT = ("comment", "line_continuation")


def parse(source: bytes) -> Tree:
    """Return the tree-sitter tree of Python source; never fails, errors become ERROR and MISSING nodes.

    The tree's own text has LF for a lone CR, which CPython takes for a line break and the grammar does not;
    offsets are those of `source`.
    """
    return _PARSER.parse(_LONE_CR.sub(b"\n", source) if b"\r" in source else source)


def check_comment_runs(source: bytes) -> None:
    """Raise DataError `comment_run_too_long` for source that the grammar would take too long to parse.

    The grammar's scanner reads a run of comment lines, or of lines with a backslash alone, to its end once for each of
    its lines, so that a run costs its lines times its bytes. The limit is on the file's sum and not on time: what is
    refused is the same on every machine. Such lines before all code cost nothing; those inside a string do not
    either, but are counted.
    """
    if len(source) * (len(source) + 1) <= 2 * MAX_COMMENT_RUN_COST:
        return  # each such line has a line end too, the last one apart
    if _comment_run_bound(source) > MAX_COMMENT_RUN_COST and _comment_run_cost(source) > MAX_COMMENT_RUN_COST:
        raise DataError("comment_run_too_long", "runs of comment lines or lone backslashes are too long to parse")


def _comment_run_bound(source: bytes) -> int:
    """Return a cheap upper bound of `_comment_run_cost`: as if runs were as long as the file and had all such lines.

    Where no run has more than `_SHORT_RUN` of them, as if each had as many.
    """
    marks = source.count(b"#") + source.count(b"\\")
    if marks * len(source) > MAX_COMMENT_RUN_COST and b"\r" not in source:
        # Beginnings of lines, the first one of a file apart, that can be part of a run.
        flush = source.translate(None, b" \t\v\f")
        marks = 1 + flush.count(b"\n#") + flush.count(b"\n\\")
        if marks > _SHORT_RUN and not re.search(_LONGER_RUN % _SHORT_RUN, flush):
            marks = _SHORT_RUN
    return marks * len(source)


def _comment_run_cost(source: bytes) -> int:
    """Return the sum over all runs behind code of their comment and backslash lines times their bytes."""
    cost = marks = length = 0
    code_seen = False
    for line in source.splitlines(keepends=True):
        text = line.strip()
        if text and text != b"\\" and not text.startswith(b"#"):
            cost += marks * length
            marks = length = 0
            code_seen = True
        elif code_seen:
            marks += bool(text)
            length += len(line)
    return cost + marks * length


def iter_tokens(node: Node, *, comments: bool = False) -> Iterator[Node]:
    """Yield the tokens below a node in source order: leaves, with every string literal as one token.

    Line continuations and zero-width MISSING nodes are no tokens; comments only when asked for.
    """
    stack = [node]
    while stack:
        current = stack.pop()
        kind = current.type
        if current.child_count and kind not in _ATOMIC:
            stack.extend(reversed(current.children))
        elif kind == "comment":
            if comments:
                yield current
        elif kind != "line_continuation" and current.end_byte > current.start_byte:
            yield current


class Definition(NamedTuple):
    """The parts of one function definition; all offsets are bytes of the parsed source.

    A named tuple: there is one for every method and old version of it, and a frozen dataclass costs four times as much
    to make.
    """

    node: Node
    """The whole definition: `decorated_definition`, or `function_definition` without decorators."""
    function: Node
    """The `function_definition` node."""
    body: Node
    """Its `block` node."""
    header_end: int
    """Offset just behind the colon that ends the signature."""
    docstring: Node | None
    """The docstring's expression statement, null if none."""

    @property
    def statements(self) -> tuple[Node, ...]:
        """Return the statements of the body without the docstring and without comments and semicolons."""
        found = [child for child in self.body.named_children if child.type not in _NO_STATEMENT]
        return tuple(found if self.docstring is None else found[1:])

    @property
    def name(self) -> str:
        """Return the function's own name."""
        identifier = self.function.child_by_field_name("name")
        return "" if identifier is None or identifier.text is None else identifier.text.decode("utf-8", "replace")


def definition_of(node: Node) -> Definition | None:
    """Return the parts of a `function_definition` or of a decorated one; None when it is neither or broken."""
    function = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
    if function is None or function.type != "function_definition":
        return None
    parts = function.children
    colon, body = parts[-2:]
    if body.type != "block" or colon.type != ":":  # syntax errors or comments around them
        found = function.child_by_field_name("body")
        colons = [part for part in parts if part.type == ":"]
        if found is None or found.type != "block" or not colons:
            return None
        colon, body = colons[-1], found
    docstring = None
    for place in range(body.named_child_count):
        statement = body.named_child(place)
        if statement.type not in _NO_STATEMENT:
            docstring = None if docstring_value(statement) is None else statement
            break
    return Definition(node, function, body, colon.end_byte, docstring)


def has_python2_statement(code: bytes) -> bool:
    """Return whether the tree of code has a print or exec statement, which the grammar knows and Python 3 does not."""
    return bool(QueryCursor(_PYTHON2).captures(parse(code).root_node))


def docstring_value(statement: Node) -> str | None:
    """Return the raw value of a statement that is a docstring by CPython's rule, else None.

    A docstring is an expression statement that is a constant `str`: implicit concatenation and parentheses
    are allowed, bytes and f-strings are not. The value is not cleaned.
    """
    if statement.type != "expression_statement" or statement.named_child_count != 1:
        return None
    expression = statement.named_children[0]
    if expression.type not in ("string", "concatenated_string", "parenthesized_expression"):
        return None
    text = (expression.text or b"").decode("utf-8", "surrogateescape")
    if text.isascii() and (plain := _PLAIN_STRING.fullmatch(text)) is not None:
        return plain[plain.lastindex or 0]
    try:
        with warnings.catch_warnings():
            # An invalid escape such as "\d" is legal in the mined code; CPython only warns of it.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            value = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
