"""What rows and columns mean: the docstrings of the row types and the line under each of their fields."""

import ast
import inspect
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from typing import get_args, get_type_hints

from schemas import execution, records, tasks


@cache
def column_docs(row_type_name: str) -> dict[str, str]:
    """Return the descriptions of a row type's columns, inherited ones first; empty for an unknown type."""
    row_type = _row_type(row_type_name)
    if row_type is None:
        return {}
    docs: dict[str, str] = {}
    for ancestor in reversed(row_type.__mro__[:-1]):
        docs |= _own_docs(ancestor)
    for name, parts in _parts(row_type).items():
        docs[name] = " ".join([docs[name], *(f"`{part}`: {text}" for part, text in column_docs(parts).items())])
    return docs


def _parts(row_type: type) -> dict[str, str]:
    """Return the row types inside the columns that are structs or lists of them, by column."""
    hints = get_type_hints(row_type) if is_dataclass(row_type) else {}
    inner = {name: next(iter(get_args(hint)), hint) for name, hint in hints.items()}
    return {name: kind.__name__ for name, kind in inner.items() if isinstance(kind, type) and is_dataclass(kind)}


def row_type_doc(row_type_name: str) -> str:
    """Return the first line of a row type's docstring; empty for an unknown type."""
    return (inspect.getdoc(_row_type(row_type_name)) or "").partition("\n")[0]


def _row_type(name: str) -> type | None:
    row_type = next((found for module in (tasks, records, execution) if (found := getattr(module, name, None))), None)
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
