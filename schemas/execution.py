"""Rows and values of proof by execution (data contract, "real_code")."""

from dataclasses import dataclass
from enum import StrEnum

from schemas.errors import ConfigError
from schemas.records import DataPoint


class KilledBy(StrEnum):
    """Which limit ended a process tree, when one did."""

    NONE = "none"
    TIMEOUT = "timeout"
    OOM = "oom"
    PIDS = "pids"
    DISK = "disk"
    OUTPUT = "output"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command in a sandbox did. A failed command is a result; a sandbox that cannot run one raises."""

    returncode: int
    """Exit status; 128 + signal when a signal ended it."""
    stdout: bytes
    """Standard output, its last bytes when `truncated`."""
    stderr: bytes
    """Standard error, its last bytes when `truncated`."""
    wall_seconds: float
    """Elapsed time."""
    cpu_seconds: float
    """User and system time of the whole process tree."""
    memory_bytes: int | None
    """Peak memory of the whole tree, null where the backend cannot tell."""
    killed_by: KilledBy = KilledBy.NONE
    """The limit that ended it or that one of its processes ran into; one that led to a time-out stands before it."""
    truncated: bool = False
    """Output above the limit was dropped."""


class TestOutcome(StrEnum):
    """Outcome of a test in one run; the worst of its phases and, with subtests or reruns, of its reports."""

    __test__ = False  # not a test class of pytest

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    NOT_RUN = "not_run"


class MockKind(StrEnum):
    """What a function's body is replaced with."""

    PASS = "pass"  # noqa: S105 - a statement, no password
    """`pass`."""
    TYPED = "typed"
    """An empty or default value of the annotated return type."""
    RAISE = "raise"
    """An exception: tells whether the function is entered at all."""


class Verdict(StrEnum):
    """What the covering tests say about a mock."""

    CAUGHT = "caught"
    """A covering test failed by its own failure, in set-up or call."""
    SURVIVED = "survived"
    """Every covering test reported that it passed."""
    TIMEOUT = "timeout"
    """The mock made the tests hang."""
    INFRASTRUCTURE = "infrastructure"
    """No positive evidence: a report is missing, the import or the collection broke, a limit was hit."""


@dataclass(frozen=True, slots=True)
class MockResult:
    """One mock of a function, judged by its covering tests."""

    kind: MockKind
    """Kind of the mock."""
    body: str
    """Text that stands in place of the body, spliced as an answer would be."""
    verdict: Verdict
    """What the tests say."""
    failing_tests: tuple[str, ...]
    """Node ids of the tests that failed, sorted: of the covering tests, for the first mock; for every other one of
    those that failed with all mocks before it."""
    detail: str = ""
    """Evidence for a reader: first failure, limit, missing report."""


@dataclass(frozen=True, slots=True)
class Environment:
    """How a repository's environment at a commit was built; enough to build it again."""

    python: str
    """Version of the interpreter, `3.12.1`."""
    lock: str
    """Requirements with exact versions and hashes, of everything but the project itself."""
    index_date: str
    """Packages uploaded before this moment were admitted, ISO 8601; empty when the index was not cut."""
    requirements: tuple[str, ...]
    """What was asked of the resolver, with where each was found: `pytest>=8 (dependency-groups: test)`."""
    guessed: tuple[str, ...]
    """Requirements that no file of the repository names, added after an import failed, sorted."""
    pytest_args: tuple[str, ...]
    """Arguments that every test run gets."""
    isolation: str
    """Backend and what it could enforce: `bubblewrap+cgroup-v2`."""
    left_out: tuple[str, ...] = ()
    """Requirements of tests that no index could serve as a wheel, so that tests that need them cannot pass."""
    install: str = "editable"
    """`editable`: installed by its build backend; `path`: only its folders are on PYTHONPATH."""
    python_path: tuple[str, ...] = ()
    """Folders of the tree on PYTHONPATH, `.` for its root."""
    pretended_version: str = ""
    """Version given to a project that takes its own from git; empty otherwise."""


@dataclass(frozen=True, slots=True)
class RealCode(DataPoint):
    """A function whose tests prove its body: they pass with the original and fail with every mock."""

    instance_id: str
    """`owner__name-<12 hex digits of the commit>-<row_id>`."""
    base_commit: str
    """Commit whose tree was executed."""
    intent_type: str
    """`function` or `method`."""
    left_context: str
    """The file up to the body; left_context + canonical_solution + right_context is the file, byte for byte."""
    canonical_solution: str
    """The body after the docstring."""
    right_context: str
    """The file behind the body."""
    PASS_TO_PASS: tuple[str, ...]
    """Covering tests that pass on the original in every run, sorted node ids."""
    FAIL_TO_PASS: tuple[str, ...]
    """Those of them that fail with every mock."""
    mocks: tuple[MockResult, ...]
    """The mocks and what the tests said."""
    environment: Environment
    """How to build the environment again."""
    test_command: str
    """Command that runs PASS_TO_PASS inside the sandbox, node ids appended."""
    runs: int
    """Runs of the original."""
    flaky_tests: tuple[str, ...]
    """Covering tests that did not agree with themselves, or measure time, and were left out."""


class BackendName(StrEnum):
    """Which sandbox executes mined code."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    UNSAFE_LOCAL = "unsafe-local"


class DocstringNeed(StrEnum):
    """Whether a function needs a docstring to become a task."""

    ANY = "any"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class RealCodeConfig:
    """Proof by execution (`[real_code]`), used when `testbeds.names` lists `real_code`."""

    backend: BackendName = BackendName.BUBBLEWRAP
    """Sandbox: `bubblewrap`, `docker` or `unsafe-local`, which isolates nothing."""
    image: str = ""
    """Image of the docker backend, by digest or local id."""
    optional: bool = False
    """Leave the testbed empty, with a reason, where no sandbox can be had; otherwise that is an error."""
    docstring: DocstringNeed = DocstringNeed.ANY
    """`required`: only functions with a docstring, as MERA's RealCode."""
    pythons: tuple[str, ...] = ()
    """Interpreters that environments may use, as paths or versions; all that are found when left out."""
    index_cut: bool = True
    """Take packages as of the commit's date; otherwise the newest."""
    test_packages: tuple[str, ...] = ()
    """Packages that every environment gets besides pytest, such as plugins that repositories forget to declare."""
    runs: int = 3
    """Runs of the original tests, each in another order and with another hash seed; a throttled one comes on top."""
    build_seconds: int = 600
    """Limit of building an environment."""
    suite_seconds: int = 300
    """Limit of one run of a whole suite: processor time, or four times as much elapsed time."""
    memory_mib: int = 2_048
    """Memory of a repository's tests, all processes together."""
    pids: int = 256
    """Processes and threads of a repository's tests."""
    disk_mib: int = 1_024
    """What a repository's tests may write."""
    environments_gib: int = 20
    """Disk for built environments and downloaded packages; the least recently used go first."""


def check_real_code(config: RealCodeConfig) -> None:
    """Refuse values that no run could use."""
    for name in ("runs", "build_seconds", "suite_seconds", "memory_mib", "pids", "disk_mib", "environments_gib"):
        if getattr(config, name) < 1:
            raise ConfigError(f"real_code.{name} must be at least 1")
    if config.backend is BackendName.DOCKER and not config.image:
        raise ConfigError('real_code.backend = "docker" needs real_code.image, an image by digest or id')


@dataclass(frozen=True, slots=True)
class RealCodeRun:
    """What proving one repository cost (table `real_code_runs`); measured, so in no release."""

    repo: str
    """owner/name."""
    base_commit: str
    """Commit whose tree was executed."""
    reason: str = ""
    """Why the repository as a whole gave no task; empty when it could be executed."""
    python: str = ""
    """Version of the interpreter; empty without an environment."""
    isolation: str = ""
    """Backend and what it could enforce."""
    n_tests: int = 0
    """Tests of the repository that were collected."""
    n_flaky: int = 0
    """Tests that enter a candidate and did not agree with themselves, or measure time."""
    n_candidates: int = 0
    """Functions that were looked at."""
    n_mocks: int = 0
    """Mocks that were judged."""
    n_tasks: int = 0
    """Functions that were proven."""
    build_seconds: float = 0.0
    """Elapsed time of building the environment."""
    proof_seconds: float = 0.0
    """Elapsed time of running tests."""
    proof_cpu_seconds: float = 0.0
    """Processor time of running tests."""
