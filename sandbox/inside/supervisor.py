"""The command of a sandbox: starts the runner, limits each test, and passes its signed records on.

    python -I -S -c 'import sys; sys.path.insert(0, FOLDER); from PACKAGE.supervisor import main; main(FOLDER, ...)'

Tested code shares neither memory nor open files with it; its output goes to standard error. What the supervisor
writes to standard output is signed with a key of its own, so that not even a descriptor found elsewhere would help.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from typing import Any

from .processes import cpu_seconds, end_children, hide, kill, reap
from .wire import sign, unseal

POLL_SECONDS = 0.1
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[2]); "
    "from {package}.runner import main; main(int(sys.argv[1]), sys.argv[2])"
)


class Running:
    """The test that a stream is at, and what it may cost."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.id: str | None = None
        self.cpu = 0.0
        self.wall = 0.0
        self.budget: tuple[float, float] = (0.0, 0.0)

    def begin(self, id_: str, budget: tuple[float, float]) -> None:
        """Note that a test begins."""
        self.id = id_
        self.cpu = cpu_seconds(self.pid) or 0.0
        self.wall = time.monotonic()
        self.budget = budget

    def overdue(self) -> bool:
        """Tell whether the test has used up its processor time, or so much time that it must be waiting forever."""
        if self.id is None:
            return False
        waited = time.monotonic() - self.wall
        return waited > self.budget[1] or (
            waited > self.budget[0] and (cpu_seconds(self.pid) or 0.0) - self.cpu > self.budget[0]
        )


class Supervisor:
    """Reads the runner's records, checks them, ends what hangs."""

    def __init__(self, job: dict[str, Any], key: bytes) -> None:
        self.key = key
        self.inner = os.urandom(32)
        self.number = 0
        self.forged = 0
        self.expected: dict[str, int] = {}
        self.running: dict[str, Running] = {}
        self.default: tuple[float, float] = (job["budget"][0], job["budget"][1])
        self.budgets = dict(zip(job.get("tests", ()), job.get("budgets", ())))  # noqa: B905 - before Python 3.10

    def write(self, kind: str, text: bytes) -> None:
        """Write a signed line to standard output."""
        data = sign(self.key, f"out {self.number} {kind} ".encode("ascii") + text) + b"\n"
        self.number += 1
        while data:
            data = data[os.write(1, data) :]

    def start(self, job_path: str, folder: str) -> socket.socket:
        """Start the runner; return our end of its channel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        boot = _BOOT.format(package=__name__.split(".")[0])
        pid = os.fork()
        if pid == 0:
            theirs.set_inheritable(True)
            os.dup2(2, 1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execv(sys.executable, [sys.executable, "-c", boot, str(theirs.fileno()), folder])  # noqa: S606 - meant
        theirs.close()
        ours.send(json.dumps({"job": job_path, "key": self.inner.hex()}).encode())
        self.running["main"] = Running(pid)
        return ours

    def receive(self, data: bytes) -> None:
        """Take one message: a record with the right signature and number, or somebody's garbage."""
        message = unseal(self.inner, data)
        if message is None or self.expected.get(message.stream, 0) != message.number:
            self.forged += 1
            return
        stream, kind = message.stream, message.kind
        self.expected[stream] = message.number + 1
        running = self.running.get(stream)
        if kind == "job":
            self.running[stream] = Running(message.record()["pid"])
        elif kind == "start" and running is not None:
            id_ = message.record()["id"]
            running.begin(id_, self.budgets.get(id_, self.default))
        elif kind in ("over", "done", "abort") and running is not None:
            running.id = None
        elif kind == "ended":
            self.running = {"main": self.running["main"]}
        if kind not in ("job", "start", "over"):
            self.write("pass", message.signed)

    def check(self) -> None:
        """Kill every process whose test is overdue."""
        for stream, running in self.running.items():
            if running.overdue():
                self.write("hang", json.dumps({"s": stream, "id": running.id}).encode("ascii"))
                running.id = None
                kill(running.pid)

    def watch(self, channel: socket.socket) -> int:
        """Pass records on until the runner has ended; return its wait status."""
        channel.setblocking(False)
        runner, status, checked = self.running["main"].pid, None, 0.0
        while True:
            select.select([channel], [], [], POLL_SECONDS)
            received = self._drain(channel)
            if status is not None and not received:
                return status
            if status is None:
                status = reap().get(runner)
            if time.monotonic() - checked > POLL_SECONDS:
                self.check()
                checked = time.monotonic()

    def _drain(self, channel: socket.socket) -> bool:
        """Take what has arrived; tell whether that was anything."""
        received = False
        for _ in range(1_000):
            try:
                message = channel.recv(1 << 18)
            except (BlockingIOError, ConnectionError):
                break
            if not message:
                break
            self.receive(message)
            received = True
        return received


def main(folder: str, job_path: str, key_path: str) -> None:
    """Run the job of a file; the key's file is removed before anything else can read it."""
    with open(key_path, encoding="ascii") as file:
        key = bytes.fromhex(file.read())
    os.unlink(key_path)
    hidden = hide()
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    supervisor = Supervisor(job, key)
    channel = supervisor.start(job_path, folder)
    status = supervisor.watch(channel)
    left = end_children(frozenset())
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    end = {
        "code": code, "forged": supervisor.forged, "left": left, "hidden": hidden,
        "at": supervisor.running["main"].id or "", "cpu": round(sum(os.times()[:4]), 3),
    }  # fmt: skip
    supervisor.write("end", json.dumps(end).encode("ascii"))
