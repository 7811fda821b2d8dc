"""Pages that are made from the code, and the page that changes it."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import duckdb
import pytest
from click.testing import CliRunner

from flows.cli import cli
from schemas.config import Config, load_config
from tests.flows.support import make_repositories, write_config
from tools import commands, configuration

ROOT = Path(__file__).resolve().parents[1]


def test_the_configuration_page_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration.main(["--check"]) == 0
    monkeypatch.setattr(configuration, "OUTPUT", tmp_path / "configuration.md")
    assert configuration.main(["--check"]) == 1
    assert configuration.main([]) == 0
    assert configuration.main(["--check"]) == 0


def test_the_configuration_page_has_every_table_and_its_keys() -> None:
    text = configuration.render()
    titles = re.findall(r"^## `(.*)`$", text, re.MULTILINE)
    assert titles == [title for title, _ in configuration.sections(Config)]
    assert {"[[sources]]", "[window]", "[search]", "[dedup]", "[[dedup.references]]", "[release]"} <= set(titles)
    assert "| `since` | date or time | needed | The cutoff: first moment that counts. |" in text
    assert "| `seed` | whole number | `20_240_101` |" in text
    assert '| `keep` | one of `oldest`, `none`, `reference` | `"oldest"` |' in text


def test_defaults_of_the_page_are_values_that_a_file_may_have(tmp_path: Path) -> None:
    blocks = re.split(r"^## `(.*)`$", configuration.render(), flags=re.MULTILINE)[1:]
    lines = ["sources = [{git = ['x']}]"]
    for title, body in zip(blocks[::2], blocks[1::2], strict=True):
        if title.startswith("[[") or title == "[search]":
            continue
        rows = re.findall(r"^\| `(\w+)` \| [^|]* \| `([^`|]*)` \|", body, re.MULTILINE)
        lines += [title, *(f"{key} = {value}" for key, value in rows)]
        lines += ["since = 2024-01-01"] if title == "[window]" else []
    tomllib.loads("\n".join(lines))
    (tmp_path / "all.toml").write_text("\n".join(lines))
    (tmp_path / "least.toml").write_text("[[sources]]\ngit = ['x']\n[window]\nsince = 2024-01-01\n")
    assert load_config(tmp_path / "all.toml") == load_config(tmp_path / "least.toml")


class TestCommands:
    def test_the_page_is_up_to_date(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert commands.main(["--check"]) == 0
        text = commands.OUTPUT.read_text(encoding="utf-8")
        stale = tmp_path / "commands.md"
        stale.write_text(text.replace("--no-prefect", "--prefect"), encoding="utf-8")
        monkeypatch.setattr(commands, "OUTPUT", stale)
        assert commands.main(["--check"]) == 1
        assert (commands.main([]), commands.main(["--check"])) == (0, 0)
        by_hand, by_hand_now = (page.partition(commands.BEGIN)[0] for page in (text, stale.read_text(encoding="utf-8")))
        assert by_hand_now == by_hand.replace("--no-prefect", "--prefect")  # what is written by hand stays

    def test_a_page_without_marks_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="must hold the mark"):
            commands.page("# Commands\n")

    def test_every_option_has_a_line(self) -> None:
        text = commands.render()
        for name, command in commands.leaves(cli):
            assert f"- `{name}" in text
            for parameter in command.params:
                if isinstance(parameter, click.Option):
                    assert f"| `{parameter.opts[0]}" in text
        assert "| `--workspace PATH` | Folder for clones, tables and releases. [default: data] |" in text
        assert "- `postquem release diff BEFORE AFTER`: Tell what changed" in text

    def test_choices_are_the_values_that_a_configuration_has(self) -> None:
        assert "| `--backend [bubblewrap\\|docker\\|unsafe-local]` |" in commands.render()
        arguments = [
            "score",
            "real_code",
            "--answers",
            "x",
            "--release",
            "x",
            "--backend",
            "bubblewrap",
            "--workers",
            "0",
        ]
        assert "Invalid value for '--workers'" in CliRunner().invoke(cli, arguments).output

    def test_an_option_without_help_is_an_error(self) -> None:
        command = click.Command("x", params=[click.Option(["--y"])])
        with pytest.raises(ValueError, match="x --y TEXT has no help"):
            commands.table_rows("x", command)


def test_the_testbed_of_the_page_is_built_and_checked(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "add-a-testbed.md").read_text(encoding="utf-8")
    [change] = re.findall(r"```diff\n(.*?)```", page, re.DOTALL)
    assert len(re.findall(r"^\+(?!\+\+)", change, re.MULTILINE)) < 60
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns(".*", "data*", "build", "tests", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, project, ignore=ignored)
    done = subprocess.run(["git", "apply", "-"], cwd=project, input=change, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    def postquem(*arguments: str | Path) -> str:
        command = [sys.executable, "-P", "-m", "flows.cli", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(project), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    names = '[testbeds]\nnames = ["raw_data", "signature_gen"]\n'
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()], names)
    postquem("build", "--no-prefect", "--config", config, "--workspace", tmp_path / "data")
    release = tmp_path / "data" / "releases" / "1.0"
    rows = duckdb.sql(
        f"select code, prompt_code, target from read_parquet('{release}/signature_gen/*.parquet')"
    ).fetchall()
    assert rows
    for code, prompt, target in rows:
        assert target.startswith("def ")
        assert target not in prompt
        assert prompt.replace("<signature>", target) == code
    postquem("release", "check", release)
    assert "`signature_gen`" in (release / "README.md").read_text(encoding="utf-8")
