"""What runs in the worker processes: read tables, call a step of a stage, write tables, report every row.

Each function returns the finished unit; the parent records it in the ledger.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dedup import copied, policies, references
from dedup.keep import Origin, describe_clusters
from dedup.references import ReferenceFiles
from dedup.rows import DedupRow
from dedup.run import deduplicate
from features.compute import compute_features
from features.docstrings import code_without_docstring
from features.old_methods import distinct_old_methods
from miners.clone import Clone
from miners.cutoff import CutoffCommit, OldTree
from miners.mine import MinedRepository, finish_mining
from miners.plan import MiningPlan, Range, plan_mining
from miners.take import Taken, take_range
from schemas.arrow import from_table, to_table
from schemas.comparisons import (
    Cutoff,
    DescribedCluster,
    OldCopy,
    OldMethod,
    ReferenceMatch,
    ReferenceSet,
    ReferenceText,
    ReleaseChange,
    TestbedDuplicates,
)
from schemas.config import Config
from schemas.history import HistoricFile, IndexedFile, VanishedMethod
from schemas.records import (
    ChangedFile,
    CommitRecord,
    DataPoint,
    DuplicatePair,
    Exclusion,
    Method,
    Novelty,
    RepositoryRecord,
    StageReport,
    UniqueRow,
    count_reasons,
)
from schemas.references import Role
from testbeds.build import ROW_TYPES, build_testbed, count_usable
from testbeds.sampling import SAMPLING_REASONS
from warehouse.ledger import Ledger, Unit
from warehouse.tables import FileEntry

Tables = Mapping[str, tuple[type, Sequence[object]]]

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


def plan(job: Job, clone: Clone, former: Unit | None) -> MiningPlan:
    """Walk one repository's history; `former` is the unit of an earlier head, mined by the same code."""
    run = None if former is None else _read_mined(job, former).former_run()
    return plan_mining(clone, job.config.mining, job.config.window, job.now, run)


def mine_range(job: Job, clone: Clone, selected: frozenset[str], part: Range) -> Taken:
    """Mine a share of one repository's commits."""
    return take_range(clone, job.config.mining, selected, part)


def mine(job: Job, clone: Clone, plan: MiningPlan, taken: Sequence[Taken], former: Unit | None) -> Unit:
    """Put one repository's ranges together; without any the whole repository is mined here.

    Tables: repositories, commits, changed_files, methods, historic_files, indexed_files, exclusions.
    """
    started = datetime.now(UTC)
    mining = job.config.mining
    parts = taken or [take_range(clone, mining, plan.selected, part) for part in plan.ranges(1)]
    base = None if former is None or plan.anew else _read_mined(job, former)
    mined = finish_mining(clone, mining, plan, parts, base)
    rows: Tables = {table: (row_type, getattr(mined, name)) for table, (name, row_type) in MINED_TABLES.items()}
    tables: Tables = {"repositories": (RepositoryRecord, [clone.record]), **rows}
    return _finish(job, started, tables, mined.reports, mined.valid_until)


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
    return _finish(job, started, tables, [])


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
    report = _report(job, len(methods), len(kept.rows), kept.excluded)
    tables: Tables = {"data_points": (DataPoint, kept.rows), "exclusions": (Exclusion, kept.excluded)}
    return _finish(job, started, tables, [report])


def cutoff(job: Job, clone: Clone, commit: CutoffCommit | Exclusion | None) -> Unit:
    """Read one repository's tree at the cutoff: tables cutoffs, old_methods, exclusions.

    `commit` is the cutoff's, the exclusion that says why it is not known, or None for a younger repository.
    """
    started = datetime.now(UTC)
    repo, since = clone.record.repo, job.config.window.since
    methods: list[OldMethod] = []
    excluded: list[Exclusion] = []
    row = Cutoff(repo, since, None, None, 0, 0)
    if isinstance(commit, Exclusion):
        excluded = [commit]
    elif commit is not None:
        tree = OldTree(clone.git_dir, repo, commit.commit_id, job.config.mining.max_file_bytes)
        methods = distinct_old_methods(repo, commit.commit_id, tree.definitions())
        row = Cutoff(repo, since, commit.commit_id, commit.committer_date, tree.n_files, tree.n_methods)
        excluded = tree.excluded
    report = _report(job, row.n_files + len(excluded), row.n_files, excluded)
    tables: Tables = {
        "cutoffs": (Cutoff, [row]),
        "old_methods": (OldMethod, methods),
        "exclusions": (Exclusion, excluded),
    }
    return _finish(job, started, tables, [report])


def compare(job: Job, point_units: Sequence[Unit], cutoff_units: Sequence[Unit]) -> Unit:
    """Compare data points with the methods of trees at the cutoff: tables copied_old, exclusions."""
    started = datetime.now(UTC)
    ledger, config = Ledger(job.tables), job.config
    rows = [
        copied.NewMethod(item["row_id"], item["repo"], Novelty(item["novelty"]), code_without_docstring(item["code"]))
        for unit in point_units
        for item in ledger.read(unit, "data_points").select(["row_id", "repo", "novelty", "code"]).to_pylist()
    ]
    old = (list(from_table(ledger.read(unit, "old_methods"), OldMethod)) for unit in cutoff_units)
    copies = copied.find_copies(rows, old, config.dedup)
    excluded = copied.exclude_copies(rows, copies, config.features.novelty)
    report = _report(replace(job, stage=copied.STAGE), len(rows), len(rows) - len(excluded), excluded)
    tables: Tables = {"copied_old": (OldCopy, copies), "exclusions": (Exclusion, excluded)}
    return _finish(job, started, tables, [report])


def read_reference(job: Job, found: ReferenceFiles) -> Unit:
    """Read a reference set: tables reference_sets, reference_texts, earlier_exclusions, exclusions."""
    started = datetime.now(UTC)
    data = references.read_reference(found.reference, found.files)
    names = tuple(path.name for path in found.files)
    row = ReferenceSet(
        found.title, found.reference.kind, names, found.sha256[: len(names)],
        data.n_rows, data.n_other_language, len(data.texts),
    )  # fmt: skip
    report = _report(job, data.n_rows, data.n_rows - len(data.excluded), data.excluded)
    tables: Tables = {
        "reference_sets": (ReferenceSet, [row]),
        "reference_texts": (ReferenceText, data.texts),
        "earlier_exclusions": (Exclusion, data.earlier),
        "exclusions": (Exclusion, data.excluded),
    }
    return _finish(job, started, tables, [report])


@dataclass(frozen=True, slots=True)
class DedupInputs:
    """What the deduplication is given."""

    points: tuple[Unit, ...]
    """Feature units of all repositories."""
    compared: tuple[Unit, ...]
    """Comparisons with old code; what they exclude does not take part."""
    references: tuple[Unit, ...]
    """Reference sets, in the order of the configuration."""


def dedup(job: Job, inputs: DedupInputs) -> Unit:
    """Remove what reference sets hold and duplicates over all repositories.

    Tables unique_rows, reference_matches, release_changes, duplicates, duplicate_clusters, exclusions.
    """
    started = datetime.now(UTC)
    ledger, config = Ledger(job.tables), job.config.dedup
    rows, facts, before = _dedup_rows(ledger, inputs)
    matches = policies.match_references(rows, _references(ledger, inputs.references), config)
    matched = policies.exclude_matches(matches)
    gone = {item.row_id for item in matched}
    result = deduplicate([row for row in rows if row.row_id not in gone], config)
    excluded = {item.row_id: item for item in (*before, *matched, *result.excluded)}
    kept_ids = set(result.kept_ids)
    changes = [
        change
        for unit, reference in zip(inputs.references, _references(ledger, inputs.references), strict=True)
        if reference.described.role is Role.RELEASE
        for change in policies.release_changes(
            reference, from_table(ledger.read(unit, "earlier_exclusions"), Exclusion), kept_ids, excluded, config.keep
        )
    ]
    origins = {row_id: fact.origin for row_id, fact in facts.items()}
    tables: Tables = {
        "unique_rows": (UniqueRow, [UniqueRow(row_id, facts[row_id].novelty) for row_id in result.kept_ids]),
        "reference_matches": (ReferenceMatch, matches),
        "release_changes": (ReleaseChange, changes),
        "duplicates": (DuplicatePair, result.pairs),
        "duplicate_clusters": (DescribedCluster, describe_clusters(result.clusters, origins, config)),
        "exclusions": (Exclusion, [*matched, *result.excluded]),
    }
    report = _report(replace(job, stage=policies.STAGE), len(rows), len(rows) - len(matched), matched)
    return _finish(job, started, tables, [report, *result.reports] if inputs.references else result.reports)


@dataclass(frozen=True, slots=True)
class _Fact:
    """What is known of a data point beside its text."""

    origin: Origin
    novelty: Novelty


def _dedup_rows(ledger: Ledger, inputs: DedupInputs) -> tuple[list[DedupRow], dict[str, _Fact], list[Exclusion]]:
    """Return the data points that no earlier comparison excluded, what is known of them, and those exclusions."""
    before = [
        item for unit in inputs.compared for item in from_table(ledger.read(unit, "exclusions"), Exclusion)
    ]  # fmt: skip
    gone = {item.row_id for item in before}
    copies = {row_id for unit in inputs.compared for row_id in _column(ledger, unit, "copied_old", "row_id")}
    rows, facts = [], {}
    for unit in inputs.points:
        table = ledger.read(unit, "data_points")
        for item in table.select(["row_id", "committer_date", "code", "novelty", "repo", "commit_id"]).to_pylist():
            row_id = item["row_id"]
            if row_id not in gone:
                rows.append(DedupRow(row_id, item["committer_date"], code_without_docstring(item["code"])))
                novelty = Novelty.COPIED_OLD if row_id in copies else Novelty(item["novelty"])
                facts[row_id] = _Fact(Origin(item["repo"], item["commit_id"]), novelty)
    return rows, facts, before


def _references(ledger: Ledger, units: Sequence[Unit]) -> Iterator[policies.Reference]:
    """Yield the reference sets, one at a time in memory."""
    for unit in units:
        [described] = from_table(ledger.read(unit, "reference_sets"), ReferenceSet)
        yield policies.Reference(described, list(from_table(ledger.read(unit, "reference_texts"), ReferenceText)))


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
    report = _report(replace(job, stage=f"testbed_{name}"), len(points), len(kept.rows), kept.excluded)
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
    return _finish(job, started, tables, [report])


def _points(ledger: Ledger, units: Sequence[Unit]) -> Iterator[DataPoint]:
    """Yield the data points of all repositories."""
    for unit in units:
        yield from from_table(ledger.read(unit, "data_points"), DataPoint)


def _column(ledger: Ledger, unit: Unit, table: str, name: str) -> list[str]:
    """Return one column of a unit's table."""
    values: list[str] = ledger.read(unit, table).column(name).to_pylist()
    return values


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
    return Unit(job.stage, job.partition, job.key, files, completed, valid_until, job.family)
