"""The whole search: every repository once, and when it is repeated only what changed."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from miners.github import GitHubClient, Store
from miners.partition import Part, Partition
from miners.search import CAP, Asker, Window, read_repository, reduce_repository, root_windows
from schemas.errors import DataError
from schemas.records import Exclusion
from schemas.search import Axis, Bounds, DiscoveredRepository, Discovery, SearchConfig, SearchWindow, parse_bounds

STAGE = "discovery"
# A push is in GitHub's search index some time after it was made.
_INDEX_LAG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, sorted by numeric id."""

    discovery: Discovery
    """The search itself."""
    windows: list[SearchWindow]
    """Its parts."""
    repositories: list[DiscoveredRepository]
    """Repositories that match, those that cannot be used included."""
    excluded: list[Exclusion]
    """Repositories that match but cannot be used, and those that no longer match."""


@dataclass(frozen=True, slots=True)
class Service:
    """What a search needs."""

    client: GitHubClient
    """Asks GitHub."""
    store: Store
    """Keeps what GitHub answered."""
    config: SearchConfig
    """The search."""


@dataclass(slots=True)
class _State:
    """What is known while the search goes on."""

    parts: list[Part] = field(default_factory=list)
    excluded: list[Exclusion] = field(default_factory=list)


def discover(service: Service, started_at: datetime, former: Found | None = None) -> Found:
    """Return every repository that a search finds.

    `started_at` names the search: a run that was killed goes on under the same name, and what GitHub answered it is
    not asked again. With a `former` result only what was pushed since is asked for, how many each of its windows has
    now, and those windows whose numbers differ. The result's `finished_at` is `started_at`; the caller knows better.
    Raises ConfigError when the search is refused, TransientError when GitHub does not answer, PipelineError when its
    limits want a longer wait than allowed.
    """
    config = service.config
    asker = Asker(service.client, service.store, started_at.isoformat())
    state = _State()
    if former is None:
        for root in root_windows(config):
            state.parts += Partition(asker, started_at).cover(root)
    else:
        _refresh(service, asker, started_at, former, state)
    rows = _rows(state.parts, asker, former)
    unusable = [item for row in rows if (item := exclude_unusable(row, config)) is not None]
    parts = state.parts
    discovery = Discovery(
        api_url=config.api_url,
        query=replace(root_windows(config)[0], licence=None).query,
        licences=config.licences,
        started_at=started_at,
        finished_at=started_at,
        incremental=former is not None,
        total=sum(part.total for part in parts),
        found=len(rows),
        uncovered=sum(part.uncovered for part in parts),
        incomplete=sum(part.incomplete for part in parts),
        calls=asker.answered,
        lookups=service.client.counts.lookups,
    )
    windows = [_window_row(number, part) for number, part in enumerate(parts, 1)]
    excluded = sorted([*unusable, *state.excluded], key=lambda item: (item.row_id, item.reason))
    return Found(discovery, windows, rows, excluded)


def _rows(parts: Iterable[Part], asker: Asker, former: Found | None) -> list[DiscoveredRepository]:
    """Return every repository once, sorted by id, with all other names under which it was found, now and earlier."""
    names = {} if former is None else {row.repo_id: {row.repo, *row.aliases} for row in former.repositories}
    rows = {repo_id: row for part in parts for repo_id, row in part.rows.items()}
    return [
        replace(row, aliases=tuple(sorted((names.get(repo_id, set()) | asker.names.get(repo_id, set())) - {row.repo})))
        for repo_id, row in sorted(rows.items())
    ]


def _window_row(number: int, part: Part) -> SearchWindow:
    window = part.window
    return SearchWindow(
        window=number,
        query=window.query,
        licence=window.licence,
        qualifiers=window.qualifiers(),
        total=part.total,
        found=len(part.rows),
        incomplete=part.incomplete,
        uncovered=part.uncovered,
    )


def exclude_unusable(row: DiscoveredRepository, config: SearchConfig) -> Exclusion | None:
    """Return why a repository cannot be cloned, by what GitHub says of it; null when it can.

    What is private is told by its number, since exclusions are published.
    """
    if row.private:
        return Exclusion(f"{config.host}:{row.repo_id}", STAGE, "repository_private", "not public")
    if row.disabled:
        return Exclusion(row.repo, STAGE, "repository_disabled", f"GitHub has disabled repository {row.repo_id}")
    if not row.clone_url.lower().startswith(f"https://{config.host}/"):
        return Exclusion(row.repo, STAGE, "clone_url_refused", f"{row.clone_url} is no https address of {config.host}")
    return None


def _refresh(service: Service, asker: Asker, started_at: datetime, former: Found, state: _State) -> None:
    """Find what was pushed since, then the windows of the former search whose number of repositories changed."""
    config, known = service.config, {row.repo_id: row for row in former.repositories}
    since = int((former.discovery.started_at - _INDEX_LAG).timestamp())
    for root in root_windows(config):
        pushed = root.range_of(Axis.PUSHED).cut(Bounds(since, None))
        if not pushed.empty:
            for part in Partition(asker, started_at).cover(root.with_bounds(Axis.PUSHED, pushed)):
                known |= part.rows
    for window in (_window_of(row, config) for row in former.windows):
        inside = {repo_id: row for repo_id, row in known.items() if window.holds(row)}
        state.parts += _recount(asker, started_at, window, inside)
    found = {repo_id for part in state.parts for repo_id in part.rows}
    for repo_id in sorted(set(known) - found):
        row = known[repo_id]
        state.excluded.append(explain_missing(service, row) or _left(row))


def _window_of(row: SearchWindow, config: SearchConfig) -> Window:
    """Return the window that a row of an earlier search tells of."""
    bounds = {axis: parse_bounds(axis, row.qualifiers[str(axis)]) for axis in Axis if str(axis) in row.qualifiers}
    root = next(root for root in root_windows(config) if root.licence == row.licence)
    return replace(root, bounds=bounds)


def _recount(asker: Asker, started_at: datetime, window: Window, inside: dict[int, DiscoveredRepository]) -> list[Part]:
    """Return a window's repositories now: the known ones when their number is right, else all read anew."""
    partition = Partition(asker, started_at)
    first = partition.first(window)
    newest = {row.repo_id: row for row in first.rows}
    if first.total == len(inside) <= CAP and newest.keys() <= inside.keys():
        return [Part(window, first.total, inside | newest, first.incomplete)]
    return partition.cover(window)


def explain_missing(service: Service, row: DiscoveredRepository) -> Exclusion | None:
    """Ask GitHub why a repository cannot be cloned or is not found any more; null when nothing speaks against it."""
    try:
        now = read_repository(reduce_repository(service.client.lookup(row.repo_id, service.store)))
    except DataError as error:
        return Exclusion(row.repo, STAGE, error.reason, error.detail)
    return exclude_unusable(now, service.config)


def _left(row: DiscoveredRepository) -> Exclusion:
    detail = f"repository {row.repo_id} was found by an earlier search and no longer matches"
    return Exclusion(row.repo, STAGE, "search_left", detail)
