"""Texts made and sorted by columns."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup.names import number_digests, sort_texts


@given(st.lists(st.text(st.sampled_from("ab\0é\U0001f40d"), max_size=12), max_size=20), st.integers(0, 5))
@example(["b", "a"] * 3, 2)
@example(["abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefg"], 0)
def test_texts_are_sorted_by_their_bytes_and_equal_ones_stay_in_order(texts: list[str], start: int) -> None:
    found = sort_texts(pa.array(texts, pa.string()).slice(start))
    rest = texts[start:]
    order = sorted(range(len(rest)), key=lambda place: (rest[place].encode(), place))
    assert found.order.tolist() == order
    repeated = [place for place in order if rest.count(rest[place]) > 1]
    assert [place for place in found.alike.tolist() if place in repeated] == repeated
    assert found.alike.tolist() == [place for place in order if place in set(found.alike.tolist())]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_texts_without_bytes_are_sorted(texts: list[str]) -> None:
    assert sort_texts(pa.array(texts, pa.string())).order.tolist() == list(range(len(texts)))


@given(st.lists(st.tuples(st.sampled_from([b"one", b"two"]), st.sampled_from([b"end", b"End"])), max_size=12),
       st.integers(0, 3), st.randoms(use_true_random=False))  # fmt: skip
@example([(b"one", b"end"), (b"one", b"End"), (b"one", b"end")], 0, Random(0))
def test_digests_are_numbered_as_they_first_come_up(parts: list[tuple[bytes, bytes]], start: int, draw: Random) -> None:
    values = [begin.ljust(20) + end.rjust(12) for begin, end in parts]
    digests = pa.array(values, pa.binary(32)).slice(start)
    order = draw.sample(range(len(digests)), len(digests))
    taken = [values[start:][place] for place in order]
    distinct = list(dict.fromkeys(taken))
    assert number_digests(digests, np.array(order, np.int64)).tolist() == [distinct.index(value) for value in taken]


@given(st.lists(st.integers(0, 3), max_size=12))
def test_digests_that_begin_alike_only_when_equal_are_numbered(values: list[int]) -> None:
    digests = pa.array([bytes([value]) * 32 for value in values], pa.binary(32))
    distinct = list(dict.fromkeys(values))
    assert number_digests(digests, np.arange(len(values))).tolist() == [distinct.index(value) for value in values]
