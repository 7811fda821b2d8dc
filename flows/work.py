"""What runs in the worker processes: read tables, call a step of a stage, write tables, report every row.

Each function returns the finished unit; the parent records it in the ledger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dedup.rows import DedupRow
from dedup.run import deduplicate
from features.compute import compute_features
from features.docstrings import code_without_docstring
from miners.clone import Clone
from miners.mine import mine_repository
from schemas.arrow import from_table, to_table
from schemas.config import Config
from schemas.records import (
    ChangedFile,
    CommitRecord,
    DataPoint,
    DuplicateCluster,
    DuplicatePair,
    Exclusion,
    Method,
    RepositoryRecord,
    StageReport,
    UniqueRow,
    count_reasons,
)
from testbeds.build import ROW_TYPES, build_testbed
from warehouse.ledger import Ledger, Unit
from warehouse.tables import FileEntry

Tables = Mapping[str, tuple[type, Sequence[object]]]


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


def mine(job: Job, clone: Clone) -> Unit:
    """Mine one repository: tables repositories, commits, changed_files, methods, exclusions."""
    started = datetime.now(UTC)
    mined = mine_repository(clone, job.config.mining, job.config.window, job.now)
    tables: Tables = {
        "repositories": (RepositoryRecord, [clone.record]),
        "commits": (CommitRecord, mined.commits),
        "changed_files": (ChangedFile, mined.files),
        "methods": (Method, mined.methods),
        "exclusions": (Exclusion, mined.excluded),
    }
    return _finish(job, started, tables, mined.reports, mined.valid_until)


def features(job: Job, mined: Unit) -> Unit:
    """Compute the features of one repository's methods: tables data_points, exclusions."""
    started = datetime.now(UTC)
    methods = list(from_table(Ledger(job.tables).read(mined, "methods"), Method))
    kept = compute_features(methods, job.config.features, job.config.mining, job.config.licences)
    report = _report(job, len(methods), len(kept.rows), kept.excluded)
    tables: Tables = {"data_points": (DataPoint, kept.rows), "exclusions": (Exclusion, kept.excluded)}
    return _finish(job, started, tables, [report])


def dedup(job: Job, point_units: Sequence[Unit]) -> Unit:
    """Remove duplicates over all repositories: tables unique_rows, duplicates, duplicate_clusters, exclusions."""
    started = datetime.now(UTC)
    ledger = Ledger(job.tables)
    rows = []
    for unit in point_units:
        columns = ledger.read(unit, "data_points").select(["row_id", "committer_date", "code"]).to_pylist()
        rows += [
            DedupRow(item["row_id"], item["committer_date"], code_without_docstring(item["code"])) for item in columns
        ]
    result = deduplicate(rows, job.config.dedup)
    tables: Tables = {
        "unique_rows": (UniqueRow, [UniqueRow(row_id) for row_id in result.kept_ids]),
        "duplicates": (DuplicatePair, result.pairs),
        "duplicate_clusters": (DuplicateCluster, result.clusters),
        "exclusions": (Exclusion, result.excluded),
    }
    return _finish(job, started, tables, result.reports)


def testbed(job: Job, point_units: Sequence[Unit], mined_units: Sequence[Unit], unique: Unit) -> Unit:
    """Build the testbed that the partition names: tables tasks_<testbed>, exclusions."""
    started = datetime.now(UTC)
    ledger, name = Ledger(job.tables), job.partition
    unique_ids = set(ledger.read(unique, "unique_rows").column("row_id").to_pylist())
    points = [
        point
        for unit in point_units
        for point in from_table(ledger.read(unit, "data_points"), DataPoint)
        if point.row_id in unique_ids
    ]
    diffs = _read_diffs(ledger, mined_units) if name == "commit_gen" else {}
    kept = build_testbed(name, points, diffs, job.config.testbeds)
    report = _report(replace(job, stage=f"testbed_{name}"), len(points), len(kept.rows), kept.excluded)
    tables: Tables = {f"tasks_{name}": (ROW_TYPES[name], kept.rows), "exclusions": (Exclusion, kept.excluded)}
    return _finish(job, started, tables, [report])


def _read_diffs(ledger: Ledger, mined_units: Sequence[Unit]) -> dict[tuple[str, str, str], str]:
    return {
        (item["repo"], item["commit_id"], item["path"]): item["diff"]
        for unit in mined_units
        for item in ledger.read(unit, "changed_files").select(["repo", "commit_id", "path", "diff"]).to_pylist()
    }


def _report(job: Job, rows_in: int, rows_out: int, excluded: Sequence[Exclusion]) -> StageReport:
    return StageReport(job.stage, job.partition, rows_in, rows_out, count_reasons(excluded))


def _finish(
    job: Job,
    started: datetime,
    tables: Tables,
    reports: Sequence[StageReport],
    valid_until: datetime | None = None,
) -> Unit:
    """Write the tables of a unit and return it with its reports completed."""
    ledger = Ledger(job.tables)
    partition = f"{job.stage}/{job.partition}"  # several stages write table `exclusions`
    files: dict[str, tuple[FileEntry, ...]] = {
        table: (ledger.write(table, partition, job.key, to_table(rows, row_type)),)
        for table, (row_type, rows) in tables.items()
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
    return Unit(job.stage, job.partition, job.key, files, completed, valid_until)
