"""What changed between two releases, as the manifest, the card and `release diff` tell it."""

from dataclasses import dataclass
from enum import StrEnum

# Why a release lacks a row of which its exclusions say nothing.
CONCLUSIONS = {
    "no_such_testbed": "the release has no such testbed",
    "outside_window": "its commit is outside the release's window",
    "other_repository": "the release was not made from its repository",
    "other_head": "its repository's head is another one, from which the row does not come",
    "read_otherwise": "head and window are the same: configuration, opt-outs or code differ",
}


class Kind(StrEnum):
    """What became of a row."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Cause:
    """One difference between what two releases were made from."""

    what: str
    """`repository <name>`, `reference <name>`, `rows opted out`, `configuration <key>`, or a version's name."""
    before: str | None
    """Head, digest, value or version in the earlier release; null for what was not there."""
    after: str | None
    """The same in the later one."""


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Rows of one testbed that changed for one reason."""

    change: Kind
    """What became of them."""
    reason: str
    """Why: a reason of the exclusions, a word of `release diff` (docs/release.md), or the columns that differ."""
    rows: int
    """How many."""


@dataclass(frozen=True, slots=True)
class TestbedChange:
    """What changed in one testbed."""

    __test__ = False  # pytest takes the name for a test class

    testbed: str
    """Its name."""
    before: int
    """Rows in the earlier release."""
    after: int
    """Rows in the later one."""
    added: int
    """Rows that only the later one has."""
    removed: int
    """Rows that only the earlier one has."""
    changed: int
    """Rows of both of which a column differs."""
    reasons: tuple[ReasonCount, ...]
    """Why, most rows first."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since an earlier release."""

    version: str
    """Version of the earlier release."""
    manifest_sha256: str
    """SHA-256 of its manifest."""
    causes: tuple[Cause, ...]
    """What it was made from that differs."""
    testbeds: tuple[TestbedChange, ...]
    """What changed in each testbed, also in those without a change."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row that changed."""

    testbed: str
    """The testbed."""
    change: Kind
    """What became of it."""
    row_id: str
    """The row."""
    repo: str
    """owner/name."""
    fun_name: str
    """Qualified name."""
    reason: str
    """Why, as in `ReasonCount`."""
    detail: str
    """The detail of the exclusion; empty without one."""
