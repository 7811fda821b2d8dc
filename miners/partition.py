"""Split a search until every part has at most the 1,000 results that GitHub shows, with few requests.

A part that is too wide is read from its lowest number of stars on: what lies below the last star count read is a whole
part, the rest is the next. A star count that alone is too wide is split by creation, then push, size and forks, by
ranges that are likely to hold a page or nine. Parts never overlap and leave no gap; how many each has GitHub says, or
follows from what it said of the whole.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from miners.search import CAP, PER_PAGE, Asker, Page, Window, axis_value
from schemas.search import Axis, Bounds, DiscoveredRepository

# Ranges are made for so many results: an estimate that is 15% too low still fits below the cap.
_TARGET = 850
# A value that is likely to have so many results gets a range of its own.
_LUMP = CAP // 2
# So many results of one star count are read before its total is asked for.
_TIES = 2 * PER_PAGE
# How often a part is read when it shows fewer repositories than it says it has: they move while it is read.
_READINGS = 3
# GitHub opened in 2008; earlier moments do not occur.
_FIRST_MOMENT = 1_199_145_600  # 2008-01-01T00:00:00Z


@dataclass(slots=True)
class Part:
    """A window that was read."""

    window: Window
    """What was asked for."""
    total: int
    """Repositories that GitHub says it has."""
    rows: dict[int, DiscoveredRepository] = field(default_factory=dict)
    """Repositories found, by numeric id."""
    incomplete: bool = False
    """GitHub ran out of time each time it was asked."""
    uncovered: int = 0
    """Repositories that GitHub does not show."""


@dataclass(frozen=True, slots=True)
class _Todo:
    """A window to be read."""

    window: Window
    expected: int | None = None
    """What it must have for `below` to be whole; null when nothing depends on it."""
    below: Part | None = None
    """The part that was read by sorting, up to where the window begins."""
    first: Page | None = None
    """Its first page, when that was asked for already."""
    known: tuple[DiscoveredRepository, ...] = ()
    """Repositories that were read in it already."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a window in the order of stars."""

    rows: list[DiscoveredRepository]
    """Repositories of all pages so far."""
    incomplete: bool
    """GitHub ran out of time for one of them."""

    @property
    def n_below(self) -> int:
        """Return how many have fewer stars than the last."""
        return sum(row.stars < self.rows[-1].stars for row in self.rows)


class Partition:
    """Reads all of a search; `now` bounds the moments that can occur."""

    def __init__(self, asker: Asker, now: datetime) -> None:
        self._asker = asker
        self._last_moment = int(now.timestamp()) + 86_400
        self._parts: list[Part] = []
        self._todo: list[_Todo] = []

    def cover(self, root: Window) -> list[Part]:
        """Return the parts of a window, none of which overlap, in the order of their ranges."""
        self._parts, self._todo = [], [_Todo(root)]
        self._read_all()
        for settling in range(1, _READINGS):
            if not self._find_moved(settling):
                break
            self._read_all()
        return sorted(self._parts, key=lambda part: _order(part.window))

    def _read_all(self) -> None:
        while self._todo:
            self._read(self._todo.pop())

    def _read(self, todo: _Todo) -> None:
        """Read a window that fits, or replace it by smaller ones."""
        window = todo.window
        first = todo.first or self.first(window)
        if todo.below is not None and first.total != todo.expected:
            # Something moved, or GitHub sorts by other numbers than it shows: ask for the lower part by its range.
            self._parts.remove(todo.below)
            self._todo.append(_Todo(todo.below.window, known=tuple(todo.below.rows.values())))
        part = self._gather(window, first, todo.known)
        if part is not None:
            self._parts.append(part)
        else:
            self._split(window, first)

    def _gather(self, window: Window, first: Page, known: Sequence[DiscoveredRepository] = ()) -> Part | None:
        """Return all of a window, null when it has more than GitHub shows.

        When its number changes between two pages, or they show fewer repositories, it is read again.
        """
        part = Part(window, first.total, {row.repo_id: row for row in known})
        if known and first.total == len(part.rows) and all(row.repo_id in part.rows for row in first.rows):
            return part
        for reading in range(_READINGS):
            number, page = 1, first if reading == 0 else self._asker.page(window, _sort(window), 1, reading)
            rows, totals, incomplete = dict[int, DiscoveredRepository](), {page.total}, page.incomplete
            while not page.too_wide and page.total <= CAP:
                rows |= {row.repo_id: row for row in page.rows}
                totals.add(page.total)
                incomplete = incomplete or page.incomplete
                if number >= page.n_pages:
                    break
                number += 1
                page = self._asker.page(window, _sort(window), number, reading)
            else:
                return None
            part = Part(window, page.total, part.rows | rows, incomplete)
            if len(totals) == 1 and len(rows) == page.total:
                return Part(window, page.total, rows, incomplete)
        return part

    def _find_moved(self, settling: int) -> bool:
        """Look again at each part that has a repository which a later one has too; say whether there was one.

        It moved while the parts were read, so that another may have slid over the edge of a page unseen.
        """
        later: set[int] = set()
        moved = []
        for part in reversed(self._parts):
            if later & part.rows.keys():
                moved.append(part)
            later |= part.rows.keys()
        for part in moved:
            newest = {repo_id: row for repo_id, row in part.rows.items() if repo_id not in self._elsewhere(part)}
            first = self._asker.page(part.window, _sort(part.window), 1, settling * _READINGS)
            self._parts.remove(part)
            self._todo.append(_Todo(part.window, first=first, known=tuple(newest.values())))
        return bool(moved)

    def _elsewhere(self, part: Part) -> set[int]:
        return {repo_id for other in self._parts if other is not part for repo_id in other.rows}

    def _split(self, window: Window, first: Page) -> None:
        """Replace a window that is too wide by smaller ones; without a way to do so it stays in part uncovered."""
        axis = next((axis for axis in Axis if not self._range(window, axis).single), None)
        if axis is None:
            self._read_what_is_shown(window, first)
        elif axis is Axis.STARS and _ordered(first.rows):
            self._climb(window, first)
        else:
            self._split_by_values(window, axis, first)

    def _climb(self, window: Window, first: Page) -> None:
        """Read upwards by stars until GitHub shows no more or one star count alone is too wide."""
        read, fitting = _Read(list(first.rows), first.incomplete), None
        for number in range(2, CAP // PER_PAGE + 2):
            last, n_below = read.rows[-1].stars, read.n_below
            at_end = number * PER_PAGE > CAP
            if last != fitting and (len(read.rows) - n_below >= _TIES or n_below == 0):
                single = window.with_bounds(Axis.STARS, Bounds(last, last))
                heavy = self.first(single)
                if n_below + heavy.total > CAP or (at_end and n_below == 0):
                    self._cut(window, first.total, read, _Todo(single, first=heavy))
                    return
                fitting = last
            if at_end:
                break
            page = self._asker.page(window, _sort(window), number)
            read = _Read([*read.rows, *page.rows], read.incomplete or page.incomplete)
            if not page.rows or page.too_wide or not _ordered(read.rows):
                self._split_by_values(window, Axis.STARS, first)
                return
        self._cut(window, first.total, read, None)

    def _cut(self, window: Window, total: int, read: "_Read", single: _Todo | None) -> None:
        """Keep what lies below the last star count; go on with that one alone, if it is heavy, and with the rest."""
        whole, last = window.range_of(Axis.STARS), read.rows[-1].stars
        found = {row.repo_id: row for row in read.rows if row.stars < last}
        below = None
        if (whole.low or 0) < last:
            below_window = window.with_bounds(Axis.STARS, Bounds(whole.low, last - 1))
            below = Part(below_window, len(found), found, read.incomplete)
            self._parts.append(below)
        rest = Bounds(last if single is None else last + 1, whole.high)
        n_single = 0 if single is None or single.first is None else single.first.total
        if not rest.empty:
            expected = total - len(found) - n_single
            self._todo.append(_Todo(window.with_bounds(Axis.STARS, rest), expected, below))
        if single is not None:
            self._todo.append(single)

    def _split_by_values(self, window: Window, axis: Axis, first: Page) -> None:
        """Split by ranges of an axis that hold a good number of results, judging by the first page."""
        bounds = self._range(window, axis)
        values = sorted(value for row in first.rows if (value := axis_value(row, axis)) is not None)
        values = [value for value in values if bounds.holds(value)]
        if values:
            value, count = Counter(values).most_common(1)[0]
            if count * first.total >= _LUMP * len(values):
                self._split_around(window, axis, value, first.total)
                return
        self._sweep(window, axis, first.total, values)

    def _split_around(self, window: Window, axis: Axis, value: int, total: int) -> None:
        """Give one value a window of its own; the others are known to be empty when it has everything."""
        whole = window.range_of(axis)
        single = window.with_bounds(axis, Bounds(value, value))
        first = self.first(single)
        self._todo.append(_Todo(single, first=first))
        for bounds in (Bounds(whole.low, value - 1), Bounds(value + 1, whole.high)):
            if bounds.empty or (not axis.is_time and value == 0 and bounds.high == -1):
                continue
            if first.total == total:
                self._parts.append(Part(window.with_bounds(axis, bounds), 0))
            else:
                self._todo.append(_Todo(window.with_bounds(axis, bounds)))

    def _sweep(self, window: Window, axis: Axis, total: int, values: Sequence[int]) -> None:
        """Ask for one range after another; their ends follow the first page's values, then the density met."""
        whole, bounds = window.range_of(axis), self._range(window, axis)
        low, begin, left, density = bounds.low or 0, whole.low, total, None
        while left > 0:
            end = _end(low, bounds.high, left, values, density)
            is_last = end is None or (bounds.high is not None and end >= bounds.high)
            if end is None or (is_last and begin == whole.low):
                # Nothing was cut off yet, or nothing tells how far it goes: halve, or take one value.
                is_last = begin != whole.low
                end = low if bounds.high is None else low + (bounds.high - low) // 2
            piece = window.with_bounds(axis, Bounds(begin, whole.high if is_last else end))
            page = self.first(piece)
            self._todo.append(_Todo(piece, first=page))
            if is_last:
                return
            expected = min(left, _TARGET)
            if density is not None or not expected / 2 <= page.total <= expected * 1.6:
                density = max(page.total, 1) / (end - low + 1)
            left -= page.total
            begin = low = end + 1
        self._parts.append(Part(window.with_bounds(axis, Bounds(begin, whole.high)), 0))

    def first(self, window: Window) -> Page:
        """Return a window's first page, which tells how many repositories it has."""
        return self._asker.page(window, _sort(window), 1)

    def _range(self, window: Window, axis: Axis) -> Bounds:
        """Return the values that can occur in a window."""
        if axis.is_time:
            return window.range_of(axis).cut(Bounds(_FIRST_MOMENT, self._last_moment))
        return window.range_of(axis).cut(Bounds(0))

    def _read_what_is_shown(self, window: Window, first: Page) -> None:
        part = Part(window, first.total, {row.repo_id: row for row in first.rows}, first.incomplete)
        for number in range(2, first.n_pages + 1):
            page = self._asker.page(window, _sort(window), number)
            part.rows |= {row.repo_id: row for row in page.rows}
        part.uncovered = max(0, part.total - len(part.rows))
        self._parts.append(part)


def _end(low: int, high: int | None, left: int, values: Sequence[int], density: float | None) -> int | None:
    """Return the last value of the next range, null when everything that is left fits."""
    if left <= _TARGET:
        return high
    if density is None:
        above = [value for value in values if value >= low]
        share = _TARGET / left
        if len(above) >= 10 and (index := int(share * len(above))) < len(above) and above[index] > low:
            return above[index] - 1
        density = left / ((high or low + left) - low + 1)
    end = low + max(int(_TARGET / density), 1) - 1
    return end if high is None else min(end, high)


def _sort(window: Window) -> str:
    """Return the order in which a window is asked for: by what is not equal in all of it."""
    return "updated" if window.range_of(Axis.STARS).single else "stars"


def _ordered(rows: Sequence[DiscoveredRepository]) -> bool:
    return bool(rows) and all(one.stars <= other.stars for one, other in pairwise(rows))


def _order(window: Window) -> list[tuple[float, float]]:
    """Return a key that puts windows in the order of their ranges."""
    infinity = float("inf")
    return [
        (-infinity if part.low is None else part.low, infinity if part.high is None else part.high)
        for part in (window.range_of(axis) for axis in Axis)
    ]
