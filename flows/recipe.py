"""The main job as a list of steps: repositories in, a release out. Knows neither Prefect nor the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from dedup.references import ReferenceFiles
from flows import dedup_steps, steps
from flows.cloning import mine_clones, open_sources, record_left_out
from flows.dedup_work import DedupInputs
from flows.discovering import STAGE as DISCOVERY
from flows.discovering import Discovered, search_repositories, usable_repositories
from flows.execution import TESTBED, make_real_code, plan_proofs, prove_repository
from flows.opting_out import OptOutInputs, leave_out, plan_opt_outs
from flows.releasing import check_release, release
from flows.run import Run
from flows.sources import Source, plan_sources
from flows.steppers import Stepper
from miners.clone import Clone
from publishing.release import ReleaseResult
from schemas.errors import ConfigError
from schemas.records import Exclusion, StageReport
from schemas.references import OldCode, Role
from testbeds.real_code import STAGE
from warehouse.ledger import Unit
from warehouse.views import rebuild_catalogue

STAGES = ("discover", "mine", "features", "dedup", "testbeds", "release")


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a run made."""

    reports: tuple[StageReport, ...]
    """What became of every row of every stage, in the order of the stages."""
    release: ReleaseResult | None
    """The release, null when the run stopped at an earlier stage."""
    testbed_rows: dict[str, int]
    """Rows by testbed."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The repositories of a run, ready to be mined."""

    clones: tuple[Clone, ...]
    """Their clones, each repository once."""
    sources: tuple[Source, ...]
    """Where they come from, and whether they may be executed."""
    unusable: tuple[Exclusion, ...]
    """Those that cannot be used (stage `sources`)."""
    searched: tuple[Discovered, ...] = ()
    """The search on GitHub; none without one."""


def build(run: Run, stepper: Stepper, until: str = "release") -> BuildResult:
    """Carry out the recipe up to a stage; whatever is done already is not done again."""
    if until == "release":
        check_release(run)
    references = dedup_steps.plan_references(run.config, run.base, run.workspace.root)
    searches = [] if run.config.search is None else [run.config.search]
    searched = stepper.each("discovery", search_repositories, run, searches, attrgetter("host"))
    if until == "discover":
        return _end_at_discovery(run, searched)
    found = [row for search in searched for row in usable_repositories(search.found)]
    planned = plan_sources(run.config, run.base, found)
    opened = open_sources(run, stepper, planned.rows)
    unusable = (*planned.excluded, *opened.excluded)
    gathered = Gathered(tuple(opened.rows), tuple(planned.rows), unusable, tuple(searched))
    work = carry_out(run, stepper, gathered, references, until)
    made = None
    if until == "release":
        made = release(run, work.done, work.beds, work.unusable, work.reports)
    return BuildResult(work.reports, made, {unit.partition: unit.reports[-1].rows_out for unit in work.beds})


@dataclass(frozen=True, slots=True)
class Work:
    """What was made of gathered repositories."""

    done: tuple[Unit, ...]
    """Units of all stages, in the order of the recipe."""
    beds: tuple[Unit, ...]
    """Those of the testbeds."""
    reports: tuple[StageReport, ...]
    """What became of every row of every stage, in the order of the stages."""
    unusable: tuple[Exclusion, ...]
    """Repositories that cannot be used (stage `sources`), those that could not be mined included."""


def carry_out(
    run: Run, stepper: Stepper, gathered: Gathered, references: Sequence[ReferenceFiles], until: str = "release"
) -> Work:  # fmt: skip
    """Mine the gathered repositories and carry out the stages that follow, up to the testbeds."""
    clones, mined, failed = mine_clones(run, stepper, gathered.clones, gathered.sources)
    unusable = (*gathered.unusable, *failed)
    sources = steps.report_sources(run, unusable, mined)
    done = [*(search.unit for search in gathered.searched), *mined]
    points: list[Unit] = []
    beds: list[Unit] = []
    tokens: list[Unit] = []
    if until != "mine":
        points = stepper.each("features", steps.extract_features, run, mined, attrgetter("partition"))
        done += points
    if until not in ("mine", "features"):
        known = {source.repo: source.names for source in gathered.sources}
        compared = dedup_steps.Compared(clones, points, references, known)
        unique, tokens = _deduplicate(run, stepper, compared, done)
        if until != "dedup":
            names = [name for name in run.config.testbeds.names if name != TESTBED]
            inputs = [steps.TestbedInputs(name, tuple(points), tuple(mined), unique) for name in names]
            beds = stepper.each("testbeds", steps.make_testbed, run, inputs, attrgetter("name"))
            if TESTBED in run.config.testbeds.names:
                given = plan_proofs(clones, gathered.sources, points, unique)
                proven = stepper.each(STAGE, prove_repository, run, given, attrgetter("clone.record.repo"))
                beds += stepper.each("testbeds", make_real_code, run, [tuple(proven)], lambda _: TESTBED)
                done += proven
            done += beds
    reports = _in_order(done, sources)
    left_out = record_left_out(run, unusable)
    rebuild_catalogue(run.workspace, [*done, left_out, *tokens, *steps.find_vanished(run, mined)])
    return Work(tuple(done), tuple(beds), reports, unusable)


def _deduplicate(
    run: Run, stepper: Stepper, given: dedup_steps.Compared, done: list[Unit]
) -> tuple[Unit, list[Unit]]:  # fmt: skip
    """Compare the data points with old code, reference sets and one another; the units are added to `done`.

    Also return the units with the token sets of all texts.
    """
    points, cutoffs, entries = given.points, list[Unit](), plan_opt_outs(run)
    if run.config.dedup.copied_old is not OldCode.OFF:
        cutoffs = stepper.each("cutoff", steps.read_cutoff, run, given.clones, attrgetter("record.repo"))
    sets = stepper.each("references", dedup_steps.read_reference, run, given.references, attrgetter("title"))
    tokens, made = _tokenise(run, stepper, points, (*cutoffs, *sets), given.references)
    planned = [
        dedup_steps.Tokenised(inputs, tokens) for inputs in dedup_steps.plan_comparisons(run.config, points, cutoffs)
    ]
    compared = stepper.each(
        "compare", dedup_steps.compare_with_old, run, planned, attrgetter("inputs.partition")
    )  # fmt: skip
    unwanted = []
    if entries is not None:
        unwanted = [OptOutInputs(entries, tuple(given.clones), tuple(points), tuple(compared), given.names)]
    compared += stepper.each("opt_out", leave_out, run, unwanted, lambda _: "all")
    clones = tuple((clone.record.repo, clone.git_dir) for clone in given.clones)
    inputs = dedup_steps.Tokenised(DedupInputs(tuple(points), tuple(compared), tuple(sets), clones), tokens)
    [unique] = stepper.each("dedup", dedup_steps.remove_duplicates, run, [inputs], lambda _: "all")
    done += [*cutoffs, *compared, *sets, unique]
    return unique, made


def _tokenise(
    run: Run, stepper: Stepper, points: Sequence[Unit], others: Sequence[Unit], references: Sequence[ReferenceFiles]
) -> tuple[dict[str, Unit], list[Unit]]:
    """Return the token sets of all texts, by the key of the unit that the texts come from and one by one."""
    releases = {item.title for item in references if item.reference.kind is Role.RELEASE}
    released = [unit for unit in others if unit.stage == "references" and unit.partition in releases]
    sources = [*points, *(unit for unit in others if unit not in released)]
    made = stepper.each("tokens", dedup_steps.tokenise, run, sources, lambda unit: f"{unit.stage} {unit.partition}")
    known = tuple(made[: len(points)])
    given = [dedup_steps.ReleasedTexts(unit, known) for unit in released]
    made += stepper.each("tokens", dedup_steps.tokenise_release, run, given, lambda item: item.source.partition)
    return dedup_steps.token_units([*sources, *released], made), made


def _end_at_discovery(run: Run, searched: Sequence[Discovered]) -> BuildResult:
    """Return what a search alone gives."""
    if not searched:
        raise ConfigError("there is no [search] in the configuration; its repositories are those of [[sources]]")
    units = [search.unit for search in searched]
    rebuild_catalogue(run.workspace, units)
    return BuildResult(_in_order(units), None, {})


def _in_order(units: Sequence[Unit], sources: StageReport | None = None) -> tuple[StageReport, ...]:
    """Return all reports, stages in the order of the recipe, partitions in the order of the units."""
    reports = [report for unit in units for report in unit.reports]
    searched = [report for report in reports if report.stage == DISCOVERY]
    ordered = [*searched, *([] if sources is None else [sources])]
    ordered += [report for report in reports if report.stage != DISCOVERY]
    order: dict[str, None] = dict.fromkeys(report.stage for report in ordered)
    rank = {stage: index for index, stage in enumerate(order)}
    return tuple(sorted(ordered, key=lambda report: rank[report.stage]))
