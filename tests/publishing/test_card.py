import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from publishing.card import render_card
from publishing.columns import column_docs
from publishing.facts import read_facts
from publishing.header import check_card, features, header, read_header
from publishing.manifest import make_manifest
from publishing.release import write_release
from schemas.arrow import schema_of, to_table
from schemas.config import TESTBEDS, LicencesConfig, UnknownLicence
from schemas.errors import PipelineError
from schemas.records import CommitRecord, DataPoint, Exclusion, RepositoryRecord, StageReport
from tests.builders import make_point
from tests.publishing.releases import ROW_TYPES, make_inputs, points, with_release
from warehouse.tables import write_rows, write_table

SHARD = "test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(make_inputs(), tmp_path_factory.mktemp("releases")).folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "copy")


def section(card: str, title: str) -> str:
    return card.split(f"\n## {title}\n\n", 1)[1].split("\n\n## ", 1)[0].rstrip("\n")


def card_of(tmp_path: Path, rows: list[DataPoint], **overrides: Any) -> str:  # noqa: ANN401 - as fields
    return (write_release(make_inputs(rows, **overrides), tmp_path).folder / "README.md").read_text()


# -- header


def test_the_header_lists_loadable_configs_and_leaves_out_the_empty_one(folder: Path) -> None:
    values = read_header(folder)
    loadable = [*TESTBEDS[:-1], "exclusions"]
    assert [config["config_name"] for config in values["configs"]] == loadable
    assert [info["config_name"] for info in values["dataset_info"]] == loadable
    assert values["configs"][0] == {
        "config_name": "raw_data",
        "data_files": [{"split": "test", "path": "raw_data/test-*.parquet"}],
        "default": True,
    }
    assert [config.get("default", False) for config in values["configs"][1:]] == [False] * 6


def test_the_header_tells_title_licence_languages_tasks_size_and_tags(folder: Path) -> None:
    values = read_header(folder)
    assert {key: values[key] for key in values if key not in ("configs", "dataset_info")} == {
        "pretty_name": "shapes",
        "license": "other",
        "license_name": "each-row-names-its-own",
        "language": ["code", "en"],
        "task_categories": ["text-generation"],
        "size_categories": ["n<1K"],
        "tags": ["code", "python", "benchmark", "code-generation", "code-completion", "data-contamination"],
    }


def test_rows_and_sizes_are_those_of_the_files(folder: Path) -> None:
    info = {entry["config_name"]: entry for entry in read_header(folder)["dataset_info"]}
    assert {name: entry["splits"][0]["num_examples"] for name, entry in info.items()} == {
        "raw_data": 6,
        "raw_data_docstring": 5,
        "random_cut": 4,
        "with_docstring": 2,
        "from_docstring": 1,
        "commit_gen": 6,
        "exclusions": 3,
    }
    for name, entry in info.items():
        assert entry["download_size"] == (folder / name / SHARD).stat().st_size
        assert entry["dataset_size"] == entry["splits"][0]["num_bytes"]


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        (["MIT"], {"license": "mit"}),
        (["BSD-3-Clause", "BSD-3-Clause"], {"license": "bsd-3-clause"}),
        (["MIT OR Apache-2.0"], {"license": "other", "license_name": "mit-or-apache-2.0"}),
        (["MIT", None], {"license": "other", "license_name": "each-row-names-its-own"}),
        ([None], {"license": "other", "license_name": "each-row-names-its-own"}),
        ([], {"license": "other", "license_name": "each-row-names-its-own"}),
    ],
)
def test_licence_of_the_header(tmp_path: Path, licenses: list[str | None], expected: dict[str, str]) -> None:
    rows = [make_point(fun_name=f"f{index}", license=license) for index, license in enumerate(licenses)]
    write_rows(tmp_path / "raw_data" / SHARD, rows, DataPoint)
    values = yaml.safe_load(header(read_facts(tmp_path), "x").strip("-\n"))
    assert {key: value for key, value in values.items() if key.startswith("license")} == expected


@pytest.mark.parametrize(
    ("rows", "category"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (123_456, "100K<n<1M"),
        (10**6, "1M<n<10M"),
        (10**9, "100M<n<1B"),
    ],
)
def test_size_categories(tmp_path: Path, rows: int, category: str) -> None:
    facts = replace(read_facts(tmp_path), rows=rows)
    assert f"size_categories:\n- {category}\n" in header(facts, "x")


def test_docstring_languages_below_one_percent_are_not_named(tmp_path: Path) -> None:
    facts = replace(read_facts(tmp_path), by_doc_language={"en": 981, "de": 10, "la": 9})
    assert yaml.safe_load(header(facts, "x").strip("-\n"))["language"] == ["code", "en", "de"]


def test_a_title_with_yaml_in_it_stays_a_title(tmp_path: Path) -> None:
    text = header(read_facts(tmp_path), "x: [y]\n---\nlicense: mit")
    assert (
        yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))["pretty_name"] == "x: [y]\n---\nlicense: mit"
    )


def test_a_type_that_the_card_cannot_describe_is_refused() -> None:
    with pytest.raises(PipelineError, match="column excluded_by_reason has the type map"):
        features(schema_of(StageReport))


def test_lists_and_scalars_are_described() -> None:
    assert features(schema_of(CommitRecord)) == [
        {"name": "repo", "dtype": "string"},
        {"name": "commit_id", "dtype": "string"},
        {"name": "parent_ids", "list": "string"},
        {"name": "author_date", "dtype": "timestamp[us, tz=UTC]"},
        {"name": "committer_date", "dtype": "timestamp[us, tz=UTC]"},
        {"name": "commit_message", "dtype": "string"},
        {"name": "author_is_bot", "dtype": "bool"},
    ]


# -- the check


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    values = read_header(folder)
    change(values)
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(values, sort_keys=False)}---\n\ntext\n")


def set_rows(values: dict[str, Any]) -> None:
    values["dataset_info"][0]["splits"][0]["num_examples"] = 7


def set_dtype(values: dict[str, Any]) -> None:
    values["dataset_info"][0]["features"][2]["dtype"] = "string"


def swap_columns(values: dict[str, Any]) -> None:
    values["dataset_info"][0]["features"].reverse()


def drop_column(values: dict[str, Any]) -> None:
    values["dataset_info"][1]["features"].pop()


def set_download(values: dict[str, Any]) -> None:
    values["dataset_info"][0]["download_size"] += 1


def set_bytes(values: dict[str, Any]) -> None:
    values["dataset_info"][0]["dataset_size"] += 1


def drop_config(values: dict[str, Any]) -> None:
    values["configs"].pop(2)


def drop_info(values: dict[str, Any]) -> None:
    values["dataset_info"].pop(2)


def drop_all(values: dict[str, Any]) -> None:
    values.clear()


def set_pattern(values: dict[str, Any]) -> None:
    values["configs"][0]["data_files"][0]["path"] = "commit_gen/test-*.parquet"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (set_rows, "splits of raw_data"),
        (set_dtype, "features of raw_data"),
        (swap_columns, "features of raw_data"),
        (drop_column, "features of raw_data_docstring"),
        (set_download, "download_size of raw_data"),
        (set_bytes, "dataset_size of raw_data"),
        (drop_config, "configs"),
        (drop_info, "configs"),
        (drop_all, "configs"),
        (set_pattern, "data_files of raw_data"),
    ],
)
def test_a_wrong_card_is_caught(copy: Path, change: Callable[[dict[str, Any]], None], what: str) -> None:
    check_card(copy)
    edit(copy, change)
    with pytest.raises(PipelineError, match=f"README.md is wrong about the {what}: it says .*, the Parquet files say"):
        check_card(copy)


def test_a_parquet_file_changed_under_the_card_is_caught(copy: Path) -> None:
    table = to_table(points()[:2], DataPoint)
    index = table.schema.get_field_index("nloc")
    write_table(copy / "raw_data" / SHARD, table.set_column(index, "nloc", table["nloc"].cast(pa.int32())))
    with pytest.raises(PipelineError, match="wrong about the features of raw_data"):
        check_card(copy)


def test_a_config_that_the_card_does_not_know_is_caught(copy: Path) -> None:
    write_rows(copy / "extra" / SHARD, points(), DataPoint)
    with pytest.raises(PipelineError, match="wrong about the configs"):
        check_card(copy)


def test_shards_of_different_schemas_are_caught(copy: Path) -> None:
    write_rows(copy / "raw_data" / "test-00001-of-00002.parquet", [], Exclusion)
    with pytest.raises(PipelineError, match="has other columns than the first file of its config"):
        check_card(copy)


@pytest.mark.parametrize(
    "text", [None, "", "# no header\n", "---\na: [\n---\n", "---\n- a\n---\n", "x\n---\na: 1\n---\n"]
)
def test_a_card_without_a_header_is_caught(copy: Path, text: str | None) -> None:
    (copy / "README.md").unlink()
    if text is not None:
        (copy / "README.md").write_text(text)
    with pytest.raises(PipelineError, match=r"README\.md (has no readable YAML|does not begin with a YAML) header"):
        check_card(copy)


# -- the text


def test_the_introduction_counts_each_row_once(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert "\n# shapes\n\nVersion 1.2.0\n\nBenchmarks for code models" in card
    assert "\n6 distinct rows from 2 repositories. Novelty classes: `added` (6).\n" in card


def test_the_funnel_gives_every_reason(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Funnel").splitlines()[2:] == [
        "| stage | in | out | left out because | rows |",
        "| --- | --- | --- | --- | --- |",
        "| `mine` | 9 | 7 |  |  |",
        "|  |  |  | `bad_blob` | 1 |",
        "|  |  |  | `moved` | 1 |",
        "| `dedup` | 7 | 6 |  |  |",
        "|  |  |  | `near_duplicate` | 1 |",
        "",
        "A row of a stage is",
        "",
        "- `mine`: unexplained.",
        "- `dedup`: unexplained.",
        "",
        "| reason | meaning |",
        "| --- | --- |",
        "| `bad_blob` | unexplained |",
        "| `moved` | unexplained |",
        "| `near_duplicate` | similar to the row that the detail names as `keeper=`, or linked to it by the row that "
        "it names as `via=` |",
    ]


def test_the_funnel_explains_stages_and_reasons_once(tmp_path: Path) -> None:
    funnel = (
        StageReport("dedup_near", "all", 2, 2),
        StageReport("testbed_random_cut", "random_cut", 2, 1, {"is_test": 1}),
        StageReport("testbed_commit_gen", "commit_gen", 2, 0, {"is_test": 1, "no_docstring": 1}),
    )
    text = section(card_of(tmp_path, points(), funnel=funnel), "Funnel")
    assert text.split("A row of a stage is\n\n", 1)[1].splitlines() == [
        "- `dedup_near`: a data point that equals no earlier one.",
        "- `testbed_*`: a data point that `dedup_near` let through, looked at for the testbed of that name.",
        "",
        "| reason | meaning |",
        "| --- | --- |",
        "| `is_test` | the method belongs to tests, by its folder, file, class or own name |",
        "| `no_docstring` | no docstring |",
    ]


def test_a_funnel_without_stages_is_a_table_without_rows(tmp_path: Path) -> None:
    text = section(card_of(tmp_path, points(), funnel=()), "Funnel")
    assert text.endswith("| stage | in | out | left out because | rows |\n| --- | --- | --- | --- | --- |")


def test_licences_are_counted_with_the_unknown(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Licences").splitlines()[2:7] == [
        "| licence | rows |",
        "| --- | --- |",
        "| MIT | 4 |",
        "| BSD-3-Clause | 1 |",
        "| unknown | 1 |",
    ]


@pytest.mark.parametrize(
    ("licences", "line"),
    [
        (
            LicencesConfig(),
            "Let through: `0BSD`, `Apache-2.0`, `BSD-2-Clause`, `BSD-3-Clause`, `EPL-1.0`, `EPL-2.0`, `MIT`, "
            "`MPL-2.0`, `Unlicense`; code without a known licence, too. The code stays under its licence.",
        ),
        (LicencesConfig(("*",)), "Let through: every licence; code without a known licence, too. The code"),
        (LicencesConfig(("MIT",), UnknownLicence.EXCLUDE), "Let through: `MIT`; no code without a known licence. The"),
    ],
)
def test_the_licences_that_were_let_through_are_named(tmp_path: Path, licences: LicencesConfig, line: str) -> None:
    config = replace(make_inputs().config, licences=licences)
    assert line in section(card_of(tmp_path, points(), config=config), "Licences")


def test_repositories_have_heads_and_rows(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Repositories").splitlines() == [
        "| repository | host | branch | head | rows in `raw_data` | share |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| `example/shapes` |  | `main` | `{'d' * 40}` | 4 | 66.7% |",
        f"| [`o/n`](https://example.org/o/n) | example.org | `devel` | `{'e' * 40}` | 2 | 33.3% |",
    ]


def test_the_provenance_says_what_the_manifest_holds_of_the_configuration(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Provenance").startswith(
        "`manifest.json` holds the configuration, in which absolute local paths are shortened to their last part (or "
        "to the configured `repo`), heads of all repositories, file hashes and row counts. Made with Postquem 0.1.0, "
    )


def test_hosts_are_left_out_when_all_repositories_are_local(tmp_path: Path) -> None:
    record = RepositoryRecord("o/n", "local", None, "https://ada:secret@example.org/o/n?t=secret", "main", "d" * 40, 1)
    card = card_of(tmp_path, [make_point(repo="o/n")], repositories=(record,))
    assert section(card, "Repositories").splitlines() == [
        "| repository | branch | head | rows in `raw_data` | share |",
        "| --- | --- | --- | --- | --- |",
        f"| [`o/n`](https://example.org/o/n) | `main` | `{'d' * 40}` | 1 | 100.0% |",
    ]


def test_rows_of_repositories_are_of_all_testbeds_when_there_is_no_raw_data(tmp_path: Path) -> None:
    tables = {"raw_data_docstring": to_table(points()[1:5], DataPoint)}
    text = section(card_of(tmp_path, [], tables=tables), "Repositories")
    assert text.splitlines()[0] == "| repository | host | branch | head | rows | share |"
    assert text.splitlines()[2].endswith("| 4 | 100.0% |")


def test_configs_are_listed_with_sizes_and_the_empty_one_is_named(folder: Path) -> None:
    text = section((folder / "README.md").read_text(), "Configs")
    kilobytes = {name: f"{(folder / name / SHARD).stat().st_size / 1000:.1f} KB" for name in [*TESTBEDS, "exclusions"]}
    assert [line.split(" | ")[:2] for line in text.splitlines()[2:10]] == [
        ["| `raw_data`", "6"],
        ["| `raw_data_docstring`", "5"],
        ["| `random_cut`", "4"],
        ["| `with_docstring`", "2"],
        ["| `from_docstring`", "1"],
        ["| `commit_gen`", "6"],
        ["| `summarization_gen`", "0"],
        ["| `exclusions`", "3"],
    ]
    assert text.splitlines()[2] == (
        "| `raw_data` | 6 | 2 | `example/shapes` 66.7% | every kept method: mining, metrics, sampling of one's own | "
        f"{kilobytes['raw_data']} |"
    )
    assert text.splitlines()[8:10] == [
        "| `summarization_gen` | 0 | 0 |  | code summarisation: `code_without_docstring` to `target` (docstring) | "
        f"{kilobytes['summarization_gen']} |",
        f"| `exclusions` | 3 |  |  | what was left out: id, stage, reason and evidence | {kilobytes['exclusions']} |",
    ]
    assert text.endswith(" Without rows, and so not loadable with `load_dataset`: `summarization_gen`.")
    assert (
        "at most 3,000 rows and at most 200 of one repository (`commit_gen` also at most 1 of one commit), drawn with "
        "seed 20240101 after"
    ) in text


def test_the_cutoff_names_the_window_and_the_dates_found(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Cutoff") == (
        "Author date and committer date of every row's commit are at or after 2024-01-01T00:00:00+00:00 and before "
        "2025-01-01T00:00:00+00:00 (UTC). The dates found range from 2024-02-27T00:00:00+00:00 to "
        "2024-03-01T13:00:00+00:00; the newest committer date is 2024-03-01T13:00:00+00:00. The time of the run is not "
        "recorded: the histories were walked up to the heads named under Repositories, and nothing that came after "
        "those heads is in it.\n\n"
        "For a model whose training data ends before the day at the left, these rows have both dates on or after that "
        "day, so that by their dates it cannot have seen them (Limits says what dates do not show):\n\n"
        "| training data ends before | `raw_data` | `raw_data_docstring` | `random_cut` | `with_docstring` | "
        "`from_docstring` | `commit_gen` |\n| --- | --- | --- | --- | --- | --- | --- |\n"
        "| 2024-02-01 | 6 | 5 | 4 | 2 | 1 | 6 |\n| 2024-03-01 | 3 | 2 | 2 | 1 | 1 | 3 |\n\n"
        "To filter by a model's own cutoff, here with the middle of the range:\n\n"
        "```python\nfrom datetime import datetime, timezone\n\n"
        "cutoff = datetime(2024, 2, 28, tzinfo=timezone.utc)  # the model's training cutoff\n"
        'rows = rows.filter(lambda row: min(row["author_date"], row["committer_date"]) >= cutoff)\n```'
    )


def test_an_open_window_is_said_to_have_no_upper_end(tmp_path: Path) -> None:
    config = replace(with_release(), window=replace(with_release().window, until=None))
    text = section(card_of(tmp_path, points(), config=config), "Cutoff")
    assert "are at or after 2024-01-01T00:00:00+00:00 (UTC); the configuration sets no upper end. The dates" in text


def test_without_rows_the_filter_starts_at_the_cutoff(tmp_path: Path) -> None:
    text = section(card_of(tmp_path, []), "Cutoff")
    assert "before 2025-01-01T00:00:00+00:00 (UTC). The time of the run is not recorded" in text
    assert "cutoff = datetime(2024, 1, 1, tzinfo=timezone.utc)" in text


def column_blocks(card: str) -> dict[str, str]:
    blocks = section(card, "Columns").split("### ")[1:]
    return {block.partition("\n")[0]: block.partition("\n")[2].strip("\n") for block in blocks}


def test_every_config_has_its_own_columns_with_its_own_meanings(folder: Path) -> None:
    blocks = column_blocks((folder / "README.md").read_text())
    assert list(blocks) == ["Shared by all testbeds", *ROW_TYPES, "exclusions"]
    assert blocks["raw_data_docstring"] == (
        "The methods whose docstring has more than 3 words.\n\nThe shared columns and no others."
    )
    for name, row_type in ROW_TYPES.items():
        own = [field for field in schema_of(row_type).names if field not in schema_of(DataPoint).names]
        lines = [line for line in blocks[name].splitlines() if line.startswith("| `")]
        assert [line.split("`")[1] for line in lines] == own
    meanings = {
        name: line.split(" | ")[2].removesuffix(" |")
        for name, block in blocks.items()
        for line in block.splitlines()
        if line.startswith("| `target`")
    }
    assert meanings == {
        "random_cut": "Code after the cut, with at least one statement token.",
        "with_docstring": "Code after the cut, with at least one statement token.",
        "from_docstring": "The body after the docstring.",
        "summarization_gen": "The docstring.",
    }
    assert "prefix + target is `code` without its docstring." in blocks["random_cut"]
    assert "prefix + target is `code`." in blocks["with_docstring"]


def test_the_ids_of_exclusions_are_explained(folder: Path) -> None:
    block = column_blocks((folder / "README.md").read_text())["exclusions"]
    assert block.splitlines()[4] == (
        "| `row_id` | string | What was left out: a row_id; before rows exist `owner/name` (a repository, or its "
        "location when it has no name), `owner/name@commit` or `owner/name@commit:path`. |"
    )


def test_without_testbeds_only_the_exclusions_have_columns(tmp_path: Path) -> None:
    assert list(column_blocks(card_of(tmp_path, [], tables={}))) == ["exclusions"]


def test_overlap_counts_rows_by_id(folder: Path) -> None:
    assert section((folder / "README.md").read_text(), "Overlap").splitlines()[2:] == [
        "|  | `raw_data` | `raw_data_docstring` | `random_cut` | `with_docstring` | `from_docstring` | `commit_gen` |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| `raw_data` | 6 | 5 | 4 | 2 | 1 | 6 |",
        "| `raw_data_docstring` | 5 | 5 | 3 | 2 | 1 | 5 |",
        "| `random_cut` | 4 | 3 | 4 | 2 | 1 | 4 |",
        "| `with_docstring` | 2 | 2 | 2 | 2 | 1 | 2 |",
        "| `from_docstring` | 1 | 1 | 1 | 1 | 1 | 1 |",
        "| `commit_gen` | 6 | 5 | 4 | 2 | 1 | 6 |",
    ]


def test_the_citation_has_a_year_and_nothing_to_fill_in(folder: Path) -> None:
    digest = make_manifest(make_inputs(), {}, []).config_digest[:12]
    assert section((folder / "README.md").read_text(), "How to cite").splitlines()[2:] == [
        "```bibtex",
        "@misc{shapes,",
        "  title = {shapes},",
        "  year = {2024},",
        "  version = {1.2.0},",
        f"  note = {{Configuration {digest}}}",
        "}",
        "```",
    ]


def test_a_title_cannot_break_the_citation(tmp_path: Path) -> None:
    card = card_of(tmp_path, [], config=with_release(name="50% {of}\n\\all_code"))
    assert section(card, "How to cite").splitlines()[3:5] == ["@misc{50ofallcode,", "  title = {50\\% of all\\_code},"]
    assert "  year" not in section(card, "How to cite")


def test_every_column_is_described_once(folder: Path) -> None:
    text = section((folder / "README.md").read_text(), "Columns")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    names = [line.split("`")[1] for line in rows]
    own = ["prefix", "target", "cut_byte", "prompt_code", "diff", "code_without_docstring", "stage", "reason", "detail"]
    assert names[: len(schema_of(DataPoint))] == schema_of(DataPoint).names
    assert [name for name in names[len(schema_of(DataPoint)) :] if name not in own] == [
        name for name in schema_of(Exclusion).names if name not in own
    ]
    assert set(own) <= set(names)
    assert [line for line in rows if line.endswith("|  |")] == []
    assert "| `parses` | bool | The running CPython's ast.parse accepts code. |" in rows


def test_names_cannot_break_the_tables(tmp_path: Path) -> None:
    record = RepositoryRecord("o/`a`|b", "<b>host</b>", None, None, "x\n| y", "f" * 40, 1)
    card = card_of(tmp_path, [make_point(license="LicenseRef-<x>|y")], repositories=(record,))
    assert f"\n| `o/'a'\\|b` | &lt;b>host&lt;/b> | `x \\| y` | `{'f' * 40}` | 0 | 0.0% |\n" in card
    assert "\n| LicenseRef-&lt;x>\\|y | 1 |" in card


def test_novelty_classes_other_than_added_are_told(tmp_path: Path) -> None:
    rows = [make_point(novelty="moved"), make_point(fun_name="b"), make_point(fun_name="c")]
    assert "Novelty classes: `added` (2), `moved` (1)." in card_of(tmp_path, rows)


def test_a_card_without_rows_is_still_a_card(tmp_path: Path) -> None:
    card = card_of(tmp_path, [], exclusions=to_table([], Exclusion), funnel=(), repositories=())
    assert "\n0 distinct rows from 0 repositories. Novelty classes: none.\n" in card
    assert "The dates found" not in card
    assert "\n## Examples\n" not in card


def test_the_card_is_the_same_for_the_same_facts(folder: Path) -> None:
    inputs, facts = make_inputs(), read_facts(folder)
    card = render_card(facts, make_manifest(inputs, {}, []))
    assert card == render_card(facts, make_manifest(inputs, {}, []))
    assert card == (folder / "README.md").read_text()


def test_facts_count_a_row_of_several_configs_once(folder: Path) -> None:
    facts = read_facts(folder)
    assert facts.rows == 6
    assert facts.by_license == {"MIT": 4, "BSD-3-Clause": 1, "unknown": 1}
    assert facts.by_repo == {"example/shapes": 4, "o/n": 2}
    assert facts.by_novelty == {"added": 6}
    assert facts.by_language == {"python": 6}
    assert facts.by_doc_language == {"en": 5}
    assert facts.first_date == datetime(2024, 2, 27, tzinfo=UTC)
    assert facts.last_date == datetime(2024, 3, 1, 13, tzinfo=UTC)
    assert facts.last_committer_date == datetime(2024, 3, 1, 13, tzinfo=UTC)
    assert facts.raw_by_repo == {"example/shapes": 4, "o/n": 2}


@pytest.mark.parametrize("row_type", [*ROW_TYPES.values(), Exclusion, RepositoryRecord])
def test_every_field_has_a_description(row_type: type) -> None:
    assert [name for name in schema_of(row_type).names if not column_docs(row_type.__name__).get(name)] == []


def test_an_unknown_row_type_has_no_descriptions() -> None:
    assert column_docs("Nothing") == {}
    assert column_docs("") == {}
