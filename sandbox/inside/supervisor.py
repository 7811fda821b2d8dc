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
from collections.abc import Mapping
from typing import Any

from .processes import cpu_seconds, end_children, hide, kill, reap
from .wire import send_text, sign, unseal

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
        self.cpu: float | None = None
        self.wall = 0.0
        self.budget: tuple[float, float] = (0.0, 0.0)

    def begin(self, id_: str, budget: tuple[float, float]) -> None:
        """Note that a test begins."""
        self.id = id_
        self.cpu = None
        self.wall = time.monotonic()
        self.budget = budget

    def overdue(self) -> bool:
        """Tell whether the test has used up its processor time, or so much time that it must be waiting forever.

        Its processor time counts from the first time that this is asked: most tests are over before.
        """
        if self.id is None:
            return False
        if self.cpu is None:
            self.cpu = cpu_seconds(self.pid) or 0.0
        waited = time.monotonic() - self.wall
        return waited > self.budget[1] or (
            waited > self.budget[0] and (cpu_seconds(self.pid) or 0.0) - self.cpu > self.budget[0]
        )


class Supervisor:
    """Reads the runner's records, checks them, ends what hangs."""

    def __init__(self, job: dict[str, Any], key: bytes) -> None:
        self.job = job
        self.key = key
        self.inner = os.urandom(32)
        self.number = 0
        self.forged = 0
        self.expected: dict[str, int] = {}
        self.running: dict[str, Running] = {}
        self.gone: int | None = None
        self.ended: dict[int, int] = {}
        self.default: tuple[float, float] = (job["budget"][0], job["budget"][1])
        self.budgets = dict(zip(job.get("tests", ()), job.get("budgets", ())))  # noqa: B905 - before Python 3.10

    def write(self, kind: str, text: bytes) -> None:
        """Write a signed line to standard output."""
        data = sign(self.key, f"out {self.number} {kind} ".encode("ascii") + text) + b"\n"
        self.number += 1
        while data:
            data = data[os.write(1, data) :]

    def start(self, folder: str, variables: Mapping[str, str] | None = None) -> socket.socket:
        """Start the runner, with more environment variables; return our end of its channel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        boot = _BOOT.format(package=__name__.split(".")[0])
        pid = os.fork()
        if pid == 0:
            theirs.set_inheritable(True)
            os.dup2(2, 1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            command = [sys.executable, "-c", boot, str(theirs.fileno()), folder]
            os.execve(sys.executable, command, {**os.environ, **(variables or {})})  # noqa: S606 - meant
        theirs.close()
        self.hand(ours, pid)
        return ours

    def hand(self, channel: socket.socket, pid: int) -> None:
        """Give the job to the runner, or to the resident that forks it."""
        channel.setblocking(True)
        self.running["main"] = Running(pid)
        send_text(channel, json.dumps({"job": self.job, "key": self.inner.hex()}).encode())

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
        elif kind == "gone":
            self.gone = message.record()["status"]
        if kind not in ("job", "start", "over", "gone"):
            self.write("pass", message.signed)

    def check(self) -> None:
        """Kill every process whose test is overdue."""
        for stream, running in self.running.items():
            if running.overdue():
                self.write("hang", json.dumps({"s": stream, "id": running.id}).encode("ascii"))
                running.id = None
                kill(running.pid)

    def watch(self, channel: socket.socket) -> int:
        """Pass records on until the runner has ended; return its wait status.

        `gone` has it when the runner was a fork of a resident, which lives on.
        """
        channel.setblocking(False)
        runner, status, checked = self.running["main"].pid, None, 0.0
        while True:
            select.select([channel], [], [], POLL_SECONDS)
            received = self._drain(channel)
            if self.gone is not None:
                return self.gone
            if status is not None and not received:
                return status
            self.ended.update(reap())
            status = self.ended.get(runner)
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

    def finish(self, status: int, left: int, cpu: float, *, hidden: bool) -> None:
        """Tell how the runner ended, what it left running and what it cost."""
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        end = {
            "code": code, "forged": self.forged, "left": left, "hidden": hidden,
            "at": self.running["main"].id or "", "cpu": round(cpu, 3),
        }  # fmt: skip
        self.write("end", json.dumps(end).encode("ascii"))


def main(folder: str, job_path: str, key_path: str) -> None:
    """Run the job of a file; the key's file is removed before anything else can read it."""
    with open(key_path, encoding="ascii") as file:
        key = bytes.fromhex(file.read())
    os.unlink(key_path)
    hidden = hide()
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    supervisor = Supervisor(job, key)
    channel = supervisor.start(folder)
    status = supervisor.watch(channel)
    left = end_children(frozenset())
    supervisor.finish(status, left, sum(os.times()[:4]), hidden=hidden)
