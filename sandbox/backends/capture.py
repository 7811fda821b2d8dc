"""Reads what a command prints, keeping the end of it, until its holder says that it is over."""

import os
import selectors
import time
from collections import deque
from dataclasses import dataclass, field

# A command that prints so many times its limit is ended: reading it would cost the machine more than the command.
FLOOD = 64
# What is in a pipe when its last writer is gone; 1 MiB is the most that Linux lets an unprivileged process buffer.
_PIPE = 1 << 20


@dataclass(slots=True)
class Tail:
    """The last bytes of a stream."""

    limit: int
    chunks: deque[bytes] = field(default_factory=deque)
    kept: int = 0
    total: int = 0

    def forget(self) -> None:
        """Begin anew."""
        self.chunks.clear()
        self.kept = self.total = 0

    def ends(self, end: bytes) -> bool:
        """Tell whether these are the last bytes."""
        last = b""
        for chunk in reversed(self.chunks):
            last = chunk + last
            if len(last) >= len(end):
                break
        return last.endswith(end)

    def add(self, data: bytes) -> None:
        """Append, and forget from the front what is above the limit."""
        self.chunks.append(data)
        self.kept += len(data)
        self.total += len(data)
        while self.kept - len(self.chunks[0]) >= self.limit:
            self.kept -= len(self.chunks.popleft())

    def value(self) -> bytes:
        """Return the last bytes."""
        data = b"".join(self.chunks)
        return data[max(0, len(data) - self.limit) :]

    @property
    def truncated(self) -> bool:
        """Tell whether bytes were dropped."""
        return self.total > self.limit


class Capture:
    """Two pipes and their tails."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.tails: list[Tail] = [Tail(limit), Tail(limit)]
        self.readers: list[int] = []
        self.writers: list[int] = []
        for _ in self.tails:
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            self.readers.append(reader)
            self.writers.append(writer)

    def close_writers(self) -> None:
        """Close this process's copies of the writing ends."""
        while self.writers:
            os.close(self.writers.pop())

    def close(self) -> None:
        """Close everything."""
        self.close_writers()
        while self.readers:
            os.close(self.readers.pop())

    @property
    def flooded(self) -> bool:
        """Tell whether so much was printed that the command has to be ended."""
        return sum(tail.total for tail in self.tails) > FLOOD * self.limit

    def wait(self, control: int, seconds: float, end: bytes = b"") -> str:
        """Read until `control` can be read (`done`), time is over (`timeout`) or too much was printed (`flood`).

        With an `end` also until the output ends with it (`answered`).
        """
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(control, selectors.EVENT_READ, None)
            for reader, tail in zip(self.readers, self.tails, strict=True):
                selector.register(reader, selectors.EVENT_READ, tail)
            while (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    if key.data is None:
                        return "done"
                    if not self._read(key.fd, key.data):
                        selector.unregister(key.fd)
                if end and self.tails[0].ends(end):
                    return "answered"
                if self.flooded:
                    return "flood"
        return "timeout"

    def drain(self) -> None:
        """Read what is left in the pipes after the command ended."""
        for reader, tail in zip(self.readers, self.tails, strict=True):
            end = tail.total + _PIPE
            while tail.total < end and self._read(reader, tail):
                pass

    @staticmethod
    def _read(reader: int, tail: Tail) -> bool:
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            tail.add(data)
        return bool(data)
