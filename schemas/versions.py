"""Versions of releases: calendar versions, and which of two is the later one."""

import re
from datetime import date

from packaging.version import InvalidVersion, Version

_CALENDAR = re.compile(r"(\d{4})\.(\d{2})\.(\d{2})(?:\.([1-9]\d*))?")


def calendar_version(day: date, number: int = 0) -> str:
    """Return the version of a day, `2026.11.30`; of the further ones of that day, `2026.11.30.1` and so on."""
    return f"{day:%Y.%m.%d}" + (f".{number}" if number else "")


def parse_calendar_version(version: str) -> tuple[date, int] | None:
    """Return day and number of a calendar version, null for another kind of version; inverse of `calendar_version`."""
    found = _CALENDAR.fullmatch(version)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])), int(found[4] or 0)
    except ValueError:
        return None


def is_earlier(version: str, other: str) -> bool:
    """Tell whether a version is earlier than another; false when one of them is no number by PEP 440 (`quickstart`)."""
    try:
        return Version(version) < Version(other)
    except InvalidVersion:
        return False
