"""Texts taken by their places are those that Arrow takes."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas import texts as texts_module
from schemas.texts import TextRows


@given(
    st.lists(st.text(max_size=3), min_size=1, max_size=8), st.integers(0, 3), st.lists(st.integers(0, 99), max_size=8)
)
@example(["ab", "cd", "ef"], 1, [1, 0, 1])
@example(["é", "ab"], 0, [1, 0])
@example(["", ""], 0, [1])
def test_texts_of_any_lengths_are_taken(values: list[str], start: int, places: list[int]) -> None:
    array = pa.array(values, pa.string()).slice(min(start, len(values) - 1))
    chosen = [place % len(array) for place in places]
    taken = TextRows(array).take(pa.array(chosen, pa.int64()).to_numpy())
    taken.validate(full=True)
    assert taken.type == pa.string()
    assert taken.to_pylist() == [array[place].as_py() for place in chosen]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_row_ids_are_taken_by_numbers_of_either_width(kind: pa.DataType) -> None:
    rows = TextRows(pa.array([f"{number:040x}" for number in range(100)]))
    assert len(rows) == 100
    assert rows.take(pa.array([99, 0, 99], kind).to_numpy()).to_pylist() == [f"{99:040x}", "0" * 40, f"{99:040x}"]


def test_nothing_is_taken_from_nothing() -> None:
    assert TextRows(pa.array([], pa.string())).take(pa.array([], pa.int64()).to_numpy()).to_pylist() == []


def test_place_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError):
        TextRows(pa.array(["ab", "cd"])).take(pa.array([2]).to_numpy())


def test_more_bytes_than_an_array_holds_are_left_to_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "_MAX_BYTES", 3)
    assert TextRows(pa.array(["ab", "cd"])).take(pa.array([1, 0]).to_numpy()).to_pylist() == ["cd", "ab"]
