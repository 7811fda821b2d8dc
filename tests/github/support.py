"""Discovery against the loopback GitHub, or without any HTTP."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from miners.discovery import Found, Service, discover
from miners.github import GitHubClient
from miners.search import CAP, Page, Window, read_repository, reduce_repository
from schemas.search import SearchConfig
from tests.github.queries import matching
from tests.github.server import FakeClock, Hub, serving
from tests.github.universe import Repository
from warehouse.journal import Journal

STARTED = datetime(2024, 7, 2, tzinfo=UTC)
LATER = STARTED + timedelta(days=30)


@dataclass
class MemoryAsker:
    """Answers pages from rows in memory, as `miners.search.Asker` does from GitHub."""

    rows: Sequence[Repository]
    asked: list[tuple[str, int]] = field(default_factory=list)
    kept: dict[str, list[Repository]] = field(default_factory=dict)

    def page(self, window: Window, sort: str | None, number: int, attempt: int = 0) -> Page:
        assert number <= CAP // 100
        self.asked.append((window.query, number))
        if window.query not in self.kept:
            self.kept[window.query] = matching(self.rows, window.query)
        rows = list(self.kept[window.query])
        rows.sort(key=lambda row: (row.stars if sort == "stars" else row.updated, row.repo_id))  # type: ignore[arg-type,return-value] # one key for all rows
        shown = rows[(number - 1) * 100 : number * 100]
        found = tuple(read_repository(reduce_repository(row.json("https://hub.example"))) for row in shown)
        return Page(len(rows), False, found)


def run(
    hub: Hub,
    folder: Path,
    *,
    started: datetime = STARTED,
    former: Found | None = None,
    tokens: Sequence[str] = ("secret-1",),
    notify: Callable[[str], None] = lambda text: None,
    **search: object,
) -> Found:
    """Discover over HTTP, with the journal in a folder."""
    hub.clock = hub.clock or FakeClock()
    with serving(hub) as api_url:
        hub.base = hub.base.replace("http:", "https:")  # as GitHub shows its addresses: all else is refused
        config = SearchConfig(api_url=api_url, **search)  # type: ignore[arg-type] # values of its fields
        # Never so short that a busy machine makes a fault of its own: the requests are counted.
        timeout = 4 if hub.fault_rate else 30
        client = GitHubClient(config, tokens, notify, hub.clock, timeout)
        return discover(Service(client, Journal(folder), config), started, former)


def comparable(found: Found) -> Found:
    """Return what was found without the addresses, which hold the server's port."""
    rows = [replace(row, clone_url="", web_url="") for row in found.repositories]
    return replace(found, discovery=replace(found.discovery, api_url=""), repositories=rows)


def found_ids(found: Found) -> list[int]:
    return [row.repo_id for row in found.repositories]


def change(rows: Sequence[Repository], changes: Mapping[int, Mapping[str, Any]]) -> list[Repository]:
    """Return the rows with columns changed by id."""
    return [replace(row, **changes.get(row.repo_id, {})) for row in rows]
