"""Which lines of a text begin a definition, and which definitions another version of the text changes: no parsing.

A text is cut at the lines that begin a definition. Each piece reaches to the next such line, so that a definition is
one piece or, with others inside, some pieces in a row. What lies before the first such line is the first piece, the
top, and begins no definition.
"""

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from miners.units import common_prefix, common_suffix

# `def` and what may stand behind it; what stands before it on the line is looked at one by one.
_KEYWORD = re.compile(rb"def[ \t\\]")
_LINE = re.compile(rb"[^\r\n]*")
_BLANK = b" \t\f"
_TAB = 8  # columns, https://docs.python.org/3/reference/lexical_analysis.html#indentation
_AT_END = -1


class Outline(NamedTuple):
    """Where the pieces of a text are."""

    starts: list[int]
    """Offset of each piece, ascending, the top's first."""
    columns: list[int]
    """Column of the first character of each piece's line, 0 for the top."""
    odd: bool
    """Some piece has an odd number of triple quotes: a string may hold lines that look like definitions."""


class _Part(NamedTuple):
    """Some pieces in a row."""

    texts: list[bytes]
    """Their texts."""
    columns: list[int]
    """Their columns and that of the piece behind them, `_AT_END` without one."""


class _Changes(NamedTuple):
    """How a part differs from another version of it."""

    touched: set[int]
    """Indexes of pieces that are new or may have other decorators; the one behind them may be among them."""
    lost: dict[int, int]
    """Index of each known piece behind which something else stood, and the greater column of that and of what stands
    there now: definitions further to the left reached over one of them."""


def outline(text: bytes) -> Outline:
    """Return the pieces of a text."""
    starts, columns = _cut(text, 0, len(text), top=True)
    return Outline(starts, columns, _any_odd(text, starts))


class Revision(NamedTuple):
    """Two versions of a text."""

    old: Outline
    """The pieces of the one before."""
    new: Outline
    """The pieces of the other."""
    changed: list[int]
    """Which of these begin definitions that the one before has not, ascending. All such ones are named, and some
    others: whoever has to know compares them."""


def revise(old_text: bytes, old: Outline | None, text: bytes, new: Outline | None = None) -> Revision:
    """Return the pieces of two versions of a text and what the second one changes; outlines that are known spare work.

    Only what lies between their common beginning and common end is cut anew.
    """
    if old is None and new is not None:
        pair = _pair(text, new, old_text, None)
        both = Revision(pair.outline, new, [])
        changes = _compare(pair.other, pair.known)
    else:
        old = outline(old_text) if old is None else old
        pair = _pair(old_text, old, text, new)
        both = Revision(old, pair.outline, [])
        changes = _compare(pair.known, pair.other)
    return both._replace(changed=_changed(text, both.new, changes, pair.first))


class _Pair(NamedTuple):
    """What differs between two texts."""

    known: _Part
    """The part of the one whose pieces were known."""
    other: _Part
    """The part of the other."""
    outline: Outline
    """The pieces of the other."""
    first: int
    """Index of the first piece of both parts."""


def _pair(known_text: bytes, known: Outline, text: bytes, new: Outline | None) -> _Pair:
    """Return the parts in which two texts differ, and the pieces of the second one unless they are given."""
    starts = known.starts
    limit = min(len(text), len(known_text))
    head = common_prefix(text, known_text, limit)
    tail = common_suffix(text, known_text, limit - head)
    # The last piece whose first line ends before the difference, and the first one that starts behind it.
    first = bisect_right(starts, head) - 1
    while first and text.find(b"\n", starts[first], head) < 0:
        first -= 1
    last = bisect_right(starts, len(known_text) - tail)
    bounds = [*starts[first : last + 1], len(known_text)][: last - first + 1]
    shift = len(text) - len(known_text)
    if new is None:
        cuts, columns = _cut(text, starts[first], bounds[-1] + shift, top=first == 0)
    else:
        end = len(new.starts) - len(starts) + last
        cuts, columns = new.starts[first:end], new.columns[first:end]
    behind = known.columns[last : last + 1] or [_AT_END]
    part = _Part(_texts(known_text, bounds), known.columns[first:last] + behind)
    other = _Part(_texts(text, [*cuts, bounds[-1] + shift]), columns + behind)
    if new is None:
        odd = known.odd or any(map(_is_odd, set(other.texts).difference(part.texts)))
        starts = starts[:first] + cuts + ([start + shift for start in starts[last:]] if shift else starts[last:])
        columns = known.columns[:first] + columns + known.columns[last:]
        new = Outline(starts, columns, odd and _any_odd(text, starts))
    return _Pair(part, other, new, first)


def _changed(text: bytes, new: Outline, changes: _Changes, first: int) -> list[int]:
    """Return the pieces of a text that changes of its part from a piece on may concern."""
    if new.odd:
        ends = [first + index for index in (*changes.touched, *changes.lost)]
        pieces = _texts(text, [*new.starts, len(text)])
        if ends and next(index for index, piece in enumerate(pieces) if _is_odd(piece)) <= max(ends):
            # a string may hold lines of any indentation
            return list(range(1, min(max(ends) + 1, len(new.starts))))
    return _around(new.columns, changes, first)


def _any_odd(text: bytes, starts: Sequence[int]) -> bool:
    if b'"""' not in text and b"'''" not in text:
        return False
    return any(map(_is_odd, _texts(text, [*starts, len(text)])))


def line_at(text: bytes, start: int) -> bytes:
    """Return the rest of the line from an offset on, without its end."""
    found = _LINE.match(text, start)
    return b"" if found is None else found.group()


def _compare(old: _Part, new: _Part) -> _Changes:
    """Return how a part differs; both begin with the same line, and behind both stands the same."""
    known, kept = set(old.texts), set(new.texts)
    before = [index for index, text in enumerate(old.texts) if text in kept]
    after = [index for index, text in enumerate(new.texts) if text in known]
    if [old.texts[index] for index in before] != [new.texts[index] for index in after]:
        return _Changes(set(range(len(new.columns))), {})  # nobody knows which is which
    touched = set(range(len(new.texts))).difference(after)
    if before and (before[0] or after[0]):
        touched.add(0)  # the first piece was another one, whose first line alone is the same
    lost, behind = {}, set[int]()
    pairs = zip(pairwise([*before, len(old.texts)]), pairwise([*after, len(new.texts)]), strict=True)
    for (was, was_next), (now, now_next) in pairs:
        column = old.columns[was + 1]
        if was_next > was + 1 or (now_next > now + 1 and new.columns[now + 1] < column):
            lost[now] = max(column, new.columns[now + 1])  # what was behind it may go on with those before now
        if now_next > now + 1 and b"@" in new.texts[now]:
            behind.add(now_next)  # what stands between took its decorators
    decorated = any(b"@" in text for text in known - kept)
    behind |= {index + 1 for index in (*touched, *lost) if decorated or b"@" in new.texts[index]}
    return _Changes(touched | behind, lost)


def _around(columns: Sequence[int], changes: _Changes, first: int) -> list[int]:
    """Return the pieces that changed and those that may be around them or around what was lost."""
    touched = {first + index for index in changes.touched}
    lost = {first + index: column for index, column in changes.lost.items()}
    left = len(touched) + len(lost)
    found, column = [], -1
    for index in range(max([*touched, *lost], default=0), 0, -1):
        if index == len(columns):  # behind the last piece
            left -= 1
            continue
        if index in lost:
            column = max(column, lost[index])
            left -= 1
        if index in touched:
            found.append(index)
            column = columns[index]
            left -= 1
        elif columns[index] < column:
            found.append(index)
            column = columns[index]
        if column <= 0 and not left:
            break
    return found[::-1]


def _texts(text: bytes, bounds: Iterable[int]) -> list[bytes]:
    return [text[start:end] for start, end in pairwise(bounds)]


def _is_odd(text: bytes) -> bool:
    return (text.count(b'"""') + text.count(b"'''")) % 2 == 1


def _cut(text: bytes, begin: int, end: int, *, top: bool) -> tuple[list[int], list[int]]:
    """Return the starts and columns of the pieces between two line starts, that of the top included if wanted."""
    starts, columns = ([0], [0]) if top else ([], [])
    has_returns, has_tabs = (any(text.find(char, begin, end) >= 0 for char in chars) for chars in (b"\r", b"\t\f"))
    line, done = begin, -1
    for match in _KEYWORD.finditer(text, begin, end):
        at, since = match.start(), max(done, begin)
        feed = text.rfind(b"\n", since, at)
        if has_returns:
            feed = max(feed, text.rfind(b"\r", since if feed < 0 else feed, at))
        same_line, done = feed < 0 <= done, at
        if same_line:
            continue
        if feed >= 0:
            line = feed + 1
        lead = text[line:at]
        is_blank = not lead.strip(_BLANK)
        if is_blank or _is_async(lead, line):
            starts.append(line)
            columns.append(len(lead) if is_blank and not has_tabs else _column(lead))
    return starts, columns


def _is_async(lead: bytes, line: int) -> bool:
    """Tell whether what stands before `def` is `async`, or at the beginning of a file its byte order mark."""
    if line == 0:
        lead = lead.removeprefix(BOM_UTF8)
    return lead.strip(_BLANK) in (b"", b"async") and lead[-1:] in (b"", b" ", b"\t")


def _column(lead: bytes) -> int:
    """Return the column of the first character of a line, given what stands before its `def`."""
    indent = lead[: len(lead) - len(lead.lstrip(_BLANK))]
    if b"\t" in indent or b"\f" in indent:
        return len(indent[indent.rfind(b"\f") + 1 :].expandtabs(_TAB))
    return len(indent)
