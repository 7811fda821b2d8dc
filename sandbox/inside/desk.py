"""A supervisor that takes one job after the other from its standard input, for a session of many.

    python -I -S -c 'import sys; sys.path.insert(0, FOLDER); from PACKAGE.desk import main; main(FOLDER)'

Jobs run in forks of a resident, which has loaded pytest once; a job with variables of its own, a hash seed among them,
gets an interpreter of its own. Whatever a job leaves running is ended before its end is told.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import suppress
from typing import Any

from .processes import adopt_orphans, cpu_seconds, end_children, hide
from .supervisor import Supervisor

SIZE = struct.Struct("!Q")
"""Stands before each request: how many bytes of JSON it has."""


class Desk:
    """Carries out requests: `job`, `key`, `variables`, and `end`, the line behind the answer."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.hidden = hide()
        self.resident: int | None = None
        self.channel: socket.socket | None = None
        adopt_orphans()

    def spent(self) -> float:
        """Return the processor time of this process, its ended children and the resident."""
        living = None if self.resident is None else cpu_seconds(self.resident)
        return sum(os.times()[:4]) + (living or 0.0)

    def carry_out(self, request: dict[str, Any]) -> None:
        """Run a job to its end, and tell it."""
        before = self.spent()
        supervisor = Supervisor(request["job"], bytes.fromhex(request["key"]))
        if request["variables"]:
            channel = supervisor.start(self.folder, request["variables"])
            status = supervisor.watch(channel)
            channel.close()
        else:
            status = self.in_resident(supervisor)
        if self.resident in supervisor.ended:
            self.resident = None
        left = end_children(frozenset() if self.resident is None else frozenset({self.resident}))
        supervisor.finish(status, left, self.spent() - before, hidden=self.hidden)
        os.write(1, (request["end"] + "\n").encode("ascii"))

    def in_resident(self, supervisor: Supervisor) -> int:
        """Run a job in a fork of the resident; return its wait status, or the resident's when that ended instead."""
        if self.resident is None or self.channel is None:
            args = {"mode": "reside", "args": supervisor.job["args"], "budget": supervisor.job["budget"]}
            first = Supervisor(args, b"")
            self.channel = first.start(self.folder)
            self.resident = first.running["main"].pid
        with suppress(OSError):  # it has ended, as will be seen
            supervisor.hand(self.channel, self.resident)
        return supervisor.watch(self.channel)


def main(folder: str) -> None:
    """Carry out requests until no more come."""
    desk = Desk(folder)
    with open(0, "rb", closefd=False) as requests:
        while len(head := requests.read(SIZE.size)) == SIZE.size:
            desk.carry_out(json.loads(requests.read(SIZE.unpack(head)[0])))
    end_children(frozenset())
