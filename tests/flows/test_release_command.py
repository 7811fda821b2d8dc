"""`postquem release` as a user types it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flows.cli import cli
from publishing.check import CHECKS
from publishing.header import CARD_NAME
from publishing.release import write_release
from schemas.errors import PipelineError
from tests.publishing.sound import CONFIG, make_inputs, points, write_sound_release

COMMANDS = ["build", "check", "diff", "push", "yank"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("releases"))


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["release", *map(str, args)])


def test_the_commands_of_releases_stand_in_one_group() -> None:
    shown = run("--help").output
    assert [line.split()[0] for line in shown.split("Commands:\n")[1].splitlines()] == COMMANDS


def test_check_prints_a_line_for_every_check(sound: Path) -> None:
    asked = [name for name in CHECKS if name not in ("datasets", "duckdb")]
    done = run("check", sound, *(word for name in asked for word in ("--only", name)))
    assert done.exit_code == 0
    lines = [line.split() for line in done.output.splitlines()]
    assert [(line[0], line[2]) for line in lines if line and line[0] in CHECKS] == [(name, "0") for name in asked]


def test_check_names_what_is_wrong_and_fails(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "copy"))
    (folder / CARD_NAME).unlink()
    done = run("check", folder, "--only", "files")
    assert "files  README.md: is missing" in done.output
    assert isinstance(done.exception, PipelineError)
    assert str(done.exception) == f"{folder} has faults; do not publish it"
    told = json.loads(run("check", folder, "--only", "files", "--json").output)
    fault = {"where": "README.md", "text": "is missing", "row_id": None}
    assert told == {
        "release": str(folder),
        "faults": 1,
        "checks": [{"name": "files", "looked_at": 24, "faults": [fault], "note": ""}],
    }


def test_an_unknown_check_is_refused_with_the_known_ones(sound: Path) -> None:
    done = run("check", sound, "--only", "nothing")
    assert done.exit_code == 2
    assert "no check nothing; there are files, schema, manifest" in done.output


def test_diff_shows_what_changed_and_why(sound: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, release=replace(CONFIG.release, version="2025.01.31"))
    config = replace(config, testbeds=replace(config.testbeds, size=2))
    after = write_release(make_inputs(points(), config=config), tmp_path).folder
    done = run("diff", sound, after, "--rows")
    assert done.exit_code == 0
    lines = [line.split() for line in done.output.splitlines()]
    assert ["configuration", "testbeds.size", "3000", "2"] in lines
    assert ["random_cut", "4", "2", "0", "2", "0"] in lines
    assert ["random_cut", "removed", "2", "not_sampled", "the", "testbed", "was", "full"] in lines
    rows = [line for line in done.output.splitlines() if "example/shapes" in line]
    assert len(rows) == 2 + 1 + 1 + 1 + 1
    assert all(row.endswith(": not_sampled sample of 2 is full") for row in rows)
    told = json.loads(run("diff", sound, after, "--json").output)
    assert sorted(told) == ["after", "before", "causes", "manifest_sha256", "testbeds"]
    assert (told["before"], told["after"]) == ("2024.12.31", "2025.01.31")
    assert len(json.loads(run("diff", sound, after, "--json", "--rows").output)["rows"]) == len(rows)


def test_diff_of_a_release_with_itself_says_so(sound: Path) -> None:
    assert "2024.12.31 -> 2024.12.31: made from the same" in run("diff", sound, sound).output
