"""Arrow schemas derived from the row dataclasses.

A schema carries its table's name and version in its metadata; raise `SCHEMA_VERSION` with every change of a column.
"""

import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from schemas.scalars import Sha256, TokenIds

SCHEMA_VERSION = "5"

_SCALARS: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
    Sha256: pa.binary(32),
    TokenIds: pa.binary(),
}


def _arrow_type(annotation: object) -> tuple[pa.DataType, bool]:
    """Return the Arrow type of an annotation and whether it admits null."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        inner = [arg for arg in args if arg is not type(None)]
        if len(inner) != 1 or len(inner) == len(args):
            raise TypeError(f"only `X | None` unions have a column type, not {annotation}")
        return _arrow_type(inner[0])[0], True
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        # Parquet's own name for list items: a table read back has exactly the schema it was written with.
        return pa.list_(pa.field("element", _arrow_type(args[0])[0])), False
    if origin is dict:
        return pa.map_(_arrow_type(args[0])[0], _arrow_type(args[1])[0]), False
    if isinstance(annotation, type) and is_dataclass(annotation):
        return pa.struct(_columns_of(annotation)), False
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return pa.string(), False
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation], False
    raise TypeError(f"no Arrow type for {annotation}")


def schema_of(row_type: type) -> pa.Schema:
    """Return the explicit Arrow schema of a row dataclass, in field order; a dataclass in it is a struct."""
    return pa.schema(
        _columns_of(row_type), {"postquem.table": row_type.__name__, "postquem.schema_version": SCHEMA_VERSION}
    )


def type_name(arrow_type: pa.DataType) -> str:
    """Return a type for readers, without the names that pyarrow gives to the parts of nested types."""
    if pa.types.is_list(arrow_type):
        return f"list of {type_name(arrow_type.value_type)}"
    if pa.types.is_map(arrow_type):
        return f"map of {type_name(arrow_type.key_type)} to {type_name(arrow_type.item_type)}"
    if pa.types.is_struct(arrow_type):
        return f"struct of {', '.join(f'{item.name} ({type_name(item.type)})' for item in arrow_type)}"
    return str(arrow_type)


def _columns_of(row_type: type) -> list[pa.Field]:
    hints = get_type_hints(row_type)
    columns = []
    for item in fields(row_type):
        arrow_type, nullable = _arrow_type(hints[item.name])
        columns.append(pa.field(item.name, arrow_type, nullable=nullable))
    return columns


def to_table(rows: Sequence[Any], row_type: type) -> pa.Table:
    """Return rows of one dataclass as a table with its explicit schema, in the given order.

    Raises ValueError for a null in a column that admits none (Arrow itself does not check).
    """
    schema = schema_of(row_type)
    columns = []
    for column in schema:
        get = attrgetter(column.name)
        values = [get(row) for row in rows]
        if _holds_structs(column.type):
            values = [_plain(value) for value in values]
        elif pa.types.is_map(column.type):
            values = [None if value is None else sorted(value.items()) for value in values]
        array = pa.array(values, type=column.type)
        if array.null_count and not column.nullable:
            raise ValueError(f"{row_type.__name__}.{column.name} is null in {array.null_count} rows; it never may be")
        columns.append(array)
    return pa.Table.from_arrays(columns, schema=schema)


def _holds_structs(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)))


def _plain(value: Any) -> Any:  # noqa: ANN401 - a dataclass, several, or null
    """Return dataclasses as the dictionaries that Arrow makes structs of."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if value is None else asdict(value)


def from_table(table: pa.Table, row_type: type) -> Iterable[Any]:
    """Yield rows of the dataclass from a table that has its schema; inverse of `to_table`."""
    hints = get_type_hints(row_type)
    convert = {name: _python_value(hints[name]) for name in (item.name for item in fields(row_type))}
    for batch in table.select(list(convert)).to_batches(max_chunksize=10_000):
        columns = [
            [None if value is None else convert[name](value) for value in batch.column(name).to_pylist()]
            for name in convert
        ]
        for values in zip(*columns, strict=True):
            yield row_type(*values)


def _python_value(annotation: object) -> Any:  # noqa: ANN401 - a constructor of the field's own type
    """Return the function that turns an Arrow value of a field into its Python value."""
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    if get_origin(annotation) in (Union, types.UnionType):
        return _python_value(inner[0])
    origin = get_origin(annotation) or annotation
    if origin is tuple:
        item = _python_value(get_args(annotation)[0])
        return lambda values: tuple(map(item, values))
    if isinstance(origin, type) and is_dataclass(origin):
        return reader_of(origin)
    if origin is dict or (isinstance(origin, type) and issubclass(origin, StrEnum)):
        return origin
    return lambda value: value


def reader_of(row_type: type) -> Callable[[dict[str, Any]], Any]:
    """Return the function that turns a struct, or an object read from JSON, into its dataclass.

    The function raises KeyError for a missing field and TypeError for a value of another shape.
    """
    hints = get_type_hints(row_type)
    convert = {item.name: _python_value(hints[item.name]) for item in fields(row_type)}

    def read(values: dict[str, Any]) -> Any:  # noqa: ANN401 - an instance of row_type
        return row_type(**{name: None if values[name] is None else convert[name](values[name]) for name in convert})

    return read
