"""Histograms and bars count every row once."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from publishing.report.charts import N_BINS, Bar, Histogram, histogram_svg, make_bars, make_histogram


def test_whole_numbers_lie_in_bins_of_whole_width() -> None:
    assert make_histogram([1, 1, 2, 4]) == Histogram(1.0, 5.0, (2, 1, 0, 1), 0)
    assert make_histogram([7]) == Histogram(7.0, 8.0, (1,), 0)


def test_a_giant_is_counted_above_and_does_not_flatten_the_rest() -> None:
    assert make_histogram([0] * 500 + [1] * 500 + [1_000_000]) == Histogram(0.0, 2.0, (500, 500), 1)


@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_every_row_is_counted_once(values: list[int]) -> None:
    histogram = make_histogram(values)
    assert sum(histogram.counts) + histogram.above == len(values)
    assert len(histogram.counts) <= N_BINS
    assert histogram.low == min(values)


def test_a_histogram_has_a_named_bar_for_each_bin_with_rows() -> None:
    svg = ET.fromstring(histogram_svg(Histogram(0.0, 30.0, (3, 0, 1), 2), "a <b>"))
    assert [title.text for title in svg.iter() if title.tag.endswith("title")] == [
        "0 to 9: 3 rows", "20 to 29: 1 rows",
    ]  # fmt: skip
    assert svg.attrib["aria-label"] == "a <b>"
    assert [text.text for text in svg.iter() if text.tag.endswith("text")] == ["0", "29 (2 above)"]


def test_bars_beyond_the_most_are_one() -> None:
    assert make_bars({"a": 6, "b": 3, "c": 2, "d": 1}, 3) == [
        Bar("a", 6, 100.0, "50.0%"), Bar("b", 3, 50.0, "25.0%"), Bar("2 others", 3, 50.0, "25.0%"),
    ]  # fmt: skip
    assert make_bars({}) == []
    assert make_bars({"none": 0}) == [Bar("none", 0, 0, "0.0%")]
