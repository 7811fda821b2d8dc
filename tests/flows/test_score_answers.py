"""`postquem score real_code` on proven tasks of the sample repository."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows import score_answers
from flows.cli import cli
from flows.score_answers import Scoring, score_real_code
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.environment import BuiltEnvironment
from schemas.arrow import to_table
from schemas.errors import DataError, SourceError, TransientError, UnreachableError
from schemas.execution import RealCode
from schemas.scores import AnswerScore
from scoring.pass_at_k import PassAtK
from scoring.report import ScoreReport
from tests.samples.cases import REAL_CODE
from tests.scoring.conftest import environment
from tests.scoring.foyer import Foyer, outcomes, prove_foyer
from warehouse.tables import read_rows, write_table

__all__ = ["environment"]  # a fixture
# One of each kind that needs something of its own: a generator, a coroutine, a constructor that a fixture calls.
NAMES = ("Roll.tear", "SeatPlan.__init__", "WaitingList.ask")


@dataclass(frozen=True)
class Ground:
    """A workspace with the clone, and a release with the tasks."""

    foyer: Foyer
    workspace: Path
    release: Path

    @property
    def rows(self) -> list[RealCode]:
        return [self.foyer.row(name) for name in NAMES]

    def answer(self, answers: Mapping[str, Sequence[str]]) -> Path:
        path = self.workspace / "answers.jsonl"
        lines = [json.dumps({"instance_id": name, "answers": list(texts)}) for name, texts in answers.items()]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path


@pytest.fixture(scope="module")
def ground(environment: BuiltEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    folder = tmp_path_factory.mktemp("foyer")
    foyer = prove_foyer(folder / "data", environment, BubblewrapBackend())
    release = folder / "release"
    rows = [foyer.row(name) for name in NAMES]
    write_table(release / "real_code" / "test-00000-of-00001.parquet", to_table(rows, RealCode))
    repositories = [{"repo": "samples/foyer", "host": "local", "web_url": None}]
    (release / "manifest.json").write_text(json.dumps({"config": {}, "repositories": repositories}))
    return Ground(foyer, folder / "data", release)


def test_every_function_of_foyer_has_the_outcome_that_the_samples_readme_promises(ground: Ground) -> None:
    promised = {name: [outcome] for group in REAL_CODE.values() for name, outcome in group.items()}
    promised["SeatPlan.state"] = ["task", "trivial_body", "trivial_body"]  # two overloads
    promised["money"] = ["mock_survived"]  # its version at HEAD; what was mined is not there any more
    assert outcomes(ground.foyer.proof) == promised
    assert ground.foyer.row("badge").flaky_tests == ("tests/test_waiting.py::test_badges_of_all_guests",)


Rebuild = Callable[..., BuiltEnvironment]


def score(ground: Ground, monkeypatch: pytest.MonkeyPatch, rebuild: Rebuild, *, out: Path | None = None) -> ScoreReport:
    monkeypatch.setattr(score_answers, "rebuild_environment", rebuild)
    asked = Scoring(ground.workspace / "answers.jsonl", ground.release, ground.workspace, (1, 4), out=out, workers=2)
    return score_real_code(asked)


def sound(ground: Ground) -> Rebuild:
    """Return a stand-in for the building of environments (tested elsewhere): the one that proved the tasks."""

    def rebuild(made: object, source: Path, *_: object) -> BuiltEnvironment:
        assert made == ground.foyer.built.environment
        return ground.foyer.built

    return rebuild


def never(*_: object) -> BuiltEnvironment:
    raise AssertionError("nothing is to be run")


def test_canonical_answers_score_one_and_mocks_and_nothing_zero(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.answer({row.instance_id: [f"```python\n{row.canonical_solution}\n```"] for row in ground.rows})
    report = score(ground, monkeypatch, sound(ground))
    assert report.pass_at_k == (PassAtK(1, 1.0, None, None, 3, 1), PassAtK(4, None, None, None, 0, 0))
    assert report.verdicts == {"passed": 3, "failed": 0, "timeout": 0, "unscored": 0}

    bad = {row.instance_id: [*(mock.body for mock in row.mocks), "", "Sorry."] for row in ground.rows}
    ground.answer(bad)
    out = tmp_path / "rows.parquet"
    report = score(ground, monkeypatch, sound(ground), out=out)
    assert report.pass_at_k == (PassAtK(1, 0.0, None, None, 3, 1), PassAtK(4, 0.0, None, None, 3, 1))
    n_answers = sum(map(len, bad.values()))
    assert report.verdicts == {"passed": 0, "failed": n_answers, "timeout": 0, "unscored": 0}
    rows = read_rows(out, AnswerScore)
    assert [row.sample for row in rows] == [number for texts in bad.values() for number in range(len(texts))]

    # The same answers again, in one run with the canonical ones: nothing is executed, and the rows are the same.
    ground.answer({row.instance_id: [*bad[row.instance_id], row.canonical_solution] for row in ground.rows})
    again = tmp_path / "again.parquet"
    report = score(ground, monkeypatch, never, out=again)
    assert [row for row in read_rows(again, AnswerScore) if row.verdict != "passed"] == rows
    assert report.verdicts == {"passed": 3, "failed": n_answers, "timeout": 0, "unscored": 0}


def raising(error: Exception) -> Rebuild:
    def rebuild(*_: object) -> BuiltEnvironment:
        raise error

    return rebuild


def test_broken_ground_leaves_answers_unscored_and_is_tried_again(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ground.rows[0]
    ground.answer({row.instance_id: ["    return iter(())  # another", row.canonical_solution + "  # another"]})
    built = ground.foyer.built
    broken = replace(built, env={**built.env, "PYTHONPATH": built.env["PYTHONPATH"].removesuffix(":/w/src/src")})

    def without_project(*_: object) -> BuiltEnvironment:
        return broken

    grounds = [
        (without_project, "control_failed"),
        (raising(DataError("project_build_failed", "error: no compiler")), "project_build_failed"),
        (raising(TransientError("the index does not answer")), "environment_unavailable"),
    ]
    for rebuild, reason in grounds:
        report = score(ground, monkeypatch, rebuild)
        assert (report.verdicts["unscored"], report.unscored) == (2, {reason: 2})
        assert report.pass_at_k[0] == PassAtK(1, None, None, None, 0, 0)
    report = score(ground, monkeypatch, sound(ground))
    assert report.verdicts == {"passed": 1, "failed": 1, "timeout": 0, "unscored": 0}
    assert report.missing == tuple(sorted(row.instance_id for row in ground.rows[1:]))


def test_repository_that_cannot_be_had_leaves_answers_unscored(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.answer({ground.rows[0].instance_id: ["    return iter(())"]})
    elsewhere = replace(ground, workspace=tmp_path)
    shutil.copy(ground.workspace / "answers.jsonl", tmp_path)
    report = score(elsewhere, monkeypatch, never)
    assert report.unscored == {"source_missing": 1}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnreachableError("it does not answer"), "repository_unreachable"),
        (SourceError("it is gone"), "source_missing"),
        (DataError("clone_too_large", "the limit is 1"), "clone_too_large"),
    ],
)
def test_partial_clone_whose_source_fails_leaves_answers_unscored(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    ground.answer({ground.rows[0].instance_id: ["    return iter(())"]})
    monkeypatch.setattr(score_answers, "fetch_files", raising(error))
    report = score(ground, monkeypatch, never)
    assert report.unscored == {reason: 1}


def test_command_prints_the_report(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_answers, "rebuild_environment", sound(ground))
    row = ground.rows[0]
    ground.answer({row.instance_id: [row.canonical_solution, ""], "other": ["x"]})
    out = tmp_path / "rows.jsonl"
    words = ["score", "real_code", "--answers", ground.workspace / "answers.jsonl", "--release", ground.release]
    words += ["--workspace", ground.workspace, "--k", "2,1", "--out", out, "--workers", "1"]
    done = CliRunner().invoke(cli, [str(word) for word in (*words, "--json")])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed.pop("seconds") > 0
    assert printed == {
        "out": str(out),
        "tasks": 3,
        "missing": sorted(row.instance_id for row in ground.rows[1:]),
        "unknown": ["other"],
        "repeated": 0,
        "verdicts": {"passed": 1, "failed": 1, "timeout": 0, "unscored": 0},
        "unscored": {},
        "pass_at_k": {
            "1": {"value": 0.5, "low": None, "high": None, "n_tasks": 1, "n_repos": 1},
            "2": {"value": 1.0, "low": None, "high": None, "n_tasks": 1, "n_repos": 1},
        },
        "repositories": [
            {"repo": "samples/foyer", "tasks": 3, "answered": 1, "answers": 2, "passed": 1, "unscored": 0}
        ],
    }
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    shown = CliRunner().invoke(cli, [str(word) for word in words]).stdout
    assert "pass@1: 0.500 over 1 task of 1 repository; no interval from one repository\n" in shown
    assert "No answer to 2 of 3 tasks, which do not count" in shown
    assert "No task is called so: 1 ids: other" in shown


@pytest.mark.parametrize("text", ["0", "1,x", "", "1,,2", "-1"])
def test_k_that_is_no_list_of_numbers_is_refused(text: str) -> None:
    done = CliRunner().invoke(cli, ["score", "real_code", "--answers", "a", "--release", "b", f"--k={text}"])
    assert (done.exit_code, "is no list of numbers from 1 on" in done.output) == (2, True)
