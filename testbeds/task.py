"""What the testbeds share: their inputs, the rules for generation tasks, and how a row gets its own columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from features.docstrings import is_trivial_body, is_valid_docstring
from features.parsing import ParsedCode, parse_method
from miners.syntax import has_python2_statement
from schemas.errors import DataError
from schemas.records import DataPoint

Row = TypeVar("Row", bound=DataPoint)
Diffs = Mapping[tuple[str, str, str], str]

_POINT_FIELDS = tuple(item.name for item in fields(DataPoint))


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a testbed may look at besides the data point."""

    diffs: Diffs
    """Unified diff of a changed file, by (repo, commit_id, path)."""
    seed: int
    """Seed of the cuts."""


@dataclass(frozen=True, slots=True)
class Testbed:
    """A testbed: how a data point becomes one of its rows."""

    row_type: type[DataPoint]
    """Type of the rows."""
    make_row: Callable[[DataPoint, Inputs], DataPoint]
    """Returns the row or raises DataError with the reason why the point has none."""
    sampled: bool = True
    """Sampled to the configured size; False keeps every row."""
    capped_by_commit: bool = False
    """At most the configured number of rows of one commit."""


def extend(point: DataPoint, row_type: type[Row], **columns: object) -> Row:
    """Return the row that has the point's columns and the task's own."""
    values: dict[str, Any] = {name: getattr(point, name) for name in _POINT_FIELDS}
    return row_type(**(values | columns))


def require_docstring(point: DataPoint) -> str:
    """Return the point's docstring; DataError unless it is valid (more than 3 words)."""
    if point.docstring is None:
        raise DataError("no_docstring")
    if not is_valid_docstring(point.docstring):
        raise DataError("docstring_too_short", f"{len(point.docstring.split())} words, more than 3 are needed")
    return point.docstring


def require_generation(point: DataPoint) -> None:
    """Raise DataError for points that are in no generation testbed.

    `is_test`: test functions (detail: path and name, one of which says so); `syntax_errors`: ERROR or MISSING nodes,
    with which the parts of the code are not known for sure; `python2_syntax`: a print or exec statement;
    `code_not_utf8`, `no_definition`: no text or no definition at all; `trivial_body`: a body without meaning.
    """
    if point.is_test:
        raise DataError("is_test", f"{point.path} {point.fun_name}")
    if point.n_ast_errors or point.n_ast_missing:
        raise DataError("syntax_errors", f"{point.n_ast_errors} ERROR and {point.n_ast_missing} MISSING nodes")
    # CPython's verdict alone would make the testbeds depend on the running version: it refuses newer syntax too.
    if not point.parses and has_python2_statement(point.code.encode("utf-8", "surrogatepass")):
        raise DataError("python2_syntax", "a print or exec statement")
    if is_trivial_body(point.code):
        raise DataError("trivial_body")


def require_parsed(code: str) -> ParsedCode:
    """Return the parsed code of a single definition.

    DataError `code_not_utf8`, `no_definition`, or `syntax_errors` when the tree has ERROR or MISSING nodes.
    """
    parsed = parse_method(code)
    if parsed.tree.root_node.has_error:
        raise DataError("syntax_errors", "the syntax tree has ERROR or MISSING nodes")
    return parsed
