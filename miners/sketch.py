"""Which unparsed files may hold a definition's tokens: how its text begins, read by expressions and not by a parser.

A sketch is the beginning of a definition's characters from its parameters on, without white space, comments and
docstring: definitions with equal tokens, their own names apart, have equal ones. Where an expression cannot tell how
the text goes on, the sketch stops, and everything that begins with it may be the same.
"""

import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

_DEFINITION = re.compile(rb"def(?![A-Za-z0-9_])")
_BLANK = b" \t\f\r\n\\"
# Long enough to tell all but copies apart, short enough to keep one of each definition: 80 characters, which stand in
# 400 bytes of almost any text.
_LENGTH = 80
_WINDOW = 400
_END = b"\0"  # behind the last character of a definition; no source has it
_WORD = rb"A-Za-z0-9_\x80-\xff"
# One-line strings, but none whose braces may hold other ones.
_STRING = rb"(?:(?<![fFtT])(?<![fFtT][rR])(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'))"
_PLAIN = rb"[^()\"'#\\]|#[^\n]*+|" + _STRING
_WORD_CHAR = re.compile(rb"[" + _WORD + rb"]")
_NAMED = re.compile(rb"def[ \t]+([" + _WORD + rb"]+)[ \t]*+")
# What stands in parentheses, one more pair of them inside at most.
_INSIDE = rb"(?:" + _PLAIN + rb"|\((?:" + _PLAIN + rb")*+\))*+"
HEADER = re.compile(
    _NAMED.pattern + rb"(\(" + _INSIDE + rb"\)(?:[^:\"'#\\\n]|" + _STRING + rb")*+:)",
    re.DOTALL,
)
TRIVIA = re.compile(rb"(?:[ \t\f\r\n\\]|#[^\r\n]*)*+")
DOCSTRING = re.compile(
    rb"[rRuU]?(?:\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    rb"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')[ \t]*+(?:#[^\r\n]*+)?(?=[\r\n]|\Z)",
    re.DOTALL,
)
# What may be another string that opens a body, in parentheses or not: none when an operator follows on these.
STRINGLIKE = re.compile(rb"[A-Za-z]{0,2}[\"']|\((?!" + _INSIDE + rb"\)[ \t]*+[-+*/%@&|^<>=!.(\[])", re.DOTALL)
_UNCLEAR = re.compile(rb"[:\"'#\\]")
_ONE_STRING = re.compile(_STRING, re.DOTALL)
_QUOTE_OR_HASH = re.compile(rb"[\"'#]")
_LONE_CR = re.compile(rb"\r(?!\n)")
_DIGEST_BYTES = 16
# A piece whose sketch stops is looked at anew with so many bytes, for the sake of long docstrings with examples.
_MAX_PIECE = 4_000
_LONGER = -1
_KEY = 8  # characters by which sketches are found that begin with a given one


class Sketch(NamedTuple):
    """How a definition begins."""

    name: bytes
    """Its own name, empty when it is not clear."""
    texts: tuple[bytes, ...]
    """The characters, and once more with the own name replaced when it is among them; `_LENGTH`, or up to the end."""
    stopped: tuple[bool, ...]
    """For each whether it ends where it goes on unseen."""


def sketch(text: bytes, at: int, *, whole: bool) -> Sketch:
    """Return the sketch of the definition whose `def` stands at an offset.

    `whole` says that the text ends with the definition. Else it begins with the line that the definition begins with,
    and goes on behind it.
    """
    name, raw, done = _beginning(text, at, whole=whole)
    own = list(_words(raw, name)) if name else []
    texts, stopped = [raw.translate(None, _BLANK)], [not done]
    if own:
        quote = _QUOTE_OR_HASH.search(raw)
        plain = [at for at in own if quote is None or at < quote.start()]  # in a string it would be no name
        is_cut = len(plain) < len(own)
        starts, ends = [0, *(at + len(name) for at in plain)], [*plain, own[len(plain)] if is_cut else len(raw)]
        texts.append(b"?".join(raw[start:end] for start, end in zip(starts, ends, strict=True)).translate(None, _BLANK))
        stopped.append(not done or is_cut)
    for index, found in enumerate(texts):
        if len(found) >= _LENGTH:
            texts[index], stopped[index] = found[:_LENGTH], False
        elif not stopped[index]:
            texts[index] = (found + _END)[:_LENGTH]
    return Sketch(name, tuple(texts), tuple(stopped))


def opening(text: bytes, at: int) -> bytes:
    """Return the characters of which sketches are made, and beyond a short definition's end what follows it.

    Of two definitions with equal tokens, one of which stands alone, the one's opening begins with the other's.
    """
    header = HEADER.match(text, at)
    if header is None:
        return b""
    found, clear = _uncommented(header[2])
    if clear:
        _, body = _body(text, header.end())
        if not STRINGLIKE.match(text, body):
            found += _uncommented(text[body : body + _WINDOW])[0]
    return found.translate(None, _BLANK)[:_LENGTH]


def _beginning(text: bytes, at: int, *, whole: bool) -> tuple[bytes, bytes, bool]:
    """Return a definition's name, its characters from the parameters on, and whether they go on to its end."""
    header = HEADER.match(text, at)
    if header is None:
        named = _NAMED.match(text, at)
        if named is None:
            return b"", b"", False
        unclear = _UNCLEAR.search(text, named.end())
        return named[1], text[named.end() : unclear.start() if unclear else named.end()], False
    params, clear = _uncommented(header[2])
    if not clear:
        return header[1], params, False
    begin, body = _body(text, header.end())
    end = len(text) if whole else _end(text, at, begin)
    if end <= body and end >= 0:
        return header[1], params, True
    if STRINGLIKE.match(text, body):
        return header[1], params, False
    part = text[body : min(end if end >= 0 else len(text), body + _WINDOW)]
    odd = not whole and _is_odd(text, at, part)
    if odd:
        part = part[: min((found for char in b"\r\n" if (found := part.find(char)) >= 0), default=len(part))]
    part, clear = _uncommented(part)
    done = clear and not odd and 0 <= end <= body + _WINDOW
    return header[1], params + part, done and (whole or _is_balanced(part))


def _body(text: bytes, at: int) -> tuple[int, int]:
    """Return the offset behind a header and the docstring after it, and where the rest of the body begins."""
    body = behind_trivia(text, at)
    docstring = DOCSTRING.match(text, body)
    return (at, body) if docstring is None else (docstring.end(), behind_trivia(text, docstring.end()))


def behind_trivia(text: bytes, at: int) -> int:
    """Return the offset behind the white space, line ends, continuations and comments that stand at an offset."""
    found = TRIVIA.match(text, at)
    return at if found is None else found.end()


def _end(text: bytes, at: int, begin: int) -> int:
    """Return where the first line behind an offset begins that is not indented more than the definition, or -1."""
    indent, _ = _lead(text, at)
    found = _line_within(indent[:1] or b" ", len(indent)).search(text, begin)
    return -1 if found is None else found.start()


def _lead(text: bytes, at: int) -> tuple[bytes, bytes]:
    """Return the blanks that the line of a `def` begins with, and what else stands before it."""
    lead = text[text.rfind(b"\n", 0, at) + 1 : at]
    before = lead.lstrip(b" \t")
    return lead[: len(lead) - len(before)], before


@lru_cache(maxsize=256)
def _line_within(blank: bytes, column: int) -> re.Pattern[bytes]:
    """Return what finds the line feed before a statement that is indented by no more than some blanks of one kind."""
    return re.compile(rb"\n(?=" + blank + rb"{0,%d}[^ \t\r\n\f#])" % column)


def _is_odd(text: bytes, at: int, part: bytes) -> bool:
    """Tell whether indentation is no plain matter in a body: mixed blanks, form feeds, lone carriage returns."""
    indent, before = _lead(text, at)
    if before.strip(b" \t") not in (b"", b"async") or b"\f" in part:
        return True
    tabs = indent.startswith(b"\t")
    mixed = b" " in indent or b"\n " in part if tabs else b"\t" in part
    return mixed or (b"\r" in part and _LONE_CR.search(part) is not None)


def _is_balanced(part: bytes) -> bool:
    """Tell whether no string, bracket or line is open at the end of a text."""
    if b'"' in part or b"'" in part:
        if b'"""' in part or b"'''" in part:
            return False
        part = _ONE_STRING.sub(b"", part)
        if b'"' in part or b"'" in part:
            return False
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    return b"\\" not in part and all(part.count(one) == part.count(other) for one, other in pairs)


def _uncommented(text: bytes) -> tuple[bytes, bool]:
    """Return code without its comments, or what stands before the first string that is not plain, and which it is."""
    if b"#" not in text:
        return text, True
    pieces, position, at = [], 0, 0
    while (found := _QUOTE_OR_HASH.search(text, at)) is not None:
        if found.group() == b"#":
            pieces.append(text[position : found.start()])
            end = text.find(b"\n", found.start())
            position = at = len(text) if end < 0 else end
            continue
        string = _ONE_STRING.match(text, found.start())
        if string is None or string.end() - string.start() == 2:
            return b"".join([*pieces, text[position : found.start()]]), False
        at = string.end()
    return b"".join([*pieces, text[position:]]), True


def _words(text: bytes, name: bytes) -> Iterator[int]:
    """Yield where a name stands as a word of its own."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not _WORD_CHAR.match(text, max(at - 1, 0), at) and not _WORD_CHAR.match(text, end):
            yield at
        at = text.find(name, end)


class SketchIndex:
    """The sketches of many files' definitions, each kept once however many versions of a file have it."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        # By number of a piece: the own name, and the blobs that have it.
        self._names: list[bytes] = []
        self._blobs: list[list[str]] = []
        # Numbers by sketch: those that are complete, and those that go on unseen. The replaced ones stand apart.
        self._complete: tuple[dict[bytes, list[int]], ...] = ({}, {})
        self._stopped: tuple[dict[bytes, list[int]], ...] = ({}, {})
        self._by_key: dict[bytes, list[bytes]] = defaultdict(list)

    def add(self, blob_id: str, text: bytes) -> None:
        """Add the definitions of a file."""
        for piece in _pieces(text):
            blobs = self._blobs[self._number(text, piece)]
            if not blobs or blobs[-1] is not blob_id:
                blobs.append(blob_id)

    def _number(self, text: bytes, piece: "_Piece") -> int:
        """Return the number of a piece of a text."""
        part = text[piece.line : piece.end] if piece.end < len(text) else text[piece.line :] + b"\n" + _END
        digest = blake2b(part, digest_size=_DIGEST_BYTES).digest()
        number = self._seen.get(digest)
        if number is None:
            found = sketch(part, piece.start - piece.line, whole=False)
            longer = found.stopped[0] and piece.end < min(piece.line + _MAX_PIECE, len(text))
            number = self._seen[digest] = _LONGER if longer else self._add_piece(found)
        return self._number(text, piece._replace(end=piece.line + _MAX_PIECE)) if number == _LONGER else number

    def _add_piece(self, found: Sketch) -> int:
        number = len(self._names)
        self._names.append(found.name)
        self._blobs.append([])
        for kind, (text, stopped) in enumerate(zip(found.texts, found.stopped, strict=True)):
            table = (self._stopped if stopped else self._complete)[kind]
            if text not in table:
                table[text] = []
                if not kind:
                    self._by_key[text[:_KEY]].append(text)
            table[text].append(number)
        return number

    def find(self, text: bytes, *, sound: bool) -> dict[str, bool]:
        """Return the blobs that may hold a definition's tokens, and for each whether under the same name.

        `text` is the definition with its decorators; `sound` says that no syntax error may have cut it short.
        """
        found: dict[str, bool] = {}
        for at in _starts(text, sound=sound):
            mine = sketch(text, at, whole=True)
            for number in self._numbers(mine, sound=sound):
                same = not mine.name or not self._names[number] or self._names[number] == mine.name
                for blob_id in self._blobs[number]:
                    found[blob_id] = same or found.get(blob_id, False)
        return found

    def _numbers(self, mine: Sketch, *, sound: bool) -> Iterator[int]:
        """Yield the pieces whose sketch is equal or begins or goes on like this one."""
        for kind, (text, stopped) in enumerate(zip(mine.texts, mine.stopped, strict=True)):
            if not sound and text.endswith(_END):
                text, stopped = text[:-1], True
            for length in range(len(text) + 1):
                yield from self._stopped[kind].get(text[:length], ())
            if not stopped:
                yield from self._complete[kind].get(text, ())
                continue
            for tables in (self._complete, self._stopped):
                for other in self._longer(text, tables[kind], kind):
                    yield from tables[kind][other]

    def _longer(self, text: bytes, table: dict[bytes, list[int]], kind: int) -> list[bytes]:
        """Return the sketches of a table that begin with one."""
        near: Iterable[bytes] = self._by_key.get(text[:_KEY], ()) if len(text) >= _KEY and not kind else table
        return [other for other in near if other.startswith(text) and other in table]


def _starts(text: bytes, *, sound: bool) -> list[int]:
    """Return where a definition's `def` may stand: its first one, or with decorators any that ends no longer word.

    Without syntax errors decorators end with their lines, so that nothing but `async` stands before it.
    """
    found = (match.start() for match in _DEFINITION.finditer(text))
    starts = [at for at in found if not _WORD_CHAR.match(text, max(at - 1, 0), at)]
    if not text.startswith(b"@"):
        return starts[:1]
    return [at for at in starts if _begins_line(text, at)] if sound else starts


def _begins_line(text: bytes, at: int) -> bool:
    """Tell whether nothing but blanks and `async` stands on a line before an offset."""
    line = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at)) + 1
    return text[line:at].strip(b" \t\f") in (b"", b"async")


class _Piece(NamedTuple):
    """A line that begins a definition and what follows it."""

    line: int
    start: int
    end: int


def _pieces(text: bytes) -> Iterator[_Piece]:
    """Yield the piece of each definition: from its line to the next one's, or longer."""
    starts = list(_first_on_lines(text))
    for (line, start), (following, _) in pairwise([*starts, (len(text), 0)]):
        yield _Piece(line, start, max(following, start + 2 * _WINDOW))


def _first_on_lines(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield (start of the line, offset of `def`) for the lines that begin a definition."""
    has_returns = b"\r" in text
    line, done = 0, -1
    for match in _DEFINITION.finditer(text):
        at = match.start()
        feed = text.rfind(b"\n", max(done, 0), at)
        if has_returns:
            feed = max(feed, text.rfind(b"\r", max(done, feed, 0), at))
        same_line, done = feed < 0 <= done, at
        if same_line:
            continue
        line = feed + 1
        lead = text[line:at] if line else text[:at].removeprefix(BOM_UTF8)
        if lead.strip(b" \t\f") in (b"", b"async"):
            yield line, at
