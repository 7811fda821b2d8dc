"""What is printed and written of scores, what is kept of rulings, and what a release says for scoring."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.arrow import to_table
from schemas.errors import ConfigError, PipelineError
from schemas.execution import BackendName, Environment, RealCode, RealCodeConfig
from schemas.scores import AnswerScore, AnswerVerdict
from scoring.answers import Answers
from scoring.pass_at_k import PassAtK
from scoring.release import Home, TaskRelease, read_release
from scoring.report import RepositoryScore, ScoreReport, check_output, make_report, write_scores
from scoring.scorebook import Scorebook
from scoring.verdicts import PASSED, Ruling, unscored
from tests.scoring.tasks import make_task
from warehouse.tables import read_rows, write_table

ENVIRONMENT = Environment("3.12.1", "pytest==8\n", "2026-01-02", ("pytest",), (), (), "bubblewrap+rlimits")
SOURCE = b"def f():\n    return 1\n\n\ndef g():\n    return 2\n"
F = make_task(SOURCE, "a.py", "f", ["t.py::f"], ENVIRONMENT)
G = replace(make_task(SOURCE, "a.py", "g", ["t.py::g"], ENVIRONMENT), repo="acme/other")
H = replace(make_task(SOURCE, "b.py", "g", ["t.py::g"], ENVIRONMENT), repo="acme/other")


def score(task: RealCode, sample: int, verdict: AnswerVerdict, reason: str = "") -> AnswerScore:
    return AnswerScore(task.instance_id, task.repo, sample, verdict, reason, "", ("fence",), "    pass")


SCORES = [
    score(F, 0, AnswerVerdict.PASSED),
    score(F, 1, AnswerVerdict.FAILED, "test_failed"),
    score(F, 2, AnswerVerdict.UNSCORED, "control_failed"),
    score(G, 0, AnswerVerdict.TIMEOUT, "timeout"),
]
ANSWERS = Answers({F.instance_id: ("a", "b", "c"), G.instance_id: ("a",)}, (H.instance_id,), ("x",), 1)


def test_report_counts_judged_answers_alone() -> None:
    assert make_report([F, G, H], ANSWERS, SCORES, [1, 2, 3]) == ScoreReport(
        tasks=3,
        missing=(H.instance_id,),
        unknown=("x",),
        repeated=1,
        verdicts={"passed": 1, "failed": 1, "timeout": 1, "unscored": 1},
        unscored={"control_failed": 1},
        pass_at_k=(
            PassAtK(1, 0.25, 0.0, 1.0, 2, 2),
            PassAtK(2, 1.0, None, None, 1, 1),
            PassAtK(3, None, None, None, 0, 0),
        ),
        repositories=(
            RepositoryScore("acme/other", 2, 1, 1, 0, 0),
            RepositoryScore("acme/shop", 1, 1, 3, 1, 1),
        ),
    )


def test_rows_are_written_as_parquet_or_json_lines(tmp_path: Path) -> None:
    write_scores(tmp_path / "rows.parquet", SCORES)
    assert read_rows(tmp_path / "rows.parquet", AnswerScore) == SCORES
    write_scores(tmp_path / "rows.jsonl", SCORES)
    lines = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    assert json.loads(lines[1]) == {
        "instance_id": F.instance_id, "repo": "acme/shop", "sample": 1, "verdict": "failed", "reason": "test_failed",
        "detail": "", "rules": ["fence"], "body": "    pass",
    }  # fmt: skip


def test_output_of_another_kind_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end with \.parquet or \.jsonl"):
        check_output(tmp_path / "rows.csv")
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        check_output(tmp_path / "a.jsonl")


def test_ruling_is_found_again_until_something_that_it_depends_on_changes(tmp_path: Path) -> None:
    book = Scorebook(tmp_path, "code 1", RealCodeConfig())
    assert book.get(F, "    pass") is None
    failed = Ruling(AnswerVerdict.FAILED, "test_failed", "t.py::f")
    book.put(F, "    pass", failed)
    book.put(F, "    return 1", PASSED)
    assert Scorebook(tmp_path, "code 1", RealCodeConfig()).get(F, "    pass") == failed
    assert book.get(F, "    return 1") == PASSED
    others = [
        (book, F, "    pass "),
        (book, G, "    pass"),
        (book, replace(F, PASS_TO_PASS=("t.py::f", "t.py::g")), "    pass"),
        (book, replace(F, base_commit="d" * 40), "    pass"),
        (book, replace(F, environment=replace(ENVIRONMENT, lock="pytest==9\n")), "    pass"),
        (book, replace(F, right_context="\n"), "    pass"),
        (Scorebook(tmp_path, "code 2", RealCodeConfig()), F, "    pass"),
        (Scorebook(tmp_path, "code 1", RealCodeConfig(memory_mib=1)), F, "    pass"),
    ]
    assert [found.get(task, body) for found, task, body in others] == [None] * len(others)


def test_what_was_not_scored_or_is_damaged_is_judged_again(tmp_path: Path) -> None:
    book = Scorebook(tmp_path, "code", RealCodeConfig())
    book.put(F, "x", unscored("control_failed", ""))
    assert book.get(F, "x") is None
    book.put(F, "x", PASSED)
    for damaged in ("", "{", "[]", '{"verdict": "odd", "reason": "", "detail": ""}'):
        book.path(F, "x").write_text(damaged)
        assert book.get(F, "x") is None


def test_trees_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    book = Scorebook(tmp_path / "scores", "code", RealCodeConfig())
    (book.trees / "left" / "tree").mkdir(parents=True)
    book.sweep()
    assert list(book.trees.iterdir()) == []


def write_release(folder: Path, config: dict[str, object], tasks: list[RealCode]) -> None:
    folder.mkdir(exist_ok=True)
    repositories = [
        {"repo": "acme/shop", "host": "local", "web_url": None},
        {"repo": "acme/other", "host": "example.org", "web_url": "https://example.org/acme/other"},
    ]
    manifest = {"config": config, "repositories": repositories}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for number, task in enumerate(tasks):
        write_table(folder / "real_code" / f"test-{number:05}-of-{len(tasks):05}.parquet", to_table([task], RealCode))


def test_release_gives_tasks_limits_and_homes(tmp_path: Path) -> None:
    section = {"backend": "docker", "image": "sha256:1", "runs": 5, "pythons": ["3.12"], "optional": True, "later": 1}
    write_release(tmp_path, {"real_code": section}, [F, G])
    assert read_release(tmp_path) == TaskRelease(
        tasks=(F, G),
        config=RealCodeConfig(backend=BackendName.DOCKER, image="sha256:1", runs=5),
        homes={"acme/shop": Home("local", None), "acme/other": Home("example.org", "https://example.org/acme/other")},
    )


def test_folder_that_is_no_release_with_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no release: manifest.json cannot be read"):
        read_release(tmp_path)
    write_release(tmp_path, {}, [])
    with pytest.raises(ConfigError, match=r"has no tasks of real_code; add it to testbeds\.names"):
        read_release(tmp_path)
    write_release(tmp_path, {}, [F])
    write_table(tmp_path / "real_code" / "test-1.parquet", to_table([F], RealCode).drop_columns(["PASS_TO_PASS"]))
    with pytest.raises(PipelineError, match="is of another version of Postquem"):
        read_release(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match="is damaged or of another version"):
        read_release(tmp_path)
