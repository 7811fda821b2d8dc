"""DuckDB as a reader of a release's files."""

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.errors import PipelineError
from warehouse.tables import write_table
from warehouse.views import count_rows

TABLE = pa.table({"a": [1, 2, None], "b": ["x", None, "é"], "c": [["p"], [], None]})


def test_the_rows_of_all_files_of_a_pattern_are_counted(tmp_path: Path) -> None:
    for name in ("test-00000-of-00002", "test-00001-of-00002", "other"):
        write_table(tmp_path / "raw data" / f"{name}.parquet", TABLE)
    assert count_rows(tmp_path / "raw data" / "test-*.parquet") == 6


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", TABLE.slice(0, 0))
    assert count_rows(tmp_path / "a.parquet") == 0


def test_what_cannot_be_read_is_an_error_with_the_pattern(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=rf"DuckDB cannot read {tmp_path}/\*\.parquet: .*No files found"):
        count_rows(tmp_path / "*.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but nothing else PAR1")
    with pytest.raises(PipelineError, match=r"DuckDB cannot read .*a\.parquet: "):
        count_rows(tmp_path / "a.parquet")


def test_a_damaged_value_is_noticed_though_the_count_stands_in_the_footer(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_table(path, pa.table({"text": [f"{number} {'x' * number}" for number in range(5_000)]}))
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(PipelineError, match=r"DuckDB cannot read .*a\.parquet: "):
        count_rows(path)
