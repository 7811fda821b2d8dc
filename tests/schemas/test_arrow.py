from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import records, tasks
from schemas.arrow import SCHEMA_VERSION, from_table, schema_of, to_table
from schemas.records import CommitRecord, DuplicateCluster, Exclusion, StageReport

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)

COMMIT = CommitRecord("o/n", "c1", ("p1", "p2"), MOMENT, MOMENT, "message é", author_is_bot=False)
REPORT = StageReport("mine", "o/n", 2, 1, {"reason": 1}, "digest", "0.1.0", MOMENT, None)


def test_schema_names_types_and_nullability_follow_the_fields() -> None:
    schema = schema_of(CommitRecord)
    assert [(column.name, str(column.type), column.nullable) for column in schema] == [
        ("repo", "string", False),
        ("commit_id", "string", False),
        ("parent_ids", "list<element: string>", False),
        ("author_date", "timestamp[us, tz=UTC]", False),
        ("committer_date", "timestamp[us, tz=UTC]", False),
        ("commit_message", "string", False),
        ("author_is_bot", "bool", False),
    ]


def test_schema_carries_table_and_version() -> None:
    assert schema_of(CommitRecord).metadata == {
        b"postquem.table": b"CommitRecord",
        b"postquem.schema_version": SCHEMA_VERSION.encode(),
    }


@pytest.mark.parametrize("row", [COMMIT, REPORT, DuplicateCluster("a", ("a", "b")), Exclusion("1", "s", "r", "d")])
def test_rows_come_back_equal(row: object) -> None:
    table = to_table([row, row], type(row))
    assert list(from_table(table, type(row))) == [row, row]


def test_an_empty_table_has_the_same_schema_as_a_full_one() -> None:
    assert to_table([], StageReport).schema == to_table([REPORT], StageReport).schema


def test_all_null_column_keeps_its_type() -> None:
    report = StageReport("mine", "o/n", 0, 0)
    assert str(to_table([report], StageReport).schema.field("started_at").type) == "timestamp[us, tz=UTC]"


def test_null_in_a_required_column_is_refused() -> None:
    broken = Exclusion(row_id=None, stage="s", reason="r")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Exclusion\.row_id is null in 1 rows"):
        to_table([broken], Exclusion)


def test_every_row_type_has_a_schema() -> None:
    row_types = [
        kind
        for module in (records, tasks)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "__dataclass_fields__")
    ]
    names = {kind.__name__ for kind in row_types} - {"Kept"}
    assert {"Method", "DataPoint", "RandomCut", "CommitGen"} <= names
    for kind in row_types:
        if kind.__name__ != "Kept":
            assert schema_of(kind).names == [item.name for item in fields(kind)]


def test_testbed_rows_start_with_all_data_point_columns() -> None:
    base = schema_of(records.DataPoint).names
    for kind in (tasks.RandomCut, tasks.WithDocString, tasks.FromDocString, tasks.CommitGen, tasks.SummarizationGen):
        assert schema_of(kind).names[: len(base)] == base


def test_field_without_arrow_type_is_an_error() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        value: complex

    with pytest.raises(TypeError, match="no Arrow type"):
        schema_of(Odd)


class Kind(StrEnum):
    A = "a"
    B = "b"


@dataclass(frozen=True, slots=True)
class Inner:
    kind: Kind
    names: tuple[str, ...]
    note: str | None


@dataclass(frozen=True, slots=True)
class Outer:
    one: Inner
    many: tuple[Inner, ...]
    maybe: Inner | None


def test_dataclasses_in_rows_are_structs_and_come_back() -> None:
    rows = [
        Outer(Inner(Kind.A, ("x", "y"), None), (Inner(Kind.B, (), "n"), Inner(Kind.A, ("z",), None)), None),
        Outer(Inner(Kind.B, (), "ß"), (), Inner(Kind.A, (), "m")),
    ]
    table = to_table(rows, Outer)
    assert list(from_table(table, Outer)) == rows
    inner = pa.struct(
        [
            pa.field("kind", pa.string(), nullable=False),
            pa.field("names", pa.list_(pa.field("element", pa.string())), nullable=False),
            pa.field("note", pa.string()),
        ]
    )
    assert table.schema.field("one") == pa.field("one", inner, nullable=False)
    assert table.schema.field("many") == pa.field("many", pa.list_(pa.field("element", inner)), nullable=False)
    assert table.schema.field("maybe") == pa.field("maybe", inner, nullable=True)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    assert list(from_table(pq.read_table(pa.BufferReader(sink.getvalue())), Outer)) == rows
