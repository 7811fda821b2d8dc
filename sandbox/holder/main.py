"""The process that owns a sandbox's mounts and starts its commands.

It lives in a mount namespace of its own (and, without root, a user namespace), so that everything that it mounts goes
with it, however it ends. It reads requests from a socket and ends, cleaning up, when the other end closes: when the
session is over or its owner was killed.
"""

import contextlib
import json
import os
import select
import signal
import socket
from typing import Any

from sandbox.holder.commands import become, cpu_seconds_of, end_children, report_of
from sandbox.holder.files import read_file, write_file
from sandbox.holder.mounts import adopt_orphans
from sandbox.holder.places import MountedPlace, PlainPlace
from sandbox.holder.wire import HEADER, receive, reply

# How often a running command's disk is looked at, and whether its owner is alive.
POLL_MILLISECONDS = 50
# bubblewrap's own exit code when it could not start the command.
_NOT_STARTED = 1


class Holder:
    """Carries out the requests of one session."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.owner_process = os.getppid()
        self.place: MountedPlace | PlainPlace | None = None
        self.groups: list[str] = []

    def setup(self, request: dict[str, Any]) -> dict[str, Any]:
        """Prepare everything that lasts as long as the session."""
        self.groups = request["groups"]
        self.place = MountedPlace(request) if request["mounts"] else PlainPlace(request)
        adopt_orphans()
        self.place.prepare(request)
        return {"overlay": isinstance(self.place, MountedPlace) and self.place.overlay}

    def carry_out(self, operation: str, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        """Carry out a request; null when the answer was sent already."""
        if operation == "setup":
            return self.setup(request)
        if self.place is None:
            raise OSError("nothing was set up")
        if operation == "reset":
            self.place.reset()
        elif operation == "put":
            data = receive(self.connection, request["size"])
            write_file(request["root"], request["path"], data, self.place.owner)
        elif operation == "read":
            found = read_file(request["root"], request["path"], request["max_bytes"])
            reply(self.connection, {"size": -1 if found is None else len(found)})
            self.connection.sendall(found or b"")
            return None
        elif operation == "exec":
            return self.run(self.place, request, descriptors)
        return {}

    def run(self, place: MountedPlace | PlainPlace, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Run a command to its end, or until a request to end it comes or the owner is gone."""
        place.limit_disk(request["disk_bytes"])
        if request["script"]:
            write_file("etc", "command", os.fsencode(request["script"]), None)
        if isinstance(place, PlainPlace):
            os.chdir("src")
        places = 3 if request["input"] else 2
        streams, filters = descriptors[:places], descriptors[places:]
        status, status_in = os.pipe()
        started = os.fork()
        if started == 0:
            try:
                become(request, streams, {status_in: "{status}", **dict.fromkeys(filters, "{filters}")}, place.owner)
            except BaseException as error:  # noqa: BLE001 - a forked child must never return
                os.write(streams[1], f"sandbox: {error}\n".encode())
            os._exit(_NOT_STARTED)
        os.chdir(place.stage)
        for descriptor in (*descriptors, status_in):
            os.close(descriptor)
        killed, full, spent = self._watch(started, place)
        _, code, usage = os.wait4(started, 0)
        report = report_of(status)
        end_children()
        returncode = os.waitstatus_to_exitcode(code)
        return {
            "returncode": 128 - returncode if returncode < 0 else returncode, "killed": killed,
            "disk_full": full or place.is_full(), "cpu_seconds": max(spent, usage.ru_utime + usage.ru_stime),
            "started": isinstance(place, PlainPlace) or killed or "exit-code" in report or returncode != _NOT_STARTED,
        }  # fmt: skip

    def _watch(self, process: int, place: MountedPlace | PlainPlace) -> tuple[bool, bool, float]:
        """Wait for the process; return whether it was killed, whether the disk was seen to be full, and, when it was
        killed, its processor time, since nobody waits for descendants that are killed.
        """
        ended, killed, full, spent = os.pidfd_open(process), False, False, 0.0
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(self.connection, select.POLLIN)
        while True:
            ready = [number for number, _ in poll.poll(POLL_MILLISECONDS)]
            full = full or place.is_full()
            if ended in ready:
                os.close(ended)
                return killed, full, spent
            if not killed and (self.connection.fileno() in ready or os.getppid() != self.owner_process):
                spent = cpu_seconds_of(process)
                os.kill(process, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):  # it had not become a group yet
                    os.killpg(process, signal.SIGKILL)
                killed = True
                poll.unregister(self.connection)

    def clean(self) -> None:
        """Remove what does not go with this process."""
        end_children()
        for folder in self.groups:
            with contextlib.suppress(OSError):  # the owner was first
                os.rmdir(folder)
        if self.place is not None:
            self.place.clean()


def serve(holder: Holder) -> None:
    """Answer requests until the other end closes."""
    connection = holder.connection
    while holder.owner_process == os.getppid():
        if not select.select([connection], [], [], 1.0)[0]:
            continue
        header, descriptors, _, _ = socket.recv_fds(connection, HEADER.size, 8)
        for descriptor in descriptors:  # recv_fds of Python before 3.12 ignores MSG_CMSG_CLOEXEC
            os.set_inheritable(descriptor, False)
        if len(header) < HEADER.size:
            return
        request = json.loads(receive(connection, HEADER.unpack(header)[0]))
        operation = request.pop("op")
        if operation == "kill":  # its command had just ended
            continue
        try:
            answer = holder.carry_out(operation, request, descriptors)
        except OSError as error:
            answer = {"error": str(error)}
        if answer is not None:
            reply(connection, answer)


def main(descriptor: int) -> None:
    """Serve the socket of that descriptor."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the owner decides, by closing the socket
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    holder = Holder(connection)
    try:
        with contextlib.suppress(EOFError, ConnectionError):
            serve(holder)
    finally:
        holder.clean()
