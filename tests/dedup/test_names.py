"""Texts made and sorted by columns."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup.names import sort_texts


@given(st.lists(st.text(st.sampled_from("ab\0é\U0001f40d"), max_size=12), max_size=20), st.integers(0, 5))
@example(["b", "a"] * 3, 2)
@example(["abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefg"], 0)
def test_texts_are_sorted_by_their_bytes_and_equal_ones_stay_in_order(texts: list[str], start: int) -> None:
    order = sort_texts(pa.array(texts, pa.string()).slice(start))
    rest = texts[start:]
    assert order.tolist() == sorted(range(len(rest)), key=lambda place: (rest[place].encode(), place))


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_texts_without_bytes_are_sorted(texts: list[str]) -> None:
    assert sort_texts(pa.array(texts, pa.string())).tolist() == list(range(len(texts)))
