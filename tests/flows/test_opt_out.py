"""What somebody asked to have left out is out of the next release, and is told to nobody."""

import json
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from flows.cli import cli
from schemas.errors import ConfigError
from schemas.opt_out import OptOut, entry_text, read_opt_outs
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, build, source_text, write_config

DAY = date(2026, 1, 31)
ENTRY = "[[optout]]\ndate = 2026-01-31\nreason = 'asked by mail'\n"


class TestLedger:
    def test_an_entry_comes_back(self, tmp_path: Path) -> None:
        entries = [
            OptOut(DAY, 'she said "no"\n\\ \x7f é', "owner/*", 7, "src/*.py", "*@example.org"),
            OptOut(DAY, "x", author="Ada Author <ada@example.org>"),
        ]
        path = tmp_path / "optout.toml"
        path.write_text("\n".join(map(entry_text, entries)), encoding="utf-8")
        assert read_opt_outs([path, path]) == [*entries, *entries]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x = 1", r"must hold \[\[optout\]\] entries only"),
            ("[optout]\ndate = 2026-01-31", r"must hold \[\[optout\]\] entries only"),
            ("[[optout]", "is no valid TOML"),
            (ENTRY, "entry 1 needs a repository, repo_id, path or author"),
            (ENTRY + "repo = 'a/b'", "known keys are date, reason, repository, repo_id, path, author"),
            (ENTRY + "repository = 'name'", "repository must be owner/name, not 'name'"),
            (ENTRY + "repo_id = 0", "repo_id must be the host's positive number"),
            (ENTRY + "author = ''", "author must be text"),
            (ENTRY.replace("2026-01-31", "'soon'") + "path = '*'", "needs a date, such as date = 2026-01-31"),
            ("[[optout]]\ndate = 2026-01-31\npath = '*'", "entry 1 needs a reason"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "optout.toml"
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_opt_outs([path])

    def test_a_ledger_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"there is no opt-out ledger .*; correct optout\.files"):
            read_opt_outs([tmp_path / "optout.toml"])


def make_two(folder: Path) -> Path:
    """Make two repositories, one of them with two authors, and a configuration with a ledger."""
    first = RepoBuilder(folder / "acme" / "alpha.git")
    first.commit({"cost.py": source_text("cost")}, "Add cost", AFTER)
    first.commit({"src/weight.py": b"def weigh(pan, stones):\n    return sum(stones) - pan.tare(stones[0])\n"},
                 "Add weight\n\nCo-authored-by: Grace <grace@navy.example>", AFTER)  # fmt: skip
    second = RepoBuilder(folder / "other" / "beta.git")
    second.commit({"lift.py": b"def lift(crane, load):\n    crane.hook.attach(load)\n    return crane.up(10)\n"},
                  "Lift", AFTER)  # fmt: skip
    return write_config(
        folder,
        [str(first.path), str(second.path)],
        "[optout]\nfiles = ['optout.toml']\n[testbeds]\nnames = ['raw_data']\n",
    )


def released(folder: Path, version: str) -> tuple[list[str], int | None]:
    """Return the names in a release and what its manifest says of opt-outs."""
    release = folder / "data" / "releases" / version
    [path] = (release / "raw_data").glob("*.parquet")
    return sorted(pq.read_table(path)["fun_name"].to_pylist()), json.loads((release / "manifest.json").read_text())[
        "opted_out"
    ]


def test_rows_go_from_the_next_release(tmp_path: Path) -> None:
    config, ledger = make_two(tmp_path), tmp_path / "optout.toml"
    ledger.write_text("")
    assert build(config, tmp_path / "data").code == 0
    assert released(tmp_path, "1.0") == (["cost_total", "find_cost", "lift", "weigh"], 0)

    def invoke(*args: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["optout", *args])
        return done.exit_code, done.output

    def add(*patterns: str) -> tuple[int, str]:
        return invoke("add", "--file", str(ledger), "--reason", "a secret wish", *patterns)

    assert add("--repository", "Other/*") == (
        0, f"{ledger} has 1 entries; name it in [optout] files and build a new version\n"
    )  # fmt: skip
    assert add("--author", "*@NAVY.example")[0] == 0
    assert add("--repository", "acme/alpha", "--path", "src/*")[0] == 0
    assert add("--repository", "Other/*")[0] == 1
    code, text = invoke("check", "--config", str(config), "--workspace", str(tmp_path / "data"))
    assert (code, text.splitlines()[:4]) == (
        1,
        [
            "   1  repository Other/*: 1 mined methods",
            "   2  author *@NAVY.example: 1 mined methods",
            "   3  repository acme/alpha, path src/*: 0 mined methods",
            "Release 1.0: 2 rows that should be out",
        ],
    )
    assert invoke("list", "--config", str(config))[1].splitlines()[0].endswith("  repository Other/*  (a secret wish)")

    config.write_text(config.read_text().replace('version = "1.0"', 'version = "2.0"'))
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert released(tmp_path, "2.0") == (["cost_total", "find_cost"], 2)
    stages = {row["stage"]: row for row in outcome.summary["stages"]}
    assert stages["opt_out"] == stages["opt_out"] | {
        "rows_in": 4, "rows_out": 2, "excluded_by_reason": {"opted_out": 2},
    }  # fmt: skip
    assert stages["dedup_exact"]["rows_in"] == 2
    release = tmp_path / "data" / "releases" / "2.0"
    [path] = (release / "exclusions").glob("*.parquet")
    rows = [row for row in pq.read_table(path).to_pylist() if row["stage"] == "opt_out"]
    assert [{key: value for key, value in row.items() if key != "row_id"} for row in rows] == [
        {"stage": "opt_out", "reason": "opted_out", "detail": "", "repo": None, "commit_id": None, "path": None,
         "fun_name": None}
    ] * 2  # fmt: skip
    text = (release / "manifest.json").read_text() + (release / "README.md").read_text()
    assert not [word for word in ("secret wish", "NAVY", "Other/") if word in text]
    config_again = build(config, tmp_path / "data")
    assert config_again.summary["release_status"] == "unchanged"


def test_a_command_without_a_ledger_says_what_to_do(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["https://example.org/a/b"])
    done = CliRunner().invoke(cli, ["optout", "list", "--config", str(config)])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == f'{config} names no ledger; add [optout] with files = ["optout.toml"]'
