"""How repositories are fetched (`[clones]`), and how far back old commits are searched."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from schemas.errors import ConfigError

ALL, NONE = "all", "none"
_YEARS = re.compile(r"([1-9]\d?)y")
_YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class ClonesConfig:
    """Limits of clones that are fetched over https (`[clones]`)."""

    whole: bool = False
    """Fetch whole repositories; otherwise only what is read, which gives the same tables."""
    parallel: int = 4
    """Repositories fetched from at a time."""
    timeout_minutes: int = 60
    """A single fetch that takes longer is ended and tried again at the next run."""
    max_megabytes: int = 4_000
    """A repository of which more would have to be kept is left out (`clone_too_large`)."""
    disk_gigabytes: int = 50
    """When all clones together take more, files and trees of those that are mined go; they are fetched again when
    there is something new."""


def check_clones(clones: ClonesConfig) -> None:
    """Raise ConfigError for limits that leave nothing to do."""
    for name in ("parallel", "timeout_minutes", "max_megabytes", "disk_gigabytes"):
        if getattr(clones, name) < 1:
            raise ConfigError(f"clones.{name} must be at least 1")


def history_start(search_history: str, since: datetime) -> float | None:
    """Return from when on old commits are searched, in seconds since 1970 UTC; null when none are.

    `search_history` is `all`, `none`, or a number of years of 365.25 days before the window, such as `2y`.
    """
    if search_history == NONE:
        return None
    found = _YEARS.fullmatch(search_history)
    if found is None and search_history != ALL:
        raise ConfigError(f"mining.search_history must be 'all', 'none' or as '2y', not {search_history!r}")
    return -math.inf if found is None else since.timestamp() - int(found[1]) * _YEAR.total_seconds()
