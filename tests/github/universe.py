"""Repositories that the loopback GitHub knows."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(2010, 1, 1, tzinfo=UTC)
TODAY = datetime(2024, 7, 1, tzinfo=UTC)
DAY_OF_MANY = datetime(2020, 5, 17, tzinfo=UTC)
STARS_OF_MANY = 1_500


@dataclass(frozen=True)
class Repository:
    repo_id: int
    name: str
    stars: int = 5
    forks: int = 1
    size: int = 100
    created: datetime = EPOCH
    pushed: datetime | None = TODAY
    updated: datetime = TODAY
    licence: str | None = "MIT"
    language: str = "Python"
    fork: bool = False
    archived: bool = False
    private: bool = False
    disabled: bool = False
    gone: int = 0
    """Status of every answer about it but 200: 404, 451, 403."""
    withheld: int = 0
    """Status of the answer about it alone, when the search still shows it: what was deleted a moment ago."""
    former_names: tuple[str, ...] = field(default=())

    def json(self, base: str) -> dict[str, Any]:
        """Return what the API shows of it: the documented fields that matter, and some that do not."""
        licence = None
        if self.licence is not None:
            licence = {"key": self.licence.lower(), "spdx_id": self.licence, "name": self.licence, "url": None}
        return {
            "id": self.repo_id,
            "node_id": f"R_{self.repo_id}",
            "name": self.name.split("/")[1],
            "full_name": self.name,
            "private": self.private,
            "owner": {"login": self.name.split("/")[0], "type": "User"},
            "html_url": f"{base}/{self.name}",
            "clone_url": f"{base}/{self.name}.git",
            "fork": self.fork,
            "stargazers_count": self.stars,
            "watchers_count": self.stars,
            "forks_count": self.forks,
            "size": self.size,
            "created_at": _text(self.created),
            "updated_at": _text(self.updated),
            "pushed_at": _text(self.pushed),
            "language": self.language,
            "license": licence,
            "default_branch": "main",
            "archived": self.archived,
            "disabled": self.disabled,
            "visibility": "private" if self.private else "public",
            "score": 1.0,
        }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def large_universe(n: int = 4_317, seed: int = 1) -> list[Repository]:
    """Return popular repositories: 1,200 with one star count, 1,100 of them created on one day."""
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        created = EPOCH + timedelta(seconds=rng.randrange(int((TODAY - EPOCH).total_seconds()) - 86_400))
        stars = 1_001 + int(rng.paretovariate(0.9) * 40) % 200_000
        if stars == STARS_OF_MANY:
            stars += 1
        if number < 1_200:
            stars = STARS_OF_MANY
        if number < 1_100:
            created = DAY_OF_MANY + timedelta(seconds=rng.randrange(86_400))
        rows.append(_row(rng, number, stars, created))
    rng.shuffle(rows)
    return rows


def young_universe(n: int = 12_000, seed: int = 2) -> list[Repository]:
    """Return small repositories of one half-year, most of which have few stars, so that many share their count."""
    rng = random.Random(seed)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = []
    for number in range(n):
        created = start + timedelta(seconds=int((TODAY - start).total_seconds() * rng.random() ** 1.5))
        rows.append(_row(rng, number, 2 + int(rng.paretovariate(0.8)), created))
    return rows


def equal_universe(n: int) -> list[Repository]:
    """Return repositories that differ in nothing but name and id."""
    return [Repository(number + 1, f"same/r{number}") for number in range(n)]


def _row(rng: random.Random, number: int, stars: int, created: datetime) -> Repository:
    span = int((TODAY - created).total_seconds())
    pushed = created + timedelta(seconds=int(span * rng.random() ** 0.2))
    return Repository(
        repo_id=1_000 + number * 7,
        name=f"owner{number % 97}/project-{number}",
        stars=stars,
        forks=int(stars * rng.random()),
        size=int(rng.paretovariate(0.6) * 100) % 900_000,
        created=created,
        pushed=pushed,
        updated=pushed + timedelta(seconds=rng.randrange(max(int((TODAY - pushed).total_seconds()), 1))),
        licence=rng.choice(["MIT", "Apache-2.0", "BSD-3-Clause", "GPL-3.0", None, "NOASSERTION"]),
    )


def ids(rows: Sequence[Repository]) -> list[int]:
    return sorted(row.repo_id for row in rows)
