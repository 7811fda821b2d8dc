"""The project's own promises: documents, locks, packaging, structure."""

import os
import re
import shlex
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from flows.cli import cli
from schemas.config import ALL_TESTBEDS, load_config
from tests import conftest
from tools.check_structure import MAX_FUNCTION_LINES, PACKAGES, check_file, check_mutual_imports

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(prefix: str) -> list[str]:
    """Return the lines of code blocks in the documents that start with a command."""
    found = []
    for document in DOCUMENTS:
        for block in re.findall(r"```\w*\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line.split("#")[0].strip() for line in block.splitlines()]
            found += [line for line in lines if re.match(rf"(?:[A-Z_]+=\S+ )*{prefix} ", line)]
    return found


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, also when `make test` runs these tests: a child of make reports its folder."""
    inherited = {"MAKELEVEL", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS"}
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, check=False, capture_output=True, text=True)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_readme_names_the_two_commands_in_the_marked_places() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"<!-- build-command -->\n```\nmake build-testbeds\n```", text)
    assert re.search(r"<!-- test-command -->\n```\nmake test\n```", text)


def test_ci_finds_the_test_command_in_the_readme() -> None:
    line = next(
        line for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines() if "test_command=$(" in line
    )
    script = f'{line}\necho "$test_command"'
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "make test\n"


def test_every_documented_make_command_has_a_target() -> None:
    used = {line.split()[1] for line in commands("make")}
    assert {"build-testbeds", "test", "check", "bench"} <= used
    assert used <= make_targets()


def test_make_help_lists_every_target_with_its_text() -> None:
    done = make("help")
    assert done.returncode == 0
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert listed == make_targets()
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines())


def test_make_build_testbeds_runs_the_command_that_the_quickstart_tests_run() -> None:
    done = make("-n", "-o", ".venv/.installed", "build-testbeds")
    assert done.returncode == 0
    assert "/postquem build --config configs/quickstart.toml --workspace data" in done.stdout


def test_make_publish_hands_on_folder_and_repository_and_tells_its_usage_without() -> None:
    done = make("publish", "REPO=me/shapes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: make publish RELEASE=data/releases/quickstart REPO=owner/name ")
    options = ("RELEASE=some folder", "REPO=me/shapes", "DRY_RUN=yes")
    asked = make("-n", "-o", ".venv/.installed-dev", "publish", *options)
    assert '/postquem release push "some folder" --repo "me/shapes"' in asked.stdout
    assert "--dry-run" in asked.stdout
    assert "--private" not in asked.stdout


def test_make_audit_without_a_repository_tells_its_usage() -> None:
    done = make("audit", "REPO=")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "usage: make audit REPO=path/to/repository [SINCE=2024-01-01] [HISTORY=all]"
    assert done.stdout == ""


def test_make_audit_hands_on_repository_and_date() -> None:
    done = make("-n", "-o", ".venv/.installed-dev", "audit", "REPO=../some repo", "SINCE=2025-01-01")
    assert done.returncode == 0
    assert '/python -m tests.oracles.audit "../some repo" --since 2025-01-01' in done.stdout
    assert "--history 2y" in done.stdout
    without = make("-n", "-o", ".venv/.installed-dev", "audit", "REPO=repo", "HISTORY=none")
    assert "--history none" in without.stdout


@pytest.mark.parametrize("line", commands("postquem"))
def test_every_documented_postquem_command_is_accepted(line: str) -> None:
    words = shlex.split(line[line.index("postquem") :])[1:]
    command: click.Command = cli
    while isinstance(command, click.Group):
        assert words[0] in command.commands
        command = command.commands[words.pop(0)]
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert f"`postquem {name}`" in text
        for inner in command.commands.values() if isinstance(command, click.Group) else [command]:
            assert inner.name in text
            for parameter in inner.params:
                assert parameter.opts[0] in text


def test_readme_describes_every_testbed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(ALL_TESTBEDS)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.toml")), ids=lambda path: path.name)
def test_every_shipped_configuration_loads(path: Path) -> None:
    config = load_config(path)
    assert config.sources or config.search


def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-harness.lock"])
def test_locks_have_a_hash_for_every_package_and_name_no_host(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    packages = re.findall(r"^[a-zA-Z0-9._-]+==[^\s\\]+[^\n]*\\\n\s+--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[a-zA-Z0-9._-]+==", text, re.MULTILINE)) > 50
    assert "://" not in text


def test_no_other_distribution_provides_one_of_our_packages() -> None:
    owners: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for distribution in distributions():
        for file in distribution.files or ():
            if file.parts and file.parts[0] in owners:
                owners[file.parts[0]].add(distribution.metadata["Name"].lower())
    assert all(names <= {"postquem"} for names in owners.values()), owners


def test_every_dependency_states_its_reason_and_a_lower_bound() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[\n(.*?)^bench = ", text, re.DOTALL | re.MULTILINE)
    assert block
    lines = [line for line in block[1].splitlines() if line.startswith('  "') and ">=" in line]
    assert len(lines) > 20
    for line in lines:
        assert re.fullmatch(r'  "[\w.\[\]-]+>=[\d.]+",\s+# \S.+', line), line


def test_no_module_of_flows_has_the_name_of_a_package_or_of_the_standard_library() -> None:
    import sys

    names = {path.stem for path in (ROOT / "flows").glob("*.py")} - {"__init__"}
    assert not names & (set(PACKAGES) | sys.stdlib_module_names)


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_structure_check_finds_what_it_is_for(tmp_path: Path) -> None:
    long = "def f():\n" + "    x = 1\n" * (MAX_FUNCTION_LINES + 1)
    path = tmp_path / "bad.py"
    path.write_text(f'{long}\n\ndef g():\n    """Doc."""\n    assert True\n', encoding="utf-8")
    assert [text.split(": ", 1)[1] for text in check_file(path)] == [
        f"f has {MAX_FUNCTION_LINES + 2} lines, at most {MAX_FUNCTION_LINES}",
        "assert is no run-time validation; raise an error",
    ]


def test_no_two_modules_import_each_other() -> None:
    assert check_mutual_imports() == []


def test_the_files_that_are_started_first_exist() -> None:
    missing = [name for name in conftest.LONGEST if not (ROOT / "tests" / name).is_file()]
    assert missing == []
