"""What runs in the worker processes: read tables, call a step of a stage, write tables, report every row.

Each function returns the finished unit; the parent records it in the ledger.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from dedup import references
from dedup.references import ReferenceFiles
from features.compute import compute_features
from features.old_methods import OldMethods, joined, read_old_methods
from flows.pool import Packed
from miners.clone import Clone
from miners.cutoff import CutoffCommit, OldTree
from miners.mine import MinedRepository, finish_mining, former_run
from miners.needed import plan_and_fetch
from miners.plan import FormerRun, MiningPlan, Range
from miners.take import Taken, take_range
from schemas.arrow import from_table, to_table
from schemas.comparisons import (
    Cutoff,
    OldMethod,
    ReferenceSet,
    ReferenceText,
    TestbedDuplicates,
)
from schemas.config import Config
from schemas.history import HistoricFile, IndexedFile, VanishedMethod
from schemas.records import (
    ChangedFile,
    CommitRecord,
    DataPoint,
    Exclusion,
    Method,
    RepositoryRecord,
    StageReport,
    UniqueRow,
    count_reasons,
)
from testbeds.build import ROW_TYPES, build_testbed, count_usable
from testbeds.sampling import SAMPLING_REASONS
from warehouse.ledger import Ledger, Unit
from warehouse.tables import TEXTS, FileEntry, Packing

Tables = Mapping[str, tuple[type, Sequence[object]] | pa.Table]

# Tables of the stage `mine`, the field of MinedRepository that each holds, and its rows.
MINED_TABLES: Mapping[str, tuple[str, type]] = {
    "commits": ("commits", CommitRecord),
    "changed_files": ("files", ChangedFile),
    "methods": ("methods", Method),
    "historic_files": ("history", HistoricFile),
    "indexed_files": ("indexed", IndexedFile),
    "exclusions": ("excluded", Exclusion),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One unit of work to be done."""

    stage: str
    """Name of the stage."""
    partition: str
    """owner/name, `all`, or the testbed."""
    key: str
    """The unit's key."""
    tables: Path
    """Folder of the lake."""
    config: Config
    """The resolved configuration."""
    code_version: str
    """Version that goes into the reports."""
    now: datetime
    """Time of the run."""
    family: str = ""
    """The unit's family, see `warehouse.ledger.Unit`."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What there is to mine of a repository."""

    plan: Packed[MiningPlan]
    """The plan; without the work itself when that is in `ranges`."""
    rewritten: bool
    """The former run's head is gone from the history."""
    ranges: tuple[Packed[tuple[frozenset[str], Range]], ...]
    """The commits of the window and a range, for each of several workers; empty when it is not worth it."""


def plan(job: Job, clone: Clone, former: Unit | None, n_workers: int) -> Planned:
    """Walk one repository's history; `former` is the unit of an earlier head, mined by the same code."""
    run = None if former is None else _former_run(job, former)
    made = plan_and_fetch(clone, job.config.mining, job.config.window, job.now, run)
    ranges = made.ranges(n_workers)
    if len(ranges) < 2:
        return Planned(Packed(made), made.rewritten, ())
    shares = tuple(Packed((made.selected, part)) for part in ranges)
    return Planned(Packed(replace(made, changes=[], old_ids=[])), made.rewritten, shares)


def _former_run(job: Job, unit: Unit) -> FormerRun:
    """Return how far a unit of the stage `mine` came, without reading its methods."""
    ledger = Ledger(job.tables)
    [record] = from_table(ledger.read(unit, "repositories"), RepositoryRecord)
    return former_run(record, list(from_table(ledger.read(unit, "exclusions"), Exclusion)), unit.reports)


def mine_range(job: Job, clone: Clone, share: Packed[tuple[frozenset[str], Range]]) -> Packed[Taken]:
    """Mine a share of one repository's commits."""
    return Packed(take_range(clone, job.config.mining, *share.open()))


def mine(job: Job, clone: Clone, planned: Planned, taken: Sequence[Packed[Taken]], former: Unit | None) -> Unit:
    """Put one repository's ranges together; without any the whole repository is mined here.

    Tables: repositories, commits, changed_files, methods, historic_files, indexed_files, exclusions.
    """
    started = datetime.now(UTC)
    mined = _put_together(job, clone, planned, taken, former)
    rows: Tables = {table: (row_type, getattr(mined, name)) for table, (name, row_type) in MINED_TABLES.items()}
    tables: Tables = {"repositories": (RepositoryRecord, [clone.record]), **rows}
    return finish(job, started, tables, mined.reports, mined.valid_until)


def _put_together(
    job: Job, clone: Clone, planned: Planned, taken: Sequence[Packed[Taken]], former: Unit | None
) -> MinedRepository:
    """Return all of one repository; its plan (27 MB of sympy) and the ranges' bytes are gone before tables are made."""
    plan, mining = planned.plan.take(), job.config.mining
    parts = [part.take() for part in taken]
    parts = parts or [take_range(clone, mining, plan.selected, part) for part in plan.ranges(1)]
    base = None if former is None or plan.anew else _read_mined(job, former)
    return finish_mining(clone, mining, plan, parts, base)


def vanished(job: Job, former: Unit, unit: Unit, marked: Unit | None) -> Unit:
    """Mark the methods that a rewritten history has no longer: table vanished_methods.

    `former` was mined before the history was rewritten, `unit` after; `marked` holds what was marked before.
    """
    started = datetime.now(UTC)
    ledger = Ledger(job.tables)
    [record] = from_table(ledger.read(former, "repositories"), RepositoryRecord)
    present = set(ledger.read(unit, "methods").column("row_id").to_pylist())
    known = [] if marked is None else list(from_table(ledger.read(marked, "vanished_methods"), VanishedMethod))
    names = ["row_id", "repo", "commit_id", "path", "fun_name", "novelty"]
    gone = [
        VanishedMethod(**row, last_head=record.head) for row in ledger.read(former, "methods").select(names).to_pylist()
    ]
    rows = {row.row_id: row for row in [*known, *gone] if row.row_id not in present}
    tables: Tables = {"vanished_methods": (VanishedMethod, [rows[row_id] for row_id in sorted(rows)])}
    return finish(job, started, tables, [])


def _read_mined(job: Job, unit: Unit) -> MinedRepository:
    """Return what a unit of the stage `mine` holds."""
    ledger = Ledger(job.tables)
    [record] = from_table(ledger.read(unit, "repositories"), RepositoryRecord)
    rows = {
        name: list(from_table(ledger.read(unit, table), row_type)) for table, (name, row_type) in MINED_TABLES.items()
    }
    return MinedRepository(record=record, **rows, reports=list(unit.reports), valid_until=unit.valid_until)


def features(job: Job, mined: Unit) -> Unit:
    """Compute the features of one repository's methods: tables data_points, exclusions."""
    started = datetime.now(UTC)
    methods = list(from_table(Ledger(job.tables).read(mined, "methods"), Method))
    kept = compute_features(methods, job.config.features, job.config.mining, job.config.licences)
    report = account(job, len(methods), len(kept.rows), kept.excluded)
    tables: Tables = {"data_points": (DataPoint, kept.rows), "exclusions": (Exclusion, kept.excluded)}
    return finish(job, started, tables, [report])


def read_old_tree(job: Job, clone: Clone, commit: CutoffCommit, share: int, n_shares: int) -> Packed[OldMethods]:
    """Read a share of one repository's tree at the cutoff, whose files are at hand."""
    repo, limit = clone.record.repo, job.config.mining.max_file_bytes
    return Packed(read_old_methods(OldTree(clone.git_dir, repo, commit.commit_id, limit, share, n_shares)))


def cutoff(
    job: Job, clone: Clone, commit: CutoffCommit | Exclusion | None, shares: Sequence[Packed[OldMethods]]
) -> Unit:
    """Put the shares of one repository's tree at the cutoff together: tables cutoffs, old_methods, exclusions.

    `commit` is the cutoff's, the exclusion that says why it is not known, or None for a younger repository.
    """
    started = datetime.now(UTC)
    old = joined([share.open() for share in shares])
    excluded = [commit] if isinstance(commit, Exclusion) else old.excluded
    row = Cutoff(clone.record.repo, job.config.window.since, None, None, 0, 0)
    if isinstance(commit, CutoffCommit):
        row = replace(
            row, commit_id=commit.commit_id, committer_date=commit.committer_date,
            n_files=old.n_files, n_methods=old.n_methods,
        )  # fmt: skip
    report = account(job, row.n_files + len(excluded), row.n_files, excluded)
    tables: Tables = {
        "cutoffs": (Cutoff, [row]),
        "old_methods": (OldMethod, old.methods),
        "exclusions": (Exclusion, excluded),
    }
    return finish(job, started, tables, [report])


def read_reference(job: Job, found: ReferenceFiles) -> Unit:
    """Read a reference set: tables reference_sets, reference_texts, earlier_exclusions, exclusions."""
    started = datetime.now(UTC)
    data = references.read_reference(found.reference, found.files)
    names = tuple(path.name for path in found.files)
    row = ReferenceSet(
        found.title, found.reference.kind, names, found.sha256[: len(names)],
        data.n_rows, data.n_other_language, len(data.texts),
    )  # fmt: skip
    report = account(job, data.n_rows, data.n_rows - len(data.excluded), data.excluded)
    tables: Tables = {
        "reference_sets": (ReferenceSet, [row]),
        "reference_texts": (ReferenceText, data.texts),
        "earlier_exclusions": (Exclusion, data.earlier),
        "exclusions": (Exclusion, data.excluded),
    }
    return finish(job, started, tables, [report])


def testbed(job: Job, point_units: Sequence[Unit], mined_units: Sequence[Unit], unique: Unit) -> Unit:
    """Build the testbed that the partition names: tables tasks_<testbed>, testbed_duplicates, exclusions."""
    started = datetime.now(UTC)
    ledger, name = Ledger(job.tables), job.partition
    novelty = {row.row_id: row.novelty for row in from_table(ledger.read(unique, "unique_rows"), UniqueRow)}
    points = [
        point if point.novelty is novelty[point.row_id] else replace(point, novelty=novelty[point.row_id])
        for point in _points(ledger, point_units)
        if point.row_id in novelty
    ]
    diffs = _read_diffs(ledger, mined_units) if name == "commit_gen" else {}
    kept = build_testbed(name, points, diffs, job.config.testbeds)
    report = account(replace(job, stage=f"testbed_{name}"), len(points), len(kept.rows), kept.excluded)
    removed = {
        item.row_id
        for item in from_table(ledger.read(unique, "exclusions"), Exclusion)
        if item.reason in ("exact_duplicate", "near_duplicate")
    }
    gone = [point for point in _points(ledger, point_units) if point.row_id in removed]
    n_gone = count_usable(name, gone, diffs, job.config.testbeds)
    n_left = len(points) - sum(item.reason not in SAMPLING_REASONS for item in kept.excluded)
    tables: Tables = {
        f"tasks_{name}": (ROW_TYPES[name], kept.rows),
        "testbed_duplicates": (
            TestbedDuplicates,
            [TestbedDuplicates(name, n_left + n_gone, n_gone, n_left, len(kept.rows))],
        ),
        "exclusions": (Exclusion, kept.excluded),
    }
    return finish(job, started, tables, [report])


def _points(ledger: Ledger, units: Sequence[Unit]) -> Iterator[DataPoint]:
    """Yield the data points of all repositories."""
    for unit in units:
        yield from from_table(ledger.read(unit, "data_points"), DataPoint)


def _read_diffs(ledger: Ledger, mined_units: Sequence[Unit]) -> dict[tuple[str, str, str], str]:
    return {
        (item["repo"], item["commit_id"], item["path"]): item["diff"]
        for unit in mined_units
        for item in ledger.read(unit, "changed_files").select(["repo", "commit_id", "path", "diff"]).to_pylist()
    }


def account(job: Job, rows_in: int, rows_out: int, excluded: Sequence[Exclusion]) -> StageReport:
    """Return the report of a job's stage."""
    return StageReport(job.stage, job.partition, rows_in, rows_out, count_reasons(excluded))


def _as_table(rows: tuple[type, Sequence[object]] | pa.Table) -> pa.Table:
    return to_table(rows[1], rows[0]) if isinstance(rows, tuple) else rows


def finish(
    job: Job,
    started: datetime,
    tables: Tables,
    reports: Sequence[StageReport],
    valid_until: datetime | None = None,
    packing: Packing = TEXTS,
) -> Unit:
    """Write the tables of a unit and return it with its reports completed."""
    ledger = Ledger(job.tables)
    partition = f"{job.stage}/{job.partition}"  # several stages write table `exclusions`
    files: dict[str, tuple[FileEntry, ...]] = {
        name: (ledger.write(name, partition, job.key, _as_table(rows), packing),) for name, rows in tables.items()
    }
    finished = datetime.now(UTC)
    completed = tuple(
        replace(
            report,
            config_digest=job.config.digest(),
            code_version=job.code_version,
            started_at=started,
            finished_at=finished,
        )
        for report in reports
    )
    return Unit(job.stage, job.partition, job.key, files, completed, valid_until, job.family)
