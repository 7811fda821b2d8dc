"""The process that owns a sandbox's mounts and starts its commands.

It lives in a mount namespace of its own (and, without root, a user namespace), so that everything that it mounts goes
with it, however it ends. It reads requests from a socket and ends, cleaning up, when the other end closes: when the
session is over or its owner was killed.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
from typing import Any

from sandbox.holder.files import copy_tree, give, read_file, write_file
from sandbox.holder.mounts import (
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    MS_REMOUNT,
    enter_namespaces,
    mount,
    umount,
)  # fmt: skip
from sandbox.holder.wire import HEADER, receive, reply

# How often a running command's disk is looked at and its owner is checked to be alive.
POLL_MILLISECONDS = 50
# The kernel ends a whole process tree within milliseconds; a machine that swaps may need longer.
END_SECONDS = 10.0


class Holder:
    """Mounts of one sandbox, below one folder: `base` (the tree), `disk` (what is written), `src` (both together)."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.stage = ""
        self.owner: tuple[int, int] | None = None
        self.source: str | None = None
        self.disk_bytes = 0
        self.overlay = False
        self.groups: list[str] = []

    def setup(self, request: dict[str, Any]) -> dict[str, Any]:
        """Mount everything that lasts as long as the session."""
        self.stage, self.source, self.disk_bytes = request["stage"], request["source"], request["disk_bytes"]
        self.owner = (request["uid"], request["uid"]) if os.getuid() == 0 and request["uid"] else None
        self.groups = request["groups"]
        self.overlay = request["overlay"]
        enter_namespaces()
        mount("tmpfs", self.stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
        os.chdir(self.stage)
        for name in ("base", "disk", "src", "binds", "etc"):
            os.mkdir(name)
        for name, text in request["etc"].items():
            write_file("etc", name, text.encode(), None)
        for number, (host, writable) in enumerate(request["binds"]):
            if writable and self.owner and os.stat(host).st_uid != self.owner[0]:
                give(host, self.owner)
            target = f"binds/{number}"
            if os.path.isdir(host):
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
            mount(host, target, "", MS_BIND | MS_REC)
        if self.source:
            self._mount_base(self.source)
        self._mount_disk()
        return {"overlay": self.overlay}

    def _mount_base(self, source: str) -> None:
        if self.owner is None:
            mount(source, "base", "", MS_BIND | MS_REC)
        elif self.overlay:
            mount("tmpfs", "base", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
            os.chown("base", *self.owner)
            copy_tree(source, "base", self.owner)
        else:
            mount(source, "base", "", MS_BIND | MS_REC)

    def _mount_disk(self) -> None:
        """Mount what commands write to, with its limit, and the tree over it."""
        mount("tmpfs", "disk", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=755,size={self.disk_bytes}")
        for name in ("upper", "work", "tmp", "shm", "in"):
            os.mkdir(f"disk/{name}")
            if self.owner:
                os.chown(f"disk/{name}", *self.owner)
        os.chmod("disk/tmp", 0o1777)  # noqa: S103 - as on every system
        os.chmod("disk/shm", 0o1777)  # noqa: S103 - as on every system
        if self.source and self.overlay:
            try:
                options = "lowerdir=base,upperdir=disk/upper,workdir=disk/work"
                mount("overlay", "src", "overlay", MS_NOSUID | MS_NODEV, options + ("" if self.owner else ",userxattr"))
                return
            except OSError:
                self.overlay = False
        if self.source:
            copy_tree("base", "disk/upper", self.owner)
        mount("disk/upper", "src", "", MS_BIND)

    def reset(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget everything that was written."""
        del request
        umount("src")
        umount("disk")
        self._mount_disk()
        return {}

    def limit_disk(self, size: int) -> None:
        """Give the disk another limit; never below what is on it."""
        if size != self.disk_bytes:
            state = os.statvfs("disk")
            size = max(size, (state.f_blocks - state.f_bfree) * state.f_frsize)
            mount("tmpfs", "disk", "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, f"size={size}")
            self.disk_bytes = size

    def put(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a file that follows the request."""
        data = receive(self.connection, request["size"])
        write_file(request["root"], request["path"], data, self.owner)
        return {}

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a file behind the answer."""
        data = read_file(request["root"], request["path"], request["max_bytes"])
        reply(self.connection, {"size": -1 if data is None else len(data)})
        self.connection.sendall(data or b"")
        return {"sent": True}

    def exec(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Run a command to its end, or until a request to end it comes or the owner is gone."""
        self.limit_disk(request["disk_bytes"])
        if request["script"]:
            write_file("etc", "command", os.fsencode(request["script"]), None)
        output, errors, filters = (*descriptors, -1)[:3]
        status, status_in = os.pipe()
        started = os.fork()
        if started == 0:
            try:
                become(request, output, errors, {status_in: "{status}", filters: "{filters}"}, self.owner)
            except BaseException as error:  # noqa: BLE001 - a forked child must never return
                os.write(errors, f"sandbox: {error}\n".encode())
            os._exit(1)
        for descriptor in (*descriptors, status_in):
            os.close(descriptor)
        killed, full = self._watch(started, status)
        _, code, usage = os.wait4(started, 0)
        report = finish(status, request["kill"])
        return {
            "returncode": os.waitstatus_to_exitcode(code), "reported": report.get("exit-code"), "killed": killed,
            "disk_full": full or self._is_full(), "cpu_seconds": usage.ru_utime + usage.ru_stime,
        }  # fmt: skip

    def _is_full(self) -> bool:
        state = os.statvfs("disk")
        return state.f_bavail == 0 or state.f_favail == 0

    def _watch(self, process: int, status: int) -> tuple[bool, bool]:
        """Wait for the process; return whether it was killed and whether the disk was seen to be full."""
        del status
        ended, killed, full = os.pidfd_open(process), False, False
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(self.connection, select.POLLIN)
        while True:
            ready = [number for number, _ in poll.poll(POLL_MILLISECONDS)]
            full = full or self._is_full()
            if ended in ready:
                os.close(ended)
                return killed, full
            if not killed and self.connection.fileno() in ready:
                os.kill(process, signal.SIGKILL)
                killed = True
                poll.unregister(self.connection)

    def clean(self) -> None:
        """Remove what does not go with the mount namespace."""
        for folder in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if self.stage:
            os.chdir("/")
            umount(self.stage, MNT_DETACH)
            os.rmdir(self.stage)


def become(
    request: dict[str, Any], output: int, errors: int, passed: dict[int, str], owner: tuple[int, int] | None
) -> None:
    """Turn this forked process into the command."""
    for file in request["join"]:
        at = os.open(file, os.O_WRONLY)
        os.write(at, b"0")
        os.close(at)
    for name, value in request["rlimits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (limit, limit))
    if owner:
        os.setgroups([])
        os.setgid(owner[1])
        os.setuid(owner[0])
    silence = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((silence, 0), (output, 1), (errors, 2)):
        os.dup2(descriptor, number)
    names = {}
    for descriptor, name in passed.items():
        if descriptor >= 0:
            os.set_inheritable(descriptor, True)
            names[name] = str(descriptor)
    argv = [names.get(argument, argument) for argument in request["options"]]
    os.execv(argv[0], [os.fsencode(argument) for argument in argv + request["argv"]])  # noqa: S606 - meant


def finish(status: int, kill: list[str]) -> dict[str, Any]:
    """Wait until the whole process tree is gone; return what the sandbox reported about the command."""
    report: dict[str, Any] = {}
    with os.fdopen(status, "rb") as stream:
        for line in stream:
            with contextlib.suppress(ValueError):
                report.update(json.loads(line))
    with contextlib.suppress(OSError, KeyError):
        first = os.pidfd_open(report["child-pid"])
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(first, signal.SIGKILL)
        select.select([first], [], [], END_SECONDS)
        os.close(first)
    del kill
    return report


def serve(holder: Holder) -> None:
    """Answer requests until the other end closes."""
    connection = holder.connection
    while True:
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
            if operation == "exec":
                answer = holder.exec(request, descriptors)
            else:
                answer = {"setup": holder.setup, "reset": holder.reset, "put": holder.put, "read": holder.read}[
                    operation
                ](request)
        except OSError as error:
            answer = {"error": str(error)}
        if "sent" not in answer:
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
