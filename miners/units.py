"""Which statements of a file stand in another version of it, so that only what lies between them must be parsed."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

_INDENT = b" \t"
# Characters with which no statement can begin: white space, line ends, comments and continuations.
_NO_STATEMENT = b" \t\f\r\n#\\"
_BLANK = b" \t\f\r\n"
_LINE_FEED = ord("\n")
PASS = b"pass\n"
"""Stands for a statement of a class body."""
# A gap below 1,000 bytes is parsed in about 0.2 ms, which no search for known statements inside it would save.
_MIN_GAP = 1_000
# Shorter statements stand in too many places to tell where the same piece of code is now.
_MIN_UNIT = 32
# A gap in which none of its longest statements is found is new code; the sum bounds the time for one file.
_MAX_TRIES_PER_GAP = 50
_MAX_TRIES = 500


@dataclass(slots=True)
class Run:
    """Consecutive units of the old file that stand in the new one."""

    first: int
    """Index of the first unit."""
    last: int
    """Index behind the last unit."""
    at: int
    """Offset of the first unit in the new file."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What lies between two runs of the new file."""

    start: int
    """Offset in the new file."""
    end: int
    """Offset behind it; may be `start`."""
    old_start: int
    """Offset in the old file of what the gap replaces."""
    old_end: int
    """Offset behind that."""
    before: bytes
    """What has to be parsed before it so that the parser is in the right state: nothing, or a class header."""
    behind: bytes
    """Nothing, or a statement that has to follow in the class body where the next run goes on with it."""


class Units:
    """A file cut at its statements: one unit reaches from a statement's line to that of the next one.

    The statements of a top-level class's body are units of their own (inner ones), and so is the header before them.
    What stands before the first statement is the first unit. The end of the file is a boundary like a statement's.
    """

    def __init__(self, source: bytes, starts: Sequence[int]) -> None:
        self.source = source
        self.bounds = [*([] if starts and starts[0] == 0 else [0]), *starts, len(source)]
        self.count = len(self.bounds) - 1
        self.first_statement = self.count - len(starts)

    def end(self, run: Run) -> int:
        """Return the offset in the new file behind a run."""
        return run.at + self.bounds[run.last] - self.bounds[run.first]

    def text(self, index: int) -> bytes:
        """Return a unit's text."""
        return self.source[self.bounds[index] : self.bounds[index + 1]]

    def length(self, index: int) -> int:
        """Return the length of a unit's text."""
        return self.bounds[index + 1] - self.bounds[index]

    def is_inner(self, index: int) -> bool:
        """Tell whether a unit is a statement of a class body; the end of the file is none."""
        start = self.bounds[index]
        return index > 0 and start < len(self.source) and self.source[start] in _INDENT

    def header(self, index: int) -> int | None:
        """Return the class header whose body is open behind a unit: the unit itself or one before it."""
        if not self.is_inner(index):
            return index if self.is_inner(index + 1) else None
        source, bounds = self.source, self.bounds
        while index and source[bounds[index]] in _INDENT:
            index -= 1
        return index

    def indent(self, header: int) -> bytes:
        """Return the indentation of the body behind a class header."""
        text = self.text(header + 1)
        return text[: len(text) - len(text.lstrip(_INDENT))]

    def is_closed(self, index: int) -> bool:
        """Tell whether the line behind a unit is not joined to it by a backslash."""
        return not self.text(index).rstrip(_BLANK).endswith(b"\\")


def align(source: bytes, units: Units) -> tuple[list[Gap], list[Run]]:
    """Return the runs of old units in the new file, in order, and the gaps around them: one more than runs.

    Every run begins and ends where the parser is between two statements, provided that each gap is free of errors
    when it is parsed with what goes before and behind it.
    """
    runs: list[Run] = []
    for run in (*_runs(source, units), Run(units.count, units.count, len(source))):
        while not ((begins := _may_begin(source, units, runs, run)) and _may_end(source, units, runs, run)):
            if begins:
                _drop_last(runs)
            elif not _drop_first(units, run):
                break
        else:
            runs.append(run)
    befores = [None, *runs[:-1]]
    return [_gap(source, units, before, run) for before, run in zip(befores, runs, strict=True)], runs[:-1]


def _drop_last(runs: list[Run]) -> None:
    """Shorten the last run at its end."""
    runs[-1].last -= 1
    if runs[-1].last == runs[-1].first:
        del runs[-1]


def _drop_first(units: Units, run: Run) -> bool:
    """Shorten a run at its beginning; return whether anything is left."""
    run.at += units.length(run.first)
    run.first += 1
    return run.first < run.last


def _may_begin(source: bytes, units: Units, runs: Sequence[Run], run: Run) -> bool:
    """Tell whether the first unit of a run is a statement where it stands now, in the class body it was in."""
    if run.first == units.count:
        return True
    if run.at > 0 and (source[run.at - 1] != _LINE_FEED or run.first < units.first_statement):
        return False
    return not units.is_inner(run.first) or (bool(runs) and units.header(run.first) == units.header(runs[-1].last - 1))


def _may_end(source: bytes, units: Units, runs: Sequence[Run], run: Run) -> bool:
    """Tell whether the last unit of the runs ends where it ended before, whatever `run` and the gap before it say."""
    if not runs:
        return True
    last, start = runs[-1].last - 1, units.end(runs[-1])
    if run.first == last + 1 and run.at == start:
        return True
    if not units.is_closed(last) or (start < len(source) and source[start - 1] != _LINE_FEED):
        return False
    goes_on = units.is_inner(run.first)
    if run.at > start and (goes_on or source[start] in _INDENT):
        return _begins_inner(source, units, last, start, run.at)
    # A class must not lose its whole body: its header is no statement then.
    return (goes_on or units.header(last) != last) and (run.at == start or source[start] not in _NO_STATEMENT)


def _begins_inner(source: bytes, units: Units, last: int, start: int, end: int) -> bool:
    """Tell whether a gap begins with a statement of the class body that is open behind the unit `last`."""
    header = units.header(last)
    if header is None:
        return False
    indent = units.indent(header)
    at = start + len(indent)
    return at < end and source.startswith(indent, start) and source[at] not in _NO_STATEMENT


def _gap(source: bytes, units: Units, before: Run | None, run: Run) -> Gap:
    """Return the gap between two runs."""
    old_start, start = (0, 0) if before is None else (units.bounds[before.last], units.end(before))
    header = (
        None if before is None or run.at == start or source[start] not in _INDENT else units.header(before.last - 1)
    )
    head = tail = b""
    if before is not None and header is not None:
        line = units.indent(header) + PASS
        head = units.text(header) + (b"" if header == before.last - 1 else line)
        tail = line if units.is_inner(run.first) else b""
    return Gap(start, run.at, old_start, units.bounds[run.first], head, tail)


def _runs(source: bytes, units: Units) -> list[Run]:
    """Return the runs of equal bytes: at both ends of the file and between, in order."""
    bounds, old_length, length = units.bounds, len(units.source), len(source)
    head = common_prefix(source, units.source, min(length, old_length))
    tail = common_suffix(source, units.source, min(length, old_length) - head)
    first = bisect_right(bounds, head) - 1
    last = bisect_left(bounds, old_length - tail)
    middle = Run(first, last, bounds[first])
    end = bounds[last] + length - old_length
    runs = [Run(0, first, 0), *sorted(_between(source, units, middle, end), key=lambda run: run.first)]
    runs.append(Run(last, units.count, end))
    return [run for run in runs if run.first < run.last]


def _between(source: bytes, units: Units, middle: Run, end: int) -> Iterator[Run]:
    """Yield runs inside the changed middle: the old units of `middle` in the new file's bytes from there to `end`."""
    budget = iter(range(_MAX_TRIES))
    pending = [(middle, end)]
    while pending:
        part, end = pending.pop()
        run = _longest(source, units, part, end, budget) if end - part.at >= _MIN_GAP else None
        if run is not None:
            yield run
            pending += [(Run(part.first, run.first, part.at), run.at), (Run(run.last, part.last, units.end(run)), end)]


def _longest(source: bytes, units: Units, part: Run, end: int, budget: Iterator[int]) -> Run | None:
    """Return the run around the longest unit of a part that stands in the new file between `part.at` and `end`."""
    longest = nlargest(_MAX_TRIES_PER_GAP, range(part.first, part.last), key=units.length)
    for index, _ in zip(longest, budget, strict=False):
        if units.length(index) < _MIN_UNIT:
            return None
        at = source.find(units.text(index), part.at, end)
        if at >= 0:
            return _extended(source, units, part, end, Run(index, index + 1, at))
    return None


def _extended(source: bytes, units: Units, part: Run, end: int, run: Run) -> Run:
    """Return a run with the units around it that stand around it in the new file too."""
    bounds, shift = units.bounds, run.at - units.bounds[run.first]
    first, last = run.first, run.last
    while first > part.first and bounds[first - 1] + shift >= part.at:
        if not source.startswith(units.text(first - 1), bounds[first - 1] + shift):
            break
        first -= 1
    while last < part.last and bounds[last + 1] + shift <= end:
        if not source.startswith(units.text(last), bounds[last] + shift):
            break
        last += 1
    return Run(first, last, bounds[first] + shift)


def common_prefix(one: bytes, other: bytes, limit: int) -> int:
    """Return the length of the common prefix, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: bytes, other: bytes, limit: int) -> int:
    """Return the length of the common suffix, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[len(other) - middle : len(other) - low], len(one) - middle):
            low = middle
        else:
            high = middle - 1
    return low
