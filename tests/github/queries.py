"""The loopback GitHub's own reading of a query, after the documentation and independent of what is tested."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from tests.github.universe import Repository

_TERM = re.compile(r'([a-z]+):("[^"]*"|\S+)')


class InvalidQuery(Exception):
    """A qualifier or value that GitHub does not know."""


def matching(rows: Sequence[Repository], query: str) -> list[Repository]:
    """Return the public repositories that a query of qualifiers has."""
    rest = _TERM.sub("", query).strip()
    if rest or not query:
        raise InvalidQuery(rest)
    tests: list[Callable[[Repository], bool]] = []
    wants_forks = "fork:" in query
    for key, value in _TERM.findall(query):
        tests.append(_test(key, value.strip('"')))
    return [
        row
        for row in rows
        if not row.gone and not row.private and (wants_forks or not row.fork) and all(test(row) for test in tests)
    ]


def _test(key: str, value: str) -> Callable[[Repository], bool]:
    if key == "language":
        return lambda row: row.language.casefold() == value.casefold()
    if key == "license":
        return lambda row: (row.licence or "").lower() == value
    if key == "is" and value == "public":
        return lambda row: not row.private
    if key == "fork" and value in ("true", "only"):
        return lambda row: value == "true" or row.fork
    if key == "archived" and value in ("true", "false"):
        return lambda row: row.archived == (value == "true")
    if key in ("stars", "forks", "size"):
        low, high = _ends(value, int, 1)
        return lambda row: low <= getattr(row, key) <= high
    if key in ("created", "pushed"):
        first, last = _ends(value, _moment, 1)
        return lambda row: getattr(row, key) is not None and first <= getattr(row, key).timestamp() <= last
    raise InvalidQuery(f"{key}:{value}")


def _ends(text: str, read: Callable[[str], int], step: int) -> tuple[float, float]:
    infinity = float("inf")
    if ".." in text:
        low, high = text.split("..")
        return (-infinity if low == "*" else read(low)), (infinity if high == "*" else read(high))
    for sign, ends in (
        (">=", lambda value: (value, infinity)),
        ("<=", lambda value: (-infinity, value)),
        (">", lambda value: (value + step, infinity)),
        ("<", lambda value: (-infinity, value - step)),
    ):
        if text.startswith(sign):
            return ends(read(text[len(sign) :]))
    return read(text), read(text)


def _moment(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text):
        raise InvalidQuery(text)
    return int((datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) - _ZERO) / timedelta(seconds=1))


_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
