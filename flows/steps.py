"""The steps of the recipe, each over one item: look in the ledger, else have a worker do it, then record it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dedup.tokens import load_tokenizer
from flows import work
from flows.run import Run, code_version, stage_version
from miners.clone import Clone, Place, check_shallow, identify, open_clone
from schemas.config import SourceConfig
from schemas.errors import ConfigError, DataError
from schemas.records import Exclusion, StageReport, count_reasons
from warehouse.ledger import Unit, unit_key


@dataclass(frozen=True, slots=True)
class Source:
    """One repository to be opened."""

    place: Place
    """Where it is and what it is called."""
    config: SourceConfig
    """The section of the configuration that names it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What came of opening a source: a clone, or the reason why there is none."""

    clone: Clone | None
    """The bare clone, null when the source is excluded."""
    exclusion: Exclusion | None
    """Why the source is excluded, null when it is not."""


def plan_sources(run: Run) -> list[Source]:
    """Return every repository that the configuration names, sorted by name; ConfigError when two share one."""
    sources = [
        Source(identify(section, location, run.base), section)
        for section in run.config.sources
        for location in (*section.git, *section.fast_import)
    ]
    by_name: dict[str, Source] = {}
    for source in sources:
        if source.place.repo in by_name:
            raise ConfigError(
                f"two sources are called {source.place.repo}; give one of them another `repo` in its [[sources]]"
            )
        by_name[source.place.repo] = source
    return [by_name[name] for name in sorted(by_name)]


def open_source(run: Run, source: Source) -> Opened:
    """Clone or fetch one repository; an unusable one is excluded, a wrong location is the user's to mend."""
    repo = source.place.repo
    with run.progress.running("clone", repo):
        try:
            clone = open_clone(source.place, run.workspace.repos)
            check_shallow(clone, run.config.window.since)
            return Opened(clone, None)
        except DataError as error:
            exclusion = Exclusion(repo, "sources", error.reason, error.detail)
        except ConfigError as error:
            if not source.config.optional:
                raise
            exclusion = Exclusion(repo, "sources", "source_missing", str(error))
    run.progress.note(f"    clone  {repo}: left out, {exclusion.reason}: {exclusion.detail}")
    return Opened(None, exclusion)


def report_sources(run: Run, opened: Sequence[Opened]) -> StageReport:
    """Return the report of the stage `sources`."""
    excluded = [item.exclusion for item in opened if item.exclusion is not None]
    return StageReport(
        "sources", "all", len(opened), len(opened) - len(excluded), count_reasons(excluded),
        run.config.digest(), code_version(), run.now, datetime.now(UTC),
    )  # fmt: skip


def mine_commits(run: Run, clone: Clone) -> Unit:
    """Mine one repository."""
    record = clone.record
    identity = [record.repo, record.host, record.repo_id, record.web_url, record.default_branch, record.head]
    parameters = [run.config.mining, run.config.window]
    return _unit(run, "mine", record.repo, [parameters, identity], [], lambda job: run.pool.run(work.mine, job, clone))


def extract_features(run: Run, mined: Unit) -> Unit:
    """Compute the features of one repository's methods."""
    return _unit(
        run, "features", mined.partition, run.config.features, [mined.digest],
        lambda job: run.pool.run(work.features, job, mined),
    )  # fmt: skip


def remove_duplicates(run: Run, points: Sequence[Unit]) -> Unit:
    """Remove exact and near duplicates over all repositories."""
    return _unit(
        run, "dedup", "all", [run.config.dedup, load_tokenizer().sha256], [unit.digest for unit in points],
        lambda job: run.pool.run(work.dedup, job, points),
    )  # fmt: skip


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
    digests = [unit.digest for unit in (*inputs.points, *inputs.mined, inputs.unique)]
    return _unit(
        run, "testbeds", inputs.name, run.config.testbeds, digests,
        lambda job: run.pool.run(work.testbed, job, inputs.points, inputs.mined, inputs.unique),
    )  # fmt: skip


def _unit(
    run: Run, stage: str, partition: str, parameters: object, inputs: Sequence[str], do: Callable[[work.Job], Unit]
) -> Unit:
    """Return the unit from the ledger when it is done, else do it and record it."""
    key = unit_key(stage, stage_version(stage), parameters, inputs)
    unit = run.ledger.find(stage, partition, key, run.now)
    reused = unit is not None
    if unit is None:
        with run.progress.running(stage, partition):
            unit = do(work.Job(stage, partition, key, run.workspace.tables, run.config, code_version(), run.now))
            run.ledger.record(unit)
    run.progress.finished(stage, partition, list(unit.reports), reused=reused)
    return unit
