"""The steps of the recipe, each over one item: look in the ledger, else have a worker do it, then record it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dedup.references import ReferenceFiles, locate
from dedup.tokens import load_tokenizer
from flows import work
from flows.run import Run, code_version, stage_version
from flows.sources import Source
from flows.work import DedupInputs
from miners.clone import Clone, check_shallow, open_clone
from miners.cutoff import CutoffCommit, find_cutoff
from miners.plan import MiningPlan
from miners.take import Taken
from schemas.arrow import from_table
from schemas.config import Config
from schemas.errors import ConfigError, DataError
from schemas.records import Exclusion, RepositoryRecord, StageReport, count_reasons
from schemas.references import OldCode
from warehouse.ledger import Unit, unit_key


def open_source(run: Run, source: Source) -> Clone | Exclusion:
    """Clone or fetch one repository; an unusable one is excluded, a wrong location is the user's to mend."""
    with run.progress.running("clone", source.repo):
        try:
            clone = open_clone(source.place, run.workspace.repos, source.former)
            check_shallow(clone, run.config.window.since)
        except DataError as error:
            return Exclusion(source.repo, "sources", error.reason, error.detail)
        except ConfigError as error:
            if not source.config.optional:
                raise
            return Exclusion(source.repo, "sources", "source_missing", str(error))
        return clone


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


def compare_key(config: Config, inputs: "CompareInputs") -> str:
    """Return the key of comparing data points with trees at the cutoff."""
    dedup = config.dedup
    limits = [dedup.threshold, dedup.min_distinct_tokens, config.features.novelty, load_tokenizer().sha256]
    digests = [[unit.digest for unit in units] for units in (inputs.points, inputs.cutoffs)]
    return unit_key("compare", stage_version("compare"), [limits, digests], [])


def reference_key(found: ReferenceFiles) -> str:
    """Return the key of reading a reference set: the contents of its files, not where they are."""
    return unit_key("references", stage_version("references"), found.identity, [])


def dedup_key(config: Config, inputs: DedupInputs) -> str:
    """Return the key of the deduplication of all repositories."""
    dedup = config.dedup
    parameters = [dedup.threshold, dedup.min_distinct_tokens, dedup.keep, load_tokenizer().sha256]
    digests = [unit.digest for unit in (*inputs.points, *inputs.compared, *inputs.references)]
    return unit_key("dedup", stage_version("dedup"), parameters, digests)


def testbed_key(config: Config, inputs: "TestbedInputs") -> str:
    """Return the key of one testbed."""
    digests = [unit.digest for unit in (*inputs.points, *inputs.mined, inputs.unique)]
    return unit_key("testbeds", stage_version("testbeds"), config.testbeds, digests)


def mine_commits(run: Run, clone: Clone) -> Unit:
    """Mine one repository: what an earlier head lacks, a big share of it by several workers."""
    record = clone.record
    key, family = mine_key(run.config, record), mine_family(run.config, record)

    def do(job: work.Job) -> Unit:
        before = run.ledger.former("mine", record.repo)
        former = before if before is not None and before.family == family else None
        job = replace(job, family=family)
        plan = run.pool.run(work.plan, job, clone, former)
        taken = _take_ranges(run, job, clone, plan)
        unit = run.pool.run(work.mine, job, clone, plan, taken, former)
        if plan.rewritten and former is not None:
            _mark_vanished(run, job, former, unit)
        return unit

    return _unit(run, "mine", record.repo, key, do)


def _take_ranges(run: Run, job: work.Job, clone: Clone, plan: MiningPlan) -> list[Taken]:
    """Have several workers mine a big repository; nothing for a small one, which is mined where it is put together."""
    ranges = plan.ranges(run.workers)
    if len(ranges) < 2:
        return []
    with ThreadPoolExecutor(len(ranges)) as threads:
        return list(threads.map(lambda part: run.pool.run(work.mine_range, job, clone, plan.selected, part), ranges))


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
    return _unit(run, "features", mined.partition, key, lambda job: run.pool.run(work.features, job, mined))


def read_cutoff(run: Run, clone: Clone) -> Unit:
    """Read one repository's tree at the cutoff."""
    repo = clone.record.repo
    commit: CutoffCommit | Exclusion | None
    try:
        commit = find_cutoff(clone.git_dir, clone.record.head, run.config.window.since)
    except DataError as error:
        commit = Exclusion(repo, "cutoff", error.reason, error.detail)
    key = cutoff_key(run.config, repo, commit.commit_id if isinstance(commit, CutoffCommit) else None)
    return _unit(run, "cutoff", repo, key, lambda job: run.pool.run(work.cutoff, job, clone, commit))


@dataclass(frozen=True, slots=True)
class CompareInputs:
    """Data points and the trees at the cutoff that they are compared with."""

    partition: str
    """owner/name, or `all` when every repository is compared with every tree."""
    points: tuple[Unit, ...]
    """Feature units."""
    cutoffs: tuple[Unit, ...]
    """Cutoff units."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What the duplicate search starts from."""

    clones: Sequence[Clone]
    """Clones of all repositories, for their trees at the cutoff."""
    points: Sequence[Unit]
    """Feature units of all repositories."""
    references: Sequence[ReferenceFiles]
    """Reference sets."""


def plan_comparisons(config: Config, points: Sequence[Unit], cutoffs: Sequence[Unit]) -> list[CompareInputs]:
    """Return what is to be compared: each repository with its own tree, all with all, or nothing."""
    if config.dedup.copied_old is OldCode.OFF:
        return []
    if config.dedup.copied_old is OldCode.ALL:
        return [CompareInputs("all", tuple(points), tuple(cutoffs))]
    by_repo = {unit.partition: unit for unit in cutoffs}
    return [CompareInputs(unit.partition, (unit,), (by_repo[unit.partition],)) for unit in points]


def compare_with_old(run: Run, inputs: CompareInputs) -> Unit:
    """Find the data points that resemble a method of a tree at the cutoff."""
    key = compare_key(run.config, inputs)
    return _unit(
        run, "compare", inputs.partition, key,
        lambda job: run.pool.run(work.compare, job, inputs.points, inputs.cutoffs),
    )  # fmt: skip


def plan_references(config: Config, base: Path, workspace: Path) -> list[ReferenceFiles]:
    """Return the files of every reference set; ConfigError when one has none. `base` is the configuration's folder."""
    return [locate(reference, base, workspace) for reference in config.dedup.references]


def read_reference(run: Run, found: ReferenceFiles) -> Unit:
    """Read one reference set."""
    key = reference_key(found)
    return _unit(run, "references", found.title, key, lambda job: run.pool.run(work.read_reference, job, found))


def remove_duplicates(run: Run, inputs: DedupInputs) -> Unit:
    """Remove what reference sets hold and exact and near duplicates, over all repositories."""
    key = dedup_key(run.config, inputs)
    return _unit(run, "dedup", "all", key, lambda job: run.pool.run(work.dedup, job, inputs))


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
    return _unit(
        run, "testbeds", inputs.name, key,
        lambda job: run.pool.run(work.testbed, job, inputs.points, inputs.mined, inputs.unique),
    )  # fmt: skip


def _unit(run: Run, stage: str, partition: str, key: str, do: Callable[[work.Job], Unit]) -> Unit:
    """Return the unit from the ledger when it is done, else do it and record it."""
    unit = run.ledger.find(stage, partition, key, run.now)
    reused = unit is not None
    if unit is None:
        with run.progress.running(stage, partition):
            unit = do(work.Job(stage, partition, key, run.workspace.tables, run.config, code_version(), run.now))
            run.ledger.record(unit)
    run.progress.finished(stage, partition, unit.reports, reused=reused)
    return unit
