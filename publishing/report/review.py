"""Marks that reviewers saved from the page: read, checked against the release, compared."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

from publishing.facts import read_columns
from publishing.report.figures import read_manifest
from publishing.report.page import MARKS_FORMAT, manifest_digest
from publishing.shards import EXCLUSIONS
from schemas.errors import ConfigError
from schemas.review import ReviewMark, ReviewReason

_Z = 1.959963984540054  # 97.5th percentile of the normal distribution: intervals hold 95%


@dataclass(frozen=True, slots=True)
class ReviewShare:
    """One reviewer's marks of one testbed."""

    reviewer: str
    """Reviewer."""
    testbed: str
    """Testbed."""
    reviewed: int
    """Rows with a mark."""
    valid: int
    """Rows marked valid."""
    low: float
    """Lower end of the 95% interval of the share of valid rows (Wilson 1927)."""
    high: float
    """Upper end."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers' marks of the same rows."""

    first: str
    """One reviewer."""
    second: str
    """The other."""
    both_valid: int
    """Rows that both mark valid."""
    only_first: int
    """Rows that only the first marks valid."""
    only_second: int
    """Rows that only the second marks valid."""
    both_invalid: int
    """Rows that neither marks valid."""
    observed: float | None
    """Share of equal marks; null without common rows."""
    kappa: float | None
    """Cohen's kappa (Educational and Psychological Measurement 20, 1960): 1 for full agreement, 0 for what chance
    gives; null where chance alone agrees on everything or there are no common rows."""
    kappa_error: float | None
    """Its standard error as in the same paper; null where kappa is."""
    disagreements: tuple[tuple[str, str], ...]
    """Testbed and row id of every unequal mark, sorted."""


def read_marks(folder: Path, paths: Sequence[Path]) -> list[ReviewMark]:
    """Return the marks of all files, sorted by reviewer, testbed and row id.

    Raises ConfigError for a file that is no file of marks, belongs to another release, marks a row that the release has
    not, and for two files of one reviewer that mark a row differently.
    """
    read_manifest(folder)
    found: dict[tuple[str, str, str], ReviewMark] = {}
    for path in paths:
        for mark in _read_file(path, manifest_digest(folder)):
            former = found.setdefault((mark.reviewer, mark.testbed, mark.row_id), mark)
            if former != mark:
                raise ConfigError(
                    f"{path}: {mark.reviewer} marks {mark.testbed} {mark.row_id} otherwise than in another file; "
                    "give each reviewer's newest file only"
                )
    marks = [found[key] for key in sorted(found)]
    _check_rows(folder, marks)
    return marks


def _read_file(path: Path, digest: str) -> list[ReviewMark]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != MARKS_FORMAT:
            raise ConfigError(f"{path} is no file of marks: its format is {content['format']!r}, not {MARKS_FORMAT!r}")
        release, reviewer = content["release"], content["reviewer"].strip()
        marks = [_mark(reviewer, item) for item in content["marks"]]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is no file of marks that the page saved: {type(error).__name__} {error}") from None
    if release["manifest_sha256"] != digest:
        raise ConfigError(f"{path} belongs to release {release['version']}, whose manifest is another one")
    if not reviewer:
        raise ConfigError(f"{path} does not name its reviewer")
    return marks


def _mark(reviewer: str, item: dict[str, Any]) -> ReviewMark:
    if not isinstance(item["valid"], bool):
        raise TypeError(f"valid is {item['valid']!r} in the mark of {item['row_id']}")
    reason = None if item["valid"] else ReviewReason(item["reason"])
    return ReviewMark(reviewer, str(item["testbed"]), str(item["row_id"]), item["valid"], reason, str(item["note"]))


def _check_rows(folder: Path, marks: Iterable[ReviewMark]) -> None:
    """Refuse marks of rows that the release does not have."""
    rows = read_manifest(folder)["rows"]
    wanted: dict[str, set[str]] = {}
    for mark in marks:
        wanted.setdefault(mark.testbed, set()).add(mark.row_id)
    for testbed, ids in sorted(wanted.items()):
        if testbed == EXCLUSIONS or testbed not in rows:
            raise ConfigError(f"the release has no testbed {testbed}, of which rows are marked")
        missing = ids - set(read_columns(folder, testbed, ["row_id"])["row_id"].to_pylist() if rows[testbed] else [])
        if missing:
            raise ConfigError(f"{testbed} of the release has no row {min(missing)}, which is marked")


def review_shares(marks: Sequence[ReviewMark]) -> list[ReviewShare]:
    """Return each reviewer's share of valid rows of each testbed, sorted."""
    groups: dict[tuple[str, str], list[bool]] = {}
    for mark in marks:
        groups.setdefault((mark.reviewer, mark.testbed), []).append(mark.valid)
    return [
        ReviewShare(*key, len(values), sum(values), *wilson_interval(sum(values), len(values)))
        for key, values in sorted(groups.items())
    ]


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95% score interval of a share (Wilson, JASA 22, 1927), without continuity correction."""
    share = successes / trials
    centre = (share + _Z**2 / (2 * trials)) / (1 + _Z**2 / trials)
    half = _Z / (1 + _Z**2 / trials) * sqrt(share * (1 - share) / trials + _Z**2 / (4 * trials**2))
    return 0.0 if not successes else centre - half, 1.0 if successes == trials else centre + half


def agreements(marks: Sequence[ReviewMark]) -> list[Agreement]:
    """Return the agreement of every two reviewers over the rows that both marked."""
    by_reviewer: dict[str, dict[tuple[str, str], bool]] = {}
    for mark in marks:
        by_reviewer.setdefault(mark.reviewer, {})[mark.testbed, mark.row_id] = mark.valid
    return [
        _agreement(first, second, by_reviewer[first], by_reviewer[second])
        for first, second in combinations(sorted(by_reviewer), 2)
    ]


def _agreement(
    first: str, second: str, marks: dict[tuple[str, str], bool], others: dict[tuple[str, str], bool]
) -> Agreement:
    common = sorted(marks.keys() & others.keys())
    cells = [(marks[row], others[row]) for row in common]
    yes, left, right = cells.count((True, True)), cells.count((True, False)), cells.count((False, True))
    no = len(cells) - yes - left - right
    observed, kappa, error = _kappa(yes, left, right, no)
    unequal = tuple(row for row in common if marks[row] != others[row])
    return Agreement(first, second, yes, left, right, no, observed, kappa, error, unequal)


def _kappa(yes: int, left: int, right: int, no: int) -> tuple[float | None, float | None, float | None]:
    """Return observed agreement, kappa and its standard error of a table of two by two."""
    total = yes + left + right + no
    if not total:
        return None, None, None
    observed = (yes + no) / total
    expected_matches = (yes + left) * (yes + right) + (no + left) * (no + right)
    if expected_matches == total**2:
        return observed, None, None
    expected = expected_matches / total**2
    error = sqrt(observed * (1 - observed) / (total * (1 - expected) ** 2))
    return observed, (observed - expected) / (1 - expected), error
