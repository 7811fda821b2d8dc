"""`postquem status`: what is done in a workspace for a configuration, without fetching or changing anything."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from flows import dedup_steps, steps
from flows.cloning import STAGE as SOURCES
from flows.cloning import left_out
from flows.dedup_work import DedupInputs
from flows.discovering import find_discovered, known_repositories
from flows.execution import TESTBED, kept_rows, real_code_key, sample_key
from flows.opting_out import STAGE as OPT_OUT
from flows.opting_out import known_by, opt_out_key
from flows.sources import Source, plan_sources
from schemas.arrow import from_table
from schemas.comparisons import Cutoff
from schemas.config import Config, load_config
from schemas.errors import ConfigError, PipelineError
from schemas.opt_out import ledger_paths, read_opt_outs
from schemas.records import RepositoryRecord
from schemas.references import OldCode
from testbeds.real_code import STAGE
from warehouse.ledger import Ledger, Unit
from warehouse.lock import Workspace, open_workspace

# Partitions on which a stage's items depend; those of the other stages on their own.
_UPSTREAM: dict[str, tuple[str, ...]] = {
    "discovery": (),
    "mine": (),
    "cutoff": (),
    "opt_out": ("all",),
    "references": (),
    "dedup": ("all",),
    STAGE: ("all",),
    "testbeds": ("all",),
}
UP_TO_DATE, REDO, NEVER = "up to date", "would be redone", "not done yet"


@dataclass(frozen=True, slots=True)
class ItemStatus:
    """One stage of one repository or testbed."""

    stage: str
    """Stage of the recipe."""
    partition: str
    """owner/name, testbed, or `all`."""
    state: str
    """`up to date`, `would be redone`, `not done yet`; of a repository that the last run left out the reason."""
    rows_out: int | None
    """Rows that the stage last handed on, null when it never ran."""
    finished_at: str | None
    """When, UTC."""


def list_status(config: Config, base: Path, workspace: Workspace) -> list[ItemStatus]:
    """Return every item of the recipe in its order; new commits that a fetch would bring are not known here."""
    ledger = Ledger(workspace.tables)
    units = {(unit.stage, unit.partition): unit for unit in ledger.units()}
    gone = left_out(ledger)
    planned = plan_sources(config, base, known_repositories(ledger, config)).rows
    sources = [source for source in planned if source.repo not in gone]
    names = [source.repo for source in sources]
    mined = [units.get(("mine", name)) for name in names]
    points = [units.get(("features", name)) for name in names]
    items = _discovery(config, ledger)
    items += [
        ItemStatus(SOURCES, source.repo, gone[source.repo], None, None) for source in planned if source.repo in gone
    ]
    items += [
        _item("mine", name, unit, _mine_key(config, ledger, unit)) for name, unit in zip(names, mined, strict=True)
    ]
    for name, unit, source in zip(names, points, mined, strict=True):
        key = None if source is None else steps.features_key(config, source)
        items.append(_item("features", name, unit, key))
    found = [unit for unit in points if unit is not None]
    compared = _old_code(config, ledger, names, found, items)
    if compared is not None and config.optout.files:
        known = {source.repo: source.names for source in sources}
        given = ([unit for unit in mined if unit], found, compared)
        compared = _opt_outs(config, base, ledger, given, known, items)
    unique = units.get(("dedup", "all"))
    sets = _reference_sets(config, base, workspace, units, items)
    key = None
    if compared is not None and sets is not None and len(found) == len(names):
        key = dedup_steps.dedup_key(config, DedupInputs(tuple(found), tuple(compared), tuple(sets)))
    items.append(_item("dedup", "all", unique, key))
    if TESTBED in config.testbeds.names:
        items += _proofs(config, ledger, sources, units)
    for name in config.testbeds.names:
        key = None
        if name == TESTBED:
            proven = [units.get((STAGE, repo)) for repo in names]
            key = sample_key(config, [unit for unit in proven if unit is not None])
        elif unique is not None:
            inputs = steps.TestbedInputs(name, tuple(found), tuple(unit for unit in mined if unit), unique)
            key = steps.testbed_key(config, inputs)
        items.append(_item("testbeds", name, units.get(("testbeds", name)), key))
    return _spread(items)


def _discovery(config: Config, ledger: Ledger) -> list[ItemStatus]:
    """Return the item of the search; without one there is none."""
    if config.search is None:
        return []
    known = find_discovered(ledger, config.search)
    if known is None:
        return [_item("discovery", "all", None, None)]
    key = known.unit.key if known.is_fresh(config.search, datetime.now(UTC)) else None
    return [_item("discovery", "all", known.unit, key)]


def _opt_outs(
    config: Config,
    base: Path,
    ledger: Ledger,
    given: tuple[Sequence[Unit], Sequence[Unit], list[Unit]],
    names: Mapping[str, Sequence[str]],
    items: list[ItemStatus],
) -> list[Unit] | None:
    """Add the item of the opt-outs; return its unit behind the comparisons with old code, None without one."""
    mined, points, compared = given
    unit = ledger.former(OPT_OUT, "all")
    records = [
        record for item in mined for record in from_table(ledger.read(item, "repositories"), RepositoryRecord)
    ]  # fmt: skip
    entries = read_opt_outs(ledger_paths(config.optout, base))
    items.append(_item(OPT_OUT, "all", unit, opt_out_key(entries, known_by(records, names), [*points, *compared])))
    return None if unit is None else [*compared, unit]


def _mine_key(config: Config, ledger: Ledger, unit: Unit | None) -> str | None:
    """Return the key that mining would have now if the repository has no new commits."""
    if unit is None:
        return None
    try:
        [record] = from_table(ledger.read(unit, "repositories"), RepositoryRecord)
    except PipelineError:
        return None  # the unit's file is damaged: it would be redone
    return steps.mine_key(config, record)


def _proofs(
    config: Config, ledger: Ledger, sources: Sequence[Source], units: Mapping[tuple[str, str], Unit]
) -> list[ItemStatus]:
    """Return the items of proof by execution."""
    items, unique = [], units.get(("dedup", "all"))
    for source in sources:
        mined, points = units.get(("mine", source.repo)), units.get(("features", source.repo))
        key = None
        if mined is not None and points is not None and unique is not None:
            try:
                [record] = from_table(ledger.read(mined, "repositories"), RepositoryRecord)
                rows = kept_rows(ledger, points, unique)
                key = real_code_key(config, record.head, points, rows, allowed=source.config.execute)
            except PipelineError:
                key = None  # a file is damaged: it would be redone
        items.append(_item(STAGE, source.repo, units.get((STAGE, source.repo)), key))
    return items


def _old_code(
    config: Config, ledger: Ledger, names: Sequence[str], points: Sequence[Unit], items: list[ItemStatus]
) -> list[Unit] | None:
    """Add the items of the comparison with old code; return its units, None when one is missing."""
    if config.dedup.copied_old is OldCode.OFF:
        return []
    units = {(unit.stage, unit.partition): unit for unit in ledger.units()}
    cutoffs = [units.get(("cutoff", name)) for name in names]
    for name, unit in zip(names, cutoffs, strict=True):
        items.append(_item("cutoff", name, unit, _cutoff_key(config, ledger, unit)))
    partitions = ["all"] if config.dedup.copied_old is OldCode.ALL else names
    found = [unit for unit in cutoffs if unit is not None]
    planned = {}
    if len(points) == len(found) == len(names):
        planned = {inputs.partition: inputs for inputs in dedup_steps.plan_comparisons(config, points, found)}
    compared = [units.get(("compare", partition)) for partition in partitions]
    for partition, unit in zip(partitions, compared, strict=True):
        key = dedup_steps.compare_key(config, planned[partition]) if partition in planned else None
        items.append(_item("compare", partition, unit, key))
    present = [unit for unit in compared if unit is not None]
    return present if len(present) == len(compared) else None


def _reference_sets(
    config: Config,
    base: Path,
    workspace: Workspace,
    units: Mapping[tuple[str, str], Unit],
    items: list[ItemStatus],
) -> list[Unit] | None:
    """Add the items of the reference sets; return their units, None when one is missing."""
    planned = dedup_steps.plan_references(config, base, workspace.root)
    sets = [units.get(("references", found.title)) for found in planned]
    for found, unit in zip(planned, sets, strict=True):
        items.append(_item("references", found.title, unit, dedup_steps.reference_key(found)))
    present = [unit for unit in sets if unit is not None]
    return present if len(present) == len(sets) else None


def _cutoff_key(config: Config, ledger: Ledger, unit: Unit | None) -> str | None:
    """Return the key that reading the tree at the cutoff would have now if the repository has no other history."""
    if unit is None:
        return None
    try:
        [row] = from_table(ledger.read(unit, "cutoffs"), Cutoff)
    except PipelineError:
        return None  # the unit's file is damaged: it would be redone
    return steps.cutoff_key(config, row.repo, row.commit_id)


def _item(stage: str, partition: str, unit: Unit | None, key: str | None) -> ItemStatus:
    if unit is None:
        return ItemStatus(stage, partition, NEVER, None, None)
    last = next((report for report in unit.reports if report.stage == "methods"), unit.reports[-1])
    finished = None if last.finished_at is None else last.finished_at.isoformat(sep=" ", timespec="seconds")[:19]
    return ItemStatus(stage, partition, UP_TO_DATE if unit.key == key else REDO, last.rows_out, finished)


def _spread(items: Sequence[ItemStatus]) -> list[ItemStatus]:
    """Return the items; what follows something that would be redone would be redone too."""
    stale: set[str] = set()
    spread = []
    for item in items:
        upstream = _UPSTREAM.get(item.stage, (item.partition,))
        if item.state == UP_TO_DATE and stale.intersection(upstream):
            item = ItemStatus(item.stage, item.partition, REDO, item.rows_out, item.finished_at)
        if item.state != UP_TO_DATE and item.stage != SOURCES:
            stale |= {item.partition, "all"}
        spread.append(item)
    return spread


def print_status(config_path: Path, workspace_path: Path, *, as_json: bool) -> None:
    """Print what is done for a configuration and which releases there are."""
    config = load_config(config_path)
    if not workspace_path.is_dir():
        raise ConfigError(f"there is no workspace {workspace_path} yet; `postquem build` makes it")
    workspace = open_workspace(workspace_path)
    items = list_status(config, config_path.resolve().parent, workspace)
    releases = sorted(path.name for path in workspace.releases.iterdir() if (path / "manifest.json").is_file())
    if as_json:
        click.echo(json.dumps({"items": [asdict(item) for item in items], "releases": releases}, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("stage", "of", "state"):
        table.add_column(name, no_wrap=name != "of", overflow="fold")
    table.add_column("rows out", justify="right", no_wrap=True)
    table.add_column("finished (UTC)", no_wrap=True)
    for item in items:
        rows = "" if item.rows_out is None else f"{item.rows_out:,}"
        table.add_row(item.stage, item.partition, item.state, rows, item.finished_at or "")
    console = Console()
    console.print(table)
    console.print(f"Releases: {', '.join(releases) or 'none yet'}", markup=False)
