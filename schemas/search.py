"""Which repositories a search on GitHub finds (`[search]`), and the rows that tell what it found."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from schemas.errors import ConfigError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_DURATION = re.compile(r"(\d+)([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_NUMBER = re.compile(r"\d{1,9}")
_LANGUAGE = re.compile(r"[\w+#.' -]+")
_LICENCE = re.compile(r"[A-Za-z0-9.+-]+")


class Axis(StrEnum):
    """A qualifier of a search whose values are ordered, in the order in which a search is split by them."""

    STARS = "stars"
    CREATED = "created"
    PUSHED = "pushed"
    SIZE = "size"
    FORKS = "forks"

    @property
    def is_time(self) -> bool:
        """Say whether the values are moments (seconds since 1970 UTC) and not numbers."""
        return self in (Axis.CREATED, Axis.PUSHED)


class Bounds(NamedTuple):
    """A range of an axis, both ends included; null for an end that is open."""

    low: int | None = None
    """Smallest value: a number, or seconds since 1970 UTC."""
    high: int | None = None
    """Largest value."""

    @property
    def single(self) -> bool:
        """Say whether it holds one value only."""
        return self.low is not None and self.low == self.high

    @property
    def empty(self) -> bool:
        """Say whether it holds no value."""
        return self.low is not None and self.high is not None and self.low > self.high

    def cut(self, other: "Bounds") -> "Bounds":
        """Return what both hold."""
        lows = [value for value in (self.low, other.low) if value is not None]
        highs = [value for value in (self.high, other.high) if value is not None]
        return Bounds(max(lows, default=None), min(highs, default=None))

    def holds(self, value: int) -> bool:
        """Say whether a value lies in it."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Wanted(StrEnum):
    """Whether a kind of repository is wanted."""

    EXCLUDE = "exclude"
    INCLUDE = "include"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A search for repositories on GitHub (`[search]`); ranges are written as there: `>1000`, `10..50`, `<=30000`."""

    language: str = "Python"
    """Main language of the repository."""
    forks: Wanted = Wanted.EXCLUDE
    """Whether forks count: `exclude`, `include` or `only`."""
    archived: Wanted = Wanted.INCLUDE
    """Whether archived repositories count: `exclude`, `include` or `only`."""
    stars: str = ""
    """Range of the number of stars."""
    created: str = ""
    """Range of the moment of creation, UTC; a date stands for the whole day."""
    pushed: str = ""
    """Range of the moment of the last push, UTC; a date stands for the whole day."""
    size: str = ""
    """Range of the size in KB (1 KB = 1,024 bytes)."""
    n_forks: str = ""
    """Range of the number of forks of the repository."""
    licences: tuple[str, ...] = ()
    """SPDX ids of licences that GitHub found, one of which the repository must have; any or none when left out."""
    execute: bool = True
    """Whether `real_code` may execute what is found; false leaves it out of that testbed alone."""
    refresh: str = "7d"
    """How long a finished search counts, such as `7d`, `12h` or `30m`; then what changed is asked for."""
    max_wait: str = "65m"
    """Longest single wait for GitHub's limits; longer ones end the run, which goes on when it is started again."""
    api_url: str = "https://api.github.com"
    """Address of the REST API; of GitHub Enterprise Server `https://HOST/api/v3`."""

    def bounds(self) -> dict[Axis, Bounds]:
        """Return the range of every axis; raise ConfigError for one that cannot be read."""
        texts = (self.stars, self.created, self.pushed, self.size, self.n_forks)
        return {axis: parse_bounds(axis, text) for axis, text in zip(Axis, texts, strict=True)}

    @property
    def lifetime(self) -> timedelta:
        """Return `refresh` as a duration."""
        return _duration("refresh", self.refresh)

    @property
    def longest_wait(self) -> timedelta:
        """Return `max_wait` as a duration."""
        return _duration("max_wait", self.max_wait)

    @property
    def host(self) -> str:
        """Return the host whose repositories are found, with its port unless that is the default."""
        host = urlsplit(self.api_url).netloc.lower()
        return "github.com" if host == "api.github.com" else host


def check_search(search: SearchConfig) -> None:
    """Raise ConfigError for a search that could find nothing or must not be made."""
    for axis, bounds in search.bounds().items():
        if bounds.empty:
            raise ConfigError(f"search.{_key(axis)} holds no value: its end lies before its beginning")
    if not search.language or not _LANGUAGE.fullmatch(search.language):
        raise ConfigError(f"search.language must be a language as GitHub names it, not {search.language!r}")
    for licence in search.licences:
        if not _LICENCE.fullmatch(licence):
            raise ConfigError(f"search.licences must list SPDX ids such as 'MIT', not {licence!r}")
    if len({licence.casefold() for licence in search.licences}) != len(search.licences):
        raise ConfigError("search.licences must name none twice")
    if search.lifetime > timedelta(days=3_650) or search.longest_wait > timedelta(days=1):
        raise ConfigError("search.refresh must be at most 3650d and search.max_wait at most 1d")
    _check_api_url(search.api_url)


def _check_api_url(url: str) -> None:
    """Refuse addresses to which a token must not be sent."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"search.api_url {url!r} is no valid address: {error}") from None
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
    if not host or not secure or "@" in parts.netloc or parts.query or parts.fragment or url.endswith("/"):
        raise ConfigError(f"search.api_url must be an https:// address without user, query and final slash: {url!r}")


def parse_bounds(axis: Axis, text: str) -> Bounds:
    """Return the range that a text such as `>=10`, `10..50`, `7` or `2024-01-01..*` stands for; open when empty."""
    text = text.strip()
    if not text:
        return Bounds(0 if not axis.is_time else None)
    low, dots, high = text.partition("..")
    if dots:
        bounds = Bounds(_first(axis, low), _last(axis, high))
    elif text.startswith((">=", "<=")):
        bounds = Bounds(_first(axis, text[2:]), None) if text[0] == ">" else Bounds(None, _last(axis, text[2:]))
    elif text.startswith((">", "<")):
        value = _last(axis, text[1:]) if text[0] == ">" else _first(axis, text[1:])
        if value is None:
            raise _unreadable(axis, text)
        bounds = Bounds(value + 1, None) if text[0] == ">" else Bounds(None, value - 1)
    else:
        bounds = Bounds(_first(axis, text), _last(axis, text))
    return bounds if axis.is_time else bounds.cut(Bounds(0))


def _first(axis: Axis, text: str) -> int | None:
    """Return the first second or the number that a value stands for, null for `*`."""
    return None if text.strip() == "*" else _values(axis, text.strip())[0]


def _last(axis: Axis, text: str) -> int | None:
    return None if text.strip() == "*" else _values(axis, text.strip())[1]


def _values(axis: Axis, text: str) -> tuple[int, int]:
    """Return the first and the last value that a text stands for: those of a day are 86,400 seconds."""
    if not axis.is_time:
        if not _NUMBER.fullmatch(text):
            raise _unreadable(axis, text)
        return int(text), int(text)
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        first = int(moment.timestamp())
    except (ValueError, OverflowError):
        raise _unreadable(axis, text) from None
    is_day = len(text) == len("2024-01-01")
    return first, first + 86_399 if is_day else first


def _unreadable(axis: Axis, text: str) -> ConfigError:
    example = "2024-01-01..2024-12-31" if axis.is_time else "10..50"
    return ConfigError(f"search.{_key(axis)} must be a range such as '>={example[:-4]}', '{example}': {text!r}")


def _key(axis: Axis) -> str:
    return "n_forks" if axis is Axis.FORKS else str(axis)


def _duration(key: str, text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if not found or len(found[1]) > 6 or not int(found[1]):
        raise ConfigError(f"search.{key} must be a duration such as '7d', '12h' or '30m', not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True, slots=True)
class Discovery:
    """One finished search (table `discoveries`)."""

    api_url: str
    """Address of the API that answered."""
    query: str
    """The query before it was split, without the licences."""
    licences: tuple[str, ...]
    """Licences of which a repository must have one, each of them a search of its own."""
    started_at: datetime
    """When the search began, UTC."""
    finished_at: datetime
    """When it ended, UTC."""
    incremental: bool
    """It asked only for what changed since an earlier search."""
    total: int
    """Repositories that GitHub says the query has."""
    found: int
    """Distinct repositories that were found, by numeric id."""
    uncovered: int
    """Repositories in windows that cannot be split further, beyond the 1,000 that GitHub shows of each."""
    incomplete: int
    """Windows for which GitHub ran out of time, again and again, so that it may show too little."""
    calls: int
    """Search requests that were answered."""
    lookups: int
    """Requests for single repositories that were answered."""


@dataclass(frozen=True, slots=True)
class SearchWindow:
    """One part of a search that was asked for on its own (table `search_windows`); no two parts overlap."""

    window: int
    """Number of the window, in the order of the search."""
    query: str
    """The window's query as GitHub was asked."""
    licence: str | None
    """Licence of the window, null when the search names none."""
    qualifiers: dict[str, str]
    """Ranges of the window by qualifier."""
    total: int
    """Repositories that GitHub says the window has."""
    found: int
    """Distinct repositories that were found in it."""
    incomplete: bool
    """GitHub said that it ran out of time each time it was asked."""
    uncovered: int
    """Repositories that GitHub does not show, since it shows 1,000 and the window cannot be split."""


@dataclass(frozen=True, slots=True)
class DiscoveredRepository:
    """A repository that a search found (table `discovered_repositories`); numbers are those of the last answer."""

    repo_id: int
    """The host's numeric id, which stays when a repository is renamed or transferred."""
    repo: str
    """owner/name."""
    aliases: tuple[str, ...]
    """Earlier names under which a search found it, sorted."""
    stars: int
    """Stars."""
    forks: int
    """Forks."""
    size: int
    """Size in KB as GitHub last computed it."""
    created_at: datetime
    """Creation, UTC."""
    pushed_at: datetime | None
    """Last push, UTC; null when there was none."""
    license: str | None
    """SPDX id that GitHub found, null when it found none that it knows."""
    language: str | None
    """Main language, null when GitHub found none."""
    default_branch: str
    """Default branch."""
    clone_url: str
    """Address for git."""
    web_url: str
    """Address for people, base of permalinks."""
    is_fork: bool
    """It is a fork."""
    archived: bool
    """It is archived: read-only."""
    private: bool
    """It is not public."""
    disabled: bool
    """GitHub has disabled it."""
