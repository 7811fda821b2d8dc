"""Exact duplicates: rows with equal texts, and the order in which rows are preferred."""

from datetime import timedelta

import pytest

from schemas.config import DedupConfig
from schemas.errors import PipelineError
from tests.dedup.by_rows import DedupRow, deduplicate
from tests.dedup.corpus import START

LATER = START + timedelta(days=1)


def exact_duplicates(*rows: DedupRow) -> dict[str, str]:
    """Return each removed row and the one that it equals."""
    result = deduplicate(rows, DedupConfig())
    assert {item.reason for item in result.excluded} <= {"exact_duplicate"}
    return {item.row_id: item.detail.removeprefix("keeper=").removesuffix(" jaccard=1.0") for item in result.excluded}


def test_earliest_committer_date_is_kept() -> None:
    rows = [DedupRow("a", LATER, "x = 1"), DedupRow("b", START, "x = 1"), DedupRow("c", LATER, "y")]
    assert exact_duplicates(*rows) == {"a": "b"}


def test_smallest_row_id_is_kept_among_equal_dates() -> None:
    assert exact_duplicates(*(DedupRow(row_id, START, "x") for row_id in "bac")) == {"b": "a", "c": "a"}


@pytest.mark.parametrize("other", ["x = 1\n", "x=1", "x  = 1", "X = 1", "\tx = 1", "x = 1\r\n"])
def test_any_difference_of_the_text_is_a_difference(other: str) -> None:
    assert exact_duplicates(DedupRow("a", START, "x = 1"), DedupRow("b", START, other)) == {}


def test_different_short_methods_are_never_equal() -> None:
    texts = ["a", "b", "c", "", " "]
    assert exact_duplicates(*(DedupRow(str(number), START, text) for number, text in enumerate(texts))) == {}


def test_texts_without_tokens_are_duplicates_of_one_another() -> None:
    assert exact_duplicates(DedupRow("b", START, ""), DedupRow("a", START, "")) == {"b": "a"}


def test_row_given_twice_is_an_error_that_names_it() -> None:
    rows = [DedupRow("b", START, "x"), DedupRow("a", START, "x"), DedupRow("b", LATER, "y")]
    with pytest.raises(PipelineError, match=r"1 row ids occur more than once, the first is b; .* named twice"):
        deduplicate(rows, DedupConfig())
