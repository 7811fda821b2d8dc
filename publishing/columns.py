"""What rows and columns mean: the docstrings of the row types and the line under each of their fields."""

import ast
import inspect
from functools import cache
from itertools import pairwise

from schemas import records, tasks


@cache
def column_docs(row_type_name: str) -> dict[str, str]:
    """Return the descriptions of a row type's columns, inherited ones first; empty for an unknown type."""
    row_type = _row_type(row_type_name)
    if row_type is None:
        return {}
    docs: dict[str, str] = {}
    for ancestor in reversed(row_type.__mro__[:-1]):
        docs |= _own_docs(ancestor)
    return docs


def row_type_doc(row_type_name: str) -> str:
    """Return the first line of a row type's docstring; empty for an unknown type."""
    return (inspect.getdoc(_row_type(row_type_name)) or "").partition("\n")[0]


def _row_type(name: str) -> type | None:
    row_type = getattr(tasks, name, None) or getattr(records, name, None)
    return row_type if isinstance(row_type, type) else None


def _own_docs(row_type: type) -> dict[str, str]:
    """Return the text of each string that follows an annotated field in the class's source."""
    body = ast.parse(inspect.getsource(row_type)).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    docs = {}
    for field, text in pairwise(statements):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            docs[field.target.id] = inspect.cleandoc(text.value.value)
    return docs
