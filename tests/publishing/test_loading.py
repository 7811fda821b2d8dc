"""Releases read back as users do: with `datasets` and with DuckDB."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # read when `datasets` is imported
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pytest
import yaml

from publishing import shards
from publishing.header import features, read_header
from publishing.release import write_release
from schemas.arrow import from_table, schema_of, to_table
from schemas.execution import RealCode
from schemas.records import CommitRecord, DataPoint, Exclusion
from tests.publishing.releases import ROW_TYPES, make_inputs, points, real_code_row, rows_by_testbed
from warehouse.tables import read_table

SHARD = "test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(make_inputs(), tmp_path_factory.mktemp("releases")).folder


def load(folder: Path, config: str | None, cache: Path, **options: object) -> datasets.Dataset:
    return datasets.load_dataset(str(folder), config, split="test", cache_dir=str(cache), **options)


@pytest.mark.parametrize("name", [name for name in ROW_TYPES if name != "summarization_gen"])
def test_every_testbed_loads_with_its_rows_and_types(folder: Path, tmp_path: Path, name: str) -> None:
    dataset = load(folder, name, tmp_path)
    assert dataset.features == datasets.Features.from_arrow_schema(schema_of(ROW_TYPES[name]))
    assert dataset.num_rows == len(rows_by_testbed(points())[name])
    assert dataset.to_list() == read_table(folder / name / SHARD).to_pylist()


def test_the_exclusions_load_too(folder: Path, tmp_path: Path) -> None:
    assert load(folder, "exclusions", tmp_path)["reason"][:] == ["near_duplicate", "moved", "bad_blob"]


def test_raw_data_is_the_default(folder: Path, tmp_path: Path) -> None:
    assert load(folder, None, tmp_path).num_rows == 6


def test_loaded_rows_are_the_very_rows(folder: Path, tmp_path: Path) -> None:
    dataset = load(folder, "raw_data", tmp_path)
    loaded = list(from_table(dataset.data.table, DataPoint))
    assert sorted(loaded, key=lambda row: row.row_id) == sorted(points(), key=lambda row: row.row_id)


def test_rows_with_structs_load_as_they_are(tmp_path: Path) -> None:
    rows = [real_code_row(point) for point in points()]
    inputs = make_inputs()
    inputs = replace(inputs, tables={**inputs.tables, "real_code": to_table(rows, RealCode)})
    folder = write_release(inputs, tmp_path).folder
    dataset = load(folder, "real_code", tmp_path / "cache")
    assert dataset.features == datasets.Features.from_arrow_schema(schema_of(RealCode))
    loaded = list(from_table(dataset.data.table, RealCode))
    assert sorted(loaded, key=lambda row: row.row_id) == sorted(rows, key=lambda row: row.row_id)
    with duckdb.connect() as connection:
        query = f"SELECT DISTINCT mocks[1].failing_tests[1], environment.python FROM '{folder}/real_code/*.parquet'"
        assert connection.execute(query).fetchall() == [('t.py::test_a[é "b"]', "3.12.1")]
    card = (folder / "README.md").read_text()
    assert (
        "| `mocks` | list of struct of kind (string), body (string), verdict (string), failing_tests (list of " in card
    )
    assert "`failing_tests`: Node ids of the tests that failed, sorted: of the covering tests, " in card


def test_streaming_gives_the_same_rows(folder: Path, tmp_path: Path) -> None:
    stream = load(folder, "random_cut", tmp_path, streaming=True)
    assert list(stream) == read_table(folder / "random_cut" / SHARD).to_pylist()


def test_only_configs_with_rows_are_offered(folder: Path) -> None:
    assert datasets.get_dataset_config_names(str(folder)) == [*list(ROW_TYPES)[:-1], "exclusions"]


def test_a_config_without_rows_is_refused_with_the_names_of_the_others(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"BuilderConfig 'summarization_gen' not found\. Available: "):
        load(folder, "summarization_gen", tmp_path)


def test_datasets_still_cannot_load_a_split_without_rows(folder: Path, tmp_path: Path) -> None:
    """The reason why the card leaves such configs out: let them in when this test fails."""
    release = tmp_path / "release"
    (release / "empty").mkdir(parents=True)
    (release / "empty" / SHARD).write_bytes((folder / "summarization_gen" / SHARD).read_bytes())
    header = {"configs": [{"config_name": "empty", "data_files": [{"split": "test", "path": "empty/test-*.parquet"}]}]}
    (release / "README.md").write_text(f"---\n{yaml.safe_dump(header)}---\n")
    with pytest.raises(ValueError, match="corresponds to no data"):
        load(release, "empty", tmp_path / "cache")


def test_sizes_in_the_card_are_what_datasets_measures(folder: Path, tmp_path: Path) -> None:
    for info in read_header(folder)["dataset_info"]:
        files = str(folder / info["config_name"] / "*.parquet")
        measured = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path)).info
        assert info["splits"][0]["num_bytes"] == measured.splits["train"].num_bytes
        assert info["dataset_size"] == measured.dataset_size
        assert info["download_size"] == measured.download_size


@pytest.mark.parametrize("row_type", [*ROW_TYPES.values(), RealCode, Exclusion, CommitRecord])
def test_features_are_written_as_datasets_writes_them(row_type: type) -> None:
    schema = schema_of(row_type)
    assert features(schema) == datasets.Features.from_arrow_schema(schema)._to_yaml_list()


def test_a_config_of_several_shards_loads_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 1_300)
    folder = write_release(make_inputs(), tmp_path).folder
    files = sorted((folder / "raw_data").iterdir())
    assert len(files) == 3
    expected = [row_id for path in files for row_id in read_table(path)["row_id"].to_pylist()]
    assert load(folder, "raw_data", tmp_path / "cache")["row_id"][:] == expected


def test_a_moved_release_still_loads(folder: Path, tmp_path: Path) -> None:
    copy = write_release(make_inputs(), tmp_path / "first").folder.rename(tmp_path / "elsewhere")
    assert load(copy, "raw_data", tmp_path / "cache").to_list() == read_table(folder / "raw_data" / SHARD).to_pylist()


def test_duckdb_reads_every_config_with_the_cards_pattern(folder: Path) -> None:
    with duckdb.connect() as connection:
        counts = {
            name: connection.execute(
                "SELECT count(*) FROM read_parquet(?)", [f"{folder}/{name}/test-*.parquet"]
            ).fetchall()
            for name in [*ROW_TYPES, "exclusions"]
        }
    assert {name: rows[0][0] for name, rows in counts.items()} == {
        **{name: len(rows) for name, rows in rows_by_testbed(points()).items()},
        "exclusions": 3,
    }


def test_duckdb_reads_the_cards_own_query(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    query = (folder / "README.md").read_text().split("```sql\n", 1)[1].split("\n```", 1)[0]
    with duckdb.connect() as connection:
        rows = connection.execute(query).fetchall()
    table = to_table(points(), DataPoint)
    assert len(rows) == 5
    assert set(rows) < set(zip(*(table[name].to_pylist() for name in ("repo", "fun_name", "code")), strict=True))


def snippets(folder: Path) -> list[str]:
    """The card's Python that a user runs: how to load, how to filter."""
    blocks = (folder / "README.md").read_text().split("```python\n")[1:]
    code = [block.split("\n```", 1)[0] for block in blocks]
    return [text for text in code if text.startswith("from datas") or text.startswith("from datetime")]


def test_the_cards_own_python_loads_and_filters(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    load_code, filter_code = snippets(folder)
    names: dict[str, Any] = {}
    exec(load_code.replace("<this folder or its id on the Hub>", str(folder)), names)
    assert names["rows"].num_rows == 6
    exec(filter_code, names)
    cutoff = datetime(2024, 2, 28, tzinfo=UTC)
    expected = [row.row_id for row in points() if min(row.author_date, row.committer_date) >= cutoff]
    assert sorted(names["rows"]["row_id"][:]) == sorted(expected)
    assert 0 < len(expected) < 6
