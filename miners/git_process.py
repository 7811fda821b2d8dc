"""The only place that starts git plumbing: a clean environment, checked exit codes, checked ids and refs."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from schemas.errors import ConfigError, DataError

_GITCONFIG = Path(__file__).with_name("gitconfig")

# What a machine behind a proxy or with its own certificate authority needs; everything else stays outside.
_PASSED_THROUGH = (
    "PATH",
    "TMPDIR",
    "SYSTEMROOT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
)

# Given through the environment as command-line settings, which outrank those of a repository's own config file.
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.quotePath", "false"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("credential.helper", ""),
    # git 2.43 to 2.45 reads a bare repository's .gitattributes from HEAD; a name that does not resolve stops that.
    ("attr.tree", "refs/postquem/no-attributes"),
    # A server that sends less than 1 kB/s for a minute is taken for dead.
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
)

NO_GIT = "git is not installed or not on PATH; install git 2.32 or later and run again"

# SHA-1 or SHA-256 object ids in full.
_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_STDERR_LINES = 5
# What Linux lets an ordinary user have (fs.pipe-max-size); other systems ignore it.
_PIPE_BYTES = 1 << 20
_SKIPPED_BYTES = 1 << 20
# Commits are asked for their messages and again for their trees.
_MAX_KEPT_BYTES = 1_000_000
# Objects asked for at once: their ids fit into a pipe, so that nobody has to write while git waits for a reader.
_AT_ONCE = 500


def git_environment() -> dict[str, str]:
    """Return the whole environment of every git process: no user configuration, prompts, hooks, or odd protocols."""
    kept = {name: os.environ[name] for name in _PASSED_THROUGH if name in os.environ}
    settings = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for index, (key, value) in enumerate(_SETTINGS):
        settings |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return (
        kept
        | settings
        | {
            "PATH": kept.get("PATH", os.defpath),
            "HOME": "/dev/null",
            "XDG_CONFIG_HOME": "/dev/null",
            "LC_ALL": "C",
            "LANGUAGE": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(_GITCONFIG),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "https:file",
            "GIT_NO_REPLACE_OBJECTS": "1",
            # A path that cannot be: where there is a file, even an empty one, git advises against grafts.
            "GIT_GRAFT_FILE": f"{os.devnull}/none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TEMPLATE_DIR": "",
        }
    )


def git_command(git_dir: Path | None, *args: str | bytes) -> list[str | bytes]:
    """Return the argument list of a git call; without a `git_dir` the call works on no repository."""
    where = [] if git_dir is None else [f"--git-dir={git_dir}"]
    return ["git", *where, *args]


def run_git(git_dir: Path | None, *args: str | bytes, input: bytes | None = None) -> bytes:
    """Run git and return its standard output; raise DataError `git_failed` when its exit code is not 0."""
    try:
        done = subprocess.run(
            git_command(git_dir, *args),
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            env=git_environment(),
            check=False,
        )
    except FileNotFoundError:
        raise ConfigError(NO_GIT) from None
    if done.returncode != 0:
        raise DataError("git_failed", first_lines(done.stderr) or f"git ended with exit code {done.returncode}")
    return done.stdout


def start_git(git_dir: Path, *args: str | bytes, stdin: int | IO[bytes], stderr: int | IO[bytes]) -> "Process":
    """Start a git process whose standard output is a pipe; the caller checks its exit code."""
    try:
        return subprocess.Popen(
            git_command(git_dir, *args), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=git_environment(),
            pipesize=_PIPE_BYTES,
        )  # fmt: skip
    except FileNotFoundError:
        raise ConfigError(NO_GIT) from None


Process = subprocess.Popen[bytes]


def first_lines(stderr: bytes) -> str:
    """Return the first lines of git's error output, for a message."""
    lines = stderr.decode("utf-8", "backslashreplace").splitlines()
    return "; ".join(line.strip() for line in lines[:_STDERR_LINES] if line.strip())


def check_object_id(text: str) -> str:
    """Return a full hexadecimal object id; raise DataError `object_id_invalid` for anything else."""
    if not _OBJECT_ID.fullmatch(text):
        raise DataError("object_id_invalid", f"{text!r} is no full hexadecimal object id")
    return text


def check_branch(name: str) -> str:
    """Return a branch name that git accepts; raise ConfigError otherwise."""
    try:
        if name.startswith("-") or "\0" in name:
            raise DataError("git_failed")
        run_git(None, "check-ref-format", f"refs/heads/{name}")
    except DataError:
        raise ConfigError(f"{name!r} is no valid branch name; give it as `git branch` prints it") from None
    return name


def read_blobs(git_dir: Path, blob_ids: Sequence[str], max_bytes: int) -> Iterator[bytes | None]:
    """Yield blobs' contents in the given order: nothing of those above the limit, None for what git cannot read."""
    done = 0
    while done < len(blob_ids):
        for data in _read_blobs(git_dir, blob_ids[done:], max_bytes):
            yield data
            done += 1
        if done < len(blob_ids):  # git died of the next one
            yield None
            done += 1


def _read_blobs(git_dir: Path, blob_ids: Sequence[str], max_bytes: int) -> Iterator[bytes | None]:
    """Yield blobs as long as git's output is whole."""
    with tempfile.TemporaryFile() as ids:
        # A file, not a pipe: nobody has to write while the output is read.
        ids.write("".join(f"{blob_id}\n" for blob_id in blob_ids).encode())
        ids.seek(0)
        process = start_git(git_dir, "cat-file", "--batch", "--buffer", stdin=ids, stderr=subprocess.DEVNULL)
        with process:
            while process.stdout is not None and (parts := process.stdout.readline().split()):
                if len(parts) != 3 or not parts[2].isdigit():
                    yield None  # `<id> missing`
                    continue
                size = int(parts[2])
                data = _exactly(process.stdout, size, keep=size <= max_bytes)
                if data is None or process.stdout.read(1) != b"\n":
                    return
                yield data if parts[1] == b"blob" else None


def _exactly(stream: IO[bytes], size: int, *, keep: bool) -> bytes | None:
    """Read that many bytes and return them, or nothing of them unless they are to be kept; None when they end early."""
    if keep:
        data = stream.read(size)
        return data if len(data) == size else None
    while size > 0:
        piece = stream.read(min(size, _SKIPPED_BYTES))
        if not piece:
            return None
        size -= len(piece)
    return b""


class ObjectReader:
    """Reads objects of one repository through one long-lived `git cat-file`; never fetches missing ones.

    Use it as a context manager. Not for several threads at once.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._contents: Process | None = None
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._kept_bytes = 0
        self._headers: Process | None = None

    def __enter__(self) -> "ObjectReader":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the git processes; a later read starts them again."""
        for process in (self._contents, self._headers):
            if process is not None:
                _stop(process)
        self._contents = self._headers = None

    def read(self, object_id: str, max_bytes: int | None = None) -> tuple[str, bytes]:
        """Return an object's type and contents; raise DataError `object_missing` or `object_corrupt`.

        One above `max_bytes` is not held in memory: DataError `file_too_large`.
        """
        if object_id in self._kept:
            self._kept.move_to_end(object_id)
            return self._kept[object_id]
        process = self._contents = self._contents or self._start("--batch")
        self._send(process, [check_object_id(object_id)])
        return self._receive(process, object_id, max_bytes)

    def _receive(self, process: Process, object_id: str, max_bytes: int | None = None) -> tuple[str, bytes]:
        """Return the type and contents of the object that git tells of next; raise DataError as `read` does."""
        kind, size = self._receive_size(process, object_id)
        is_small = max_bytes is None or size <= max_bytes
        stream = process.stdout
        data = None if stream is None else _exactly(stream, size, keep=is_small)
        if data is None or stream is None or stream.read(1) != b"\n":
            self.close()
            raise DataError("object_corrupt", f"git cannot read {object_id}")
        if not is_small:
            raise DataError("file_too_large", f"{size} bytes, the limit is {max_bytes}")
        if kind == "commit":
            self._keep(object_id, kind, data)
        return kind, data

    def read_many(self, object_ids: Iterable[str]) -> Iterator[tuple[str, bytes] | None]:
        """Yield type and contents of objects in the given order, None for those that git cannot give.

        Some hundred are asked for and held in memory at once: meant for commits and trees. Where git dies of one,
        those asked for behind it are None too.
        """
        ids = [check_object_id(object_id) for object_id in object_ids]
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            kept = {object_id: self._kept[object_id] for object_id in some if object_id in self._kept}
            answers = kept | self._read_at_once([object_id for object_id in some if object_id not in kept])
            yield from (answers.get(object_id) for object_id in some)

    def _read_at_once(self, object_ids: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """Ask for objects in one go and return those that git gives."""
        answers: dict[str, tuple[str, bytes]] = {}
        process = self._contents = self._contents or self._start("--batch")
        self._send(process, object_ids)
        for object_id in object_ids:
            with contextlib.suppress(DataError):
                answers[object_id] = self._receive(process, object_id)
            if self._contents is None:  # git has died
                break
        return answers

    def root(self, commit_id: str) -> str:
        """Return the tree that a commit names; raise DataError as `read` does."""
        line = self.read(commit_id)[1].split(b"\n", 1)[0]
        return line.removeprefix(b"tree ").decode()

    def _keep(self, object_id: str, kind: str, data: bytes) -> None:
        """Keep an object at hand; the least recently used ones are dropped."""
        self._kept[object_id] = kind, data
        self._kept_bytes += len(data)
        while self._kept_bytes > _MAX_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1][1])

    def size(self, object_id: str) -> int:
        """Return an object's size in bytes without reading it; raise DataError as `read` does."""
        if self._headers is None:
            self._headers = self._start("--batch-check")
        self._send(self._headers, [check_object_id(object_id)])
        return self._receive_size(self._headers, object_id)[1]

    def _start(self, mode: str) -> Process:
        return start_git(self.git_dir, "cat-file", mode, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _send(self, process: Process, object_ids: Sequence[str]) -> None:
        """Ask for objects; git that has died gives no answer."""
        if process.stdin is None:
            raise DataError("git_failed", "cat-file has no pipes")
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("".join(f"{object_id}\n" for object_id in object_ids).encode())
            process.stdin.flush()

    def _receive_size(self, process: Process, object_id: str) -> tuple[str, int]:
        """Return the type and size of the object that git tells of next."""
        if process.stdout is None:
            raise DataError("git_failed", "cat-file has no pipes")
        answer = process.stdout.readline()
        parts = answer.split()
        if len(parts) == 3 and parts[2].isdigit():
            return parts[1].decode(), int(parts[2])
        if not answer:
            self.close()
        if not answer or self._loose_path(object_id).exists():
            raise DataError("object_corrupt", f"git cannot read {object_id}")
        raise DataError("object_missing", f"the repository lacks {object_id}")

    def _loose_path(self, object_id: str) -> Path:
        return self.git_dir / "objects" / object_id[:2] / object_id[2:]


def _stop(process: Process) -> None:
    """Close a process's pipes and wait for it, so that none is left behind."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it may have died before it read everything
            process.stdin.close()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()
