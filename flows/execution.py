"""The step `real_code`: one repository's functions proven by execution, in a worker process and there in a sandbox."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flows.run import Run
from flows.sources import Source
from flows.steps import do_once
from flows.versions import stage_version
from flows.work import Job, Tables, account, finish
from miners.clone import Clone
from schemas.arrow import from_table
from schemas.config import Config
from schemas.execution import RealCode, RealCodeRun
from schemas.records import DataPoint, Exclusion, UniqueRow
from testbeds.real_code import STAGE
from testbeds.real_code_run import Folders, prove_points
from testbeds.sampling import sample_rows
from warehouse.ledger import Ledger, Unit, unit_key

TESTBED = "real_code"


@dataclass(frozen=True, slots=True)
class ProofInputs:
    """What proving one repository is given."""

    clone: Clone
    """The repository, at the head that was mined."""
    points: Unit
    """Its data points."""
    unique: Unit
    """The deduplication of all."""
    allowed: bool
    """Whether the configuration lets it be executed."""


def plan_proofs(
    clones: Sequence[Clone], sources: Sequence[Source], points: Sequence[Unit], unique: Unit
) -> list[ProofInputs]:
    """Return what is to be proven: every mined repository, in the order of its units."""
    allowed = {source.repo: source.config.execute for source in sources}
    by_repo = {clone.record.repo: clone for clone in clones}
    return [ProofInputs(by_repo[unit.partition], unit, unique, allowed[unit.partition]) for unit in points]


def real_code_key(
    config: Config, head: str, points: Unit, rows: Sequence[UniqueRow], *, allowed: bool
) -> str:  # fmt: skip
    """Return the key of proving a repository: its rows, its head and how; other repositories' rows change nothing."""
    kept = [[row.row_id, row.novelty] for row in rows]
    parameters = [[config.real_code], [config.mining.max_file_bytes, head, allowed, kept]]
    return unit_key(STAGE, stage_version(STAGE), parameters, [points.digest])


def kept_rows(ledger: Ledger, points: Unit, unique: Unit) -> list[UniqueRow]:
    """Return what the deduplication kept of a repository's data points, sorted by row id."""
    own = set(ledger.read(points, "data_points").column("row_id").to_pylist())
    rows = (row for row in from_table(ledger.read(unique, "unique_rows"), UniqueRow) if row.row_id in own)
    return sorted(rows, key=lambda row: row.row_id)


def prove_repository(run: Run, inputs: ProofInputs) -> Unit:
    """Prove one repository's functions by execution."""
    rows = kept_rows(run.ledger, inputs.points, inputs.unique)
    key = real_code_key(run.config, inputs.clone.record.head, inputs.points, rows, allowed=inputs.allowed)
    folders = Folders(run.workspace.environments, run.workspace.trees)
    return do_once(
        run, STAGE, inputs.clone.record.repo, key, lambda job: run.pool.run(prove, job, inputs, rows, folders)
    )  # fmt: skip


def prove(job: Job, inputs: ProofInputs, rows: Sequence[UniqueRow], folders: Folders) -> Unit:
    """Prove a repository's functions: tables proven_functions, real_code_runs, exclusions.

    Runs in a worker process; the repository's code runs in a sandbox below it. Where no sandbox can be had the unit is
    stale at once, so that a later run tries again.
    """
    started = datetime.now(UTC)
    novelty = {row.row_id: row.novelty for row in rows}
    points = [
        replace(point, novelty=novelty[point.row_id])
        for point in from_table(Ledger(job.tables).read(inputs.points, "data_points"), DataPoint)
        if point.row_id in novelty
    ]
    proven = prove_points(points, inputs.clone, job.config, folders, allowed=inputs.allowed)
    report = account(job, len(points), len(proven.rows), proven.excluded)
    tables: Tables = {
        "proven_functions": (RealCode, proven.rows),
        "real_code_runs": (RealCodeRun, [proven.run]),
        "exclusions": (Exclusion, proven.excluded),
    }
    return finish(job, started, tables, [report], None if proven.final else job.now)


def sample_proven(job: Job, units: Sequence[Unit]) -> Unit:
    """Sample the testbed real_code from what was proven: tables tasks_real_code, exclusions."""
    started = datetime.now(UTC)
    ledger = Ledger(job.tables)
    rows = [row for unit in units for row in from_table(ledger.read(unit, "proven_functions"), RealCode)]
    sample, excluded = sample_rows(rows, TESTBED, job.config.testbeds)
    left_out = list(excluded.values())
    report = account(replace(job, stage=f"testbed_{TESTBED}"), len(rows), len(sample), left_out)
    tables: Tables = {f"tasks_{TESTBED}": (RealCode, sample), "exclusions": (Exclusion, left_out)}
    return finish(job, started, tables, [report])


def make_real_code(run: Run, units: Sequence[Unit]) -> Unit:
    """Build the testbed real_code from the proven functions of all repositories."""
    key = sample_key(run.config, units)
    return do_once(run, "testbeds", TESTBED, key, lambda job: run.pool.run(sample_proven, job, tuple(units)))


def sample_key(config: Config, units: Sequence[Unit]) -> str:
    """Return the key of sampling the testbed real_code, the same however long the proofs took (real_code_runs)."""
    digests = [unit.digest_of_tables(["proven_functions"]) for unit in units]
    return unit_key("testbeds", stage_version("testbeds"), config.testbeds, digests)
