"""Every check of a release finds the fault that is planted in a copy, and nothing in the release itself."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from publishing.check import CHECKS, check_release
from publishing.checking import CheckResult, Fault
from publishing.croissant import CROISSANT_NAME
from publishing.harness.export import PROMPTS_NAME
from publishing.header import CARD_NAME
from publishing.manifest import MANIFEST_NAME, read_manifest
from publishing.notice import NOTICE_NAME
from publishing.withdrawn import tombstone, with_tombstones
from schemas.errors import ConfigError
from tests.publishing.sound import (
    CODE_VERSION,
    change_manifest,
    change_rows,
    points,
    refresh,
    shard,
    write_sound_release,
)
from warehouse.tables import read_table, write_table

MEAN, PLACE, EMPTY, PARSE, ANGLE = (point.row_id for point in points())
OUTSIDE = ("croissant", "duckdb", "datasets")  # take seconds to load: planted for on their own
DOCUMENTS = ("card",)  # looked at only where they are planted for: writing a card takes a while
CHEAP = [name for name in CHECKS if name not in OUTSIDE]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def test_the_release_itself_has_no_fault_and_every_row_is_looked_at(sound: Path) -> None:
    results = check_release(sound, CODE_VERSION)
    assert [(result.name, result.looked_at, result.faults, result.note) for result in results] == [
        ("files", 24, (), ""), ("schema", 41, (), ""), ("manifest", 9, (), ""), ("funnel", 26, (), ""),
        ("order", 41, (), ""), ("ids", 25, (), ""), ("keys", 20, (), ""), ("dates", 25, (), ""),
        ("novelty", 25, (), ""), ("licences", 25, (), ""), ("features", 5, (), ""), ("splicing", 20, (), ""),
        ("duplicates", 5, (), ""), ("card", 1, (), ""), ("croissant", 41, (), ""), ("tasks", 25, (), ""),
        ("duckdb", 41, (), ""), ("datasets", 41, (), ""),
    ]  # fmt: skip


def edit(config: str, row_id: str, /, **values: object) -> Callable[[Path], None]:
    """Return what gives a row of a config other values."""

    def change(rows: Rows) -> None:
        [row] = [row for row in rows if row["row_id"] == row_id]
        row |= values

    return lambda folder: change_rows(folder, config, change)


def append_bytes(folder: Path) -> None:
    path = shard(folder, "raw_data")
    path.write_bytes(path.read_bytes() + b"x")


def drop_file(folder: Path) -> None:
    shard(folder, "exclusions").unlink()


def swap_rows(folder: Path) -> None:
    change_rows(folder, "raw_data", lambda rows: rows.reverse())


def repeat_row(folder: Path) -> None:
    change_rows(folder, "exclusions", lambda rows: rows.append(rows[-1]))


def twice(folder: Path) -> None:
    change_rows(folder, "random_cut", lambda rows: rows.insert(1, rows[0]))


def lose_row(folder: Path) -> None:
    change_rows(folder, "commit_gen", lambda rows: rows.pop())


def other_type(folder: Path) -> None:
    path = shard(folder, "raw_data_docstring")
    table = read_table(path)
    index = table.schema.get_field_index("nloc")
    write_table(path, table.set_column(index, "nloc", table["nloc"].cast(pa.int16())))
    refresh(folder)


def copy_function(folder: Path) -> None:
    """Put one function's code in another's place, with one word changed."""
    code = next(point.code for point in points() if point.row_id == MEAN)
    edit("raw_data", PARSE, code=code.replace("total / len", "total // len"))(folder)


def edit_card(folder: Path) -> None:
    path = folder / CARD_NAME
    path.write_text(path.read_text().replace("distinct rows from", "splendid rows from"))
    refresh(folder)


def edit_header(folder: Path) -> None:
    path = folder / CARD_NAME
    path.write_text(path.read_text().replace("num_examples: 5", "num_examples: 6", 1))
    refresh(folder)


def give_other_prompt(folder: Path) -> None:
    path = folder / PROMPTS_NAME
    described = json.loads(path.read_text())
    described["tasks"]["random_cut"]["assigned"][MEAN] += 1
    path.write_text(json.dumps(described))
    refresh(folder)


def edit_task(folder: Path) -> None:
    path = folder / "lm_eval" / "postquem_random_cut.yaml"
    path.write_text(path.read_text().replace("1024", "16"))
    refresh(folder)


def set_funnel(folder: Path) -> None:
    funnel = read_manifest(folder / MANIFEST_NAME).funnel
    change_manifest(folder, funnel=(replace(funnel[0], rows_in=3), *funnel[1:]))


def set_threshold(folder: Path) -> None:
    manifest = read_manifest(folder / MANIFEST_NAME)
    change_manifest(folder, config=manifest.config | {"dedup": manifest.config["dedup"] | {"threshold": 0.8}})


def one_file_more(folder: Path) -> None:
    (folder / "notes.txt").write_text("not ours")


LATE = datetime(2025, 1, 1, tzinfo=UTC)
EARLY = datetime(2023, 12, 31, 23, 59, tzinfo=UTC)
SHARD = "test-00000-of-00001.parquet"
Planted = tuple[Callable[[Path], None], dict[str, int], str, Fault]
# How it is planted, the number of faults of every check that sees it, and the first fault of the one it is meant for.
PLANTED: dict[str, Planted] = {
    "a byte more": (
        append_bytes, {"files": 1, "schema": 1}, "schema",
        Fault("raw_data", f"raw_data/{SHARD} cannot be read (Parquet magic bytes not found..."),
    ),
    "a file less": (
        drop_file, {"files": 1, "schema": 1}, "files", Fault(f"exclusions/{SHARD}", "is missing"),
    ),
    "a file more": (one_file_more, {"files": 1}, "files", Fault("notes.txt", "is not in the manifest")),
    "a column of another type": (
        other_type, {"schema": 1}, "schema", Fault("raw_data_docstring", "column nloc has type int16, not int64"),
    ),
    "rows swapped": (
        swap_rows, {"order": 1}, "order", Fault("raw_data", "row 1 of 5 is out of order", PARSE),
    ),
    "an exclusion twice": (
        repeat_row, {"funnel": 1}, "funnel",
        Fault("exclusions", "2 rows of testbed_with_docstring with trivial_body, the funnel has 1"),
    ),
    "a row twice": (
        twice, {"funnel": 1, "ids": 1}, "ids", Fault("random_cut", "this row id occurs more than once", MEAN),
    ),
    "a row lost": (
        lose_row, {"funnel": 1, "keys": 1}, "keys", Fault("commit_gen", "is neither here nor in the exclusions", ANGLE),
    ),
    "a row id of another place": (
        edit("raw_data", EMPTY, row_id="f" * 32), {"ids": 1, "keys": 7}, "ids",
        Fault("raw_data", "the row id is not that of repository, commit, path, name and place", "f" * 32),
    ),
    "an unknown repository": (
        edit("raw_data", ANGLE, repo="example/unknown"), {"ids": 1, "keys": 7}, "ids",
        Fault("raw_data", "its repository example/unknown is not in the manifest", ANGLE),
    ),
    "another value in a testbed": (
        edit("with_docstring", MEAN, nloc=77), {"keys": 1}, "keys",
        Fault("with_docstring", "nloc is another than in raw_data", MEAN),
    ),
    "a date behind the window": (
        edit("raw_data", ANGLE, committer_date=LATE), {"dates": 1, "keys": 7}, "dates",
        Fault("raw_data", "dated 2025-01-01T00:00:00+00:00, not before 2025-01-01T00:00:00+00:00", ANGLE),
    ),
    "a date before the window": (
        edit("raw_data", EMPTY, author_date=EARLY), {"dates": 1}, "dates",
        Fault("raw_data", "dated 2023-12-31T23:59:00+00:00, before 2024-01-01T00:00:00+00:00", EMPTY),
    ),
    "a class that nobody asked for": (
        edit("raw_data", EMPTY, novelty="moved"), {"novelty": 1}, "novelty",
        Fault("raw_data", "class moved; wanted: added", EMPTY),
    ),
    "a licence that is not allowed": (
        edit("raw_data", EMPTY, license="GPL-3.0-only"), {"licences": 1}, "licences",
        Fault("raw_data", "license_not_allowed: GPL-3.0-only", EMPTY),
    ),
    "a feature miscounted": (
        edit("raw_data", EMPTY, complexity=2), {"features": 1}, "features",
        Fault("raw_data", "complexity is not what its code gives", EMPTY),
    ),
    "a cut that loses a character": (
        edit("random_cut", MEAN, target="x"), {"splicing": 1}, "splicing",
        Fault("random_cut", "prefix + target is not code without docstring", MEAN),
    ),
    "a cut elsewhere than stated": (
        edit("with_docstring", MEAN, cut_byte=3), {"splicing": 1}, "splicing",
        Fault("with_docstring", "cut_byte is not the length of prefix", MEAN),
    ),
    "a body that is not the function's": (
        edit("from_docstring", MEAN, target="    return 1"), {"splicing": 1}, "splicing",
        Fault("from_docstring", "prompt_code + target is not code", MEAN),
    ),
    "a summary of something else": (
        edit("summarization_gen", MEAN, target="Nothing."), {"splicing": 1}, "splicing",
        Fault("summarization_gen", "target is not the docstring", MEAN),
    ),
    "a diff of another file": (
        edit("commit_gen", ANGLE, diff="@@ -0,0 +1 @@\n+x = 1\n"), {"splicing": 1}, "splicing",
        Fault("commit_gen", "the diff shows no line of the code", ANGLE),
    ),
    "a solution that is not the function's": (
        edit("real_code", ANGLE, canonical_solution="    return 0"), {"splicing": 1}, "splicing",
        Fault("real_code", "the function in the file is not code", ANGLE),
    ),
    "a copy": (
        copy_function, {"keys": 2, "features": 15, "duplicates": 1}, "duplicates",
        Fault("raw_data", f"similar to {MEAN}: 0.9333333333333333", PARSE),
    ),
    "a card that says something else": (
        edit_card, {"card": 1}, "card", Fault(CARD_NAME, "says something else than files and manifest give"),
    ),
    "a header with another count": (
        edit_header, {"card": 1}, "card", Fault(CARD_NAME, "README.md is wrong about the splits of raw_data: it..."),
    ),
    "a funnel that loses a row": (
        set_funnel, {"funnel": 1}, "funnel", Fault("files", "3 rows in, but 1 out and 1 left out"),
    ),
    "another prompt": (
        give_other_prompt, {"tasks": 1}, "tasks",
        Fault(PROMPTS_NAME, "has not the prompt of random_cut that the seed gives", MEAN),
    ),
    "a task file edited": (
        edit_task, {"tasks": 1}, "tasks",
        Fault("lm_eval/postquem_random_cut.yaml", "is not the file of this version"),
    ),
    "a configuration edited afterwards": (
        set_threshold, {"manifest": 1}, "manifest", Fault(MANIFEST_NAME, "config_digest is not that of config"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(folder: Path, name: str) -> None:
    plant, counts, check, expected = PLANTED[name]
    plant(folder)
    names = [name for name in CHEAP if name not in DOCUMENTS or name == check]
    found = {result.name: result.faults for result in check_release(folder, CODE_VERSION, names) if result.faults}
    assert {name: len(faults) for name, faults in found.items()} == counts
    first = found[check][0]
    if expected.text.endswith("..."):  # the rest is another library's, or a size
        first = replace(first, text=first.text[: len(expected.text) - 3] + "...")
    assert first == expected


def test_faults_are_planted_for_every_check() -> None:
    assert {check for _, _, check, _ in PLANTED.values()} == set(CHEAP)


def test_others_libraries_are_asked_what_they_load(folder: Path) -> None:
    change_rows(folder, "raw_data", lambda rows: rows.pop())
    change_manifest(folder, rows=read_manifest(folder / MANIFEST_NAME).rows | {"raw_data": 5})
    (folder / CARD_NAME).write_text(
        (folder / CARD_NAME).read_text().replace("config_name: commit_gen", "config_name: x")
    )
    croissant = folder / CROISSANT_NAME
    croissant.write_text(croissant.read_text().replace('"column": "nloc"', '"column": "complexity"'))
    records, duckdb, datasets = check_release(folder, CODE_VERSION, OUTSIDE)
    assert [(fault.where, fault.text) for fault in records.faults][:2] == [
        (CROISSANT_NAME, "says something else than files and manifest give"),
        ("raw_data", "mlcroissant gives other values"),
    ]
    assert duckdb.faults == (Fault("raw_data", "DuckDB counts 4 rows, the manifest 5"),)
    assert [fault.where for fault in datasets.faults] == ["raw_data", "commit_gen"]
    assert "BuilderConfig 'commit_gen' not found" in datasets.faults[1].text


def test_a_croissant_file_that_is_not_valid_is_a_fault(folder: Path) -> None:
    path = folder / CROISSANT_NAME
    path.write_text(
        path.read_text().replace('"conformsTo": "http://mlcommons.org/croissant/1.1",', '"conformsTo": "x",')
    )
    [invalid] = check_release(folder, CODE_VERSION, ["croissant"])
    assert invalid.faults[1].text.startswith("is not valid: ")
    path.write_text("{")
    [broken] = check_release(folder, CODE_VERSION, ["croissant"])
    assert [fault.where for fault in broken.faults] == [CROISSANT_NAME]
    path.unlink()
    [missing] = check_release(folder, CODE_VERSION, ["croissant"])
    assert missing.faults == (Fault(CROISSANT_NAME, "[Errno 2] No such file or directory: 'croissant.json'"),)


def test_withdrawn_versions_that_the_hub_lists_in_the_card_are_no_fault(folder: Path) -> None:
    path = folder / CARD_NAME
    path.write_text(with_tombstones(path.read_text(), [tombstone("2026.1", date(2026, 2, 1), "asked for")]))
    assert [result.faults for result in check_release(folder, CODE_VERSION, ["files", "card"])] == [(), ()]
    path.write_text(path.read_text().replace("distinct rows from", "splendid rows from"))
    assert [len(result.faults) for result in check_release(folder, CODE_VERSION, ["files", "card"])] == [1, 1]


def test_a_notice_that_says_something_else_is_a_fault(folder: Path) -> None:
    path = folder / NOTICE_NAME
    path.write_text(path.read_text().replace("Ada Author", "Eve Editor"))
    [result] = check_release(folder, CODE_VERSION, ["card"])
    assert result.faults == (Fault(NOTICE_NAME, "says something else than files and manifest give"),)
    path.unlink()
    [result] = check_release(folder, CODE_VERSION, ["card"])
    assert [fault.where for fault in result.faults] == [CARD_NAME]


def test_a_card_of_another_version_is_compared_by_its_header(folder: Path) -> None:
    [result] = check_release(folder, "0.2.0+87654321", ["card"])
    assert result == CheckResult("card", 1, (), "made by 0.1.0+12345678, so the text is not written again to compare")


def test_what_is_no_release_is_a_configuration_error(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing is no folder; name a release"):
        check_release(tmp_path / "nothing", CODE_VERSION)
    with pytest.raises(ConfigError, match=r"is no release: manifest\.json cannot be read \(No such file"):
        check_release(tmp_path, CODE_VERSION)
    manifest = json.loads((folder / MANIFEST_NAME).read_text())
    del manifest["funnel"]
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=r"is no manifest of this version of Postquem \(KeyError\('funnel'\)\)"):
        check_release(folder, CODE_VERSION)


def only(folder: Path, name: str) -> CheckResult:
    [result] = check_release(folder, CODE_VERSION, [name])
    return result


def set_config(folder: Path, section: str, **values: object) -> None:
    config = read_manifest(folder / MANIFEST_NAME).config
    change_manifest(folder, config=config | {section: config[section] | values})


def test_code_without_a_known_licence_is_a_fault_where_one_is_asked_for(folder: Path) -> None:
    edit("raw_data", EMPTY, license=None, license_matches=["README: something"])(folder)
    assert only(folder, "licences").faults == ()
    set_config(folder, "licences", unknown="exclude")
    assert only(folder, "licences").faults == (Fault("raw_data", "license_unknown: README: something", EMPTY),)
    set_config(folder, "licences", allow=["0BSD"])
    assert [fault.text for fault in only(folder, "licences").faults].count("license_not_allowed: MIT") == 24


def test_the_verdict_of_another_python_is_not_compared(folder: Path) -> None:
    edit("raw_data", EMPTY, parses=False)(folder)
    assert only(folder, "features").faults == (Fault("raw_data", "parses is not what its code gives", EMPTY),)
    change_manifest(folder, python_version="3.99.0")
    assert only(folder, "features") == CheckResult(
        "features", 5, (), "`parses` is the verdict of CPython 3.99.0, which is another"
    )


def test_code_that_is_no_definition_is_one_fault_not_the_end(folder: Path) -> None:
    edit("raw_data", EMPTY, code="x = 1")(folder)
    edit("random_cut", MEAN, code="x = 1")(folder)
    assert only(folder, "features").faults == (
        Fault("raw_data", "code (no_definition) is not what its code gives", EMPTY),
    )
    assert [fault.text.partition(":")[0] for fault in only(folder, "splicing").faults] == ["cannot be read"]
    assert only(folder, "duplicates").faults == ()


def test_equal_rows_are_named_docstrings_apart(folder: Path) -> None:
    code = next(point.code for point in points() if point.row_id == MEAN)
    edit("raw_data", PARSE, code=code.replace("Return the mean", "Give the mean"))(folder)
    assert only(folder, "duplicates").faults == (Fault("raw_data", f"equals {MEAN}, docstring apart", PARSE),)


def test_rows_may_resemble_those_of_an_earlier_release_that_stay(folder: Path) -> None:
    copy_function(folder)
    set_config(folder, "dedup", keep="reference")
    assert only(folder, "duplicates").note == (
        'with dedup.keep = "reference" rows that an earlier release holds stay, whatever they resemble'
    )


def test_another_tokenizer_cannot_tell_duplicates(folder: Path) -> None:
    change_manifest(folder, tokenizer_sha256="0" * 64)
    result = only(folder, "duplicates")
    assert (result.looked_at, [fault.where for fault in result.faults]) == (0, [MANIFEST_NAME])


def test_without_raw_data_there_is_nothing_to_compare_testbeds_with(folder: Path) -> None:
    rows = dict(read_manifest(folder / MANIFEST_NAME).rows)
    del rows["raw_data"]
    change_manifest(folder, rows=rows)
    assert only(folder, "keys") == CheckResult("keys", 0, (), "there is no raw_data to compare with")
    assert only(folder, "dates").looked_at == 20


def test_a_gap_between_shards_is_a_fault(folder: Path) -> None:
    path = shard(folder, "raw_data")
    path.rename(path.with_name("test-00001-of-00002.parquet"))
    refresh(folder)
    assert only(folder, "order").faults == (Fault("raw_data", "its shards are not numbered from 00000 on"),)


def test_columns_that_are_missing_more_or_null_are_told(folder: Path) -> None:
    path = shard(folder, "raw_data")
    table = read_table(path)
    nulls = pa.array([None] * 5, pa.int64())
    index = table.schema.get_field_index("nloc")
    metadata = table.schema.metadata
    for changed, text in (
        (table.drop_columns(["nloc"]), "column nloc of DataPoint is missing"),
        (table.append_column("extra", nulls), "column extra is none of DataPoint"),
        (table.set_column(index, pa.field("nloc", pa.int64()), nulls), "column nloc is null in 5 rows"),
        (table.replace_schema_metadata(metadata | {b"postquem.schema_version": b"0"}),
         "the order of columns or the schema's metadata is not that of DataPoint"),
    ):  # fmt: skip
        write_table(path, changed)
        assert only(folder, "schema").faults == (Fault("raw_data", text),)
