"""The tests' commands are forks, and nothing but their speed may tell them from new processes.

That a build is the same is what tests of hash seeds show: such a build is a new process, compared with a fork.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.flows.forked import forked_commands
from tests.flows.support import make_repositories, new_process, postquem, write_config


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["build", "--no-prefect", "--config", "config.toml"],
        ["status", "--config", "config.toml"],
    ],
)
def test_a_fork_says_what_a_new_process_says_in_the_same_folder(tmp_path: Path, words: list[str]) -> None:
    write_config(tmp_path, ["nowhere"])
    assert postquem(*words, cwd=tmp_path) == new_process(*words, cwd=tmp_path)


def test_variables_are_those_of_the_command(tmp_path: Path) -> None:
    widths = [
        max(map(len, postquem("build", "--help", env=variables).stdout.splitlines()))
        for variables in ({"COLUMNS": "50"}, {"COLUMNS": "90"})
    ]
    assert widths[0] <= 50 < widths[1] <= 90


def test_a_fork_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    config = write_config(tmp_path, [str(make_repositories(tmp_path)["alpha"].path)])
    words = ["build", "--no-prefect", "--config", str(config), "--workspace", str(tmp_path / "data")]
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert forked_commands().run(words, variables, tmp_path, 1)[0] == -signal.SIGALRM
