"""The result of scoring: counts, pass@k, and rows for every answer."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from schemas.errors import ConfigError
from schemas.execution import RealCode
from schemas.scores import AnswerScore, AnswerVerdict
from scoring.answers import Answers
from scoring.pass_at_k import PassAtK, Tally, estimate
from warehouse.tables import write_rows, write_text

SUFFIXES = (".parquet", ".jsonl")


@dataclass(frozen=True, slots=True)
class RepositoryScore:
    """Answers to the tasks of one repository."""

    repo: str
    """owner/name."""
    tasks: int
    """Its tasks in the release."""
    answered: int
    """Those with an answer."""
    answers: int
    """Answers to them."""
    passed: int
    """Answers that passed."""
    unscored: int
    """Answers without a verdict."""


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """What scoring a file of answers gave."""

    tasks: int
    """Tasks of the release."""
    missing: tuple[str, ...]
    """Tasks without an answer, sorted; they do not count."""
    unknown: tuple[str, ...]
    """Ids in the answers' file that are no task's, sorted."""
    repeated: int
    """Answers that equal an earlier one to the same task."""
    verdicts: Mapping[str, int]
    """Answers by verdict."""
    unscored: Mapping[str, int]
    """Answers without a verdict by reason."""
    pass_at_k: tuple[PassAtK, ...]
    """pass@k for every k that was asked for."""
    repositories: tuple[RepositoryScore, ...]
    """The repositories, sorted by name."""


def make_report(
    tasks: Sequence[RealCode], answers: Answers, scores: Sequence[AnswerScore], ks: Sequence[int]
) -> ScoreReport:
    """Return the report on the scores of all answers to these tasks."""
    verdicts = Counter(score.verdict for score in scores)
    reasons = Counter(score.reason for score in scores if score.verdict is AnswerVerdict.UNSCORED)
    tallies = _tallies(scores)
    return ScoreReport(
        tasks=len(tasks),
        missing=answers.missing,
        unknown=answers.unknown,
        repeated=answers.repeated,
        verdicts={verdict.value: verdicts[verdict] for verdict in AnswerVerdict},
        unscored=dict(sorted(reasons.items())),
        pass_at_k=tuple(estimate(tallies, k) for k in ks),
        repositories=tuple(_repository(repo, tasks, scores) for repo in sorted({task.repo for task in tasks})),
    )


def _tallies(scores: Sequence[AnswerScore]) -> list[Tally]:
    """Count the judged answers of every task; those without a verdict are no answers."""
    by_task: dict[tuple[str, str], list[bool]] = {}
    for score in scores:
        passed = by_task.setdefault((score.repo, score.instance_id), [])
        if score.verdict is not AnswerVerdict.UNSCORED:
            passed.append(score.verdict is AnswerVerdict.PASSED)
    return [Tally(repo, len(passed), sum(passed)) for (repo, _), passed in sorted(by_task.items())]


def _repository(repo: str, tasks: Sequence[RealCode], scores: Sequence[AnswerScore]) -> RepositoryScore:
    ours = [score for score in scores if score.repo == repo]
    verdicts = Counter(score.verdict for score in ours)
    return RepositoryScore(
        repo=repo,
        tasks=sum(task.repo == repo for task in tasks),
        answered=len({score.instance_id for score in ours}),
        answers=len(ours),
        passed=verdicts[AnswerVerdict.PASSED],
        unscored=verdicts[AnswerVerdict.UNSCORED],
    )


def check_output(path: Path) -> None:
    """Raise ConfigError unless rows can be written to a file of this name."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"--out {path} must end with {' or '.join(SUFFIXES)}")
    if path.is_dir():
        raise ConfigError(f"--out {path} is a folder; name a file")


def write_scores(path: Path, scores: Sequence[AnswerScore]) -> None:
    """Write a row for every answer, as Parquet or as JSON lines."""
    if path.suffix == ".parquet":
        write_rows(path, scores, AnswerScore)
    else:
        write_text(path, "".join(json.dumps(asdict(score), ensure_ascii=False) + "\n" for score in scores))
