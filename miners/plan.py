"""What there is to mine of a repository: the commits of the window, what each changes, and ranges of equal work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from miners.changes import CommitChanges, changed_files
from miners.clone import Clone
from miners.collection import without_collection
from miners.commits import STAGE, CommitHeader, select, walk
from schemas.config import MiningConfig, WindowConfig
from schemas.records import Exclusion

# A range of as many changed files takes a second. It has to learn the tree before it anew and parse again what others
# change too: two ranges cost 2% more than one on click (668 files), 20% to 30% on celery and black (some 800).
_MIN_RANGE_FILES = 250
# As many old commits cost about a second to search.
_MIN_RANGE_OLD = 2_000
# What a commit, a changed file and a path that a range changes for the first time cost (the file is parsed whole then,
# else only where it differs), in tenths of milliseconds, as measured on three halves of sympy and on all of it.
_COMMIT_COST, _FILE_COST, _PATH_COST = 12, 29, 30


@dataclass(frozen=True, slots=True)
class Range:
    """A share of the work on one repository."""

    changes: list[CommitChanges]
    """Consecutive commits of the window, parents first, with what they change."""
    old_ids: list[str]
    """Commits that are not mined, to be searched for definitions that may come back."""
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The parents of all these commits when not the whole history is searched: what they take away counts then."""


@dataclass(frozen=True, slots=True)
class FormerRun:
    """How far an earlier run over the same repository came, same code and configuration."""

    head: str
    """The commit it mined up to."""
    future: frozenset[str]
    """Commits that it left out because they lay in its future."""
    searched: bool
    """It searched the commits outside the window."""


@dataclass(frozen=True, slots=True)
class MiningPlan:
    """The commits to mine and all that is known about them before a blob is read; parents come before children."""

    headers: list[CommitHeader]
    """The whole history, parents first."""
    excluded: list[Exclusion]
    """Commits that the window leaves out, and the repository itself when it has no Python."""
    selected: frozenset[str]
    """Commits of the window."""
    done: frozenset[str]
    """Commits of the window that the former run has mined; it and this run say the same about them."""
    rewritten: bool
    """The former run's head is gone from the history."""
    anew: bool
    """Nothing is taken over from a former run: there is none, the history was rewritten, or time has passed that brings
    commits into the window which it took for later ones."""
    changes: list[CommitChanges]
    """Changes of the other commits of the window."""
    old_ids: list[str]
    """Commits outside the window, and those inside with too many files, that the former run has not searched; empty
    when none are to be."""
    valid_until: datetime | None
    """When a commit that now lies in the future comes into the window; null when there is none."""
    seen_python: bool
    """Some commit of the window touches a Python file."""
    searches_part: bool = False
    """Not all commits outside the window are to be searched, but some."""

    def ranges(self, n_workers: int) -> list[Range]:
        """Return the work in at most `n_workers` ranges of about equal cost; small work is not split."""
        n_files = sum(len(changes.files) for changes in self.changes)
        worth = max(n_files // _MIN_RANGE_FILES, len(self.old_ids) // _MIN_RANGE_OLD)
        n_ranges = max(1, min(n_workers, worth))
        changes = _split_changes(self.changes, n_ranges)
        size = -(-len(self.old_ids) // n_ranges)
        old_ids = [self.old_ids[size * index : size * (index + 1)] for index in range(n_ranges)]
        return [Range(*parts, self._parents(*parts)) for parts in zip(changes, old_ids, strict=True)]

    def _parents(self, changes: Sequence[CommitChanges], old_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        if not self.searches_part:
            return {}
        parents = {header.commit_id: header.parent_ids for header in self.headers}
        return {commit_id: parents[commit_id] for commit_id in (*old_ids, *(item.commit_id for item in changes))}


def _split_changes(changes: list[CommitChanges], n_parts: int) -> list[list[CommitChanges]]:
    """Return consecutive parts, the dearest of which is as cheap as can be; some may be empty."""
    enough = sum(_COMMIT_COST + (_FILE_COST + _PATH_COST) * len(item.files) for item in changes)
    too_little = 0
    while enough - too_little > 1:
        limit = (enough + too_little) // 2
        if len(_filled(changes, limit)) <= n_parts:
            enough = limit
        else:
            too_little = limit
    parts = _filled(changes, enough)
    return parts + [[] for _ in range(n_parts - len(parts))]


def _filled(changes: Sequence[CommitChanges], limit: int) -> list[list[CommitChanges]]:
    """Return consecutive parts, each as long as its cost is within a limit; a commit above it is a part of its own."""
    parts: list[list[CommitChanges]] = [[]]
    cost, paths = 0, set[bytes]()
    for item in changes:
        of_commit = _COMMIT_COST + _FILE_COST * len(item.files)
        new = [change.path for change in item.files if change.path not in paths]
        if parts[-1] and cost + of_commit + _PATH_COST * len(new) > limit:
            parts.append([])
            cost, paths, new = 0, set(), [change.path for change in item.files]
        parts[-1].append(item)
        paths.update(new)
        cost += of_commit + _PATH_COST * len(new)
    return parts


@without_collection
def plan_mining(
    clone: Clone, config: MiningConfig, window: WindowConfig, now: datetime, former: FormerRun | None = None
) -> MiningPlan:
    """Walk a repository's history and return what is to be mined of it.

    Commits outside the window are searched only when some commit of the window is there to profit.

    `now` is the time of mining: later commits are excluded. Raises DataError `history_broken` when the history
    cannot be walked.
    """
    repo = clone.record.repo
    headers = walk(clone.git_dir, clone.record.head)
    selected = select(headers, window, now, repo)
    ids = frozenset(header.commit_id for header in selected.rows)
    reached = None if former is None else ancestors(headers, former.head)
    anew = former is None or reached is None or bool(former.future & ids)
    done = frozenset() if anew or reached is None else ids & reached
    changes = list(changed_files(clone.git_dir, selected.rows, repo, config))
    mined = frozenset(item.commit_id for item in changes if not item.is_too_large)
    outside = frozenset(header.commit_id for header in headers) - mined - future_commits(selected.excluded)
    seen_python = any(item.has_python for item in changes)
    searched = frozenset() if anew or former is None or reached is None or not former.searched else reached
    first = config.history_start(window.since)
    to_search = outside - searched if first is not None and seen_python else frozenset()
    return MiningPlan(
        headers=headers,
        excluded=selected.excluded,
        selected=ids,
        done=done,
        rewritten=former is not None and reached is None,
        anew=anew,
        changes=[item for item in changes if item.commit_id not in done],
        old_ids=[
            header.commit_id
            for header in headers
            if header.commit_id in to_search and header.readable and is_from(header, first)
        ],
        valid_until=_valid_until(headers, selected.excluded, repo),
        seen_python=seen_python,
        searches_part=first is not None and first > -math.inf,
    )


def is_from(header: CommitHeader, first: float | None) -> bool:
    """Say whether a commit was committed at a moment or later; one without a date counts for the whole history only."""
    epoch = -math.inf if header.committer_epoch is None else header.committer_epoch
    return first is not None and epoch >= first


def ancestors(headers: Sequence[CommitHeader], head: str) -> frozenset[str] | None:
    """Return a commit and everything that it descends from, None when it is no commit of this history."""
    parents = {header.commit_id: header.parent_ids for header in headers}
    if head not in parents:
        return None
    reached, pending = {head}, [head]
    while pending:
        for parent_id in parents[pending.pop()]:
            if parent_id not in reached and parent_id in parents:
                reached.add(parent_id)
                pending.append(parent_id)
    return frozenset(reached)


def future_commits(excluded: Sequence[Exclusion]) -> frozenset[str]:
    """Return the commits that were excluded because they lay in the future."""
    return frozenset(
        item.row_id.rpartition("@")[2] for item in excluded if item.stage == STAGE and item.reason == "date_in_future"
    )


def _valid_until(headers: Sequence[CommitHeader], excluded: Sequence[Exclusion], repo: str) -> datetime | None:
    """Return when the first commit that lies in the future no longer does."""
    future = future_commits(excluded)
    moments = []
    for header in headers if future else ():
        if header.commit_id in future and header.author_date and header.committer_date:
            moments.append(max(header.author_date, header.committer_date))
    return min(moments, default=None)
