"""The command in a fork of a process that has imported it: the same as in a new one, two seconds of imports earlier.

The process that is forked does nothing but import, so it has no thread of its own and no state; it is a new
interpreter, not pytest's. What a fork cannot change needs a new process: the seed of hashes and all else of PYTHON*.
"""

import atexit
import functools
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver, util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from tests.flows.forked import serve; serve(int(sys.argv[1]))"


class ForkedCommands:
    """The process to fork, from the side of the tests."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(its.fileno())],
                cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, pass_fds=[its.fileno()],
            )  # fmt: skip
        self.socket = ours
        self._lines = ours.makefile("r")
        self._lock = threading.Lock()

    def run(
        self, args: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: int
    ) -> tuple[int, str, str]:  # fmt: skip
        """Return exit code, standard output and standard error, each whole as soon as nobody can write to it."""
        with self._lock, ThreadPoolExecutor(2) as readers:
            pipes = os.pipe(), os.pipe()
            texts = [readers.submit(_read, reading) for reading, _ in pipes]
            socket.send_fds(self.socket, [b"!"], [writing for _, writing in pipes])
            for _, writing in pipes:
                os.close(writing)
            asked = {"args": list(args), "env": dict(env), "cwd": str(cwd), "timeout": timeout}
            self.socket.sendall(json.dumps(asked).encode() + b"\n")
            code = int(self._lines.readline())
            return code, texts[0].result(), texts[1].result()

    def close(self) -> None:
        """End the process."""
        self._lines.close()
        self.socket.close()
        self.process.wait()


@functools.cache
def forked_commands() -> ForkedCommands:
    """Return the one of this process of pytest's."""
    commands = ForkedCommands()
    atexit.register(commands.close)
    return commands


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as pipe:
        return pipe.read()


def serve(descriptor: int) -> None:
    """Import what the commands import, then fork for each that is asked for; returns when nobody can ask any more."""
    import duckdb
    import pyarrow as pa

    import flows.cli
    import flows.dedup_work
    import flows.recipe
    import flows.status
    import flows.steppers
    import flows.summary
    import flows.work

    duckdb.default_connection().close()  # before 2.0 it has threads, which a fork would miss when it ends
    pa.array([])  # imports pandas where it is installed, which takes half a second
    gc.freeze()  # else each fork visits every object of these modules when it ends, for a third of a second
    if (args := _wait(descriptor)) is not None:
        sys.argv = ["postquem", *args]
        flows.cli.main()


def _wait(descriptor: int) -> list[str] | None:
    """Return the arguments of a command in the process that is to carry it out, None in this one."""
    with socket.socket(fileno=descriptor) as asking, asking.makefile("r") as lines:
        while True:
            _, pipes, _, _ = socket.recv_fds(asking, 1, 2)
            if not pipes:
                return None
            asked = json.loads(lines.readline())
            if not (child := os.fork()):
                break
            for pipe in pipes:
                os.close(pipe)
            _, status = os.waitpid(child, 0)
            asking.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    _become(asked, *pipes)
    return list(asked["args"])


def _become(asked: dict[str, Any], out: int, err: int) -> None:
    """Make this fork what a new process would be."""
    for pipe, number in ((out, 1), (err, 2)):
        os.dup2(pipe, number)
        os.close(pipe)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None
    signal.alarm(asked["timeout"])
    if asked["args"][:1] not in (["--version"], ["status"], ["report"]):
        _fork_the_helpers()


def _fork_the_helpers() -> None:
    """Start what worker processes need, their fork server and the tracker of their semaphores, as forks too."""

    def fork(path: bytes, args: Sequence[str], kept: Sequence[int]) -> int:
        if child := os.fork():
            return child
        try:
            for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
                if descriptor > 2 and descriptor not in kept:
                    _close(descriptor)
            exec(args[-1], {})
        finally:
            os._exit(0)

    start, util.spawnv_passfds = util.spawnv_passfds, fork
    forkserver.ensure_running()
    util.spawnv_passfds = start


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # the one that listed them
        return
