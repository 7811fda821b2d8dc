"""Runs tests in a sandbox by our own runner, which reports by records and not by text."""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.environment import BuiltEnvironment
from sandbox.protocol import HANDED_IN, SOURCE, Limits, Network, Session, Talk, Talker
from sandbox.reports import ExecReport, read_report, run_fault
from schemas.execution import ExecResult

PACKAGE = "_postquem"
FOLDER = f"{HANDED_IN}/runner"
JOB = f"{HANDED_IN}/job.json"
# In the tree, because nothing else can be removed from inside; the supervisor does that before it starts anything.
KEY = f"{SOURCE}/.postquem-key"
_MODULES = (
    "__init__", "clocks", "desk", "forks", "fresh", "mutate", "plugin", "processes", "resident", "runner", "suite",
    "supervisor", "tracing", "warmed", "wire",
)  # fmt: skip
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    f"from {PACKAGE}.supervisor import main; main(sys.argv[1], sys.argv[2], sys.argv[3])"
)
_DESK = f"import sys; sys.path.insert(0, sys.argv[1]); from {PACKAGE}.desk import main; main(sys.argv[1])"
# Records of one run: about 700 bytes for each test; a suite of 12,000 tests needs 8 MiB.
OUTPUT_BYTES = 256 << 20
# Ours: no limit on failures (`-x` in a project's options), no long tracebacks, which cost more than the tests.
_OPTIONS = ("--maxfail=0", "--tb=line", "-q")


@dataclass(frozen=True, slots=True)
class Budget:
    """What one test may cost before it counts as hanging."""

    cpu_seconds: float
    """Processor time of the process that runs it."""
    wall_seconds: float
    """Elapsed time, whatever it does with it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call of the runner."""

    mode: str = "run"
    """`run`, `forks` or `fresh`."""
    ids: Sequence[str] | None = None
    """Tests to run; all when null."""
    excluded: Sequence[str] = ()
    """Tests to leave out."""
    reverse: bool = False
    """Run in reversed order."""
    stop: bool = False
    """Stop at the first failure."""
    targets: Sequence[tuple[str, str, int]] | None = None
    """Functions (path, name, first line) whose entry by tests is recorded."""
    jobs: Sequence[Mapping[str, Any]] = ()
    """Jobs of a server; their `ids` are numbers into `tests`."""
    tests: Sequence[str] = ()
    """Node ids that have a budget of their own."""
    budgets: Sequence[Budget] = ()
    """Budgets of `tests`."""
    default: Budget = field(default_factory=lambda: Budget(60.0, 300.0))
    """Budget of every other test."""
    bare: bool = False
    """Let fresh processes start pytest themselves."""
    configured: bool = False
    """Let fresh processes share pytest's configuration, too."""
    imports: Sequence[str] = ()
    """Modules from outside the tree that fresh processes share."""
    to_end: bool = False
    """Let pytest end by itself instead of behind the last test."""
    first: bool = False
    """Tell which modules are imported, and write byte code beside the sources, for later runs of the session."""


@cache
def runner_files() -> Mapping[str, bytes]:
    """Return the files of the runner by their place in a sandbox."""
    folder = Path(__file__).with_name("inside")
    return {f"{FOLDER}/{PACKAGE}/{name}.py": (folder / f"{name}.py").read_bytes() for name in _MODULES}


def run_job(
    session: Session,
    built: BuiltEnvironment,
    job: Job,
    limits: Limits,
    *,
    env: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> ExecReport:
    """Run a job in a session, with `files` written first, and return what its tests told.

    SandboxError when the sandbox fails; everything that tests can do is in the report.
    """
    key = secrets.token_bytes(32)
    values = job_values(built, job)
    if isinstance(session, ResidentSession) and not files:
        report = session.report(values, key, env or {}, limits)
        if report is not None:
            return report
    result = session.exec(
        (built.python, "-I", "-S", "-c", _BOOT, FOLDER, JOB, KEY),
        files={**runner_files(), JOB: json.dumps(values).encode(), KEY: key.hex().encode(), **(files or {})},
        env=env,
        limits=limits,
    )
    return read_report(result, key)


def job_values(built: BuiltEnvironment, job: Job) -> dict[str, Any]:
    """Return a job as the runner reads it from JSON."""
    return {
        "mode": job.mode,
        "args": [*built.environment.pytest_args, *_OPTIONS],
        "ids": None if job.ids is None else list(job.ids),
        "excluded": list(job.excluded),
        "reverse": job.reverse,
        "stop": job.stop,
        **({} if job.targets is None else {"targets": [list(target) for target in job.targets]}),
        "jobs": list(job.jobs),
        "tests": list(job.tests),
        "budgets": [[budget.cpu_seconds, budget.wall_seconds] for budget in job.budgets],
        "budget": [job.default.cpu_seconds, job.default.wall_seconds],
        "bare": job.bare,
        "configured": job.configured,
        "imports": list(job.imports),
        "to_end": job.to_end,
        "first": job.first,
    }


class ResidentSession:
    """A session whose jobs share one supervisor and, where they need no variables of their own, one start of pytest.

    A job that was not reported whole there is run once more by itself, and so are all behind it: what hangs, breaks
    its server or needs modules of the tree early is judged as if there were no resident.
    """

    def __init__(self, session: Session, built: BuiltEnvironment) -> None:
        self.session = session
        self.built = built
        self.talker = session if isinstance(session, Talker) else None
        self.limits: Limits | None = None
        self.talk: Talk | None = None
        self.stack = ExitStack()

    @property
    def given_up(self) -> bool:
        """Tell whether every job is run by itself from now on."""
        return self.talker is None

    def report(self, job: Mapping[str, Any], key: bytes, env: Mapping[str, str], limits: Limits) -> ExecReport | None:
        """Run a job; None when it has to be run by itself."""
        shared = replace(limits, wall_seconds=0.0, cpus=1.0)
        if self.talker is None or (self.limits is not None and self.limits != shared):
            return None
        if self.talk is None:
            self.talk = self._open(self.talker, shared)
        end = secrets.token_hex(16)
        variables = {name: value for name, value in env.items() if value != self.built.env.get(name)}
        request = json.dumps({"job": job, "key": key.hex(), "variables": variables, "end": end})
        result = self.talk.ask(request.encode(), f"{end}\n".encode(), limits)
        report = None if result is None else read_report(result, key)
        if report is None or run_fault(report) or report.main.hung:
            self.talker = None
            self.close()
            return None
        return report

    def _open(self, talker: Talker, limits: Limits) -> Talk:
        argv = (self.built.python, "-I", "-S", "-c", _DESK, FOLDER)
        self.limits = limits
        return self.stack.enter_context(talker.talk(argv, files=runner_files(), limits=limits))

    def close(self) -> None:
        """End the resident."""
        self.talk = self.limits = None
        self.stack.close()

    def exec(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        network: Network = Network.OFF,
    ) -> ExecResult:
        """Run a command by itself (Session.exec)."""
        self.close()
        return self.session.exec(argv, files=files, env=env, limits=limits, network=network)

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file that was left (Session.read)."""
        self.close()
        return self.session.read(path, max_bytes)

    def reset(self) -> None:
        """Drop everything that was written (Session.reset)."""
        self.close()
        self.session.reset()
