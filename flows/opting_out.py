"""The step that leaves out what people asked to have left out, and the command that keeps their ledger."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from flows import work
from flows.discovering import STAGE as DISCOVERY
from flows.run import Run
from flows.steps import do_once
from flows.versions import stage_version
from miners.clone import Clone
from miners.opt_out import Place, Removed, opted_out
from schemas.arrow import from_table
from schemas.comparisons import OldCopy
from schemas.config import load_config
from schemas.errors import ConfigError
from schemas.opt_out import OptOut, entry_text, ledger_paths, read_opt_outs
from schemas.records import Exclusion, RepositoryRecord
from schemas.search import DiscoveredRepository
from warehouse.ledger import Ledger, Unit, unit_key
from warehouse.tables import write_text

STAGE = "opt_out"
COLUMNS = ["row_id", "repo", "path", "commit_id"]


@dataclass(frozen=True, slots=True)
class OptOutInputs:
    """What opt-outs are looked for in."""

    entries: tuple[OptOut, ...]
    """The ledgers' entries."""
    clones: tuple[Clone, ...]
    """Clones of all repositories."""
    points: tuple[Unit, ...]
    """Feature units of all repositories."""
    compared: tuple[Unit, ...]
    """Comparisons with old code: what they excluded is gone already."""
    names: Mapping[str, Sequence[str]]
    """Other names of each repository."""

    def records(self) -> list[RepositoryRecord]:
        """Return the repositories with all names by which an entry may call them."""
        return known_by((clone.record for clone in self.clones), self.names)


def plan_opt_outs(run: Run) -> tuple[OptOut, ...] | None:
    """Return the entries of the configured ledgers, null when none is configured."""
    files = ledger_paths(run.config.optout, run.base)
    return tuple(read_opt_outs(files)) if files else None


def opt_out_key(entries: Sequence[OptOut], records: Sequence[RepositoryRecord], units: Sequence[Unit]) -> str:
    """Return the key of leaving out; `units` hold the data points and the comparisons with old code."""
    repositories = [[record.repo, record.repo_id, record.aliases] for record in records]
    parameters = [[entry_text(entry) for entry in entries], repositories]
    return unit_key(STAGE, stage_version(STAGE), parameters, [unit.digest for unit in units])


def known_by(records: Iterable[RepositoryRecord], names: Mapping[str, Sequence[str]]) -> list[RepositoryRecord]:
    """Return repositories with all their other names, those of earlier searches too."""
    return [
        replace(record, aliases=tuple(sorted({*record.aliases, *names.get(record.repo, ())}))) for record in records
    ]


def searched_names(ledger: Ledger, records: Iterable[RepositoryRecord]) -> dict[str, Sequence[str]]:
    """Return the names under which the searches of a lake found each repository, its own included; none without any."""
    unit = ledger.former(DISCOVERY, "all")
    if unit is None:
        return {}
    found = from_table(ledger.read(unit, "discovered_repositories"), DiscoveredRepository)
    names = {f"{urlsplit(row.web_url).netloc.lower()}:{row.repo_id}": (row.repo, *row.aliases) for row in found}
    return {record.repo: names[record.key] for record in records if record.key in names}


def leave_out(run: Run, inputs: OptOutInputs) -> Unit:
    """Leave out the rows that an entry removes, before duplicates are searched: none takes another's place."""
    key = opt_out_key(inputs.entries, inputs.records(), [*inputs.points, *inputs.compared])
    return do_once(run, STAGE, "all", key, lambda job: _leave_out(run, job, inputs))


def _leave_out(run: Run, job: work.Job, inputs: OptOutInputs) -> Unit:
    started = datetime.now(UTC)
    gone = {
        row_id
        for unit in inputs.compared
        for row_id in run.ledger.read(unit, "exclusions", ["row_id"])["row_id"].to_pylist()
    }
    tables = (run.ledger.read(unit, "data_points", COLUMNS) for unit in inputs.points)
    rows = [place for table in tables for place in places(table) if place.row_id not in gone]
    records = {record.repo: record for record in inputs.records()}
    folders = {clone.record.repo: clone.git_dir for clone in inputs.clones}
    excluded = [_exclusion(item) for item in opted_out(rows, inputs.entries, records, folders)]
    report = work.account(job, len(rows), len(rows) - len(excluded), excluded)
    # As a comparison with old code, whose other table is empty: the duplicate search reads both kinds alike.
    tables_of_unit: work.Tables = {"copied_old": (OldCopy, []), "exclusions": (Exclusion, excluded)}
    return work.finish(job, started, tables_of_unit, [report])


def places(table: pa.Table) -> Iterator[Place]:
    """Yield where the rows of a table with the columns row_id, repo, path and commit_id stand."""
    for row_id, *place in zip(*(table[name].to_pylist() for name in COLUMNS), strict=True):
        yield Place(row_id, *place)


def _exclusion(item: Removed) -> Exclusion:
    """Return a row's exclusion; it does not say which entry removed it, since ledgers are not published."""
    return Exclusion(item.row_id, STAGE, "opt_out_unknown" if item.entry is None else "opted_out")


def add_entry(path: Path, entry: OptOut) -> int:
    """Write an entry behind those of a ledger, which is made when there is none; return how many it has then."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    known = read_opt_outs([path]) if text else []
    if entry in known:
        raise ConfigError(f"{path} has this entry already")
    write_text(path, f"{text.rstrip()}\n\n{entry_text(entry)}".lstrip("\n"))
    return len(read_opt_outs([path]))


def configured_entries(config_path: Path) -> Sequence[OptOut]:
    """Return the entries of a configuration's ledgers; ConfigError when it names none."""
    config = load_config(config_path)
    files = ledger_paths(config.optout, config_path.resolve().parent)
    if not files:
        raise ConfigError(f'{config_path} names no ledger; add [optout] with files = ["optout.toml"]')
    return read_opt_outs(files)


def today() -> date:
    """Return the day by UTC, the date of a new entry."""
    return datetime.now(UTC).date()
