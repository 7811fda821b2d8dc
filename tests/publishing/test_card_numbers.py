"""The card's sections of numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from publishing.card_numbers import attributions_table, changes_section, cutoffs_table, features_section
from publishing.changes import Cause, Changes, Kind, ReasonCount, TestbedChange
from publishing.facts import ReleaseFacts, read_facts
from publishing.manifest import MANIFEST_NAME, Manifest, read_manifest
from publishing.release import write_release
from publishing.statistics import FEATURES, Attribution
from tests.publishing.sound import make_inputs, write_sound_release


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFacts, Manifest]:
    folder = write_sound_release(tmp_path_factory.mktemp("releases"))
    return read_facts(folder), read_manifest(folder / MANIFEST_NAME)


def lines_of_table(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose head begins with a text."""
    lines = text.split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def test_features_stand_below_the_testbeds(read: tuple[ReleaseFacts, Manifest]) -> None:
    head, _, *rows = lines_of_table(features_section(read[0]), "feature")
    assert head[:3] == ["feature", "`raw_data`", "`raw_data_docstring`"]
    assert "`exclusions`" not in head
    assert [row[0] for row in rows] == [f"`{name}`" for name in FEATURES]
    nloc = next(row for row in rows if row[0] == "`nloc`")
    assert nloc[1] == "4.4 ± 1.5"  # 5, 6, 2, 5, 4
    assert nloc[-1] == "4.0 ± 0.0"


def test_rows_are_counted_for_a_models_cutoff(read: tuple[ReleaseFacts, Manifest]) -> None:
    head, _, *rows = lines_of_table(cutoffs_table(read[0]), "training data ends before")
    assert head[1] == "`raw_data`"
    assert rows == [["2024-01-01", "5", "3", "4", "3", "3", "3", "3", "1"]]


def test_attributions_name_the_files_and_link_the_repository(read: tuple[ReleaseFacts, Manifest]) -> None:
    facts, manifest = read
    items = (
        Attribution(
            "o/n",
            "MIT OR Apache-2.0",
            1_200,
            tuple(f"licences/{name}.txt" for name in "abcdefg"),
            tuple(f"(c) 202{number} A|b" for number in range(5)),
        ),
        Attribution("o/|odd", None, 1, ()),
    )
    facts = replace(facts, statistics=replace(facts.statistics, attributions=items))
    manifest = replace(manifest, repositories=({"repo": "o/n", "web_url": "https://example.org/o/n"},))
    text = attributions_table(facts, manifest)
    assert text.startswith("### Attribution\n\nThe code is by the contributors of these repositories.")
    assert text.splitlines()[-2:] == [
        "| [`o/n`](https://example.org/o/n) | MIT OR Apache-2.0 | 1,200 | `licences/a.txt`, `licences/b.txt`, "
        "`licences/c.txt`, `licences/d.txt`, `licences/e.txt`, 2 more | (c) 2020 A\\|b; (c) 2021 A\\|b; "
        "(c) 2022 A\\|b; 2 more |",
        "| `o/\\|odd` | unknown | 1 |  |  |",
    ]


def test_a_release_without_rows_has_no_numbers(tmp_path: Path) -> None:
    folder = write_release(make_inputs([]), tmp_path).folder
    facts, manifest = read_facts(folder), read_manifest(folder / MANIFEST_NAME)
    assert (features_section(facts), cutoffs_table(facts), attributions_table(facts, manifest)) == ("", "", "")


BEDS = (
    TestbedChange("raw_data", 5_000, 5_010, 12, 2, 1, (
        ReasonCount(Kind.ADDED, "other_head", 11), ReasonCount(Kind.REMOVED, "near_duplicate", 2),
        ReasonCount(Kind.ADDED, "other_repository", 1), ReasonCount(Kind.CHANGED, "nloc", 1),
    )),
    TestbedChange("random_cut", 10, 10, 0, 0, 0, ()),
)  # fmt: skip


def test_changes_tell_what_the_release_was_made_from_and_how_many_rows_changed() -> None:
    causes = (
        Cause("code_version", "0.1.0", "0.2.0"),
        Cause("configuration testbeds.size", "3000", None),
        Cause("repository o/a", "1" * 40, "2" * 40),
        Cause("repository o/b", "1" * 40, "3" * 40),
        Cause("repository o/c", None, "4" * 40),
    )
    text = changes_section(Changes("2026.10.31", "0" * 64, causes, BEDS))
    assert text == (
        "## Changes since 2026.10.31\n\n"
        "- Repositories: 2 new heads, 1 added.\n"
        "- code_version: `0.1.0` before, `0.2.0` now.\n"
        "- configuration testbeds.size: `3000` before, nothing now.\n\n"
        "| testbed | before | now | added | removed | changed | most of them because |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| `raw_data` | 5,000 | 5,010 | 12 | 2 | 1 | `other_head` 11, `near_duplicate` 2, `other_repository` 1 |\n"
        "| `random_cut` | 10 | 10 | 0 | 0 | 0 |  |\n\n"
        "| reason | meaning |\n| --- | --- |\n"
        "| `near_duplicate` | similar to the row that the detail names as `keeper=`, or linked to it by the row that "
        "it names as `via=` |\n"
        "| `other_head` | its repository's head is another one, from which the row does not come |\n"
        "| `other_repository` | the release was not made from its repository |\n\n"
        "`postquem release diff` with the two folders tells every row and why."
    )


def test_many_and_long_causes_are_cut_short() -> None:
    causes = tuple(Cause(f"configuration key{number:02}", "x" * 80, "<b>|`") for number in range(25))
    lines = changes_section(Changes("1.0", "0" * 64, causes, ())).splitlines()
    listed = [line for line in lines if line.startswith("- ")]
    assert len(listed) == 21
    assert listed[0] == f"- configuration key00: `{'x' * 57}...` before, `<b>\\|'` now."
    assert listed[-1] == "- 5 more are in `manifest.json` (`changes`)."


def test_without_a_release_before_there_is_no_section() -> None:
    assert changes_section(None) == ""
    assert "Made from the same." in changes_section(Changes("1.0", "0" * 64, (), BEDS))
