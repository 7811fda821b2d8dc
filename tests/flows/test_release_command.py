"""`postquem release` as a user types it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flows.cli import cli
from publishing.check import CHECKS
from publishing.header import CARD_NAME
from schemas.errors import PipelineError
from tests.publishing.sound import write_sound_release


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("releases"))


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["release", *map(str, args)])


def test_the_commands_of_releases_stand_in_one_group() -> None:
    shown = run("--help").output
    assert [line.split()[0] for line in shown.split("Commands:\n")[1].splitlines()] == ["build", "check"]


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
        "checks": [{"name": "files", "looked_at": 10, "faults": [fault], "note": ""}],
    }


def test_an_unknown_check_is_refused_with_the_known_ones(sound: Path) -> None:
    done = run("check", sound, "--only", "nothing")
    assert done.exit_code == 2
    assert "no check nothing; there are files, schema, manifest" in done.output
