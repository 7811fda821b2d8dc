"""`croissant.json`: valid, loadable with the library of the format's makers, and the same as the files' schemas."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from publishing import shards
from publishing.croissant import CROISSANT_NAME, render_croissant
from publishing.facts import read_facts
from publishing.manifest import MANIFEST_NAME, read_manifest
from publishing.release import write_release
from schemas.arrow import schema_of
from schemas.execution import RealCode
from tests.publishing.sound import CONFIG, make_inputs, points, write_sound_release
from warehouse.tables import read_table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library's own libraries


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="module")
def values(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / CROISSANT_NAME).read_text()))


def test_nothing_is_amiss_not_even_what_is_only_recommended(folder: Path) -> None:
    dataset = mlcroissant.Dataset(str(folder / CROISSANT_NAME))
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == set()


def test_the_data_set_is_described(values: dict[str, Any]) -> None:
    rest = {name: item for name, item in values.items() if name not in ("@context", "distribution", "recordSet")}
    assert rest.pop("citeAs").startswith("@misc{shapes,\n  title = {shapes},\n")
    assert rest == {
        "@type": "sc:Dataset",
        "name": "shapes",
        "description": "Benchmarks for code models, made of 5 Python functions and methods that commits dated at or "
        "after 2024-01-01T00:00:00+00:00 brought to 1 repositories.",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "keywords": ["code", "python", "benchmark", "code generation", "data contamination"],
        "license": ["https://spdx.org/licenses/MIT"],
        "version": "2024.12.31",
        "datePublished": "2024-12-31",
        "isLiveDataset": False,
        "rai:dataCollection": "Mined from the git histories of the repositories that manifest.json names, by program.",
        "rai:dataUseCases": rest["rai:dataUseCases"],
        "rai:dataLimitations": "See the section Limits of README.md.",
        "rai:personalSensitiveInformation": "Commit messages stand as they were written, names and e-mail addresses in "
        "trailers included: 0 rows have a message with an address.",
    }
    assert [text.partition(":")[0] for text in rest["rai:dataUseCases"]] == [*CONFIG.testbeds.names, "exclusions"]


def test_every_file_is_listed_with_its_hash(folder: Path, values: dict[str, Any]) -> None:
    listed = [item for item in values["distribution"] if item["@type"] == "cr:FileObject"]
    expected = [entry for entry in read_manifest(folder / MANIFEST_NAME).files if entry.rows is not None]
    assert sorted((item["contentUrl"], item["sha256"], item["contentSize"]) for item in listed) == [
        (entry.path, entry.sha256, f"{entry.bytes} B") for entry in expected
    ]


def test_columns_are_fields_with_their_types_and_meanings(values: dict[str, Any]) -> None:
    fields = {item["@id"]: item for record_set in values["recordSet"] for item in record_set["field"]}
    assert fields["raw_data/parent_id"] == {
        "@type": "cr:Field",
        "@id": "raw_data/parent_id",
        "name": "parent_id",
        "description": "First parent, null for a root commit.",
        "dataType": "sc:Text",
        "source": {"fileSet": {"@id": "files-raw_data"}, "extract": {"column": "parent_id"}},
    }
    kinds = {fields[f"raw_data/{name}"]["dataType"] for name in ("nloc", "is_test", "committer_date")}
    assert kinds == {"sc:Integer", "sc:Boolean", "sc:DateTime"}
    assert fields["raw_data/doc_language_confidence"]["dataType"] == "sc:Float"
    assert (fields["raw_data/license_matches"]["isArray"], fields["raw_data/license_matches"]["arrayShape"]) == (
        True,
        "-1",
    )
    mocks = fields["real_code/mocks"]
    assert mocks["isArray"]
    assert mocks["subField"][0]["source"] == {
        "fileSet": {"@id": "files-real_code"},
        "extract": {"column": "mocks"},
        "transform": {"jsonPath": "kind"},
    }
    [record_set] = [item for item in values["recordSet"] if item["name"] == "real_code"]
    assert [item["name"] for item in record_set["field"]] == schema_of(RealCode).names
    assert record_set["key"] == {"@id": "real_code/row_id"}


def test_records_of_several_shards_are_the_rows_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 2_000)
    folder = write_sound_release(tmp_path)
    files = sorted((folder / "raw_data").iterdir())
    assert len(files) > 1
    records = mlcroissant.Dataset(str(folder / CROISSANT_NAME)).records("raw_data")
    expected = [row_id for path in files for row_id in read_table(path)["row_id"].to_pylist()]
    assert [record["raw_data/row_id"].decode() for record in records] == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2026.01.05.2", {"version": "2026.1.5+2", "datePublished": "2026-01-05"}),
        ("1.2.0", {"version": "1.2.0"}),
        ("quickstart", {}),
    ],
)
def test_versions_are_semantic_ones_or_left_out(folder: Path, version: str, expected: dict[str, str]) -> None:
    manifest = replace(read_manifest(folder / MANIFEST_NAME), version=version)
    values = json.loads(render_croissant(read_facts(folder), manifest))
    assert {name: values[name] for name in ("version", "datePublished") if name in values} == expected


def test_licences_are_addresses_or_expressions(tmp_path: Path) -> None:
    names = ["MIT", "MIT OR Apache-2.0", "LicenseRef-Own", None]
    rows = [replace(point, license=name) for point, name in zip(points(), names, strict=False)]
    folder = write_release(make_inputs(rows), tmp_path).folder
    assert json.loads((folder / CROISSANT_NAME).read_text())["license"] == [
        "LicenseRef-Own", "https://spdx.org/licenses/MIT", "MIT OR Apache-2.0",
    ]  # fmt: skip
    nameless = [replace(point, license=None) for point in points()]
    folder = write_release(make_inputs(nameless), tmp_path / "nameless").folder
    assert json.loads((folder / CROISSANT_NAME).read_text())["license"] == [
        "https://choosealicense.com/no-permission/"
    ]  # fmt: skip
