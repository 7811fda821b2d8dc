"""The main job as a list of steps: repositories in, a release out. Knows neither Prefect nor the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa

from dedup.tokens import load_tokenizer
from flows import steps
from flows.run import Run, code_version
from flows.steppers import Stepper
from miners.clone import Clone
from miners.syntax import GRAMMAR_VERSION
from publishing.inputs import ReleaseInputs
from publishing.release import ReleaseResult, write_release
from schemas.arrow import from_table, to_table
from schemas.errors import PipelineError
from schemas.records import Exclusion, RepositoryRecord, StageReport
from warehouse.ledger import Unit
from warehouse.views import rebuild_catalogue

STAGES = ("mine", "features", "dedup", "testbeds", "release")


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a run made."""

    reports: tuple[StageReport, ...]
    """What became of every row of every stage, in the order of the stages."""
    release: ReleaseResult | None
    """The release, null when the run stopped at an earlier stage."""
    testbed_rows: dict[str, int]
    """Rows by testbed."""


def build(run: Run, stepper: Stepper, until: str = "release") -> BuildResult:
    """Carry out the recipe up to a stage; whatever is done already is not done again."""
    planned = steps.plan_sources(run)
    opened = stepper.each("clone", steps.open_source, run, planned.rows, attrgetter("repo"))
    clones = [item for item in opened if isinstance(item, Clone)]
    unusable = [*planned.excluded, *(item for item in opened if isinstance(item, Exclusion))]
    mined = stepper.each("mine", steps.mine_commits, run, clones, attrgetter("record.repo"))
    sources = steps.report_sources(run, unusable, mined)
    done = list(mined)
    points: list[Unit] = []
    beds: list[Unit] = []
    if until != "mine":
        points = stepper.each("features", steps.extract_features, run, mined, attrgetter("partition"))
        done += points
    if until not in ("mine", "features"):
        [unique] = stepper.each("dedup", steps.remove_duplicates, run, [points], lambda _: "all")
        done.append(unique)
        if until != "dedup":
            inputs = [
                steps.TestbedInputs(name, tuple(points), tuple(mined), unique) for name in run.config.testbeds.names
            ]
            beds = stepper.each("testbeds", steps.make_testbed, run, inputs, attrgetter("name"))
            done += beds
    reports = (sources, *_in_order(done))
    rebuild_catalogue(run.workspace, done)
    release = None
    if until == "release":
        release = _release(run, done, beds, unusable, reports)
    return BuildResult(reports, release, {unit.partition: unit.reports[-1].rows_out for unit in beds})


def _in_order(units: Sequence[Unit]) -> list[StageReport]:
    """Return all reports, stages in the order of the recipe, partitions in the order of the units."""
    order: dict[str, None] = {}
    for unit in units:
        for report in unit.reports:
            order.setdefault(report.stage)
    rank = {stage: index for index, stage in enumerate(order)}
    return sorted((report for unit in units for report in unit.reports), key=lambda report: rank[report.stage])


def _release(
    run: Run, done: Sequence[Unit], beds: Sequence[Unit], excluded: Sequence[Exclusion], reports: Sequence[StageReport]
) -> ReleaseResult:
    """Write the release folder from the run's units."""
    tables = {unit.partition: run.ledger.read(unit, f"tasks_{unit.partition}") for unit in beds}
    if not any(table.num_rows for table in tables.values()):
        reasons = sorted(
            {f"{reason} ({count})" for report in reports for reason, count in report.excluded_by_reason.items()}
        )
        raise PipelineError(
            "nothing to release: no method came through. Left out: "
            f"{', '.join(reasons) or 'nothing'}; look at window.since and at the sources"
        )
    exclusions = [to_table(list(excluded), Exclusion)]
    exclusions += [run.ledger.read(unit, "exclusions") for unit in done]
    repositories = [
        record
        for unit in done
        if unit.stage == "mine"
        for record in from_table(run.ledger.read(unit, "repositories"), RepositoryRecord)
    ]
    inputs = ReleaseInputs(
        config=run.config,
        code_version=code_version(),
        tokenizer_sha256=load_tokenizer().sha256,
        grammar_version=GRAMMAR_VERSION,
        repositories=tuple(repositories),
        tables=tables,
        exclusions=pa.concat_tables(exclusions),
        funnel=tuple(reports),
    )
    with run.progress.running("release", run.config.release.version):
        return write_release(inputs, run.workspace.releases)
