"""Values by dotted key in the place of a file's."""

from pathlib import Path

import pytest

from schemas.config import load_config
from schemas.errors import ConfigError
from schemas.overrides import override

FILE = "[window]\nsince = 2024-01-01\n[[sources]]\ngit = ['x']\n[testbeds]\nseed = 3\nsize = 9\n"


def test_values_are_replaced_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(FILE)
    values = {
        "testbeds.seed": 7,
        "release.version": "2026.12.01",
        "window.until": "2025-01-01",
        "features.novelty": ["added"],
    }
    config = load_config(tmp_path / "c.toml", values)
    plain = load_config(tmp_path / "c.toml")
    assert (config.testbeds.seed, config.testbeds.size, config.release.version) == (7, 9, "2026.12.01")
    assert (plain.testbeds.seed, plain.release.version, plain.window.until) == (3, "", None)
    (tmp_path / "same.toml").write_text(
        FILE.replace("seed = 3", "seed = 7").replace("2024-01-01", "2024-01-01\nuntil = 2025-01-01")
        + "[release]\nversion = '2026.12.01'\n[features]\nnovelty = ['added']\n"
    )
    assert config == load_config(tmp_path / "same.toml")
    assert config.digest() == load_config(tmp_path / "same.toml").digest()


def test_the_given_tables_are_left_alone() -> None:
    data = {"a": {"b": 1}}
    assert override(data, {"a.b": 2, "c.d.e": 3}) == {"a": {"b": 2}, "c": {"d": {"e": 3}}}
    assert data == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("testbeds.sead", r"unknown key sead in \[testbeds\]"),
        ("nothing.seed", "unknown key nothing in the top level"),
        ("sources.git", "override 'sources.git': sources is no table of single values; change the file instead"),
        ("testbeds.", "must be dotted names"),
        ("", "must be dotted names"),
        (".seed", "must be dotted names"),
    ],
)
def test_a_key_that_is_none_is_an_error(tmp_path: Path, key: str, message: str) -> None:
    (tmp_path / "c.toml").write_text(FILE)
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path / "c.toml", {key: 1})
