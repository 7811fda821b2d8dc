"""A search for repositories: its query, the windows it is split into, and the pages that GitHub answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from miners.github import GitHubClient, Store
from miners.rate_limit import Answer, Meaning, classify
from schemas.errors import PipelineError
from schemas.search import Axis, Bounds, DiscoveredRepository, SearchConfig, Wanted

# https://docs.github.com/en/rest/search/search: "up to 1,000 results for each search", at most 100 a page.
PER_PAGE = 100
CAP = 1_000
# GitHub may run out of time (`incomplete_results`); asked again, it mostly does not.
_TRIES = 4
_IGNORED_LICENCES = ("NOASSERTION",)  # GitHub's word for a licence text that it does not know


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a search: the fixed qualifiers and a range of every axis."""

    fixed: str
    """Qualifiers that all windows of the search share."""
    licence: str | None = None
    """The licence, null when the search names none."""
    bounds: dict[Axis, Bounds] = field(default_factory=dict)
    """Range of each axis; one that is left out or open at both ends stands not in the query."""

    @property
    def query(self) -> str:
        """Return the query as GitHub is asked it."""
        licence = [] if self.licence is None else [f"license:{self.licence.lower()}"]
        ranges = [f"{axis}:{text}" for axis, text in self.qualifiers().items()]
        return " ".join([self.fixed, *licence, *ranges])

    def qualifiers(self) -> dict[str, str]:
        """Return the ranges in GitHub's notation by qualifier."""
        texts = {axis: _range_text(axis, bounds) for axis, bounds in sorted(self.bounds.items(), key=_in_order)}
        return {str(axis): text for axis, text in texts.items() if text}

    def with_bounds(self, axis: Axis, bounds: Bounds) -> "Window":
        """Return the window with another range of one axis."""
        return replace(self, bounds=self.bounds | {axis: bounds})

    def range_of(self, axis: Axis) -> Bounds:
        """Return the range of an axis."""
        return self.bounds.get(axis, Bounds())

    def holds(self, row: DiscoveredRepository) -> bool:
        """Say whether a repository lies in all ranges; one without any push lies in no range of pushes but an open."""
        if self.licence is not None and self.licence.casefold() != (row.license or "").casefold():
            return False
        for axis, bounds in self.bounds.items():
            value = axis_value(row, axis)
            if value is None:
                if bounds != Bounds():
                    return False
            elif not bounds.holds(value):
                return False
        return True


def _in_order(item: tuple[Axis, Bounds]) -> int:
    return list(Axis).index(item[0])


def _range_text(axis: Axis, bounds: Bounds) -> str:
    """Return a range in GitHub's notation, empty for one that holds everything."""
    low = None if not axis.is_time and not bounds.low else bounds.low
    if low is None and bounds.high is None:
        return ""
    if bounds.high is None:
        return f">={_value_text(axis, low)}"
    if low is None:
        return f"<={_value_text(axis, bounds.high)}"
    return f"{_value_text(axis, low)}..{_value_text(axis, bounds.high)}"


def _value_text(axis: Axis, value: int | None) -> str:
    if not axis.is_time or value is None:
        return str(value)
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def axis_value(row: DiscoveredRepository, axis: Axis) -> int | None:
    """Return a repository's value on an axis."""
    if axis.is_time:
        moment = row.created_at if axis is Axis.CREATED else row.pushed_at
        return None if moment is None else int(moment.timestamp())
    return {Axis.STARS: row.stars, Axis.SIZE: row.size, Axis.FORKS: row.forks}[axis]


def fixed_query(config: SearchConfig) -> str:
    """Return the qualifiers that are no ranges; a search leaves out forks unless it is told otherwise."""
    parts = [f'language:"{config.language}"' if " " in config.language else f"language:{config.language}", "is:public"]
    if config.forks is not Wanted.EXCLUDE:
        parts.append("fork:true" if config.forks is Wanted.INCLUDE else "fork:only")
    if config.archived is not Wanted.INCLUDE:
        parts.append(f"archived:{'true' if config.archived is Wanted.ONLY else 'false'}")
    return " ".join(parts)


def root_windows(config: SearchConfig) -> list[Window]:
    """Return the windows that together are the search: one for each licence, which no repository has two of."""
    bounds = {axis: part for axis, part in config.bounds().items() if part not in (Bounds(), Bounds(0))}
    licences: Sequence[str | None] = config.licences or (None,)
    return [Window(fixed_query(config), licence, bounds) for licence in licences]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a window."""

    total: int
    """Repositories that GitHub says the window has."""
    incomplete: bool
    """GitHub ran out of time."""
    rows: tuple[DiscoveredRepository, ...]
    """Repositories of the page."""
    too_wide: bool = False
    """GitHub refused the page, since it shows no more of this window."""

    @property
    def n_pages(self) -> int:
        """Return the pages that the window has."""
        return -(-min(self.total, CAP) // PER_PAGE)


class Asker:
    """Asks for pages, each once in a search: what was answered is kept and not asked again after a kill.

    `epoch` names the search. Pages of an earlier one are asked for with their ETag, where GitHub gave one.
    """

    def __init__(self, client: GitHubClient, store: Store, epoch: str) -> None:
        self._client, self._store, self._epoch = client, store, epoch
        self.answered = 0
        """Pages of this search that were answered, in this run or before."""
        self.names: dict[int, set[str]] = {}
        """Every name under which each repository was shown."""

    def page(self, window: Window, sort: str | None, number: int, attempt: int = 0) -> Page:
        """Return a page; `attempt` counts how often the window was gathered before, since what it holds can move.

        An answer for which GitHub ran out of time is asked for again some times, then taken as it is.
        """
        for again in range(_TRIES):
            page = self._kept(window.query, sort, number, attempt * _TRIES + again)
            if not page.incomplete:
                break
        return page

    def _kept(self, query: str, sort: str | None, number: int, attempt: int) -> Page:
        """Return a page from the store when this search was answered it, else from GitHub."""
        key = "\n".join([self._client.api_url, query, sort or "", str(number), str(attempt)])
        known = self._store.get(key)
        if known is None or known["epoch"] != self._epoch:
            answer = self._client.search(query, sort, number, known["etag"] if known else None)
            known = _reduced(answer, known) | {"epoch": self._epoch}
            self._store.put(key, known)
        self.answered += 1
        rows = tuple(read_repository(item) for item in known["items"])
        for row in rows:
            self.names.setdefault(row.repo_id, set()).add(row.repo)
        return Page(known["total_count"], known["incomplete_results"], rows, known["too_wide"])


def _reduced(answer: Answer, known: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is kept of an answer; a known one when nothing changed."""
    meaning = classify(answer)
    if meaning is Meaning.UNCHANGED and known is not None:
        return known
    if meaning is Meaning.TOO_WIDE:
        return {"etag": None, "total_count": 0, "incomplete_results": False, "items": [], "too_wide": True}
    body = json.loads(answer.body)
    try:
        return {
            "etag": answer.headers.get("etag"),
            "total_count": int(body["total_count"]),
            "incomplete_results": bool(body["incomplete_results"]),
            "items": [reduce_repository(item) for item in body["items"]],
            "too_wide": False,
        }
    except (KeyError, TypeError, ValueError) as error:
        raise PipelineError(f"GitHub's answer is not as documented ({error!r}); is search.api_url right?") from None


_KEPT = (
    "id", "full_name", "stargazers_count", "forks_count", "size", "created_at", "pushed_at", "language",
    "default_branch", "clone_url", "html_url", "fork", "archived", "private", "disabled",
)  # fmt: skip


def reduce_repository(item: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a repository that count, as GitHub gives them."""
    licence = item.get("license") or {}
    return {name: item.get(name) for name in _KEPT} | {"license": licence.get("spdx_id")}


def read_repository(item: dict[str, Any]) -> DiscoveredRepository:
    """Return the row of a repository that `reduce_repository` made."""
    pushed = item["pushed_at"]
    return DiscoveredRepository(
        repo_id=int(item["id"]),
        repo=str(item["full_name"]),
        aliases=(),
        stars=int(item["stargazers_count"]),
        forks=int(item["forks_count"]),
        size=int(item["size"]),
        created_at=datetime.fromisoformat(item["created_at"]),
        pushed_at=None if pushed is None else datetime.fromisoformat(pushed),
        license=None if item["license"] in _IGNORED_LICENCES else item["license"],
        language=item["language"],
        default_branch=str(item["default_branch"]),
        clone_url=str(item["clone_url"]),
        web_url=str(item["html_url"]),
        is_fork=bool(item["fork"]),
        archived=bool(item["archived"]),
        private=bool(item["private"]),
        disabled=bool(item["disabled"]),
    )
