"""How long a search counts, and what a later one asks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from flows.discovering import (
    find_discovered,
    known_repositories,
    search_repositories,
    usable_repositories,
)
from flows.progress import RunProgress
from flows.run import Run
from schemas.config import Config, WindowConfig
from schemas.errors import ConfigError, PipelineError
from schemas.search import SearchConfig
from tests.github.server import PRIMARY, Hub, error, serving
from tests.github.universe import TODAY, equal_universe, ids
from warehouse.ledger import Ledger


@dataclass
class World:
    """A hub and a workspace, and a run in it at any time."""

    hub: Hub
    folder: Path
    search: SearchConfig

    def run(self, now: datetime, search: SearchConfig | None = None) -> Run:
        config = Config((), WindowConfig(TODAY), search=search or self.search)
        return cast(
            "Run",
            SimpleNamespace(
                config=config,
                now=now,
                ledger=Ledger(self.folder / "tables"),
                workspace=SimpleNamespace(root=self.folder, tables=self.folder / "tables"),
                progress=RunProgress(),
            ),
        )

    def found(self, now: datetime, search: SearchConfig | None = None) -> list[int]:
        """Search at a time; return the ids of what can be used. Answers count from now on."""
        self.hub.asked.clear()
        run = self.run(now, search)
        return [row.repo_id for row in usable_repositories(search_repositories(run, search or self.search).found)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    hub = Hub([replace(row, pushed=TODAY - timedelta(days=100)) for row in equal_universe(130)])
    with serving(hub) as api_url:
        hub.base = hub.base.replace("http:", "https:")
        yield World(hub, tmp_path, SearchConfig(api_url=api_url, stars=">=3", refresh="7d"))


NOW = datetime.now(UTC)


def test_a_search_counts_for_its_lifetime_then_what_changed_is_asked_for(world: World) -> None:
    assert world.found(NOW) == ids(world.hub.rows)
    assert len(world.hub.asked) == 2
    assert world.found(NOW + timedelta(days=6)) == ids(world.hub.rows)
    assert world.hub.asked == []
    world.hub.rows = [*world.hub.rows, replace(world.hub.rows[0], repo_id=999, name="a/new", pushed=NOW)]
    assert world.found(NOW + timedelta(days=8)) == ids(world.hub.rows)
    assert len(world.hub.asked) == 2  # what was pushed, and how many there are now
    known = find_discovered(Ledger(world.folder / "tables"), world.search)
    assert known is not None
    assert (known.found.discovery.incremental, known.found.discovery.found) == (True, 131)
    assert known_repositories(Ledger(world.folder / "tables"), world.run(NOW).config) == known.found.repositories


def test_another_query_is_another_search(world: World) -> None:
    world.found(NOW)
    other = replace(world.search, stars=">=4")
    assert known_repositories(Ledger(world.folder / "tables"), world.run(NOW, other).config) == []
    assert world.found(NOW, other) == ids(world.hub.rows)
    assert len(world.hub.asked) == 2


def test_what_is_no_part_of_the_query_changes_nothing(world: World) -> None:
    world.found(NOW)
    assert world.found(NOW, replace(world.search, refresh="9d", max_wait="1m", execute=False)) == ids(world.hub.rows)
    assert world.hub.asked == []


def test_a_search_that_ends_early_goes_on_under_its_own_time(world: World) -> None:
    """An answer that is kept for another search is asked for again, by its ETag."""
    limit = replace(world.search, max_wait="1m")
    world.hub.before_search = lambda number: world.hub.scripted.append(error(403, PRIMARY, retry_after="3000"))
    with pytest.raises(PipelineError, match=r"longer than search\.max_wait allows"):
        world.found(NOW, limit)
    world.hub.before_search = lambda number: None
    world.hub.scripted.clear()
    assert world.found(NOW + timedelta(days=1), limit) == ids(world.hub.rows)
    assert [(asked.query["page"], asked.status) for asked in world.hub.asked] == [("2", 200)]


def test_a_search_that_was_left_for_longer_than_it_counts_begins_anew(world: World) -> None:
    world.hub.before_search = lambda number: world.hub.scripted.append(error(403, PRIMARY, retry_after="3000"))
    with pytest.raises(PipelineError):
        world.found(NOW, replace(world.search, max_wait="1m"))
    world.hub.before_search = lambda number: None
    world.hub.scripted.clear()
    assert world.found(NOW + timedelta(days=30)) == ids(world.hub.rows)
    assert [(asked.query["page"], asked.status) for asked in world.hub.asked] == [("1", 304), ("2", 200)]


def test_gaps_are_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.hub.incomplete = lambda number, query: True
    assert world.found(NOW) == []
    told = capsys.readouterr().err
    assert "for 1 windows GitHub ran out of time and may show too little" in told
    assert "0 repositories were found of 65 that GitHub counts" in told


def test_a_search_that_is_refused_leaves_nothing_that_counts(world: World) -> None:
    world.hub.tokens = ("another",)
    with pytest.raises(ConfigError, match="GitHub refuses token 1 of 1"):
        world.found(NOW)
    assert find_discovered(Ledger(world.folder / "tables"), world.search) is None
    world.hub.tokens = None
    assert world.found(NOW) == ids(world.hub.rows)
