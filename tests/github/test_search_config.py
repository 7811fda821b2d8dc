"""`[search]` in a configuration."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from schemas.config import load_config
from schemas.errors import ConfigError
from schemas.search import Axis, Bounds, SearchConfig, Wanted, parse_bounds

ROOT = Path(__file__).resolve().parents[2]


def epoch(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type] # year, month, day, ...


@pytest.mark.parametrize(
    ("axis", "text", "bounds"),
    [
        (Axis.STARS, "", Bounds(0, None)),
        (Axis.STARS, ">1000", Bounds(1_001, None)),
        (Axis.STARS, ">=3", Bounds(3, None)),
        (Axis.SIZE, "<30000", Bounds(0, 29_999)),
        (Axis.SIZE, "<=30000", Bounds(0, 30_000)),
        (Axis.FORKS, "5..9", Bounds(5, 9)),
        (Axis.FORKS, "5..*", Bounds(5, None)),
        (Axis.FORKS, "*..9", Bounds(0, 9)),
        (Axis.STARS, " 7 ", Bounds(7, 7)),
        (Axis.PUSHED, "", Bounds(None, None)),
        (Axis.PUSHED, ">2021-12-31", Bounds(epoch(2022, 1, 1), None)),
        (Axis.PUSHED, ">=2021-12-31", Bounds(epoch(2021, 12, 31), None)),
        (Axis.CREATED, "<2024-01-01", Bounds(None, epoch(2023, 12, 31, 23, 59, 59))),
        (Axis.CREATED, "<=2024-01-01", Bounds(None, epoch(2024, 1, 1, 23, 59, 59))),
        (Axis.CREATED, "2024-01-01..2024-12-31", Bounds(epoch(2024, 1, 1), epoch(2024, 12, 31, 23, 59, 59))),
        (Axis.CREATED, "2024-01-01T02:00:00+02:00..*", Bounds(epoch(2024, 1, 1), None)),
        (Axis.CREATED, "2024-02-29", Bounds(epoch(2024, 2, 29), epoch(2024, 2, 29, 23, 59, 59))),
    ],
)
def test_ranges_are_read_as_on_github(axis: Axis, text: str, bounds: Bounds) -> None:
    assert parse_bounds(axis, text) == bounds


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("stars = 'many'", r"search.stars must be a range such as '>=10', '10..50': 'many'"),
        ("stars = '>*'", r"search.stars must be a range"),
        ("stars = '-3'", r"search.stars must be a range"),
        ("n_forks = '5..3'", r"search.n_forks holds no value: its end lies before its beginning"),
        ("created = '2024-13-01'", r"search.created must be a range such as .*: '2024-13-01'"),
        ("stars = 3", r"search.stars must be of type str, not 3"),
        ("forks = 'no'", r"search.forks must be one of exclude, include, only, not 'no'"),
        ("language = 'Python fork:true'", r"search.language must be a language as GitHub names it"),
        ("language = ''", r"search.language must be a language"),
        ("licences = ['MIT stars:>1']", r"search.licences must list SPDX ids such as 'MIT'"),
        ("licences = ['MIT', 'mit']", r"search.licences must name none twice"),
        ("refresh = 'weekly'", r"search.refresh must be a duration such as '7d'"),
        ("refresh = '0d'", r"search.refresh must be a duration"),
        ("max_wait = '2d'", r"search.refresh must be at most 3650d and search.max_wait at most 1d"),
        ("api_url = 'http://github.example/api/v3'", r"search.api_url must be an https:// address"),
        ("api_url = 'https://me:secret@github.example/api/v3'", r"search.api_url must be an https:// address"),
        ("api_url = 'https://github.example/api/v3/'", r"without user, query and final slash"),
        ("api_url = 'https://[x'", r"search.api_url .* is no valid address"),
        ("token = 'x'", r"unknown key token in \[search\]; known keys: language, forks"),
    ],
)
def test_values_that_no_search_could_use(tmp_path: Path, section: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[window]\nsince = 2024-01-01\n[search]\n{section}\n")
    with pytest.raises(ConfigError, match=message):
        load_config(path)


def test_a_search_needs_no_sources(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[window]\nsince = 2024-01-01\n[search]\nstars = '>9'\nrefresh = '12h'\nforks = 'include'\n")
    config = load_config(path)
    assert (config.sources, config.search) == ((), SearchConfig(stars=">9", refresh="12h", forks=Wanted.INCLUDE))
    assert config.search is not None
    assert (config.search.lifetime, config.search.longest_wait) == (timedelta(hours=12), timedelta(minutes=65))


@pytest.mark.parametrize(
    ("api_url", "host"),
    [
        ("https://api.github.com", "github.com"),
        ("https://git.example.org:8443/api/v3", "git.example.org:8443"),
        ("http://127.0.0.1:9/api/v3", "127.0.0.1:9"),
    ],
)
def test_the_host_whose_repositories_are_found(api_url: str, host: str) -> None:
    assert SearchConfig(api_url=api_url).host == host
