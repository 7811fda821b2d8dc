"""Judges answers to tasks of real_code: the body goes into the file, the covering tests run in the sandbox."""

import codecs
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from sandbox.environment import BuiltEnvironment
from sandbox.protocol import SOURCE, Backend, Limits, SandboxSpec, Session
from sandbox.reports import ExecReport
from sandbox.runs import OUTPUT_BYTES, Budget, Job, run_job
from schemas.errors import DataError, SandboxError
from schemas.execution import RealCode, RealCodeConfig, TestOutcome
from schemas.scores import AnswerVerdict
from scoring.verdicts import PASSED, Ruling, rule, unscored

# As the proof has it (sandbox/baseline.py): ten times the original's time and a bit, waiting not counted as computing.
_MIN_SECONDS, _TIMES, _WAITING, _MIN_WALL = 2.0, 10.0, 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Bodies:
    """A task and the distinct bodies to be judged."""

    task: RealCode
    """The task."""
    bodies: tuple[str, ...]
    """Bodies, as they go between its contexts."""


Found = Callable[[RealCode, str, Ruling], None]


class Bench:
    """Runs tests of one repository's tree, as it is or with one file changed."""

    def __init__(self, session: Session, built: BuiltEnvironment, limits: Limits) -> None:
        self.session = session
        self.built = built
        self.limits = limits
        self.seconds: dict[str, float] = {}

    def run(self, tests: Sequence[str], changed: Mapping[str, bytes] | None = None) -> ExecReport:
        """Run tests in a fresh process, with files of the tree replaced for this run alone."""
        budgets = [self._budget(nodeid) for nodeid in tests]
        job = Job(ids=tests, stop=changed is not None, tests=tests, budgets=budgets)
        files = {f"{SOURCE}/{path}": content for path, content in (changed or {}).items()}
        try:
            return run_job(self.session, self.built, job, self.limits, files=files)
        finally:
            self.session.reset()

    def _budget(self, nodeid: str) -> Budget:
        """Return what a test may cost before it counts as hanging."""
        if nodeid not in self.seconds:
            return Job().default
        cpu = max(_MIN_SECONDS, _TIMES * self.seconds[nodeid] + 1)
        return Budget(cpu, max(_MIN_WALL, _WAITING * cpu))


def judge_repository(
    backend: Backend,
    built: BuiltEnvironment,
    tree: Path,
    wanted: Sequence[Bodies],
    config: RealCodeConfig,
    found: Found,
) -> None:
    """Judge bodies of tasks of one tree; `found` is called with each ruling as soon as it is known.

    The tests first run on the tree as it is, which tells how long they take. A body that does not pass counts as failed
    only when the same tests, alone, pass with the canonical solution in the same sandbox; otherwise it is unscored.
    """
    limits = Limits(
        wall_seconds=config.suite_seconds,
        memory_bytes=config.memory_mib << 20,
        pids=config.pids,
        disk_bytes=config.disk_mib << 20,
        output_bytes=OUTPUT_BYTES,
    )
    with backend.open(SandboxSpec(source=tree, binds=built.binds, env=built.env, limits=limits)) as session:
        bench = Bench(session, built, limits)
        tests = sorted({nodeid for item in wanted for nodeid in item.task.PASS_TO_PASS})
        for nodeid, test in bench.run(tests).main.tests.items():
            if test.outcome is TestOutcome.PASSED:
                bench.seconds[nodeid] = test.seconds
        for item in wanted:
            _judge_task(bench, tree, item, found)


def _judge_task(bench: Bench, tree: Path, item: Bodies, found: Found) -> None:
    """Judge the bodies of one task."""
    task = item.task
    control: Ruling | None = None
    if any(nodeid not in bench.seconds for nodeid in task.PASS_TO_PASS):
        control = _control(bench, task)
    for body in item.bodies:
        if control is not None and control.verdict is AnswerVerdict.UNSCORED:
            found(task, body, control)
            continue
        ruling = _judge(bench, tree, task, body)
        if ruling.verdict in (AnswerVerdict.FAILED, AnswerVerdict.TIMEOUT):
            control = control or _control(bench, task)
            ruling = control if control.verdict is AnswerVerdict.UNSCORED else ruling
        found(task, body, ruling)


def _control(bench: Bench, task: RealCode) -> Ruling:
    """Return PASSED when the task's tests pass with the canonical solution, else why nothing can be said."""
    ruling = rule(bench.run(task.PASS_TO_PASS), task.PASS_TO_PASS)
    if ruling.verdict is AnswerVerdict.PASSED:
        return PASSED
    return unscored("control_failed", f"with the canonical solution: {ruling.reason}: {ruling.detail}")


def _judge(bench: Bench, tree: Path, task: RealCode, body: str) -> Ruling:
    try:
        content = with_body(_read(tree, task), task, body)
    except DataError as error:
        return unscored(error.reason, error.detail)
    except UnicodeEncodeError as error:
        return Ruling(AnswerVerdict.FAILED, "unencodable", f"the file's encoding has no {error.object[error.start]!r}")
    try:
        return rule(bench.run(task.PASS_TO_PASS, {task.path: content}), task.PASS_TO_PASS)
    except SandboxError as error:
        return unscored("backend_error", str(error))


def _read(tree: Path, task: RealCode) -> bytes:
    path = tree / task.path
    if path.is_symlink() or not path.is_file():
        raise DataError("other_tree", f"{task.path} is not in the tree of {task.base_commit}")
    return path.read_bytes()


def with_body(source: bytes, task: RealCode, body: str) -> bytes:
    """Return a task's file with another body, in the file's own encoding.

    DataError `other_tree` when the file is not that of the task; UnicodeEncodeError when its encoding cannot write
    the body.
    """
    for encoding in _encodings(source):
        try:
            left, solution, right = (part.encode(encoding) for part in _parts(task))
        except UnicodeEncodeError:
            continue
        mark = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) and not left.startswith(codecs.BOM_UTF8) else b""
        if mark + left + solution + right == source:
            return mark + left + body.encode(encoding) + right
    raise DataError("other_tree", f"{task.path} is not the file that the task was made from")


def _parts(task: RealCode) -> tuple[str, str, str]:
    return task.left_context, task.canonical_solution, task.right_context


def _encodings(source: bytes) -> Iterator[str]:
    """Yield the encodings that a Python file may have: UTF-8, and what its first lines say."""
    yield "utf-8"
    try:
        yield tokenize.detect_encoding(BytesIO(source).readline)[0].removesuffix("-sig")
    except SyntaxError:
        return
