"""Tombstones: the section of a card on the Hub that tells which versions were withdrawn, when and why."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from publishing.markdown import code, plain, table

_MARK = "<!-- postquem: withdrawn versions -->"
_TITLE = "## Withdrawn versions"
_NOTE = "Their rows are no longer offered; copies that were made before are not reached by this."
_ROW = re.compile(r"\| `(?P<version>[^`]+)` \| (?P<day>\d{4}-\d\d-\d\d) \| (?P<reason>.*) \|")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A withdrawn version."""

    version: str
    """The version."""
    day: date
    """Day of the withdrawal, UTC."""
    reason: str
    """Why, as published: one line of Markdown."""


def split_card(card: str) -> tuple[str, tuple[Tombstone, ...]]:
    """Return a card without its tombstones, and these, sorted by version."""
    text, mark, section = card.partition(f"\n{_MARK}\n")
    if not mark:
        return card, ()
    rows = [match for line in section.splitlines() if (match := _ROW.fullmatch(line))]
    stones = (Tombstone(row["version"], date.fromisoformat(row["day"]), row["reason"]) for row in rows)
    return text, tuple(sorted(stones, key=lambda stone: stone.version))


def original_card(content: bytes) -> bytes:
    """Return a card's bytes without tombstones: those of the release that was pushed."""
    return split_card(content.decode("utf-8", "surrogateescape"))[0].encode("utf-8", "surrogateescape")


def with_tombstones(card: str, stones: Sequence[Tombstone]) -> str:
    """Return a card without tombstones with these ones behind it; the card itself when there are none."""
    if not stones:
        return card
    rows = [
        [code(stone.version), stone.day.isoformat(), stone.reason]
        for stone in sorted(stones, key=lambda stone: stone.version)
    ]
    listed = table(["version", "withdrawn on", "reason"], rows)
    return f"{card}\n{_MARK}\n{_TITLE}\n\n{_NOTE}\n\n{listed}\n"


def tombstone(version: str, day: date, reason: str) -> Tombstone:
    """Return the tombstone of a version; its reason becomes one line of plain Markdown."""
    return Tombstone(version, day, plain(reason))


def empty_card(name: str) -> str:
    """Return the card of a repository whose newest version was withdrawn."""
    return (
        f"---\ntags:\n- code\n---\n# {plain(name)}\n\nThe newest version was withdrawn, and this branch holds no data. "
        "Older versions, if any, are under their tags.\n"
    )
