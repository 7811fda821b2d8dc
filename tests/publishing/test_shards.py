from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publishing import shards
from publishing.shards import config_order, shard_pattern, write_shards
from schemas.arrow import to_table
from schemas.errors import PipelineError
from schemas.records import DataPoint, Exclusion
from tests.builders import make_point
from warehouse.tables import read_table

BASE = datetime(2024, 3, 1, tzinfo=UTC)


def test_configs_stand_in_the_contracts_order_and_exclusions_last() -> None:
    names = ["real_code", "exclusions", "commit_gen", "another", "raw_data", "random_cut"]
    assert config_order(names) == ["raw_data", "random_cut", "commit_gen", "real_code", "another", "exclusions"]


def test_pattern_of_a_config() -> None:
    assert shard_pattern("raw_data") == "raw_data/test-*.parquet"


def test_a_large_table_is_split_into_numbered_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = to_table([make_point(fun_name=f"f{index}", start_byte=index) for index in range(10)], DataPoint)
    monkeypatch.setattr(shards, "SHARD_BYTES", 3_000)
    entries = write_shards(tmp_path, "raw_data", table)
    n = len(entries)
    assert n == 3
    assert [entry.path for entry in entries] == [f"raw_data/test-{i:05d}-of-0000{n}.parquet" for i in range(n)]
    assert [entry.rows for entry in entries] == [4, 4, 2]
    parts = [read_table(tmp_path / entry.path) for entry in entries]
    assert pa.concat_tables(parts)["start_byte"].to_pylist() == list(range(10))
    assert all(part.schema.equals(table.schema, check_metadata=True) for part in parts)


def test_the_number_of_shards_depends_on_the_rows_and_not_on_their_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = to_table([make_point(fun_name=f"f{index}", start_byte=index) for index in range(10)], DataPoint)
    chunked = pa.concat_tables([table.slice(index, 1) for index in range(10)])
    for size in range(500, 9_000, 1_700):
        monkeypatch.setattr(shards, "SHARD_BYTES", size)
        assert write_shards(tmp_path / "a", "raw_data", table) == write_shards(tmp_path / "b", "raw_data", chunked)


def test_no_shard_of_a_table_with_rows_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = to_table([make_point(start_byte=index) for index in range(5)], DataPoint)
    for size in (1, 500, 900, 2_000):
        monkeypatch.setattr(shards, "SHARD_BYTES", size)
        entries = write_shards(tmp_path, "raw_data", table)
        assert sum(entry.rows or 0 for entry in entries) == 5
        assert min(entry.rows or 0 for entry in entries) > 0


def test_an_empty_table_is_one_shard_without_rows(tmp_path: Path) -> None:
    entries = write_shards(tmp_path, "raw_data", to_table([], DataPoint))
    assert [(entry.path, entry.rows) for entry in entries] == [("raw_data/test-00000-of-00001.parquet", 0)]


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a/a", "B/b", "é/é"]), st.integers(0, 2), st.sampled_from("xyé"), st.integers(0, 30)
        ),
        unique=True,
        max_size=12,
    )
)
def test_rows_are_ordered_as_python_orders_them(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[str, int, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("order")
    rows = [
        make_point(
            fun_name=f"f{index}",
            repo=repo,
            committer_date=BASE + timedelta(seconds=second),
            path=path,
            start_byte=start,
        )
        for index, (repo, second, path, start) in enumerate(keys)
    ]
    expected = sorted(
        rows, key=lambda row: (row.repo, row.committer_date, row.commit_id, row.path, row.start_byte, row.row_id)
    )
    entry = write_shards(folder, "raw_data", to_table(rows, DataPoint))[0]
    assert read_table(folder / entry.path)["row_id"].to_pylist() == [row.row_id for row in expected]
    assert write_shards(folder, "raw_data", to_table(rows[::-1], DataPoint)) == [entry]


def test_equal_exclusions_all_stay(tmp_path: Path) -> None:
    rows = [Exclusion("b", "s", "r"), Exclusion("a", "s", "r"), Exclusion("b", "s", "r"), Exclusion("c", "r", "r")]
    entry = write_shards(tmp_path, "exclusions", to_table(rows, Exclusion))[0]
    assert read_table(tmp_path / entry.path)["row_id"].to_pylist() == ["c", "a", "b", "b"]


@pytest.mark.parametrize("name", ["", "Raw", "a-b", "../x", "1a", "é"])
def test_a_name_that_is_no_folder_of_a_config_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PipelineError, match="cannot name a config: use lower-case letters, digits and _"):
        write_shards(tmp_path, name, to_table([], DataPoint))
    assert list(tmp_path.iterdir()) == []
