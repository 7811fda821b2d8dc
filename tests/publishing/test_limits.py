"""The section of limits states what the rows hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from publishing.facts import read_facts
from publishing.limits import limits_section
from publishing.manifest import make_manifest
from publishing.release import write_release
from publishing.shares import ConfigShares, Shares, config_shares
from schemas.records import DataPoint, Novelty, StageReport
from schemas.references import OldCode
from tests.builders import make_point
from tests.publishing.releases import make_inputs, points
from warehouse.tables import FileEntry

ADDRESS = "Fix it.\n\nCo-authored-by: Ada <ada.l+x@mail.example.org>"


def limits_of(tmp_path: Path, rows: list[DataPoint], **overrides: Any) -> str:  # noqa: ANN401 - as fields
    inputs = make_inputs(rows, **overrides)
    return limits_section(read_facts(write_release(inputs, tmp_path).folder), make_manifest(inputs, {}, []))


def several() -> list[DataPoint]:
    """Ten rows: four tests, two by bots, one root, three with CR, one with a tab, five with an address."""
    return [
        make_point(
            fun_name=f"f{index}",
            repo=("a/a", "b/b", "c/c", "d/d")[min(index, 3)],
            is_test=index < 4,
            author_is_bot=index < 2,
            parent_id=None if index == 9 else "b" * 40,
            code=f"def f{index}():" + ("\r\n" if index < 3 else "\n") + ("\t" if index == 2 else "    ") + "return 1",
            commit_message=ADDRESS if index >= 5 else "Mail the address @home",
        )
        for index in range(10)
    ]


def test_traits_are_counted_once_for_each_row(tmp_path: Path) -> None:
    facts = read_facts(write_release(make_inputs(several()), tmp_path).folder)
    assert facts.shares == Shares(is_test=4, author_is_bot=2, is_root=1, has_cr=3, has_tab=1, has_email=5)


def test_shares_are_stated(tmp_path: Path) -> None:
    text = limits_of(tmp_path, several())
    for line in (
        "- 10.0% of the rows (1) came with a commit without a parent, to which everything is new: ",
        "- Repositories weigh unequally; the largest: `d/d` 70.0%, `a/a` 10.0%, `b/b` 10.0%.\n",
        "- 40.0% of the rows (4) belong to tests (`is_test`): ",
        "- 20.0% of the rows (2) came with a bot's commit (`author_is_bot`); ",
        "the code of 30.0% of the rows (3) holds a carriage return, that of 10.0% of the rows (1) a tab.\n",
        "trailers such as `Co-authored-by:` included: 50.0% of the rows (5) have a message with an address.",
        "- Testbeds overlap: 100.0% of `random_cut`, 100.0% of `with_docstring`, 100.0% of `from_docstring`, "
        "40.0% of `commit_gen` stand in at least one other testbed that asks for an answer.\n",
    ):
        assert line in text


def test_what_newness_does_not_show_is_said(tmp_path: Path) -> None:
    text = limits_of(tmp_path, points())
    for words in (
        "no definition of this qualified name stood in the file",
        "- Similar to old code: a method that reaches 0.7 with one in its own repository's tree at the cutoff was left "
        "out (0 as `copied_old`). Trees are compared, not histories: code that was removed before the cutoff, or stood "
        "on another branch, and functions inside functions are not known.\n",
        "code ported or copied from other projects, books or answers, and code that a model wrote, is not recognised",
        "`diff` of `commit_gen` holds the code. In the direction from message to code it is the answer",
        "methods come without their class, imports and the rest of their file",
        "a GPL text alone does not tell whether later versions may be chosen",
        "is decided by English patterns",
        "Duplicates are chained",
        "below 0.7 to its keeper; its detail then names the partner to which it is not (`via=`)",
        "No two rows reach a Jaccard similarity of 0.7 ",
    ):
        assert words in text
    assert "without a parent" not in text


def test_what_became_of_code_similar_to_old_is_said(tmp_path: Path) -> None:
    inputs = make_inputs()
    funnel = (StageReport("dedup_old", "o/n", 9, 4, {"copied_old": 5}),)

    def text(copied_old: OldCode, novelty: tuple[Novelty, ...]) -> str:
        config = replace(
            inputs.config,
            dedup=replace(inputs.config.dedup, copied_old=copied_old),
            features=replace(inputs.config.features, novelty=novelty),
        )
        return limits_of(tmp_path / f"{copied_old}{len(novelty)}", points(), config=config, funnel=funnel)

    only, both = (Novelty.ADDED,), (Novelty.ADDED, Novelty.COPIED_OLD)
    assert "in its own repository's tree at the cutoff was left out (5 as `copied_old`). " in text(
        OldCode.REPOSITORY, only
    )
    assert "in any mined repository's tree at the cutoff has the class `copied_old`. " in text(OldCode.ALL, both)
    assert (
        "or restores one that was removed earlier, is `added` too, since the comparison was switched off "
        "(`dedup.copied_old`). How often that happens was measured on another set than this, of eight repositories: 5% "
        "of its rows, and 23% of those of one repository, had a Jaccard similarity of 0.7 or more (sets of words) with "
        "a method of the same name in the repository at the cutoff. The docstring of such a row can be old too, word "
        "for word.\n"
    ) in text(OldCode.OFF, only)


def test_repositories_without_a_tree_at_the_cutoff_are_counted(tmp_path: Path) -> None:
    text = limits_of(tmp_path, points(), cutoffs={"o/n": None, "example/shapes": "c" * 40})
    assert "and functions inside functions are not known. Of 2 repositories 1 had no such tree.\n" in text


def test_thresholds_are_those_of_the_configuration(tmp_path: Path) -> None:
    config = make_inputs().config
    text = limits_of(tmp_path, points(), config=replace(config, dedup=replace(config.dedup, threshold=0.85)))
    assert "No two rows reach a Jaccard similarity of 0.85 " in text
    assert "be below 0.85 to its keeper" in text


def test_a_release_without_rows_has_no_shares_of_repositories(tmp_path: Path) -> None:
    text = limits_of(tmp_path, [])
    assert "Repositories weigh" not in text
    assert "Testbeds overlap" not in text
    assert "- 0.0% of the rows (0) belong to tests" in text


@pytest.mark.parametrize(
    ("paths", "line"),
    [
        ([], "\n\nNot in this release: the testbed `real_code`, whose tasks are proven by execution."),
        (["real_code/t"], " have a message with an address."),
    ],
)
def test_what_the_contract_names_and_the_release_lacks_is_said(tmp_path: Path, paths: list[str], line: str) -> None:
    manifest = make_manifest(make_inputs(), {}, [FileEntry(path, None, "0" * 64, 1) for path in paths])
    assert limits_section(read_facts(tmp_path), manifest).endswith(line)


def test_shares_of_configs_count_origin_and_overlap() -> None:
    repos = {
        "raw_data": {"1": "b/b", "2": "a/a", "3": "a/a", "4": "b/b"},
        "one": {"1": "b/b", "2": "a/a"},
        "two": {"2": "a/a", "4": "b/b"},
        "none": {},
    }
    assert config_shares(repos, ["one", "two", "none"]) == {
        "raw_data": ConfigShares(2, "a/a", 2, {"raw_data": 4, "one": 2, "two": 2, "none": 0}, 3),
        "one": ConfigShares(2, "a/a", 1, {"raw_data": 2, "one": 2, "two": 1, "none": 0}, 1),
        "two": ConfigShares(2, "a/a", 1, {"raw_data": 2, "one": 1, "two": 2, "none": 0}, 1),
        "none": ConfigShares(0, None, 0, {"raw_data": 0, "one": 0, "two": 0, "none": 0}, 0),
    }
