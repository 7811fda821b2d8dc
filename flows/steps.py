"""The steps of the recipe, each over one item: look in the ledger, else have a worker do it, then record it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from features.old_methods import OldMethods
from flows import work
from flows.pool import Packed
from flows.run import Run
from flows.versions import code_version, stage_version
from miners.clone import Clone
from miners.cutoff import CutoffCommit, find_cutoff
from miners.needed import fetch_cutoff
from miners.take import Taken
from schemas.arrow import from_table
from schemas.config import Config
from schemas.errors import DataError
from schemas.records import Exclusion, RepositoryRecord, StageReport, count_reasons
from warehouse.ledger import Unit, unit_key

_CUTOFF_SHARES = 4  # for each worker: with 2 the time that sympy takes differed by a tenth from run to run
_MAX_CUTOFF_SHARES = 16  # each lists the tree anew, which costs as much as reading some ten files


def report_sources(run: Run, unusable: Sequence[Exclusion], mined: Sequence[Unit]) -> StageReport:
    """Return the report of the stage `sources`, and tell the terminal what was left out.

    Some repositories show only when they are mined that they are none for us: their exclusion is in the unit.
    """
    excluded = [*unusable, *(item for unit in mined for item in _source_exclusions(run, unit))]
    for item in excluded:
        run.progress.note(f"  sources  {item.row_id}: left out, {item.reason}: {item.detail}")
    rows_in = len(unusable) + len(mined)
    return StageReport(
        "sources", "all", rows_in, rows_in - len(excluded), count_reasons(excluded),
        run.config.digest(), code_version(), run.now, datetime.now(UTC),
    )  # fmt: skip


def _source_exclusions(run: Run, mined: Unit) -> list[Exclusion]:
    rows = from_table(run.ledger.read(mined, "exclusions"), Exclusion)
    return [item for item in rows if item.stage == "sources"]


def mine_family(config: Config, record: RepositoryRecord) -> str:
    """Return the key of mining a repository, whatever its head."""
    identity = [record.repo, record.host, record.repo_id, record.web_url, record.aliases, record.default_branch]
    return unit_key("mine", stage_version("mine"), [[config.mining, config.window], identity], [])


def mine_key(config: Config, record: RepositoryRecord) -> str:
    """Return the key of mining a repository at its head."""
    return unit_key("mine", mine_family(config, record), record.head, [])


def features_key(config: Config, mined: Unit) -> str:
    """Return the key of the features of a mined repository."""
    sections = [config.features, config.mining, config.licences]
    return unit_key("features", stage_version("features"), sections, [mined.digest])


def cutoff_key(config: Config, repo: str, commit_id: str | None) -> str:
    """Return the key of reading a repository's tree at the cutoff; new commits behind it change nothing."""
    parameters = [config.mining.max_file_bytes, config.window.since, repo, commit_id]
    return unit_key("cutoff", stage_version("cutoff"), parameters, [])


def testbed_key(config: Config, inputs: "TestbedInputs") -> str:
    """Return the key of one testbed."""
    digests = [unit.digest for unit in (*inputs.points, *inputs.mined, inputs.unique)]
    return unit_key("testbeds", stage_version("testbeds"), config.testbeds, digests)


def mine_commits(run: Run, clone: Clone, n_workers: int, *, beside: Callable[[], None] = lambda: None) -> Unit:
    """Mine one repository: what an earlier head lacks, a big share of it by up to `n_workers`.

    `beside` is called when the clone has all that is read of it and the workers know what to mine; it has to return at
    once. It is not called when the repository is mined already.
    """
    record = clone.record
    key, family = mine_key(run.config, record), mine_family(run.config, record)

    def do(job: work.Job) -> Unit:
        before = run.ledger.former("mine", record.repo)
        former = before if before is not None and before.family == family else None
        job = replace(job, family=family)
        planned = run.pool.run(work.plan, job, clone, former, n_workers)
        taken = _take_ranges(run, job, clone, planned, beside)
        unit = run.pool.run(work.mine, job, clone, planned, taken, former)
        if planned.rewritten and former is not None:
            _mark_vanished(run, job, former, unit)
        return unit

    return do_once(run, "mine", record.repo, key, do)


def _take_ranges(
    run: Run, job: work.Job, clone: Clone, planned: work.Planned, beside: Callable[[], None]
) -> list[Packed[Taken]]:
    """Have several workers mine a big repository; nothing for a small one, which is mined where it is put together."""
    with ThreadPoolExecutor(max(1, len(planned.ranges))) as threads:
        taking = [threads.submit(run.pool.run, work.mine_range, job, clone, part) for part in planned.ranges]
        beside()
        return [part.result() for part in taking]


def find_vanished(run: Run, mined: Sequence[Unit]) -> list[Unit]:
    """Return what was marked when histories of the mined repositories were rewritten."""
    found = (run.ledger.former("vanished", unit.partition) for unit in mined)
    return [unit for unit in found if unit is not None]


def _mark_vanished(run: Run, job: work.Job, former: Unit, unit: Unit) -> None:
    """Record which methods a rewritten history has lost, before the unit that held them is replaced."""
    marked = run.ledger.former("vanished", job.partition)
    job = replace(job, stage="vanished", key=unit_key("vanished", stage_version("mine"), former.key, [unit.digest]))
    rows = run.pool.run(work.vanished, job, former, unit, marked)
    run.ledger.record(rows)
    n_rows = run.ledger.read(rows, "vanished_methods").num_rows
    run.progress.note(
        f"  mine  {job.partition}: its history was rewritten, so it was mined anew; {n_rows:,} methods that are gone "
        "are listed in table vanished_methods"
    )


def extract_features(run: Run, mined: Unit) -> Unit:
    """Compute the features of one repository's methods."""
    key = features_key(run.config, mined)
    return do_once(run, "features", mined.partition, key, lambda job: run.pool.run(work.features, job, mined))


def read_cutoff(run: Run, clone: Clone) -> Unit:
    """Read one repository's tree at the cutoff."""
    repo = clone.record.repo
    commit: CutoffCommit | Exclusion | None
    try:
        commit = find_cutoff(clone.git_dir, clone.record.head, run.config.window.since)
    except DataError as error:
        commit = Exclusion(repo, "cutoff", error.reason, error.detail)
    key = cutoff_key(run.config, repo, commit.commit_id if isinstance(commit, CutoffCommit) else None)

    def do(job: work.Job) -> Unit:
        shares = _read_old_tree(run, job, clone, commit) if isinstance(commit, CutoffCommit) else []
        return run.pool.run(work.cutoff, job, clone, commit, shares)

    return do_once(run, "cutoff", repo, key, do)


def _read_old_tree(run: Run, job: work.Job, clone: Clone, commit: CutoffCommit) -> list[Packed[OldMethods]]:
    """Have the workers read a tree at the cutoff."""
    fetch_cutoff(clone, commit.commit_id)
    # Several for each worker, since these come to them one after the other from the ranges that they mine. No more wait
    # than there are workers, and short ones, lest what puts the ranges together comes last.
    n_shares = min(_CUTOFF_SHARES * run.workers, _MAX_CUTOFF_SHARES) if run.workers > 1 else 1

    def read(share: int) -> Packed[OldMethods]:
        return run.pool.run(work.read_old_tree, job, clone, commit, share, n_shares)

    with ThreadPoolExecutor(min(n_shares, run.workers)) as threads:
        return list(threads.map(read, range(n_shares)))


@dataclass(frozen=True, slots=True)
class TestbedInputs:
    """What a testbed is built from."""

    name: str
    """Name of the testbed."""
    points: tuple[Unit, ...]
    """Feature units of all repositories."""
    mined: tuple[Unit, ...]
    """Mining units of all repositories, for the diffs."""
    unique: Unit
    """The deduplication's unit."""


def make_testbed(run: Run, inputs: TestbedInputs) -> Unit:
    """Build one testbed."""
    key = testbed_key(run.config, inputs)
    return do_once(
        run, "testbeds", inputs.name, key,
        lambda job: run.pool.run(work.testbed, job, inputs.points, inputs.mined, inputs.unique),
    )  # fmt: skip


def do_once(run: Run, stage: str, partition: str, key: str, do: Callable[[work.Job], Unit]) -> Unit:
    """Return the unit from the ledger when it is done, else do it and record it."""
    unit = run.ledger.find(stage, partition, key, run.now)
    reused = unit is not None
    if unit is None:
        with run.progress.running(stage, partition):
            unit = do(work.Job(stage, partition, key, run.workspace.tables, run.config, code_version(), run.now))
            run.ledger.record(unit)
    run.progress.finished(stage, partition, unit.reports, reused=reused)
    return unit
