"""`postquem score real_code`: trees and environments made ready, answers judged in sandboxes, rulings kept on disk."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from flows.progress import RunProgress
from flows.versions import stage_version
from miners.clone import identify, open_clone
from miners.faults import reading_clone
from miners.git_process import ObjectReader
from miners.partial import fetch_files
from miners.places import clone_folder
from sandbox.backends import open_backend
from sandbox.build import rebuild_environment
from sandbox.environment import BuiltEnvironment
from sandbox.exported import exported
from sandbox.protocol import Backend
from schemas.config import SourceConfig
from schemas.errors import DataError, TransientError
from schemas.execution import BackendName, Environment, RealCode, RealCodeConfig, check_real_code
from schemas.scores import AnswerScore
from scoring.answers import Answers, read_answers
from scoring.extract_answer import Extracted, extract_answer
from scoring.real_code import Bodies, judge_repository
from scoring.release import Home, TaskRelease, read_release
from scoring.report import ScoreReport, check_output, make_report, write_scores
from scoring.scorebook import Scorebook
from scoring.verdicts import Ruling, unscored
from warehouse.lock import Workspace, lock_workspace, open_workspace

Key = tuple[str, str]
"""Task and body."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What is asked for."""

    answers: Path
    """JSON lines of answers."""
    release: Path
    """Folder of the release."""
    workspace: Path
    """Folder for clones, environments and rulings."""
    ks: tuple[int, ...] = (1,)
    """Values of k."""
    backend: str | None = None
    """Sandbox; that of the release when null."""
    image: str | None = None
    """Image of the docker backend; that of the release when null."""
    out: Path | None = None
    """File for a row of every answer."""
    workers: int = 1
    """Sandboxes at a time."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Tasks of one tree in one environment."""

    repo: str
    commit_id: str
    environment: Environment
    wanted: tuple[Bodies, ...]

    @property
    def n_bodies(self) -> int:
        """Return how many bodies there are to judge."""
        return sum(len(item.bodies) for item in self.wanted)


@dataclass(frozen=True, slots=True)
class _Means:
    """What every group needs."""

    release: TaskRelease
    config: RealCodeConfig
    backend: Backend
    workspace: Workspace
    book: Scorebook
    progress: RunProgress


def score_real_code(asked: Scoring) -> ScoreReport:
    """Judge every answer and return the report; what was judged already, by the same code and limits, is not again.

    ConfigError for a release, answers or backend that cannot be used. A repository whose tree or environment cannot
    be had leaves its answers without a verdict, with the reason.
    """
    if asked.out is not None:
        check_output(asked.out)
    release = read_release(asked.release)
    answers = read_answers(asked.answers, [task.instance_id for task in release.tasks])
    config = _with_backend(release.config, asked)
    workspace = open_workspace(asked.workspace)
    with lock_workspace(workspace), RunProgress() as progress:
        book = Scorebook(workspace.root / "scores", stage_version("score"), config)
        book.sweep()
        means = _Means(release, config, open_backend(config), workspace, book, progress)
        scores = _score(means, answers, asked.workers)
    if asked.out is not None:
        write_scores(asked.out, scores)
    return make_report(release.tasks, answers, scores, asked.ks)


def _with_backend(config: RealCodeConfig, asked: Scoring) -> RealCodeConfig:
    if asked.backend is not None:
        config = replace(config, backend=BackendName(asked.backend))
    if asked.image is not None:
        config = replace(config, image=asked.image)
    check_real_code(config)
    return config


def _score(means: _Means, answers: Answers, workers: int) -> list[AnswerScore]:
    """Return a row for every answer, tasks in the order of the release."""
    tasks = [task for task in means.release.tasks if task.instance_id in answers.by_instance]
    extracted = {
        task.instance_id: [extract_answer(text, task.left_context) for text in answers.by_instance[task.instance_id]]
        for task in tasks
    }
    rulings: dict[Key, Ruling] = {}
    groups = _groups(means.book, tasks, extracted, rulings, workers)
    n_known = len(rulings)
    if n_known:
        means.progress.note(f"{n_known:,} bodies were judged by an earlier run")

    def found(task: RealCode, body: str, ruling: Ruling) -> None:
        means.book.put(task, body, ruling)
        rulings[task.instance_id, body] = ruling

    with ThreadPoolExecutor(max(1, workers)) as pool:
        list(pool.map(lambda group: _judge_group(means, group, found), groups))
    return [
        _row(task, sample, answer, rulings[task.instance_id, answer.body])
        for task in tasks
        for sample, answer in enumerate(extracted[task.instance_id])
    ]


def _row(task: RealCode, sample: int, answer: Extracted, ruling: Ruling) -> AnswerScore:
    rules = tuple(rule.value for rule in answer.rules)
    return AnswerScore(
        task.instance_id, task.repo, sample, ruling.verdict, ruling.reason, ruling.detail, rules, answer.body
    )


def _groups(
    book: Scorebook,
    tasks: Sequence[RealCode],
    extracted: Mapping[str, Sequence[Extracted]],
    rulings: dict[Key, Ruling],
    workers: int,
) -> list[_Group]:
    """Return what is to be judged, and note in `rulings` what has been.

    A group is a tree with its environment; with fewer of them than workers each is cut into parts.
    """
    pending: dict[tuple[str, str, Environment], list[Bodies]] = {}
    for task in tasks:
        bodies = []
        for body in dict.fromkeys(answer.body for answer in extracted[task.instance_id]):
            known = book.get(task, body)
            if known is None:
                bodies.append(body)
            else:
                rulings[task.instance_id, body] = known
        if bodies:
            key = (task.repo, task.base_commit, task.environment)
            pending.setdefault(key, []).append(Bodies(task, tuple(bodies)))
    parts = max(1, workers // max(1, len(pending)))
    return [
        _Group(*key, tuple(wanted[part::parts]))
        for key, wanted in sorted(pending.items(), key=lambda item: item[0][:2])
        for part in range(min(parts, len(wanted)))
    ]


def _judge_group(means: _Means, group: _Group, found: Callable[[RealCode, str, Ruling], None]) -> None:
    """Judge a group; what cannot be judged has the reason for ruling."""
    judged: set[Key] = set()

    def note(task: RealCode, body: str, ruling: Ruling) -> None:
        judged.add((task.instance_id, body))
        found(task, body, ruling)

    started = datetime.now(UTC)
    reason = ""
    with means.progress.running("score", f"{group.repo} ({group.n_bodies:,} bodies)"):
        try:
            with _environment(means, group) as (built, tree):
                judge_repository(means.backend, built, tree, group.wanted, means.config, note)
        except DataError as error:
            failed = unscored(error.reason, error.detail)
        except TransientError as error:
            failed = unscored("environment_unavailable", str(error))
        else:
            failed = unscored("backend_error", "no ruling")
        for item in group.wanted:
            for body in item.bodies:
                if (item.task.instance_id, body) not in judged:
                    reason = f"; unscored, {failed.reason}: {' '.join(failed.detail.split())}"
                    found(item.task, body, failed)
    seconds = (datetime.now(UTC) - started).total_seconds()
    means.progress.note(f"    score  {group.repo}: {group.n_bodies:,} bodies ({seconds:.1f} s){reason}")


@contextmanager
def _environment(means: _Means, group: _Group) -> Iterator[tuple[BuiltEnvironment, Path]]:
    """Have the environment of a group built, and the tree to execute in it."""
    with reading_clone():
        git_dir = _find_clone(means, group)
        fetch_files(git_dir, group.commit_id)
    with exported(git_dir, group.repo, group.commit_id, means.book.trees) as (tree, at):
        cache = means.workspace.environments
        built = rebuild_environment(group.environment, tree, at, means.backend, means.config, cache)
        yield built, built.source


def _find_clone(means: _Means, group: _Group) -> Path:
    """Return a clone that has a group's commit: the workspace's, else one made from the repository's web address.

    DataError `source_missing` when there is neither, `commit_missing` when the clone has not got the commit; raises as
    `open_clone`.
    """
    home = means.release.homes.get(group.repo, Home("local", None))
    git_dir = clone_folder(means.workspace.repos, home.host, group.repo)
    if not _has(git_dir, group.commit_id):
        if home.web_url is None:
            raise DataError("source_missing", f"{git_dir.name} is not in the workspace, and has no web address")
        place = identify(SourceConfig(git=(home.web_url,)), home.web_url, Path())
        git_dir = open_clone(place, means.workspace.repos).git_dir
    if not _has(git_dir, group.commit_id):
        raise DataError("commit_missing", f"{group.commit_id} is no commit of {group.repo} any more")
    return git_dir


def _has(git_dir: Path, commit_id: str) -> bool:
    if not git_dir.is_dir():
        return False
    try:
        with ObjectReader(git_dir) as reader:
            return reader.read(commit_id)[0] == "commit"
    except DataError:
        return False
