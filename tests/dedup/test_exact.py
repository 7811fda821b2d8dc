from datetime import timedelta

import pytest

from dedup.exact import drop_exact_duplicates
from dedup.rows import DedupRow, in_keeper_order
from schemas.errors import PipelineError
from schemas.records import Exclusion
from tests.dedup.corpus import START

LATER = START + timedelta(days=1)


def test_earliest_committer_date_is_kept() -> None:
    rows = [DedupRow("a", LATER, "x = 1"), DedupRow("b", START, "x = 1"), DedupRow("c", LATER, "y")]
    result = drop_exact_duplicates(rows)
    assert result.rows == [rows[1], rows[2]]
    assert result.keeper_of == {"a": "b"}
    assert result.unusable == []


def test_smallest_row_id_is_kept_among_equal_dates() -> None:
    rows = [DedupRow("b", START, "x"), DedupRow("a", START, "x"), DedupRow("c", START, "x")]
    result = drop_exact_duplicates(rows)
    assert result.rows == [rows[1]]
    assert result.keeper_of == {"b": "a", "c": "a"}


@pytest.mark.parametrize("other", ["x = 1\n", "x=1", "x  = 1", "X = 1", "\tx = 1", "x = 1\r\n"])
def test_any_difference_of_the_text_is_a_difference(other: str) -> None:
    rows = [DedupRow("a", START, "x = 1"), DedupRow("b", START, other)]
    assert drop_exact_duplicates(rows).keeper_of == {}


def test_different_short_methods_are_never_equal() -> None:
    rows = [DedupRow(str(number), START, text) for number, text in enumerate(["a", "b", "c", "", " "])]
    assert drop_exact_duplicates(rows).rows == rows


def test_texts_without_tokens_are_duplicates_of_one_another() -> None:
    result = drop_exact_duplicates([DedupRow("b", START, ""), DedupRow("a", START, "")])
    assert result.keeper_of == {"b": "a"}


def test_text_without_utf8_form_is_excluded_and_its_neighbours_stay() -> None:
    rows = [DedupRow("a", START, "x"), DedupRow("b", START, "'\udc80'"), DedupRow("c", START, "é")]
    result = drop_exact_duplicates(rows)
    assert result.rows == [rows[0], rows[2]]
    assert result.unusable == [Exclusion("b", "dedup_exact", "lone_surrogate", "the text has no UTF-8 form")]


def test_nothing_gives_nothing() -> None:
    result = drop_exact_duplicates([])
    assert (result.rows, result.keeper_of, result.unusable) == ([], {}, [])


def test_keeper_order_is_date_then_row_id() -> None:
    rows = [DedupRow("c", START, ""), DedupRow("a", LATER, ""), DedupRow("b", START, "")]
    assert [row.row_id for row in in_keeper_order(rows)] == ["b", "c", "a"]


def test_row_given_twice_is_an_error_that_names_it() -> None:
    rows = [DedupRow("b", START, "x"), DedupRow("a", START, "x"), DedupRow("b", LATER, "y")]
    with pytest.raises(PipelineError, match=r"1 row ids occur more than once, the first is b; .* named twice"):
        drop_exact_duplicates(rows)
