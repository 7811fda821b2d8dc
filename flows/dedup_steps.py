"""The steps of the duplicate search: reference sets, token sets, comparison with old code, the search itself."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from dedup.references import ReferenceFiles, locate
from dedup.tokens import load_tokenizer
from flows import dedup_work, work
from flows.dedup_work import DedupInputs, DedupPlan, Sharing, TokenUnits
from flows.run import Run
from flows.steps import do_once
from flows.versions import stage_version
from miners.clone import Clone
from schemas.config import Config
from schemas.references import OldCode
from warehouse.ledger import Unit, unit_key

Inputs = TypeVar("Inputs")


@dataclass(frozen=True, slots=True)
class Compared:
    """What the duplicate search starts from."""

    clones: Sequence[Clone]
    """Clones of all repositories, for their trees at the cutoff."""
    points: Sequence[Unit]
    """Feature units of all repositories."""
    references: Sequence[ReferenceFiles]
    """Reference sets."""
    names: Mapping[str, Sequence[str]]
    """Other names of each repository, by which opt-outs may call it."""


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
class Tokenised(Generic[Inputs]):
    """What is compared, with the token sets of its texts."""

    inputs: Inputs
    """The units with the texts."""
    tokens: TokenUnits
    """Their token sets."""


def reference_key(found: ReferenceFiles) -> str:
    """Return the key of reading a reference set: the contents of its files, not where they are."""
    return unit_key("references", stage_version("references"), found.identity, [])


def tokens_family(source: Unit) -> str:
    """Return the key of making token sets of a stage's texts, whatever the texts."""
    return unit_key("tokens", stage_version("tokens"), [source.stage, load_tokenizer().sha256], [])


def compare_key(config: Config, inputs: CompareInputs) -> str:
    """Return the key of comparing data points with trees at the cutoff."""
    dedup = config.dedup
    limits = [dedup.threshold, dedup.min_distinct_tokens, config.features.novelty, load_tokenizer().sha256]
    digests = [[unit.digest for unit in units] for units in (inputs.points, inputs.cutoffs)]
    return unit_key("compare", stage_version("compare"), [limits, digests], [])


def dedup_family(config: Config) -> str:
    """Return the key of the duplicate search, whatever is searched: pairs of one search serve another."""
    dedup = config.dedup
    parameters = [dedup.threshold, dedup.min_distinct_tokens, load_tokenizer().sha256]
    return unit_key("dedup", stage_version("dedup"), parameters, [])


def dedup_key(config: Config, inputs: DedupInputs) -> str:
    """Return the key of the deduplication of all repositories."""
    digests = [unit.digest for unit in (*inputs.points, *inputs.compared, *inputs.references)]
    return unit_key("dedup", dedup_family(config), config.dedup.keep, digests)


def plan_references(config: Config, base: Path, workspace: Path) -> list[ReferenceFiles]:
    """Return the files of every reference set; ConfigError when one has none. `base` is the configuration's folder."""
    return [locate(reference, base, workspace) for reference in config.dedup.references]


def read_reference(run: Run, found: ReferenceFiles) -> Unit:
    """Read one reference set."""
    key = reference_key(found)
    return do_once(run, "references", found.title, key, lambda job: run.pool.run(work.read_reference, job, found))


@dataclass(frozen=True, slots=True)
class ReleasedTexts:
    """The texts of an earlier release, and the token sets of the lake, which has most of them."""

    source: Unit
    """Unit of the stage `references`."""
    known: tuple[Unit, ...]
    """Token sets of all data points."""


def tokenise_release(run: Run, given: ReleasedTexts) -> Unit:
    """Make the token sets of an earlier release's texts; those of data points that are still there are taken over."""
    return tokenise(run, given.source, given.known)


def tokenise(run: Run, source: Unit, known: Sequence[Unit] = ()) -> Unit:
    """Make the token sets of a unit's texts; those of texts that it had before, or `known` ones, are taken over."""
    family = tokens_family(source)
    partition = f"{source.stage}/{source.partition}"

    def do(job: work.Job) -> Unit:
        former = _former(run, "tokens", partition, family)
        before = known if former is None else [former]
        return run.pool.run(dedup_work.tokens, replace(job, family=family), source, before)

    return do_once(run, "tokens", partition, unit_key("tokens", family, [], [source.digest]), do)


def token_units(sources: Iterable[Unit], tokens: Iterable[Unit]) -> dict[str, Unit]:
    """Return the units of token sets by the key of the unit that the texts come from."""
    return {source.key: unit for source, unit in zip(sources, tokens, strict=True)}


def plan_comparisons(config: Config, points: Sequence[Unit], cutoffs: Sequence[Unit]) -> list[CompareInputs]:
    """Return what is to be compared: each repository with its own tree, all with all, or nothing."""
    if config.dedup.copied_old is OldCode.OFF:
        return []
    if config.dedup.copied_old is OldCode.ALL:
        return [CompareInputs("all", tuple(points), tuple(cutoffs))]
    by_repo = {unit.partition: unit for unit in cutoffs}
    return [CompareInputs(unit.partition, (unit,), (by_repo[unit.partition],)) for unit in points]


def compare_with_old(run: Run, given: Tokenised[CompareInputs]) -> Unit:
    """Find the data points that resemble a method of a tree at the cutoff."""
    inputs = given.inputs
    threads = run.workers if inputs.partition == "all" else 1
    units = (*inputs.points, *inputs.cutoffs)
    tokens = {unit.key: given.tokens[unit.key] for unit in units}
    return do_once(
        run, "compare", inputs.partition, compare_key(run.config, inputs),
        lambda job: run.pool.run(dedup_work.compare, job, inputs.points, inputs.cutoffs, tokens, threads),
    )  # fmt: skip


def remove_duplicates(run: Run, given: Tokenised[DedupInputs]) -> Unit:
    """Remove what reference sets hold and exact and near duplicates, over all repositories; a large search is shared
    by the machines of a cluster, a grown one goes on from the former."""
    family = dedup_family(run.config)

    def do(job: work.Job) -> Unit:
        job = replace(job, family=family)
        former = _former(run, "dedup", "all", family)
        sharing = Sharing(run.workers, run.pool.shares, dedup_work.SHARED_IDS)
        started = run.pool.run(dedup_work.start_dedup, job, given.inputs, given.tokens, former, sharing)
        if started.n_new is not None:
            news = f"{started.n_new:,} of {started.n_texts:,} texts are new"
            run.progress.note(f"  dedup  all: goes on from the former search, {news}")
        if isinstance(started.outcome, Unit):
            return started.outcome
        return _share(run, job, given.inputs, started.outcome)

    return do_once(run, "dedup", "all", dedup_key(run.config, given.inputs), do)


def _share(run: Run, job: work.Job, inputs: DedupInputs, plan: DedupPlan) -> Unit:
    """Have several workers do a share of a search each, and put the shares together."""
    count = run.pool.shares
    with ThreadPoolExecutor(count) as threads:
        done = threads.map(lambda part: run.pool.run(dedup_work.dedup_share, job, plan, part, count), range(count))
        shares = list(done)
    unit = run.pool.run(dedup_work.finish_dedup, job, inputs, plan, shares)
    for notes in (plan.notes, *shares):
        run.ledger.discard(notes)
    return unit


def _former(run: Run, stage: str, partition: str, family: str) -> Unit | None:
    """Return the current unit if one can go on from it."""
    former = run.ledger.former(stage, partition)
    return former if former is not None and former.family == family else None
