"""Which lines of a text begin a definition, and which definitions another version of the text changes: no parsing.

A text is cut at the lines that begin a definition. Each piece reaches to the next such line, so that a definition is
one piece or, with others inside, some pieces in a row. What lies before the first such line belongs to none.
"""

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from miners.units import common_prefix, common_suffix

# `def` and what may stand behind it; what stands before it on the line is looked at one by one.
_KEYWORD = re.compile(rb"def[ \t\\]")
_DECORATOR = re.compile(rb"^[ \t\f]*@", re.MULTILINE)
_LINE = re.compile(rb"[^\r\n]*")
_BLANK = b" \t\f"
_DIGEST_BYTES = 8  # of 1,000,000 different pieces two are taken for one with a probability of 1 in 40,000,000
_TAB = 8  # columns, https://docs.python.org/3/reference/lexical_analysis.html#indentation


class Piece(NamedTuple):
    """A line that begins a definition and what follows it up to the next one."""

    digest: bytes
    """Digest of the text."""
    indent: int
    """Column of the line's first character."""
    lead: int
    """Bytes of the line up to `def`, with that and the character behind it."""
    odd: bool
    """It has an odd number of triple quotes: a string may reach over its end."""
    decorates: bool
    """It has a line that begins with `@`, which may belong to the definition behind it."""


_END = Piece(b"", -1, 0, odd=False, decorates=False)
"""Stands behind the last piece."""
_NOWHERE = -1, _END


class Outline(NamedTuple):
    """The pieces of a text."""

    starts: list[int]
    """Offset of each piece, ascending."""
    pieces: list[Piece]
    """The pieces."""
    n_odd: int
    """How many of them are odd."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A version of a text beside the one before: the pieces in front of and behind some are the same."""

    old: Outline
    """The version before."""
    new: Outline
    """This version."""
    first: int
    """Index of the first piece that may differ, in both."""
    old_last: int
    """Index behind the last one in the version before."""
    new_last: int
    """Index behind the last one in this version."""
    decorated_anew: bool
    """The first piece or what stands before it has changed, and that may hold decorators."""

    def brought(self) -> list[int]:
        """Return the indexes of pieces that begin a definition which the version before did not have, ascending.

        All such definitions are named, and some others: whoever has to know compares them.
        """
        changed = self._changed()
        if not changed:
            return []
        pieces, last = self.new.pieces, max(changed)
        if self.new.n_odd and any(piece.odd for piece in pieces[: last + 1]):
            return list(range(last + 1))  # a string may hold lines that look like definitions of any indentation
        found, column = [], -1
        for index in range(last, -1, -1):
            indent = pieces[index].indent
            if index in changed or indent < column:  # itself, or one that may be around it
                found.append(index)
                changed.discard(index)
                column = indent
            if not column and not changed:
                break
        return found[::-1]

    def _changed(self) -> set[int]:
        """Return the indexes of pieces that are new, or known ones behind which something else follows now."""
        first, old, new = max(self.first - 1, 0), self.old.pieces, self.new.pieces
        top = set()
        if self.decorated_anew:  # the first piece of either version
            top = {index for index in range(min(self.new_last + 1, len(new))) if index == 0 or new[index] in old[:1]}
        if old[self.first : self.old_last] == new[self.first : self.new_last]:
            return top
        known = {piece.digest for piece in old[self.first : self.old_last]}
        changed = {index for index in range(self.first, self.new_last) if new[index].digest not in known}
        before, after = old[first : self.old_last + 1], new[first : self.new_last + 1]
        if self.new_last == len(new):
            before, after = [*before, _END], [*after, _END]
        if len(set(before)) < len(before) or len(set(after)) < len(after):
            # Of several equal ones nobody knows which is which.
            return set(range(first, min(self.new_last + 1, len(new))))
        follower = dict(pairwise(before))
        decorated = {behind for piece, behind in follower.items() if piece.decorates}
        moved = top
        for index, (piece, behind) in enumerate(pairwise(after), first):
            was_behind = follower.get(piece)
            if index in changed and behind is not _END and (piece.decorates or behind in decorated):
                moved.add(index + 1)
            if behind == was_behind or index in changed:
                continue
            known_next = behind is not _END and index + 1 not in changed
            # A new piece leaves the one before it as it was, unless it ends a definition around that.
            if known_next or (was_behind is not None and behind.indent < was_behind.indent):
                moved |= {index, index + 1} if known_next else {index}
        return changed | moved


def outline(text: bytes) -> Outline:
    """Return the pieces of a text."""
    starts, leads = _cut(text, 0, len(text))
    bounds = [*starts, len(text)]
    pieces = [_piece(text[start:end], lead) for start, end, lead in zip(starts, bounds[1:], leads, strict=True)]
    return Outline(starts, pieces, _n_odd(pieces))


def revise(old_text: bytes, old: Outline, text: bytes) -> Revision:
    """Return the pieces of a text beside those of another version; only what differs is looked at."""
    starts, pieces = old.starts, old.pieces
    limit = min(len(text), len(old_text))
    head = common_prefix(text, old_text, limit)
    tail = common_suffix(text, old_text, limit - head)
    # The last piece whose `def` is before the difference begins where it did; those before it end there too.
    first = bisect_right(starts, head) - 1
    while first >= 0 and starts[first] + pieces[first].lead > head:
        first -= 1
    begin = 0 if first < 0 else starts[first]
    first = max(first, 0)
    # The line before a piece may have changed, but not its end when that is behind the difference.
    last = bisect_right(starts, len(old_text) - tail)
    shift = len(text) - len(old_text)
    cuts, leads = _cut(text, begin, starts[last] + shift if last < len(starts) else len(text))
    known: dict[int, tuple[int, Piece]] = {}
    bounds = [*starts[first : last + 1], len(old_text)]
    for place, piece in enumerate(pieces[first:last]):
        known[bounds[place + 1] - bounds[place]] = bounds[place], piece
    found = []
    bounds = [*cuts, starts[last] + shift if last < len(starts) else len(text)]
    for start, end, lead in zip(cuts, bounds[1:], leads, strict=True):
        part = text[start:end]
        at, same = known.get(end - start, _NOWHERE)
        found.append(same if at >= 0 and old_text.startswith(part, at) else _piece(part, lead))
    behind = [start + shift for start in starts[last:]] if shift else starts[last:]
    n_odd = old.n_odd and old.n_odd - _n_odd(pieces[first:last])
    new = Outline(starts[:first] + cuts + behind, pieces[:first] + found + pieces[last:], n_odd + _n_odd(found))
    decorated_anew = first == 0 and _may_decorate(text, new, old_text, old)
    return Revision(old, new, first, last, first + len(found), decorated_anew)


def _may_decorate(text: bytes, new: Outline, old_text: bytes, old: Outline) -> bool:
    """Tell whether the first piece or what stands before it has changed, where one version may have decorators."""
    tops = [some[: found.starts[0] if found.starts else 0] for some, found in ((text, new), (old_text, old))]
    if tops[0] == tops[1] and new.pieces[:1] == old.pieces[:1]:
        return False
    return any(b"@" in top and _DECORATOR.search(top) is not None for top in tops)


def line_at(text: bytes, start: int) -> bytes:
    """Return the rest of the line from an offset on, without its end."""
    found = _LINE.match(text, start)
    return b"" if found is None else found.group()


def _cut(text: bytes, begin: int, end: int) -> tuple[list[int], list[bytes]]:
    """Return where lines that begin definitions start between two line starts, and what stands before their `def`."""
    starts, leads = [], []
    line, done = begin, -1
    for match in _KEYWORD.finditer(text, begin, end):
        at, since = match.start(), max(done, begin)
        feed = text.rfind(b"\n", since, at)
        feed = max(feed, text.rfind(b"\r", since if feed < 0 else feed, at))
        same_line, done = feed < 0 <= done, at
        if feed >= 0:
            line = feed + 1
        lead = b"" if same_line else text[line:at]
        if not same_line and (not lead.strip(_BLANK) or _is_async(lead, line)):
            starts.append(line)
            leads.append(lead)
    return starts, leads


def _is_async(lead: bytes, line: int) -> bool:
    """Tell whether what stands before `def` is `async`, or at the beginning of a file its byte order mark."""
    if line == 0:
        lead = lead.removeprefix(BOM_UTF8)
    return lead.strip(_BLANK) in (b"", b"async") and lead[-1:] in (b"", b" ", b"\t")


def _n_odd(pieces: Sequence[Piece]) -> int:
    return sum([piece.odd for piece in pieces])


def _piece(text: bytes, lead: bytes) -> Piece:
    indent = lead[: len(lead) - len(lead.lstrip(_BLANK))]
    column = len(indent)
    if b"\t" in indent or b"\f" in indent:
        column = len(indent[indent.rfind(b"\f") + 1 :].expandtabs(_TAB))
    quotes = text.count(b'"""') + text.count(b"'''")
    decorates = b"@" in text and _DECORATOR.search(text) is not None
    digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
    return Piece(digest, column, len(lead) + 4, odd=quotes % 2 == 1, decorates=decorates)
