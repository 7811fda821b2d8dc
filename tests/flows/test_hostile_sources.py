"""Hostile repositories of one run: each costs only itself, with its reason, and the good one is whole."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tests.builders import GIT_ENVIRONMENT, RepoBuilder
from tests.flows.support import AFTER, BEFORE, postquem, source_text, write_config


def test_every_hostile_repository_costs_only_itself(tmp_path: Path) -> None:
    def builder(name: str, object_format: str = "sha1") -> RepoBuilder:
        made = RepoBuilder(tmp_path / "acme" / f"{name}.git", object_format=object_format)
        made.commit({"old.py": source_text("age")}, "Start", BEFORE)
        return made

    for name in ("good", "sha256"):
        builder(name, "sha256" if name == "sha256" else "sha1").commit({"a.py": source_text(name)}, "Add", AFTER)
    clocks = builder("clocks")
    clocks.commit({"b.py": source_text("weight")}, "Negative", "-86400 +0000")
    clocks.commit({"c.py": source_text("height")}, "Future", datetime(2090, 1, 1, tzinfo=UTC))
    notebooks = RepoBuilder(tmp_path / "acme" / "notebooks.git")
    notebooks.commit({"a.ipynb": b"{}"}, "Start", AFTER)
    RepoBuilder(tmp_path / "acme" / "empty.git")
    broken = builder("broken")
    broken.remove(broken.commit({"d.py": source_text("volume")}, "Lost", AFTER))
    whole = builder("whole")
    whole.commit({"e.py": source_text("speed")}, "Add", AFTER)
    shallow = tmp_path / "acme" / "shallow"
    command = ["git", "clone", "-q", "--depth=1", "--template=", f"file://{whole.path}", str(shallow)]
    subprocess.run(command, env=GIT_ENVIRONMENT, check=True)
    names = ("broken.git", "clocks.git", "empty.git", "good.git", "notebooks.git", "sha256.git", "shallow")
    config = write_config(tmp_path, [str(tmp_path / "acme" / name) for name in names])
    outcome = postquem("mine", "--json", "--config", config, "--workspace", tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    stages = {stage["stage"]: stage for stage in json.loads(outcome.stdout)["stages"]}
    assert {
        name: (stage["rows_in"], stage["rows_out"], stage["excluded_by_reason"]) for name, stage in stages.items()
    } == {
        "sources": (
            7,
            3,
            {"history_broken": 1, "repository_empty": 1, "repository_shallow": 1, "repository_without_python": 1},
        ),
        "commits": (5, 3, {"date_in_future": 1, "date_invalid": 1}),
        "files": (3, 2, {"notebook": 1}),
        "methods": (4, 4, {}),
        "index": (2, 2, {}),
        "history": (2, 2, {}),
    }
