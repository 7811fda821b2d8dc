"""The miner: from one repository's clone to its commits, changed files and classified methods.

Three parts that can run in processes of their own: `plan_mining`, `take_range` for each range, `finish_mining`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from miners.caches import list_python
from miners.clone import Clone
from miners.collection import without_collection
from miners.git_process import ObjectReader
from miners.history import merged
from miners.origins import resolve_origins
from miners.plan import FormerRun, MiningPlan, future_commits, plan_mining
from miners.restored import restore_from_history
from miners.take import Taken, take_range
from schemas.config import MiningConfig, WindowConfig
from schemas.history import HistoricFile, IndexedFile
from schemas.records import ChangedFile, CommitRecord, Exclusion, Method, RepositoryRecord, StageReport, count_reasons

Row = TypeVar("Row")
_STAGES = ("sources", "commits", "files", "methods", "index", "history")


@dataclass(frozen=True, slots=True)
class MinedRepository:
    """Everything the miner says about one repository.

    The order of rows depends on the rows alone, not on how far the branch went when they were mined.
    """

    record: RepositoryRecord
    """The repository."""
    commits: list[CommitRecord]
    """Commits of the window that were read, by committer date and id."""
    files: list[ChangedFile]
    """Changed files with a method that their parents do not have, by commit and path."""
    methods: list[Method]
    """Methods that a commit brought or changed, by commit, path and start byte."""
    history: list[HistoricFile]
    """Blobs with which commits outside the window brought definitions, by commit and blob."""
    indexed: list[IndexedFile]
    """Python files of parent trees outside the window, one row for each blob, by commit and path."""
    excluded: list[Exclusion]
    """Everything left out, by stage, id and reason."""
    reports: list[StageReport]
    """Accounts of the stages `commits`, `files`, `methods`, `index` and `history`."""
    valid_until: datetime | None = None
    """When a commit that now lies in the future comes into the window; null when there is none."""

    def former_run(self) -> FormerRun:
        """Return what a later run has to know to go on from here."""
        return former_run(self.record, self.excluded, self.reports)


def former_run(record: RepositoryRecord, excluded: Sequence[Exclusion], reports: Sequence[StageReport]) -> FormerRun:
    """Return what a later run has to know, from the parts of MinedRepository that say it."""
    searched = any(report.stage == "history" and report.rows_out for report in reports)
    return FormerRun(record.head, future_commits(excluded), searched)


def mine_repository(
    clone: Clone,
    config: MiningConfig,
    window: WindowConfig,
    now: datetime,
    former: MinedRepository | None = None,
    n_ranges: int = 1,
) -> MinedRepository:
    """Mine one repository; a bad commit, file or method becomes an Exclusion and its neighbours stay.

    `now` is the time of mining: later commits are excluded. `former` is what the same code and configuration said
    about an earlier head; its commits are not read again, and the result is the same as without it. Raises DataError
    when the history itself cannot be walked. The accounts are: `commits` in the window or excluded from it; `files`,
    Python files (and notebooks, stubs and Cython files, all left out) that a kept commit adds or changes; `methods`,
    definitions in them that no parent has unchanged; `index`, blobs of parent trees outside the window that moved code
    may come from (an unreadable one only weakens `moved` and `renamed`); `history`, commits outside the window that
    were searched for code that comes back.
    """
    plan = plan_mining(clone, config, window, now, None if former is None else former.former_run())
    taken = [take_range(clone, config, plan.selected, part) for part in plan.ranges(n_ranges)]
    return finish_mining(clone, config, plan, taken, former)


@without_collection
def finish_mining(
    clone: Clone,
    config: MiningConfig,
    plan: MiningPlan,
    taken: Sequence[Taken],
    former: MinedRepository | None = None,
) -> MinedRepository:
    """Return the whole of a repository from its ranges and, unless the plan begins anew, from a former run."""
    base = None if plan.anew else former
    commits = _joined([base.commits if base else [], *(part.commits for part in taken)])
    commits.sort(key=lambda row: (row.committer_date, row.commit_id))
    order = {row.commit_id: index for index, row in enumerate(commits)}
    methods = _joined([base.methods if base else [], *(part.methods for part in taken)])
    methods.sort(key=lambda row: (order[row.commit_id], row.path, row.start_byte, row.row_id))
    files = _joined([base.files if base else [], *(part.files for part in taken)])
    files.sort(key=lambda row: (order[row.commit_id], row.path))
    history = merged(_joined([base.history if base else [], *(part.history.files for part in taken)]))
    indexed = _first_places([base.indexed if base else [], *(part.indexed.values() for part in taken)])
    excluded = _exclusions(clone, plan, taken, base) + _index_exclusions(indexed)
    excluded.sort(key=lambda item: (_STAGES.index(item.stage), item.row_id, item.reason, item.detail))
    counts = {
        "commits": len(commits),
        "files": sum(part.n_files for part in taken) + _rows_out(base, "files"),
        "methods": len(methods),
        "index": sum(row.problem is None for row in indexed),
        "history": sum(part.history.n_commits for part in taken) + _rows_out(base, "history"),
    }
    reports = [_report(stage, clone.record.repo, rows_out, excluded) for stage, rows_out in counts.items()]
    resolved = resolve_origins(methods, plan.headers)
    with ObjectReader(clone.git_dir) as reader:
        resolved = restore_from_history(resolved, history, plan.headers, reader, config.max_file_bytes)
    return MinedRepository(
        clone.record, commits, files, resolved, history, indexed, excluded, reports, plan.valid_until
    )


def _joined(parts: Iterable[Iterable[Row]]) -> list[Row]:
    return [row for part in parts for row in part]


def _first_places(parts: Iterable[Iterable[IndexedFile]]) -> list[IndexedFile]:
    """Return one row for each blob, that of the smallest (commit, path), sorted by it."""
    first: dict[str, IndexedFile] = {}
    for row in sorted(_joined(parts), key=lambda row: (row.commit_id, row.path)):
        first.setdefault(row.blob_id, row)
    return list(first.values())


def _index_exclusions(indexed: Iterable[IndexedFile]) -> list[Exclusion]:
    return [
        Exclusion(f"{row.repo}@{row.commit_id}:{row.path}", "index", row.problem, row.detail)
        for row in indexed
        if row.problem is not None
    ]


def _exclusions(
    clone: Clone, plan: MiningPlan, taken: Sequence[Taken], former: MinedRepository | None
) -> list[Exclusion]:
    """Return all exclusions but those of the index; the window's are made anew, what was read before is taken over."""
    excluded = [*plan.excluded]
    for item in former.excluded if former else ():
        of_done_commit = item.stage == "commits" and item.row_id.rpartition("@")[2] in plan.done
        if of_done_commit or item.stage in ("files", "methods", "history"):
            excluded.append(item)
    for part in taken:
        excluded += [*part.excluded, *part.history.excluded]
    if not plan.seen_python and not list_python(clone.git_dir, clone.record.head):
        repo = clone.record.repo
        excluded.append(Exclusion(repo, "sources", "repository_without_python", "no .py file at head or in the window"))
    return excluded


def _rows_out(mined: MinedRepository | None, stage: str) -> int:
    return next((report.rows_out for report in mined.reports if report.stage == stage), 0) if mined else 0


def _report(stage: str, repo: str, rows_out: int, excluded: Sequence[Exclusion]) -> StageReport:
    """Return the account of one stage."""
    left_out = [item for item in excluded if item.stage == stage]
    return StageReport(stage, repo, rows_out + len(left_out), rows_out, count_reasons(left_out))
