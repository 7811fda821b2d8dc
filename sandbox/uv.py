"""Drives uv inside a sandbox: locks requirements, fetches wheels, fills an environment.

With the index reachable only uv and a bare interpreter run; what wheels bring starts without network.
"""

import os
import re
import shutil
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name

from sandbox.environment import PYTHON, Stage
from sandbox.interpreters import Interpreter
from sandbox.protocol import ENVIRONMENT, HANDED_IN, Backend, Bind, Limits, Network, SandboxSpec, Session
from schemas.errors import ConfigError, DataError, TransientError
from schemas.execution import ExecResult, KilledBy, RealCodeConfig

UV = "/w/uv"
CACHE = "/w/cache"
_SCRATCH = "/tmp/uv"  # noqa: S108 - a path inside, of a file system that is the sandbox's own
# Exit codes of uv: 1 when the requirements have no solution, 2 when it could not do its work.
_UNSATISFIABLE = 1
# What a shell says of a program that may not run or lacks its libraries.
_DOES_NOT_RUN = (126, 127)
_DETAIL = 600
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
# uv starts a thread for each processor and a pool for its downloads.
_PIDS = 512
# Resolving large sets of packages and unpacking large wheels takes more than tests do.
_MEMORY_BYTES = 4 << 30
# One wheel of a deep-learning framework has almost a gigabyte.
_DISK_BYTES = 4 << 30
# An environment with more wheels than this, all together, is left out (framework builds with GPU libraries).
MAX_WHEEL_BYTES = 2 << 30
_BYTE_COMPILERS = 2
# What tests hardly import: tests that packages bring (a third of numpy's code), build backends, type checkers.
_NOT_COMPILED = "/(?:tests|setuptools|pkg_resources|hatchling|poetry/core|flit_core|wheel|mypy|mypyc)/"
REASONS = {
    KilledBy.TIMEOUT: "timeout",
    KilledBy.OOM: "oom",
    KilledBy.PIDS: "pids",
    KilledBy.DISK: "disk_full",
    KilledBy.OUTPUT: "disk_full",
    KilledBy.BACKEND: "backend_error",
}
# How a user tells uv where the index is and how to reach it (https://docs.astral.sh/uv/reference/environment/).
_INDEX_VARIABLES = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY", "UV_INSECURE_HOST",
    "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip
# Certificates that the host trusts beyond those of uv; the file appears inside under a name of its own.
_CERTIFICATES = "SSL_CERT_FILE"
_CERTIFICATES_INSIDE = "/w/certificates.pem"


def find_uv() -> Path:
    """Return the uv that was installed with this program; ConfigError when it is missing."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        raise ConfigError("uv is not installed; run `make setup` again") from None


class UnresolvedError(DataError):
    """Requirements that the index cannot serve together."""

    def __init__(self, reason: str, detail: str, message: str = "") -> None:
        super().__init__(reason, detail)
        self.words = frozenset(canonicalize_name(word) for word in _NAME.findall(message))
        """Canonical names in the resolver's whole message: a hint at what to leave out, never a verdict."""


@dataclass(slots=True)
class Deadline:
    """The time that building one environment may take in all."""

    seconds: float
    """Limit."""
    started: float = field(default_factory=time.monotonic)
    """When it began, by the monotonic clock."""

    def left(self) -> float:
        """Return the seconds that are left; DataError `timeout` when there are none."""
        left = self.seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise DataError("timeout", f"building took longer than {self.seconds:.0f} seconds")
        return left


@dataclass(slots=True)
class Workbench:
    """What building one environment with one interpreter needs."""

    backend: Backend
    interpreter: Interpreter
    config: RealCodeConfig
    uv: Path
    """uv's executable on the host."""
    cache: Path
    """uv's cache on the host."""
    folder: Path
    """The environment on the host."""
    deadline: Deadline
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Time a step; what is put on the list becomes its detail."""
        told: list[str] = []
        started = time.monotonic()
        try:
            yield told
        except (DataError, TransientError) as error:
            self.stages.append(Stage(name, False, time.monotonic() - started, "; ".join([*told, str(error)])))
            raise
        self.stages.append(Stage(name, True, time.monotonic() - started, "; ".join(told)))

    @contextmanager
    def open(self, *, index: bool = False, env: Mapping[str, str] | None = None) -> Iterator[Session]:
        """Open a sandbox with uv and a writable environment; its cache only where the index is wanted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        binds = [*self.interpreter.binds, Bind(self.uv, UV), Bind(self.folder, ENVIRONMENT, writable=True)]
        variables = _environment() | dict(env or {})
        if index:
            self.cache.mkdir(parents=True, exist_ok=True)
            binds.append(Bind(self.cache, CACHE, writable=True))
            variables |= {name: os.environ[name] for name in _INDEX_VARIABLES if name in os.environ}
            certificates = os.environ.get(_CERTIFICATES)
            if certificates and Path(certificates).is_file():
                binds.append(Bind(Path(certificates), _CERTIFICATES_INSIDE))
                variables[_CERTIFICATES] = _CERTIFICATES_INSIDE
        with self.backend.open(SandboxSpec(None, tuple(binds), variables, self.limits())) as session:
            yield session

    def limits(self) -> Limits:
        """Return the limits of uv's own steps."""
        return Limits(
            self.deadline.left(), _MEMORY_BYTES, _PIDS, float(_BYTE_COMPILERS), _DISK_BYTES, output_bytes=16 << 20
        )

    def run(
        self,
        session: Session,
        argv: Sequence[str],
        files: Mapping[str, bytes] | None = None,
        network: Network = Network.OFF,
    ) -> ExecResult:
        """Run a command within the time that is left; DataError when a limit ended it."""
        result = session.exec(argv, files=files, network=network, limits=self.limits())
        if result.killed_by is not KilledBy.NONE:
            raise DataError(REASONS[result.killed_by], excerpt(result))
        return result

    # -- steps

    def lock(self, lines: Iterable[str], constraints: Iterable[str], cut: str) -> str:
        """Return the lock of requirements: exact versions with hashes, no index named.

        `cut` is the first moment whose uploads are not admitted, empty for none. Raises DataError
        `dep_needs_source_build` or `dep_unresolvable_at_date`, and TransientError when the index cannot be reached.
        """
        files = {
            f"{HANDED_IN}/requirements.in": "".join(f"{line}\n" for line in lines).encode(),
            f"{HANDED_IN}/constraints.txt": "".join(f"{line}\n" for line in constraints).encode(),
        }
        argv = [
            UV, "pip", "compile", "--quiet", "--python", self.interpreter.inside, "--only-binary", ":all:",
            "--no-header", "--no-annotate", "--no-emit-index-url", *(["--exclude-newer", cut] if cut else []),
            "--constraints", f"{HANDED_IN}/constraints.txt",
        ]  # fmt: skip
        source = f"{HANDED_IN}/requirements.in"
        with self.open(index=True) as session:
            result = self.run(session, [*argv, "--generate-hashes", source], files, Network.INDEX)
            if result.returncode != 0:
                self._explain(session, result)
            listing = self.run(session, [*argv, "--format", "pylock.toml", source], files, Network.INDEX)
        _check_size(listing.stdout)
        return result.stdout.decode("utf-8", "replace")

    def _explain(self, session: Session, failed: ExecResult) -> None:
        """Raise what a failed resolution means; a control run tells a dead index from bad requirements."""
        message = excerpt(failed)
        if failed.returncode == _UNSATISFIABLE:
            no_wheel = "no usable wheels" in message or "no wheels" in message
            reason = "dep_needs_source_build" if no_wheel else "dep_unresolvable_at_date"
            raise UnresolvedError(reason, message, failed.stderr.decode("utf-8", "replace"))
        if failed.returncode in _DOES_NOT_RUN:
            raise TransientError(f"uv does not run in the sandbox: {message}")
        control = (UV, "pip", "compile", "--quiet", "--no-cache", "--python", self.interpreter.inside, "--no-deps")
        probe = self.run(
            session, [*control, f"{HANDED_IN}/control.in"], {f"{HANDED_IN}/control.in": b"pytest\n"}, Network.INDEX
        )
        if probe.returncode != 0:
            raise TransientError(f"the package index cannot be reached; check the network and run again: {message}")
        raise UnresolvedError("dep_unresolvable_at_date", message)

    def install(self, lock: str) -> None:
        """Make a fresh environment and fill it with the wheels of a lock.

        Wheels are fetched first, by uv and the bare interpreter alone, and installed without network, as copies: a
        test that writes into a package changes nothing that another environment has.
        """
        if self.folder.exists():
            for entry in self.folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        files = {f"{HANDED_IN}/lock.txt": lock.encode()}
        pip = [UV, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        source = ["--requirements", f"{HANDED_IN}/lock.txt"]
        base = ["--python", self.interpreter.inside]
        with self.open(index=True) as session:
            if lock.strip():
                fetch = [*pip, *base, "--target", _SCRATCH, "--link-mode", "symlink", *source]
                self._must(self.run(session, fetch, files, Network.INDEX), network=True)
            venv = [UV, "venv", "--quiet", "--clear", "--offline", "--relocatable", *base, ENVIRONMENT]
            self._must(self.run(session, venv))
            if lock.strip():
                self._must(self.run(session, [*pip, "--python", PYTHON, "--offline", *source], files))

    def install_wheel(self, name: str, wheel: bytes) -> None:
        """Install the project's own wheel without network; the shared cache is not within its reach."""
        path = f"{HANDED_IN}/{name}"
        argv = (UV, "pip", "install", "--quiet", "--no-deps", "--offline", "--no-cache", "--python", PYTHON, path)
        with self.open() as session:
            self._must(self.run(session, argv, {path: wheel}), reason="project_build_failed")

    def compile(self) -> None:
        """Write the byte code of every package; the interpreter runs without the environment, so none of it starts."""
        argv = (
            self.interpreter.inside, "-I", "-m", "compileall", "-q", "-j", str(_BYTE_COMPILERS), "-x", _NOT_COMPILED,
            f"{ENVIRONMENT}/lib",
        )  # fmt: skip
        with self.open() as session:
            self.run(session, argv)  # files that do not compile (templates, other Pythons' code) are no error

    def _must(self, result: ExecResult, *, network: bool = False, reason: str = "backend_error") -> None:
        """Raise when a step failed that only a fault of the network or machine can make fail."""
        if result.returncode != 0:
            if network:
                raise TransientError(f"cannot fetch the packages of the lock; run again: {excerpt(result)}")
            raise DataError(reason, excerpt(result))


def _environment() -> dict[str, str]:
    """Return the variables of uv's steps, nothing of the host's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108 - the sandbox's own
        "LC_ALL": "C.UTF-8",
        "UV_CACHE_DIR": CACHE,
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "NO_COLOR": "1",
    }


def excerpt(result: ExecResult) -> str:
    """Return the last characters of what a command printed, errors first; paths in it are those inside."""
    text = (result.stderr.strip() or result.stdout.strip()).decode("utf-8", "replace")
    return text[-_DETAIL:]


def _check_size(pylock: bytes) -> None:
    """Raise DataError `disk_full` when the wheels of a lock (pylock.toml, PEP 751) are too large together."""
    try:
        packages = tomllib.loads(pylock.decode("utf-8", "replace")).get("packages", [])
    except tomllib.TOMLDecodeError:
        return
    sizes = {
        item["name"]: max((wheel.get("size", 0) for wheel in item.get("wheels", ())), default=0) for item in packages
    }
    if sum(sizes.values()) > MAX_WHEEL_BYTES:
        largest = ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:3])
        raise UnresolvedError(
            "disk_full",
            f"wheels of {sum(sizes.values()) >> 20} MiB, the limit is {MAX_WHEEL_BYTES >> 20}; largest: {largest}",
            largest,
        )
