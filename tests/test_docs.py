"""Pages that are made from the code, and the page that changes it."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

from schemas.config import Config, load_config
from tests.flows.support import make_repositories, write_config
from tools import configuration

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
