"""Commits: the walk over a branch's whole history, the window, and one commit's message and people."""

import codecs
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from typing import IO, NamedTuple

from miners.git_process import ObjectReader, check_object_id, first_lines, run_git, start_git
from schemas.config import WindowConfig
from schemas.errors import DataError
from schemas.records import CommitRecord, Exclusion, Kept

STAGE = "commits"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# git's own rule (split_ident_line): behind the last `>` digits, then a sign and digits; anything else is no date.
_USUAL_HEADER = re.compile(
    rb"tree [0-9a-f]+\n(?P<parents>(?:parent [0-9a-f]+\n)*)"
    rb"author [^\n]*> (?P<author>[0-9]+) (?P<author_zone>[+-][0-9]+)\n"
    rb"committer [^\n]*> (?P<committer>[0-9]+) (?P<committer_zone>[+-][0-9]+)\n"
)
_PERSON = re.compile(rb"(?P<person>.*>)[ \t]*(?P<epoch>[0-9]+) (?P<zone>[+-][0-9]+)\s*", re.DOTALL)

# Python's own codecs: https://docs.python.org/3/library/codecs.html#python-specific-encodings. No text editor or git
# client means them, and what they make of other text is not what its author saw.
_PYTHON_CODECS = frozenset(
    {"idna", "mbcs", "oem", "palmos", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
)

# Names of accounts that write commits by program, in a person's name or in the local part of the address. "[bot]" is
# GitHub's suffix of every app account; the others are often met under a name of their own. Whole words, case apart.
_BOT = re.compile(
    r"\[bot\]|\b(?:dependabot(?:-preview)?|renovate(?:-bot|bot)?|pre-commit-ci|github[- ]actions?|greenkeeper(?:io)?"
    r"|pyup(?:-bot|\.io bot)|weblate|copybara(?:-service)?|imgbot|allcontributors|mergify|transifex-integration"
    r"|deepsource-autofix|restyled-io|autofix-ci|gitlocalize-app|[\w.]+-bot)\b",
    re.IGNORECASE,
)
# Addresses whose local part tells nothing; people of the same companies commit from other addresses.
_BOT_ADDRESSES = frozenset(
    {
        "action@github.com",
        "actions@github.com",
        "bot@renovateapp.com",
        "support@greenkeeper.io",
        "noreply@weblate.org",
        "hosted@weblate.org",
    }
)


class CommitHeader(NamedTuple):
    """What the window and the order of a commit depend on.

    A named tuple: a history has many, and frozen dataclasses cost twice as much to make and to hand to a worker.
    """

    commit_id: str
    """Full hexadecimal commit id."""
    parent_ids: tuple[str, ...]
    """Parents in order; empty for a root commit."""
    author_epoch: int | None
    """Author date in seconds since 1970 UTC, null when git cannot read it."""
    author_zone: str
    """Author's zone as written, such as `+0100` or `+51800`; it does not change the moment."""
    committer_epoch: int | None
    """Committer date in seconds since 1970 UTC, null when git cannot read it."""
    committer_zone: str
    """Committer's zone as written."""
    readable: bool = True
    """False for a commit object that is missing or corrupt: its parents and dates are not known."""

    @property
    def author_date(self) -> datetime | None:
        """Return the author date in UTC; None when unreadable or beyond the year 9999."""
        return _moment(self.author_epoch)

    @property
    def committer_date(self) -> datetime | None:
        """Return the committer date in UTC; None when unreadable or beyond the year 9999."""
        return _moment(self.committer_epoch)


def walk(git_dir: Path, head: str) -> list[CommitHeader]:
    """Return all commits reachable from `head`, parents before children, in git's topological order.

    Nothing is filtered by date: clocks are skewed in real histories and a parent may be younger than its child.
    A commit object that is missing or corrupt is listed as not readable; what lies behind it cannot be known.
    Raises DataError `history_broken` when that is `head` itself.
    """
    check_object_id(head)
    ids = start_git(
        git_dir, "rev-list", "--topo-order", "--reverse", head, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    if ids.stdout is None or ids.stderr is None:
        raise DataError("git_failed", "rev-list has no pipes")
    cat = start_git(git_dir, "cat-file", "--batch", "--buffer", stdin=ids.stdout, stderr=subprocess.DEVNULL)
    ids.stdout.close()
    with ids, cat:
        headers = _headers(cat.stdout) if cat.stdout else None
        if headers is None and cat.stdout:
            cat.stdout.close()  # lets both processes end
        problem = ids.stderr.read()
    if headers is not None and ids.returncode == 0 and cat.returncode == 0:
        return headers
    around = _walk_around(git_dir, head)
    if not around[-1].readable:
        raise DataError("history_broken", first_lines(problem) or "git cannot read the newest commit")
    return around


def _headers(stream: IO[bytes]) -> list[CommitHeader] | None:
    """Parse the output of `git cat-file --batch` over commits; None when it names an object it cannot give."""
    headers = []
    while line := stream.readline():
        parts = line.split()
        if len(parts) != 3:
            return None
        data = stream.read(int(parts[2]) + 1)
        headers.append(parse_header(parts[0].decode(), data))
    return headers


def _walk_around(git_dir: Path, head: str) -> list[CommitHeader]:
    """Walk commit by commit, past objects at which `git rev-list` gives up; slower, parents first as well."""
    found: dict[str, CommitHeader] = {}
    pending = [head]
    with ObjectReader(git_dir) as reader:
        while pending:
            commit_id = pending.pop()
            if commit_id not in found:
                found[commit_id] = _read_header(reader, commit_id)
                pending.extend(found[commit_id].parent_ids)
    order = TopologicalSorter({commit_id: header.parent_ids for commit_id, header in found.items()})
    return [found[commit_id] for commit_id in order.static_order()]


def _read_header(reader: ObjectReader, commit_id: str) -> CommitHeader:
    try:
        kind, data = reader.read(commit_id)
    except DataError:
        kind, data = "", b""
    if kind != "commit":
        return CommitHeader(commit_id, (), None, "", None, "", readable=False)
    return parse_header(commit_id, data)


def parse_header(commit_id: str, data: bytes) -> CommitHeader:
    """Return the header of a raw commit object."""
    usual, end = _USUAL_HEADER.match(data), data.find(b"\n\n")
    if usual is not None and end >= 0 and data.find(b"\nparent", usual.end() - 1, end) < 0:
        parents = tuple(usual["parents"].decode().replace("parent ", "").split("\n")[:-1])
        author = int(usual["author"]), usual["author_zone"].decode()
        return CommitHeader(commit_id, parents, *author, int(usual["committer"]), usual["committer_zone"].decode())
    fields = _fields(data)
    parents = tuple(value.decode("ascii", "replace") for name, value in fields if name == b"parent")
    author_epoch, author_zone = _date(_first(fields, b"author"))
    committer_epoch, committer_zone = _date(_first(fields, b"committer"))
    return CommitHeader(commit_id, parents, author_epoch, author_zone, committer_epoch, committer_zone)


def select(headers: Sequence[CommitHeader], window: WindowConfig, now: datetime, repo: str) -> Kept[CommitHeader]:
    """Return the commits whose author and committer date both lie in [since, until), in the given order.

    A commit that is not readable (`commit_unreadable`), has a date that git cannot read (`date_invalid`) or one later
    than `now` (`date_in_future`) is excluded first, in this order; then one outside the window on one clock only
    (`author_date_outside`, `committer_date_outside`). A commit outside on both clocks, be it before the window on
    one and behind it on the other, is no candidate: neither a row nor an exclusion.
    """
    kept: list[CommitHeader] = []
    excluded: list[Exclusion] = []
    since, until, latest = (_seconds(when) for when in (window.since, window.until, now))
    for header in headers:
        author, committer = header.author_epoch, header.committer_epoch
        if author is None or committer is None:
            excluded.append(_exclusion(repo, header, "date_invalid" if header.readable else "commit_unreadable"))
            continue
        inside = _inside(author, since, until), _inside(committer, since, until)
        if latest is not None and max(author, committer) > latest:
            excluded.append(_exclusion(repo, header, "date_in_future"))
        elif inside == (True, True):
            kept.append(header)
        elif inside == (False, True):
            excluded.append(_exclusion(repo, header, "author_date_outside"))
        elif inside == (True, False):
            excluded.append(_exclusion(repo, header, "committer_date_outside"))
    return Kept(kept, excluded)


def read_commit(reader: ObjectReader, commit_id: str, repo: str) -> CommitRecord:
    """Return a commit's message and dates; raise DataError `date_invalid` or as `ObjectReader.read` does.

    The message is decoded by the commit's `encoding` header, UTF-8 without one; with an encoding that is unknown or
    Python's own, or bytes that are not in it, it is decoded as UTF-8 and bad bytes become U+FFFD. It is well-formed
    Unicode whatever the encoding.
    """
    kind, data = reader.read(commit_id)
    if kind != "commit":
        raise DataError("commit_unreadable", f"{commit_id} is a {kind}")
    header = parse_header(commit_id, data)
    if header.author_date is None or header.committer_date is None:
        raise DataError("date_invalid", f"{commit_id} has a date that cannot be read")
    fields = _fields(data)
    encoding = _first(fields, b"encoding").decode("ascii", "replace").strip() or "utf-8"
    people = [_first(fields, b"author"), _first(fields, b"committer")]
    return CommitRecord(
        repo=repo,
        commit_id=commit_id,
        parent_ids=header.parent_ids,
        author_date=header.author_date,
        committer_date=header.committer_date,
        commit_message=decode_text(data.partition(b"\n\n")[2], encoding),
        author_is_bot=any(is_bot(decode_text(person, encoding)) for person in people),
    )


def is_bot(person: str) -> bool:
    """Say whether `Name <address>` is one that a bot uses; GitHub's web committer `noreply@github.com` is none."""
    name, _, rest = person.rpartition("<")
    address = rest.partition(">")[0]
    local_part = address.rpartition("@")[0]
    return address.lower() in _BOT_ADDRESSES or any(_BOT.search(text) is not None for text in (name, local_part))


def _fields(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return the header lines of a commit object as (name, value); continuation lines are left out."""
    head = data.partition(b"\n\n")[0]
    lines = (line.partition(b" ") for line in head.split(b"\n") if not line.startswith(b" "))
    return [(name, value) for name, _, value in lines]


def _first(fields: Sequence[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    return next((value for name, value in fields if name == wanted), b"")


def _date(person: bytes) -> tuple[int | None, str]:
    found = _PERSON.fullmatch(person)
    return (int(found["epoch"]), found["zone"].decode()) if found else (None, "")


def _moment(epoch: int | None) -> datetime | None:
    try:
        return None if epoch is None else _EPOCH + timedelta(seconds=epoch)
    except OverflowError:
        return None


def _seconds(when: datetime | None) -> float | None:
    return None if when is None else when.timestamp()


def _inside(epoch: int, since: float | None, until: float | None) -> bool:
    return (since is None or epoch >= since) and (until is None or epoch < until)


def _exclusion(repo: str, header: CommitHeader, reason: str) -> Exclusion:
    dates = [f"author {_show(header.author_epoch)}", f"committer {_show(header.committer_epoch)}"]
    return Exclusion(f"{repo}@{header.commit_id}", STAGE, reason, ", ".join(dates))


def _show(epoch: int | None) -> str:
    moment = _moment(epoch)
    return moment.isoformat() if moment else ("unreadable" if epoch is None else f"{epoch} s after 1970")


def decode_text(data: bytes, encoding: str, errors: str = "strict") -> str:
    """Return bytes of a declared encoding as well-formed Unicode.

    `errors` is how the encoding's codec treats bytes that are not in it; where it fails, and for an encoding that is
    unknown or one of Python's own (`unicode_escape`, `idna` ...), the text is UTF-8 and bad bytes become U+FFFD.
    """
    try:
        if codecs.lookup(encoding).name.replace("_", "-") in _PYTHON_CODECS:
            raise LookupError(encoding)
        return well_formed(data.decode(encoding, errors))
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")


def well_formed(text: str) -> str:
    """Return text with pairs of surrogates joined and lone ones, which have no UTF-8 form, as U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def count_commits(git_dir: Path, head: str) -> int:
    """Return the number of commits reachable from `head`."""
    return int(run_git(git_dir, "rev-list", "--count", check_object_id(head)))
