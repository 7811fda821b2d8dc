"""Limits of clones, and how far back old commits are searched."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from schemas.clones import ClonesConfig, check_clones, history_start
from schemas.config import load_config
from schemas.errors import ConfigError

SINCE = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("all", -math.inf),
        ("none", None),
        ("1y", datetime(2022, 12, 31, 18, tzinfo=UTC).timestamp()),
        ("20y", datetime(2004, 1, 1, tzinfo=UTC).timestamp()),
    ],
)
def test_from_when_on_old_commits_are_searched(text: str, start: float | None) -> None:
    assert history_start(text, SINCE) == start


@pytest.mark.parametrize("text", ["", "0y", "y", "2", "2years", "100y", "-1y", "ALL"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"mining\.search_history must be 'all', 'none' or as '2y'"):
        history_start(text, SINCE)


@pytest.mark.parametrize("name", ["parallel", "timeout_minutes", "max_megabytes", "disk_gigabytes"])
def test_limits_that_leave_nothing_to_do(name: str) -> None:
    check_clones(ClonesConfig(**{name: 1}))  # type: ignore[arg-type] # a number each
    with pytest.raises(ConfigError, match=rf"clones\.{name} must be at least 1"):
        check_clones(ClonesConfig(**{name: 0}))  # type: ignore[arg-type] # a number each


def test_the_file_is_checked(tmp_path: Path) -> None:
    path, head = tmp_path / "config.toml", "[window]\nsince = 2024-01-01\n[[sources]]\ngit = ['a']\n"
    path.write_text(head + "[clones]\nparallel = 0\n")
    with pytest.raises(ConfigError, match=r"clones\.parallel must be at least 1"):
        load_config(path)
    path.write_text(head + "[mining]\nsearch_history = 'yes'\n")
    with pytest.raises(ConfigError, match=r"mining\.search_history must be 'all'"):
        load_config(path)
    path.write_text(head + "[clones]\nwhole = true\n[mining]\nsearch_history = 'all'\n")
    config = load_config(path)
    assert (config.clones.whole, config.mining.history_start(config.window.since)) == (True, -math.inf)
