"""Code from before the cutoff through the whole job: what it is compared with, what is redone, what goes on."""

import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from tests.builders import RepoBuilder
from tests.flows.support import AFTER, BEFORE, LATER, Outcome, build, source_text, write_config

Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def locations(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two repositories: `alpha` has the modules age and cost from before the cutoff; after it alpha brings years, a
    variation of both, beta one of cost."""
    folder = tmp_path_factory.mktemp("repos") / "acme"
    alpha, beta = RepoBuilder(folder / "alpha.git"), RepoBuilder(folder / "beta.git")
    alpha.commit({"age.py": source_text("age"), "cost.py": source_text("cost")}, "Start", BEFORE)
    alpha.commit({"years.py": source_text("years", 12)}, "Add years", AFTER)
    beta.commit({"empty.py": b"x = 1\n"}, "Start", BEFORE)
    beta.commit({"price.py": source_text("cost", 13)}, "Add prices", LATER)
    return [str(alpha.path), str(beta.path)]


def ask(data: Path, sql: str) -> Rows:
    with duckdb.connect(data / "postquem.duckdb", read_only=True) as connection:
        return connection.execute(sql).fetchall()


def run(folder: Path, locations: list[str], extra: str) -> Outcome:
    return build(write_config(folder, locations, extra), folder / "data")


def stage(outcome: Outcome, name: str) -> dict[str, object]:
    [found] = [item for item in outcome.summary["stages"] if item["stage"] == name]
    return {key: found[key] for key in ("rows_in", "rows_out", "excluded_by_reason")}


def test_a_repository_is_compared_with_its_own_old_code(tmp_path: Path, locations: list[str]) -> None:
    outcome = run(tmp_path, locations, "")
    assert outcome.code == 0, outcome.stderr
    assert stage(outcome, "cutoff") == {"rows_in": 3, "rows_out": 3, "excluded_by_reason": {}}
    assert stage(outcome, "dedup_old") == {"rows_in": 4, "rows_out": 2, "excluded_by_reason": {"copied_old": 2}}
    assert ask(tmp_path / "data", "select repo, n_files, n_methods, since::date::varchar from cutoffs order by 1") == [
        ("acme/alpha", 2, 4, "2024-01-01"),
        ("acme/beta", 1, 0, "2024-01-01"),
    ]
    copies = ask(
        tmp_path / "data",
        "select m.fun_name, old_repo, old_path, old_fun_name, old_start_line, exact, detail = 'jaccard=' || jaccard || "
        "' old=' || old_repo || '@' || old_commit_id || ':' || old_path || ':' || old_start_line || ' ' || old_fun_name"
        " from copied_old join methods m using (row_id) join exclusions using (row_id) order by 1",
    )
    assert copies == [
        ("find_years", "acme/alpha", "cost.py", "find_cost", 12, False, True),
        ("years_total", "acme/alpha", "cost.py", "cost_total", 1, False, True),
    ]
    assert {row[0] for row in ask(tmp_path / "data", "select novelty from unique_rows")} == {"added"}


def test_all_repositories_old_code_counts_when_asked_for_and_may_go_on(tmp_path: Path, locations: list[str]) -> None:
    extra = '[dedup]\ncopied_old = "all"\n[features]\nnovelty = ["added", "copied_old"]\n'
    outcome = run(tmp_path, locations, extra)
    assert outcome.code == 0, outcome.stderr
    assert stage(outcome, "dedup_old") == {"rows_in": 4, "rows_out": 4, "excluded_by_reason": {}}
    found = ask(
        tmp_path / "data", "select repo, old_repo, old_path, count(*) from copied_old group by all order by all"
    )
    assert found == [("acme/alpha", "acme/alpha", "cost.py", 2), ("acme/beta", "acme/alpha", "cost.py", 2)]
    # alpha's two are the earlier ones of their clusters.
    rows = ask(tmp_path / "data", "select repo, fun_name, novelty from tasks_raw_data order by fun_name")
    assert rows == [("acme/alpha", "find_years", "copied_old"), ("acme/alpha", "years_total", "copied_old")]
    release = tmp_path / "data" / "releases" / "1.0"
    assert "Novelty classes: `copied_old` (2)." in (release / "README.md").read_text()


def test_only_copies_go_on_when_only_they_are_asked_for(tmp_path: Path, locations: list[str]) -> None:
    outcome = run(tmp_path, locations, '[features]\nnovelty = ["copied_old"]\n')
    assert outcome.code == 0, outcome.stderr
    assert stage(outcome, "dedup_old") == {"rows_in": 4, "rows_out": 2, "excluded_by_reason": {"novelty_added": 2}}
    assert ask(tmp_path / "data", "select distinct repo, novelty from tasks_raw_data") == [("acme/alpha", "copied_old")]


def test_switched_off_nothing_is_compared(tmp_path: Path, locations: list[str]) -> None:
    outcome = run(tmp_path, locations, '[dedup]\ncopied_old = "off"\n')
    assert outcome.code == 0, outcome.stderr
    assert not {"cutoff", "dedup_old"} & {item["stage"] for item in outcome.summary["stages"]}
    assert stage(outcome, "dedup_exact")["rows_in"] == 4


def test_new_commits_do_not_read_the_old_tree_again(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "acme" / "alpha.git")
    builder.commit({"age.py": source_text("age")}, "Start", BEFORE)
    builder.commit({"b.py": b"def f(a, b, c):\n    return [a + b, b + c, c + a]\n"}, "Add", AFTER)
    config = write_config(tmp_path, [str(builder.path)])
    config.write_text(config.read_text().replace('version = "1.0"', 'version = "1.0"\noverwrite = true', 1))
    assert build(config, tmp_path / "data").code == 0

    def old_files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "data/tables/old_methods").rglob("*.parquet")}

    files = old_files()
    assert len(files) == 1
    builder.commit({"years.py": source_text("years", 12)}, "Years", datetime(2024, 7, 1, tzinfo=UTC))
    outcome = build(config, tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert old_files() == files
    assert stage(outcome, "dedup_old")["excluded_by_reason"] == {"copied_old": 2}


def test_unreadable_old_file_is_told_with_its_repository(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "acme" / "alpha.git")
    first = builder.commit({"age.py": source_text("age"), "bad.py": b"x = 1\0\n"}, "Start", BEFORE)
    builder.commit({"b.py": b"def f(a, b, c):\n    return [a + b, b + c, c + a]\n", "bad.py": None}, "Add", AFTER)
    outcome = build(write_config(tmp_path, [str(builder.path)]), tmp_path / "data")
    assert outcome.code == 0, outcome.stderr
    assert stage(outcome, "cutoff") == {"rows_in": 2, "rows_out": 1, "excluded_by_reason": {"binary": 1}}
    release = tmp_path / "data" / "releases" / "1.0"
    found = duckdb.sql(
        f"select repo, commit_id, path from read_parquet('{release}/exclusions/*.parquet') where stage = 'cutoff'"
    ).fetchall()
    assert found == [("acme/alpha", first, "bad.py")]
    assert json.loads((release / "manifest.json").read_text())["config"]["dedup"]["copied_old"] == "repository"
