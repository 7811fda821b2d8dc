"""Commands that answer requests: one process for many jobs, which would each need a start of their own."""

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress

from sandbox.backends.capture import Capture
from sandbox.backends.cgroups import Group
from sandbox.inside.desk import SIZE
from sandbox.protocol import Limits
from schemas.execution import ExecResult, KilledBy


class Talk:
    """A running command; a backend's session starts it and ends it (HeldSession.talk)."""

    def __init__(self, group: Group, control: int, limits: Limits, handed: Callable[[bytes], bytes]) -> None:
        self.group = group
        self.control = control
        self.handed = handed
        self.capture = Capture(limits.output_bytes)
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)

    @property
    def streams(self) -> list[int]:
        """Return what the command gets: output, errors and input."""
        return [*self.capture.writers, self.reader]

    def started(self) -> None:
        """Close this process's copies of them."""
        self.capture.close_writers()
        os.close(self.reader)
        self.reader = -1

    def close(self) -> None:
        """Close everything; the command is ended by its session."""
        self.capture.close()
        os.close(self.writer)
        if self.reader >= 0:
            os.close(self.reader)

    def ask(self, request: bytes, end: bytes, limits: Limits) -> ExecResult | None:
        """Send a request and return what was printed up to and with `end`, and what that took.

        Of the limits only elapsed time and share of the processor are this request's own. None when there is no such
        answer: the command has ended, takes too long or prints too much. It is of no use then.
        """
        for tail in self.capture.tails:
            tail.forget()
        self.group.share(limits.cpus)
        before = self.group.usage()
        started = time.monotonic()
        text = self.handed(request)
        if not self._send(SIZE.pack(len(text)) + text, started + limits.wall_seconds):
            return None
        if self.capture.wait(self.control, started + limits.wall_seconds - time.monotonic(), end) != "answered":
            return None
        wall = time.monotonic() - started
        self.capture.drain()
        used = self.group.usage()
        causes = {
            KilledBy.OOM: used.out_of_memory and not before.out_of_memory,
            KilledBy.PIDS: used.out_of_pids and not before.out_of_pids,
        }
        out, errors = self.capture.tails
        return ExecResult(
            returncode=0, stdout=out.value(), stderr=errors.value(), wall_seconds=wall,
            cpu_seconds=(used.cpu_seconds or 0.0) - (before.cpu_seconds or 0.0), memory_bytes=used.memory_bytes,
            truncated=out.truncated or errors.truncated,
            killed_by=next((cause for cause, hit in causes.items() if hit), KilledBy.NONE),
        )  # fmt: skip

    def _send(self, data: bytes, deadline: float) -> bool:
        """Write a request; False when nobody reads it in time."""
        view = memoryview(data)
        with suppress(BrokenPipeError):
            while view and (left := deadline - time.monotonic()) > 0:
                if select.select([], [self.writer], [], left)[1]:
                    view = view[os.write(self.writer, view) :]
        return not view
