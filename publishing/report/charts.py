"""Bars and histograms as SVG: text that scales, prints and reads aloud, without a script or a file beside it.

A charting library was weighed: Vega-Lite inlined adds 800 KB of script to every page and draws nothing where scripts
are off; these are two shapes.
"""

from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

_WIDTH, _HEIGHT = 240, 72  # of a histogram in its own units; it scales to its box
_AXIS = 12  # height of the line of numbers below
_WIDEST = 24  # bar of a column with few values
N_BINS = 24


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of a numeric column in bins of equal width; what lies above the last bin is counted in `above`."""

    low: float
    """Lower edge of the first bin."""
    high: float
    """Upper edge of the last bin: the 99th percentile, so that a few giants do not flatten the rest."""
    counts: tuple[int, ...]
    """Rows of each bin; a value on an edge belongs to the bin above, in the last bin to that one."""
    above: int
    """Rows above `high`."""


def make_histogram(values: npt.ArrayLike) -> Histogram:
    """Return the histogram of some values, whole numbers in bins of whole width; the values may not be empty."""
    array = np.asarray(values, dtype=np.float64)
    low, high = float(array.min()), float(np.percentile(array, 99, method="higher"))
    width = max(1.0, float(np.ceil((high - low + 1) / N_BINS)))
    edges = low + width * np.arange(int((high - low) // width) + 2)
    inside = array[array < edges[-1]]
    counts, _ = np.histogram(inside, bins=edges)
    return Histogram(low, float(edges[-1]), tuple(int(count) for count in counts), int(array.size - inside.size))


def histogram_svg(histogram: Histogram, title: str) -> str:
    """Return the histogram as SVG with a title for each bar and for the whole."""
    bars = len(histogram.counts)
    step, top = min(_WIDTH / bars, _WIDEST), max(*histogram.counts, 1)
    width = (histogram.high - histogram.low) / bars
    shapes = []
    for index, count in enumerate(histogram.counts):
        if not count:
            continue
        height = max(1.0, _HEIGHT * count / top)
        low = histogram.low + index * width
        label = f"{low:,.0f}" if width == 1 else f"{low:,.0f} to {low + width - 1:,.0f}"
        shapes.append(
            f'<rect x="{index * step:.1f}" y="{_HEIGHT - height:.1f}" width="{max(step - 1, 1):.1f}" '
            f'height="{height:.1f}"><title>{label}: {count:,} rows</title></rect>'
        )
    above = f" ({histogram.above:,} above)" if histogram.above else ""
    return (
        f'<svg class="histogram" viewBox="0 0 {_WIDTH} {_HEIGHT + _AXIS}" role="img" aria-label="{escape(title)}">'
        f'{"".join(shapes)}<line x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
        f'<text x="0" y="{_HEIGHT + _AXIS - 1}">{histogram.low:,.0f}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + _AXIS - 1}" text-anchor="end">{histogram.high - 1:,.0f}{above}</text></svg>'
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of a bar chart."""

    label: str
    """What is counted."""
    count: int
    """Rows."""
    width: float
    """Length in per cent of the longest bar."""
    share: str
    """Share of the whole, as text."""


def make_bars(counts: dict[str, int], most: int | None = None) -> list[Bar]:
    """Return a bar for each count in the given order; beyond `most` bars the rest is one bar."""
    items = list(counts.items())
    if most is not None and len(items) > most:
        rest = items[most - 1 :]
        items = [*items[: most - 1], (f"{len(rest)} others", sum(count for _, count in rest))]
    longest, whole = max((count for _, count in items), default=0), sum(counts.values())
    return [
        Bar(label, count, 100 * count / longest if longest else 0, f"{100 * count / whole if whole else 0:.1f}%")
        for label, count in items
    ]
