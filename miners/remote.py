"""Owns GitPython; talks to sources: git's commands that need one, within limits, and what its words mean."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from miners.git_answers import Bearing, closed, read_answer, trace_settings, wants_pause
from miners.git_process import NO_GIT, git_command, git_environment
from miners.places import Place
from miners.rate_limit import Answer
from schemas.errors import ConfigError, DataError, PipelineError, RefusedError, SourceError, UnreachableError


@contextmanager
def _import_settings() -> Iterator[None]:
    """Keep GitPython's import from running the caller's git in the caller's environment, and from failing without.

    It runs `git version` and raises ImportError when that fails. A command that cannot be run at all and its quiet
    mode leave it with plain `git`, which is looked for in our environment at each call.
    """
    ours = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": os.devnull}
    callers = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in callers.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _import_settings():
    from git import Git, GitCommandNotFound

# What git and curl print, and what it means for the user. The first match counts.
_AUTHENTICATION = re.compile(
    r"could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|error: 40[134]"
    r"|repository .*not found|certificate|not allowed",
    re.IGNORECASE,
)
_NO_REPOSITORY = re.compile(
    r"does not appear to be a git repository|not a git repository|is not a valid repository|invalid gitfile format"
    r"|unrecognized header|does not look like a v2",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"unable to access|could not resolve|connect|timed out|timeout|early EOF|RPC failed|hung up|empty reply|disconnect"
    r"|reset by peer|\b(?:SSL|TLS|curl|HTTP)\b|error: (?:429|5\d\d)|fetch-pack|index-pack failed",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
# A request that a host refuses to everybody for a moment looks like one that it refuses for good.
_REFUSED = re.compile(r"error: 403")
# Seconds before each further try; together less than a minute, which a working server needs at most to come back.
PAUSES: tuple[float, ...] = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
_REFUSED_PAUSES = 3
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command that fetches may cost."""

    timeout: float = 3_600.0
    """Seconds."""
    max_bytes: int = 4_000_000_000
    """Bytes that the folder may have then."""
    folder: Path | None = None
    """The folder that it fills, the one in which it runs when left out."""


class Done(NamedTuple):
    """What came of a command."""

    status: int
    """Exit code."""
    output: str
    """What it printed."""
    stderr: str
    """What it complained of."""
    answer: Answer | None = None
    """The last answer that the source gave over HTTP; null without one."""


def ask(place: Place, cwd: Path, *args: str, limits: Limits | None = None, input: bytes = b"") -> str:
    """Run a git command that talks to the source in a folder; return its output or raise what it means.

    Over https a fault of the network is tried again, with growing pauses. A host that asks for a pause gets it, from
    all threads, as often as it asks, but for no longer than `timeout` together. Raises SourceError (no repository;
    RefusedError when it is refused), UnreachableError (network, a limit that holds on, or `timeout` over), DataError
    (`branch_missing`, `git_failed`, `repository_blocked`, `repository_disabled`; `clone_too_large` when more than
    `max_bytes` would have to be kept) and PipelineError (disk full).
    """
    Git.check_unsafe_protocols(place.url)
    if place.kind != "https":
        return _run_locally(place, cwd, *args)
    limits = limits or Limits()
    bearing = Bearing(place.url, urlsplit(place.url).netloc, limits.timeout)
    faults = 0
    while True:
        bearing.pauses.keep(bearing.host)
        done = _run_watched(cwd, args, limits, input)
        if done.status == 0:
            return done.output
        if done.answer is not None and wants_pause(done.answer):
            bearing.pause(done.answer)
            continue
        error = closed(place.url, done.answer) or meaning(place, done.stderr)
        tries = len(PAUSES[:_REFUSED_PAUSES] if isinstance(error, RefusedError) else PAUSES)
        if faults >= tries or not isinstance(error, RefusedError | UnreachableError):
            raise error
        time.sleep(PAUSES[faults])
        faults += 1


class _CleanGit(Git):
    """GitPython's command runner in our environment alone: GitPython itself adds ours to the caller's."""

    def execute(self, command: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - GitPython's own signature
        """Run git through `env -u`, so that GIT_DIR and the like of the caller do not reach it."""
        ours = git_environment()
        drop = [flag for name in sorted(set(os.environ) - set(ours)) for flag in ("-u", name)]
        return super().execute(["env", *drop, *command], *args, **(kwargs | {"env": ours}))


def _run_locally(place: Place, cwd: Path, *args: str) -> str:
    try:
        status, output, stderr = _CleanGit(str(cwd)).execute(
            ["git", *args], with_extended_output=True, with_exceptions=False
        )
    except GitCommandNotFound:
        raise ConfigError(NO_GIT) from None
    if status != 0:
        raise meaning(place, str(stderr))
    return str(output)


def _run_watched(cwd: Path, args: Sequence[str], limits: Limits, input: bytes) -> Done:
    """Run git in a process group of its own and end that when it takes too long or fills its folder too much."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        try:
            process = subprocess.Popen(
                git_command(None, *args), cwd=cwd, env=git_environment() | trace_settings(trace),
                start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except FileNotFoundError:
            raise ConfigError(NO_GIT) from None
        watch = _Watch(process, cwd, limits)
        with watch:
            output, errors = process.communicate(input)
        if watch.problem is not None:
            raise watch.problem
        stderr = errors.decode("utf-8", "replace")
        shown = trace.read_text(encoding="utf-8", errors="replace") if process.returncode and trace.exists() else ""
    return Done(process.returncode, output.decode("utf-8", "replace"), stderr, read_answer(shown, stderr))


@dataclass
class _Watch:
    """Ends a process group that exceeds its limits."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    limits: Limits
    problem: PipelineError | None = None
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "_Watch":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self.process.poll() is None:  # the caller was interrupted
            self._end()

    def _look(self) -> None:
        end, pause = time.monotonic() + self.limits.timeout, _LOOK_SECONDS
        while not self._done.wait(pause):
            if time.monotonic() > end:
                self.problem = UnreachableError(f"fetching took longer than {self.limits.timeout / 60:g} minutes")
            elif (size := folder_size(self.limits.folder or self.folder)) > self.limits.max_bytes:
                detail = f"it takes {size:,} bytes so far, the limit is {self.limits.max_bytes:,}"
                self.problem = DataError("clone_too_large", detail)
            if self.problem is not None:
                self._end()
                return
            pause = min(2 * pause, 2.0)

    def _end(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish meanwhile count for nothing."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - quick over many files
            except FileNotFoundError:
                continue
    return size


def meaning(place: Place, stderr: str) -> PipelineError:
    """Return the error that git's words stand for."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    text = "; ".join(line for line in lines if not line.startswith("Cloning into"))[:500]
    if "No such file or directory" in text and "env:" in text:
        return ConfigError(NO_GIT)
    if is_disk_full(text):
        return PipelineError(f"no space left for the clone of {place.url}; free some or choose another --workspace")
    if _NO_REPOSITORY.search(text):
        if place.kind == "path" and _has_objects(Path(place.url)):
            return DataError("branch_missing", f"HEAD of {place.url} is missing or damaged; point it to a branch")
        return SourceError(f"{place.url} is no git repository; correct it in [[sources]] ({text})")
    if place.kind == "https" and _AUTHENTICATION.search(text):
        kind = RefusedError if _REFUSED.search(text) else SourceError
        return kind(
            f"{place.url} does not exist, is private or is refused ({text}); "
            "a private repository can be cloned by hand and given as a path"
        )
    if place.kind == "https" and _NETWORK.search(text):
        return UnreachableError(f"{place.url}: {text}")
    return DataError("git_failed", text)


def is_disk_full(text: str) -> bool:
    """Say whether git's words mean that the disk is full."""
    return _DISK_FULL.search(text) is not None


def _has_objects(path: Path) -> bool:
    """Say whether a folder is a repository but for its HEAD, without which git takes it for none."""
    return any((folder / "objects").is_dir() and (folder / "refs").is_dir() for folder in (path, path / ".git"))
