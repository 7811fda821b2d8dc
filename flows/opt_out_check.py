"""What the entries of an opt-out ledger concern: in the lake, and in releases."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from flows.opting_out import COLUMNS, known_by, places, searched_names
from miners.opt_out import Removed, opted_out
from miners.places import clone_folder
from publishing.facts import shards_of
from publishing.shards import EXCLUSIONS
from schemas.arrow import from_table
from schemas.opt_out import OptOut
from schemas.records import RepositoryRecord
from warehouse.ledger import Ledger
from warehouse.lock import Workspace
from warehouse.tables import read_table


@dataclass(frozen=True, slots=True)
class Checked:
    """What the entries concern."""

    mined: list[int]
    """Mined data points by entry; a row counts for the first that removes it."""
    unknown: int
    """Mined data points whose commits cannot be read."""
    releases: dict[str, int]
    """Rows that should be out, by release."""


def check_entries(entries: Sequence[OptOut], workspace: Workspace) -> Checked:
    """Return what entries remove from the lake, and what releases hold of it."""
    ledger = Ledger(workspace.tables)
    units = ledger.units()
    mined = [
        record
        for unit in units
        if unit.stage == "mine"
        for record in from_table(ledger.read(unit, "repositories"), RepositoryRecord)
    ]
    records = {record.repo: record for record in known_by(mined, searched_names(ledger, mined))}
    tables = [ledger.read(unit, "data_points", COLUMNS) for unit in units if unit.stage == "features"]
    counts = Counter(item.entry for item in _removed(tables, entries, records, workspace))
    releases = {}
    for folder in sorted(path.parent for path in workspace.releases.glob("*/manifest.json")):
        shards = [
            read_table(path).select(COLUMNS)
            for config in sorted(folder.iterdir())
            if config.is_dir() and config.name != EXCLUSIONS
            for path in shards_of(folder, config.name)
        ]
        releases[folder.name] = len({item.row_id for item in _removed(shards, entries, records, workspace)})
    return Checked([counts[number] for number in range(len(entries))], counts[None], releases)


def _removed(
    tables: Sequence[pa.Table],
    entries: Sequence[OptOut],
    records: Mapping[str, RepositoryRecord],
    workspace: Workspace,
) -> list[Removed]:
    clones = {repo: clone_folder(workspace.repos, record.host, repo) for repo, record in records.items()}
    present = {repo: folder for repo, folder in clones.items() if folder.is_dir()}
    return list(opted_out((place for table in tables for place in places(table)), entries, records, present))
