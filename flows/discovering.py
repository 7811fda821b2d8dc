"""The first step: ask GitHub which repositories match `[search]`, keep what it answered, ask again when that is old."""

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from flows.run import Run
from flows.versions import code_version
from flows.work import Job, Tables, account, finish
from miners.discovery import Found, Service, discover, explain_missing
from miners.github import GitHubClient
from miners.github_tokens import find_tokens
from schemas.arrow import from_table
from schemas.config import Config, digest_of
from schemas.records import Exclusion
from schemas.search import DiscoveredRepository, Discovery, SearchConfig, SearchWindow
from warehouse.journal import Journal
from warehouse.ledger import Ledger, Unit, unit_key

STAGE = "discovery"
PARTITION = "all"
# Raise it when the code finds other repositories for the same answers: searches are then made anew.
_VERSION = "1"
_IN_PROGRESS = "in progress"
_TABLES = {"discoveries": Discovery, "search_windows": SearchWindow, "discovered_repositories": DiscoveredRepository}
# What does not change which repositories a search finds.
_NOT_THE_SEARCH = ("refresh", "max_wait", "execute")

_asking = threading.Lock()


@dataclass(frozen=True, slots=True)
class Discovered:
    """A finished search and its unit."""

    unit: Unit
    """The unit in the ledger."""
    found: Found
    """What was found."""

    def is_fresh(self, search: SearchConfig, now: datetime) -> bool:
        """Say whether the search still counts."""
        return now < self.found.discovery.finished_at + search.lifetime


def usable_repositories(found: Found) -> list[DiscoveredRepository]:
    """Return the repositories that can be cloned, sorted by id."""
    excluded = {item.row_id for item in found.excluded}
    return [row for row in found.repositories if row.repo not in excluded and not row.private]


def search_repositories(run: Run, search: SearchConfig) -> Discovered:
    """Return what the search finds: from the ledger while that counts, else from GitHub, which is asked what changed.

    What GitHub answers is kept page by page, so that a run that was killed goes on where it stopped. Raises
    ConfigError when GitHub refuses the search, TransientError when it does not answer, PipelineError when it wants a
    longer wait than allowed.
    """
    known = find_discovered(run.ledger, search)
    if known is not None and known.is_fresh(search, run.now):
        run.progress.finished(STAGE, search.host, known.unit.reports, reused=True)
        return known
    journal = _journal(run)
    started = _started_at(journal, search, run.now)
    with run.progress.running(STAGE, search.host):
        found = discover(_service(run, search, journal), started, None if known is None else known.found)
    found = replace(found, discovery=replace(found.discovery, finished_at=datetime.now(UTC)))
    unit = _record(run, search, found)
    journal.remove(_IN_PROGRESS)
    run.progress.finished(STAGE, search.host, unit.reports, reused=False)
    _tell_gaps(run, found)
    return Discovered(unit, found)


def find_discovered(ledger: Ledger, search: SearchConfig) -> Discovered | None:
    """Return the last finished search of this query, however old, without asking GitHub; null without one."""
    unit = ledger.former(STAGE, PARTITION)
    if unit is None or unit.family != _family(search):
        return None
    rows = {name: list(from_table(ledger.read(unit, name), row_type)) for name, row_type in _TABLES.items()}
    [discovery] = rows["discoveries"]
    excluded = list(from_table(ledger.read(unit, "exclusions"), Exclusion))
    return Discovered(unit, Found(discovery, rows["search_windows"], rows["discovered_repositories"], excluded))


def explain_unusable(run: Run, row: DiscoveredRepository) -> Exclusion | None:
    """Ask GitHub why a repository cannot be cloned; null when it says nothing against it."""
    search = run.config.search
    if search is None:
        return None
    with _asking:  # clones run side by side, GitHub wants to be asked one thing after another
        excluded = explain_missing(_service(run, search, _journal(run)), row)
    return None if excluded is None else replace(excluded, stage="sources")


def known_repositories(ledger: Ledger, config: Config) -> Sequence[DiscoveredRepository]:
    """Return the usable repositories of the last search without asking GitHub."""
    known = None if config.search is None else find_discovered(ledger, config.search)
    return [] if known is None else usable_repositories(known.found)


def _family(search: SearchConfig) -> str:
    """Return the key of a search, whenever it is made."""
    asked = {name: value for name, value in asdict(search).items() if name not in _NOT_THE_SEARCH}
    return unit_key(STAGE, _VERSION, asked, [])


def _started_at(journal: Journal, search: SearchConfig, now: datetime) -> datetime:
    """Return the moment that names the search: that of one which was killed, as long as its answers count."""
    family, state = _family(search), journal.get(_IN_PROGRESS)
    if state is not None and state["family"] == family:
        started = datetime.fromisoformat(state["started_at"])
        if timedelta(0) <= now - started < search.lifetime:
            return started
    journal.put(_IN_PROGRESS, {"family": family, "started_at": now.isoformat()})
    return now


def _service(run: Run, search: SearchConfig, journal: Journal) -> Service:
    return Service(GitHubClient(search, find_tokens(search.host), run.progress.note), journal, search)


def _journal(run: Run) -> Journal:
    return Journal(run.workspace.root / "github")


def _record(run: Run, search: SearchConfig, found: Found) -> Unit:
    """Write the tables of a search and make it the last one."""
    family = _family(search)
    key = digest_of(family, found.discovery.started_at.isoformat())
    tables: Tables = {
        "discoveries": (Discovery, [found.discovery]),
        "search_windows": (SearchWindow, found.windows),
        "discovered_repositories": (DiscoveredRepository, found.repositories),
        "exclusions": (Exclusion, found.excluded),
    }
    usable = len(usable_repositories(found))
    job = Job(STAGE, PARTITION, key, run.workspace.tables, run.config, code_version(), run.now, family)
    report = account(job, usable + len(found.excluded), usable, found.excluded)
    unit = finish(job, found.discovery.started_at, tables, [report])
    run.ledger.record(unit)
    return unit


def _tell_gaps(run: Run, found: Found) -> None:
    """Say on the terminal what the search could not show."""
    row = found.discovery
    if row.uncovered:
        run.progress.note(f"  {STAGE}  {row.uncovered:,} repositories are in windows that GitHub does not show whole")
    if row.incomplete:
        run.progress.note(f"  {STAGE}  for {row.incomplete:,} windows GitHub ran out of time and may show too little")
    if row.found + row.uncovered < row.total:
        run.progress.note(f"  {STAGE}  {row.found:,} repositories were found of {row.total:,} that GitHub counts")
