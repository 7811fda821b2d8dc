"""Reference sets through the whole job: a benchmark, an earlier release, the policies, what is redone."""

import json
from pathlib import Path

import duckdb
import pytest

from tests.builders import RepoBuilder
from tests.flows.support import AFTER, LATER, Outcome, build, fingerprints, postquem, source_text, write_config

TASK = {"task_id": "T/7", "prompt": "", "canonical_solution": source_text("price", 3).decode()}
SETS = (
    '[[dedup.references]]\npath = "tasks.jsonl"\nname = "tasks"\n'
    'concat = ["prompt", "canonical_solution"]\nid = "task_id"\n'
)
OTHER = b"def pairs(items, size):\n    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]\n"


def repository(folder: Path) -> RepoBuilder:
    builder = RepoBuilder(folder / "acme" / "alpha.git")
    builder.commit({"cost.py": source_text("cost")}, "Add cost", AFTER)
    builder.commit({"pairs.py": OTHER}, "Add pairs", LATER)
    return builder


def ask(data: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(data / "postquem.duckdb", read_only=True) as connection:
        return connection.execute(sql).fetchall()


def reasons(outcome: Outcome) -> dict[str, dict[str, int]]:
    return {item["stage"]: item["excluded_by_reason"] for item in outcome.summary["stages"]}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository and release 1.0, made with a benchmark that holds its cost module in other words."""
    folder = tmp_path_factory.mktemp("first")
    builder = repository(folder)
    (folder / "tasks.jsonl").write_text(json.dumps(TASK) + "\n" + json.dumps({**TASK, "prompt": None}) + "\n")
    outcome = build(write_config(folder, [str(builder.path)], SETS), folder / "data")
    assert outcome.code == 0, outcome.stderr
    assert reasons(outcome)["references"] == {"reference_not_text": 1}
    assert reasons(outcome)["dedup_references"] == {"in_reference": 2}
    return folder


def test_rows_similar_to_a_benchmark_are_left_out_with_evidence(first: Path) -> None:
    found = ask(
        first / "data",
        "select m.fun_name, reference, role, reference_id, part, exact, n_matches, e.excluded, detail = "
        "'set=tasks row=T/7 jaccard=' || jaccard || ' part=' || part from reference_matches e "
        "join methods m using (row_id) join exclusions using (row_id) where stage = 'dedup_references' order by 1",
    )
    assert found == [
        ("cost_total", "tasks", "benchmark", "T/7", "price_total", False, 1, True, True),
        ("find_cost", "tasks", "benchmark", "T/7", "find_price", False, 1, True, True),
    ]
    assert ask(first / "data", "select fun_name from tasks_raw_data") == [("pairs",)]
    sets = ask(first / "data", "select reference, role, files, n_rows, n_other_language, n_texts from reference_sets")
    assert sets == [("tasks", "benchmark", ["tasks.jsonl"], 2, 0, 2)]


def test_a_second_run_changes_nothing_and_status_knows_the_set(first: Path) -> None:
    before = fingerprints(first / "data" / "releases")
    arguments = ("--config", first / "config.toml", "--workspace", first / "data")
    assert build(first / "config.toml", first / "data").summary["release_status"] == "unchanged"
    assert fingerprints(first / "data" / "releases") == before
    items = json.loads(postquem("status", "--json", *arguments).stdout)["items"]
    assert {item["state"] for item in items} == {"up to date"}
    assert [item["partition"] for item in items if item["stage"] == "references"] == ["tasks"]


def test_absolute_locations_of_sets_stay_out_of_the_release(first: Path, tmp_path: Path) -> None:
    text = SETS.replace('"tasks.jsonl"', json.dumps(str(first / "tasks.jsonl")))
    config = write_config(tmp_path, [str(first / "acme" / "alpha.git")], text)
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    release = tmp_path / "data" / "releases" / "1.0"
    for name in ("manifest.json", "README.md"):
        assert str(first) not in (release / name).read_text()
    assert json.loads((release / "manifest.json").read_text())["config"]["dedup"]["references"][0]["path"] == "tasks"
    assert "Outside this release only these sets are compared: `tasks`; " in (release / "README.md").read_text()


@pytest.mark.parametrize(("keep", "kept"), [("oldest", []), ("reference", ["pairs"])])
def test_an_earlier_release_decides_by_policy_and_what_changed_is_told(
    first: Path, tmp_path: Path, keep: str, kept: list[str]
) -> None:
    earlier = json.dumps(str(first / "data/releases/1.0"))
    extra = f'[dedup]\nkeep = "{keep}"\n[[dedup.references]]\nrelease = {earlier}\n'
    config = write_config(tmp_path, [str(first / "acme" / "alpha.git")], extra, version="2.0")
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    names = [name for (name,) in ask(tmp_path / "data", "select fun_name from tasks_raw_data order by 1")]
    assert names == ["cost_total", "find_cost", *kept]
    assert reasons(outcome)["dedup_references"] == ({} if kept else {"in_earlier_release": 1})
    matches = ask(tmp_path / "data", "select reference, role, row_id = reference_id, excluded from reference_matches")
    assert matches == [("1.0", "release", True, not kept)]
    sql = "select change, fun_name, reason from release_changes join methods using (row_id) order by 2"
    changes = [("returned", "cost_total", "in_reference"), ("returned", "find_cost", "in_reference")]
    assert ask(tmp_path / "data", sql) == changes


def test_a_missing_set_stops_before_any_work(first: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(first / "acme" / "alpha.git")], SETS)
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 2
    assert "tasks.jsonl is no file and matches none; correct `path` in [[dedup.references]]" in outcome.stderr
    assert not list((tmp_path / "data/repos").rglob("HEAD"))
