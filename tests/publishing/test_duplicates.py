"""The card's section on duplicates: whole texts for known clusters, testbeds and sets."""

from pathlib import Path

import pytest

from publishing.duplicates import DuplicateFacts, LargeCluster, duplicate_facts, duplicates_section
from publishing.release import write_release
from schemas.comparisons import DescribedCluster, ReferenceSet, TestbedDuplicates
from schemas.references import Role
from tests.publishing.releases import make_inputs

DEDUP = {"threshold": 0.7, "keep": "oldest"}


def cluster(
    name: str, size: int, n_repos: int, n_commits: int, n_authors: int | None = 1
) -> DescribedCluster:  # fmt: skip
    members = tuple(f"{name}{index}" for index in range(size))
    return DescribedCluster(name, name, members, size, n_repos, n_repos > 1, n_commits, n_authors, 0.7)


CLUSTERS = [cluster("a", 2, 1, 1), cluster("b", 1_200, 3, 40, None), cluster("c", 2, 2, 2), cluster("d", 5, 1, 1)]
PLACES = {name: ("o/n", f"{name}|x.py", f"f_{name}") for name in "abcd"}
TESTBEDS = [TestbedDuplicates("raw_data", 2_000, 1_205, 795, 795), TestbedDuplicates("random_cut", 0, 0, 0, 0)]
SETS = [ReferenceSet("tasks", Role.BENCHMARK, ("a.jsonl", "b.jsonl"), ("1", "2"), 164, 3, 170)]


def test_facts_count_clusters_and_name_the_largest() -> None:
    assert duplicate_facts(CLUSTERS, PLACES, TESTBEDS, SETS) == DuplicateFacts(
        n_clusters=4,
        n_members=1_209,
        n_cross_repository=2,
        n_one_commit=2,
        n_one_author=1,
        largest=(
            LargeCluster(1_200, 3, 40, None, "o/n", "b|x.py", "f_b"),
            LargeCluster(5, 1, 1, 1, "o/n", "d|x.py", "f_d"),
            LargeCluster(2, 1, 1, 1, "o/n", "a|x.py", "f_a"),
            LargeCluster(2, 2, 2, 1, "o/n", "c|x.py", "f_c"),
        ),
        testbeds=tuple(TESTBEDS),
        references=tuple(SETS),
    )


def test_only_five_clusters_are_named() -> None:
    clusters = [cluster(f"c{index}", 2 + index, 1, 1) for index in range(9)]
    places = {f"c{index}": ("o/n", "p", f"f{index}") for index in range(4, 9)}
    assert [item.size for item in duplicate_facts(clusters, places, [], []).largest] == [10, 9, 8, 7, 6]


def test_the_section_has_counts_and_three_tables() -> None:
    text = duplicates_section(duplicate_facts(CLUSTERS, PLACES, TESTBEDS, SETS), DEDUP)
    assert text == (
        "## Duplicates\n\n"
        "4 clusters of rows that are equal or similar (Jaccard similarity of 0.7 or more, pair by pair) with 1,209 "
        "rows; of each the earliest stays. 50.0% of the clusters (2) have members of several repositories, 50.0% of "
        "the clusters (2) came with one commit, 25.0% of the clusters (1) with several commits of one author. Authors "
        "are told apart by their addresses, of which nothing is stored.\n\n"
        "What the removal means for each testbed, before its sample is drawn:\n\n"
        "| testbed | usable rows | duplicates | rate | left | in the release |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| `raw_data` | 2,000 | 1,205 | 60.2% | 795 | 795 |\n"
        "| `random_cut` | 0 | 0 | 0.0% | 0 | 0 |\n\n"
        "The largest clusters, with their earliest member:\n\n"
        "| rows | repositories | commits | authors | repository | path | name |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| 1,200 | 3 | 40 | unknown | `o/n` | `b\\|x.py` | `f_b` |\n"
        "| 5 | 1 | 1 | 1 | `o/n` | `d\\|x.py` | `f_d` |\n"
        "| 2 | 1 | 1 | 1 | `o/n` | `a\\|x.py` | `f_a` |\n"
        "| 2 | 2 | 2 | 1 | `o/n` | `c\\|x.py` | `f_c` |\n\n"
        "Reference sets, whose similar rows were left out:\n\n"
        "| set | role | rows | texts compared | files |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| `tasks` | benchmark | 164 | 170 | a.jsonl, b.jsonl |"
    )


@pytest.mark.parametrize(
    ("keep", "words"), [("none", "none of them stays"), ("reference", "of each the earliest stays")]
)
def test_the_policy_is_said(keep: str, words: str) -> None:
    text = duplicates_section(DuplicateFacts(), {"threshold": 0.8, "keep": keep})
    assert text == (
        "## Duplicates\n\n"
        "0 clusters of rows that are equal or similar (Jaccard similarity of 0.8 or more, pair by pair) "
        f"with 0 rows; {words}. 0.0% of the clusters (0) have members of several repositories, 0.0% of the clusters "
        "(0) came with one commit, 0.0% of the clusters (0) with several commits of one author. Authors are told apart "
        "by their addresses, of which nothing is stored."
    )


def test_the_card_has_the_section_and_the_manifest_the_hashes(tmp_path: Path) -> None:
    facts = duplicate_facts(CLUSTERS, PLACES, TESTBEDS, SETS)
    folder = write_release(make_inputs(duplicates=facts), tmp_path).folder
    assert f"\n\n{duplicates_section(facts, DEDUP)}\n\n" in (folder / "README.md").read_text()
    assert '"role": "benchmark"' in (folder / "manifest.json").read_text()
