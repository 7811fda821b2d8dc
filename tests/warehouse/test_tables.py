import errno
import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.arrow import schema_of, to_table
from schemas.errors import PipelineError
from schemas.records import CommitRecord, DuplicateCluster, Exclusion, StageReport
from warehouse.tables import (
    NUMBERS,
    ROW_GROUP_ROWS,
    FileEntry,
    explain_os_errors,
    file_entry,
    read_rows,
    read_table,
    write_atomically,
    write_rows,
    write_table,
    write_text,
)

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
COMMIT = CommitRecord("o/n", "c" * 40, ("p1", "p2"), MOMENT, MOMENT, "Überschrift\n\r\n\0 end", author_is_bot=False)
COLUMNS = ["row_id", "stage", "reason", "detail", "repo", "commit_id", "path", "fun_name"]
EXCLUSIONS = [Exclusion(f"row{index}", "mine", "bad_blob", f"detail {index}") for index in range(7)]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    report = StageReport("mine", "o/n", 3, 1, {"b": 1, "a": 1}, "digest", "0.1.0", MOMENT, None)
    cluster = DuplicateCluster("a", ("a", "b"))
    for row in (COMMIT, report, cluster, EXCLUSIONS[0]):
        path = tmp_path / f"{type(row).__name__}.parquet"
        write_rows(path, [row, row], type(row))
        assert read_rows(path, type(row)) == [row, row]


def test_a_table_read_back_has_the_very_schema_it_was_written_with(tmp_path: Path) -> None:
    for row_type in (CommitRecord, DuplicateCluster, Exclusion):
        write_rows(tmp_path / "t.parquet", [], row_type)
        assert read_table(tmp_path / "t.parquet").schema.equals(schema_of(row_type), check_metadata=True)


def test_the_entry_tells_path_rows_hash_and_size(tmp_path: Path) -> None:
    entry = write_rows(tmp_path / "commits" / "o" / "n.parquet", [COMMIT], CommitRecord, root=tmp_path)
    content = (tmp_path / "commits/o/n.parquet").read_bytes()
    assert entry == FileEntry("commits/o/n.parquet", 1, sha256(content).hexdigest(), len(content))
    assert file_entry(tmp_path / "commits/o/n.parquet", tmp_path, 1) == entry


def test_without_a_root_the_entry_is_relative_to_the_folder(tmp_path: Path) -> None:
    assert write_rows(tmp_path / "a" / "n.parquet", [COMMIT], CommitRecord).path == "n.parquet"


def test_only_the_finished_file_stays_in_the_folder(tmp_path: Path) -> None:
    write_rows(tmp_path / "n.parquet", EXCLUSIONS, Exclusion)
    assert [path.name for path in tmp_path.iterdir()] == ["n.parquet"]


def test_files_are_zstd_with_page_checksums_and_bounded_row_groups(tmp_path: Path) -> None:
    numbers = pa.table({"n": pa.array(range(ROW_GROUP_ROWS + 1), pa.int64())})
    write_table(tmp_path / "n.parquet", numbers)
    with pq.ParquetFile(tmp_path / "n.parquet") as file:
        groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
        assert [group.num_rows for group in groups] == [ROW_GROUP_ROWS, 1]
        assert {group.column(0).compression for group in groups} == {"ZSTD"}


def test_an_empty_table_has_a_schema_and_no_row_group(tmp_path: Path) -> None:
    assert write_rows(tmp_path / "n.parquet", [], Exclusion).rows == 0
    with pq.ParquetFile(tmp_path / "n.parquet") as file:
        assert (file.num_row_groups, file.schema_arrow.names) == (0, COLUMNS)
    assert read_rows(tmp_path / "n.parquet", Exclusion) == []


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.none(), max_size=30), st.data())
def test_bytes_depend_on_rows_and_not_on_chunks(
    tmp_path_factory: pytest.TempPathFactory, values: list[str | None], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("chunks")
    cut = data.draw(st.integers(0, len(values)))
    whole = pa.table({"x": pa.array(values, pa.string())})
    parts = [pa.array(values[:cut], pa.string()), pa.array([], pa.string()), pa.array(values[cut:], pa.string())]
    chunked = pa.table({"x": pa.chunked_array(parts, pa.string())})
    sliced = pa.table({"x": pa.array(["before", *values, "behind"], pa.string())}).slice(1, len(values))
    digests = {write_table(folder / "t.parquet", table).sha256 for table in (whole, chunked, sliced)}
    assert len(digests) == 1
    assert read_table(folder / "t.parquet")["x"].to_pylist() == values


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        read_table(tmp_path / "gone.parquet")
    assert str(raised.value) == f"{tmp_path / 'gone.parquet'} is missing; run the same command again to make it anew"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all" * 20])
def test_a_file_that_is_no_parquet_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "it's broken.parquet"
    path.write_bytes(content)
    with pytest.raises(PipelineError) as raised:
        read_table(path)
    assert str(raised.value).startswith(f"{path} cannot be read (")
    assert str(raised.value).endswith("broken.parquet') and run again to make it anew")


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    write_rows(path, EXCLUSIONS, Exclusion)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(PipelineError, match="cannot be read"):
        read_rows(path, Exclusion)


def test_a_flipped_bit_in_the_data_is_an_error_and_no_wrong_row(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    write_rows(path, EXCLUSIONS, Exclusion)
    content = bytearray(path.read_bytes())
    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(0).column(0)
        content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(PipelineError, match="cannot be read"):
        read_rows(path, Exclusion)


def test_rows_of_another_schema_are_an_error(tmp_path: Path) -> None:
    write_rows(tmp_path / "n.parquet", EXCLUSIONS, Exclusion)
    with pytest.raises(PipelineError, match="holds other columns than CommitRecord has now; remove it"):
        read_rows(tmp_path / "n.parquet", CommitRecord)


def test_rows_of_another_schema_version_are_an_error(tmp_path: Path) -> None:
    table = to_table(EXCLUSIONS, Exclusion)
    metadata = {**table.schema.metadata, b"postquem.schema_version": b"0"}
    write_table(tmp_path / "n.parquet", table.replace_schema_metadata(metadata))
    with pytest.raises(PipelineError, match="holds other columns than Exclusion has now"):
        read_rows(tmp_path / "n.parquet", Exclusion)


def test_a_folder_named_like_a_hive_partition_adds_no_column(tmp_path: Path) -> None:
    path = tmp_path / "owner=x" / "year=2024" / "n.parquet"
    write_rows(path, EXCLUSIONS, Exclusion)
    assert read_table(path).column_names == COLUMNS


def full_disk(path: Path) -> None:
    """Make the kernel answer "no space left" to whoever writes the temporary file of `path` in this process."""
    path.with_name(f".tmp-{os.getpid()}-{path.name}").symlink_to("/dev/full")


def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    old = write_rows(path, EXCLUSIONS[:1], Exclusion)
    full_disk(path)
    with pytest.raises(PipelineError) as raised:
        write_rows(path, EXCLUSIONS, Exclusion)
    assert str(raised.value) == (
        f"cannot write {path}: the disk is full; free space and run again, finished work is kept"
    )
    assert [item.name for item in tmp_path.iterdir()] == ["n.parquet"]
    assert file_entry(path, tmp_path, 1) == old


def test_a_disk_that_fills_at_fsync_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(PipelineError, match="the disk is full"):
        write_text(tmp_path / "t.json", "{}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_an_unwritable_folder_is_named_with_what_to_do(tmp_path: Path, number: int) -> None:
    with pytest.raises(PipelineError) as raised, explain_os_errors(tmp_path / "n.parquet"):
        raise OSError(number, "refused")
    assert str(raised.value) == (
        f"cannot write {tmp_path / 'n.parquet'}: permission denied; make {tmp_path} writable and run again"
    )


def test_a_file_in_the_folders_place_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("in the way")
    with pytest.raises(PipelineError, match=r"cannot write .*n\.parquet: .*File exists"):
        write_rows(tmp_path / "table" / "n.parquet", EXCLUSIONS, Exclusion)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "n.parquet", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_null_in_a_required_column_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    table = pa.table([pa.array([None], pa.string())], schema=pa.schema([pa.field("x", pa.string(), nullable=False)]))
    with pytest.raises(PipelineError, match="the rows do not fit the columns"):
        write_table(tmp_path / "n.parquet", table)
    assert list(tmp_path.iterdir()) == []


def test_values_that_are_named_by_numbers_are_written_as_they_are(tmp_path: Path) -> None:
    plain = to_table([*EXCLUSIONS, *EXCLUSIONS[:1]], Exclusion)
    numbered = plain.set_column(
        0, pa.field("row_id", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        plain.column("row_id").dictionary_encode(),
    )  # fmt: skip
    write_table(tmp_path / "plain.parquet", plain)
    write_table(tmp_path / "numbered.parquet", numbered)
    assert (tmp_path / "numbered.parquet").read_bytes() == (tmp_path / "plain.parquet").read_bytes()


def test_some_columns_are_read(tmp_path: Path) -> None:
    write_rows(tmp_path / "n.parquet", EXCLUSIONS, Exclusion)
    columns = read_table(tmp_path / "n.parquet", ["reason", "row_id"]).to_pydict()
    assert columns == {
        "reason": [item.reason for item in EXCLUSIONS], "row_id": [item.row_id for item in EXCLUSIONS],
    }  # fmt: skip


def test_text_that_is_no_unicode_is_an_error_that_names_the_type(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="a row does not fit the columns of Exclusion"):
        write_rows(tmp_path / "n.parquet", [Exclusion("\udce9", "mine", "bad")], Exclusion)
    assert list(tmp_path.iterdir()) == []


def test_text_is_written_as_it_stands(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "t.txt", "é\r\n\n")
    assert (tmp_path / "a" / "t.txt").read_bytes() == b"\xc3\xa9\r\n\n"


def test_values_that_repeat_are_numbered_and_others_listed(tmp_path: Path) -> None:
    table = pa.table({"row_id": ["a", "b", "a"], "stage": ["s", "s", "t"], "detail": [None, "d", "d"]})
    write_table(tmp_path / "t.parquet", table, packing=NUMBERS)
    with pq.ParquetFile(tmp_path / "t.parquet") as file:
        columns = [file.metadata.row_group(0).column(place) for place in range(3)]
    assert [column.has_dictionary_page for column in columns] == [False, True, False]
    assert read_table(tmp_path / "t.parquet").equals(table)
    read = read_table(tmp_path / "t.parquet", ["stage", "detail"], numbered=("detail",))
    assert [str(kind) for kind in read.schema.types] == [
        "string",
        "dictionary<values=string, indices=int32, ordered=0>",
    ]
    assert read.to_pydict() == {"stage": ["s", "s", "t"], "detail": [None, "d", "d"]}
