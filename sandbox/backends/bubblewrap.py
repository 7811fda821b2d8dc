"""The default backend: bubblewrap, which needs neither a daemon nor root where user namespaces are allowed."""

import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.backends.cgroups import find_cgroups
from sandbox.backends.held import ALONE, SHELL, HeldSession, check_binds, remove_leftovers
from sandbox.backends.probing import probe_limits, unusable
from sandbox.backends.programs import find_bubblewrap, version_of
from sandbox.backends.seccomp import build_filter
from sandbox.protocol import HANDED_IN, SOURCE, Capabilities, Limits, Network, SandboxSpec
from schemas.errors import SandboxError

# The user inside. Any number that is not root; 1000 is the first user of most systems.
INSIDE_ID = 1000
# Root becomes this user before anything runs: in the range of systemd's dynamic users, which belong to no account
# (systemd, "Users, Groups, UIDs and GIDs on systemd Systems": 61184 to 65519).
UNPRIVILEGED_ID = 61_998
HOSTNAME = "postquem"
_ETC = {
    "passwd": f"root:x:0:0:root:/:/bin/sh\nuser:x:{INSIDE_ID}:{INSIDE_ID}::/tmp:/bin/sh\n",
    "group": f"root:x:0:\nuser:x:{INSIDE_ID}:\n",
    "hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {HOSTNAME}\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# What programs need of the host's /etc and what holds no secret: the linker's cache, Debian's links to compilers.
_HOST_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/mime.types")
_HOST_ETC_INDEX = ("/etc/resolv.conf", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls", "/etc/ca-certificates")
_USR_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# bubblewrap takes 9,000 arguments (its MAX_ARGS); longer commands stand in a script.
_MANY_ARGUMENTS = 4_000
_SCRIPT = "/etc/command"
# The first version with --disable-userns.
_DISABLES_USERNS = (0, 8)
HINT = (
    "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0), give root CAP_SYS_ADMIN (a container that is started with it) or "
    "start as another user, or use backend docker"
)


class BubblewrapSession(HeldSession):
    """An open sandbox."""

    def __init__(self, spec: SandboxSpec, backend: "BubblewrapBackend") -> None:
        super().__init__(spec)
        self.backend = backend
        # Without the right to look into a folder nobody but root can name what is in it: root's holder binds first.
        self.staged = os.getuid() == 0

    def setup(self) -> dict[str, Any]:
        """Return what the holder has to prepare."""
        binds = [(str(bind.host.resolve()), bind.writable) for bind in self.spec.binds] if self.staged else []
        return {"mounts": True, "overlay": True, "etc": _ETC, "binds": binds, "uid": UNPRIVILEGED_ID}

    def own_rlimits(self, limits: Limits) -> dict[str, int]:
        """Limit the processes of the sandbox's user where no control group does."""
        return {"RLIMIT_NPROC": limits.pids} if self.group.cgroups.version == "none" else {}

    def command(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, network: Network) -> dict[str, Any]:
        """Return how the holder starts a command."""
        del limits
        script = f"exec {shlex.join(argv)}\n" if len(argv) > _MANY_ARGUMENTS else ""
        return {
            "options": self._options(env, network, script=bool(script)), "env": {}, "script": script,
            "argv": ["/bin/sh", _SCRIPT] if script else [*SHELL, *argv],
        }  # fmt: skip

    @contextmanager
    def filters(self) -> Iterator[list[int]]:
        """Yield the open filter of system calls, where there is one for this machine."""
        program = build_filter()
        if program is None:
            yield []
            return
        file = os.memfd_create("filters")
        try:
            os.write(file, program)
            os.lseek(file, 0, os.SEEK_SET)
            yield [file]
        finally:
            os.close(file)

    def _options(self, env: Mapping[str, str], network: Network, *, script: bool) -> list[str]:
        stage = self.stage
        options = [
            self.backend.program, "--unshare-all", "--unshare-user", "--uid", str(INSIDE_ID), "--gid", str(INSIDE_ID),
            "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", HOSTNAME,
            "--clearenv", "--json-status-fd", "{status}",
        ]  # fmt: skip
        if self.backend.version >= _DISABLES_USERNS:
            options.append("--disable-userns")
        if build_filter() is not None:
            options += ["--seccomp", "{filters}"]
        if network is Network.INDEX:
            options.append("--share-net")
        options += system_binds(network)
        for name in (*_ETC, "command") if script else _ETC:
            options += ["--ro-bind", f"{stage}/etc/{name}", f"/etc/{name}"]
        options += ["--proc", "/proc", "--dev", "/dev", "--bind", f"{stage}/disk/shm", "/dev/shm"]  # noqa: S108 - inside
        options += ["--remount-ro", "/dev"]
        options += ["--bind", f"{stage}/disk/tmp", "/tmp", "--bind", f"{stage}/src", SOURCE]  # noqa: S108 - inside
        options += ["--ro-bind", f"{stage}/disk/in", HANDED_IN]
        for number, bind in enumerate(self.spec.binds):
            host = f"{stage}/binds/{number}" if self.staged else str(bind.host.resolve())
            options += ["--bind" if bind.writable else "--ro-bind", host, bind.inside]
        options += ["--remount-ro", "/", "--chdir", SOURCE]
        for name, value in env.items():
            options += ["--setenv", name, value]
        return [*options, "--"]


def system_binds(network: Network) -> list[str]:
    """Return bubblewrap's options for the part of the host that programs need: never the root, no user's files."""
    options = ["--ro-bind", "/usr", "/usr"]
    for link in _USR_LINKS:
        if Path(link).is_symlink():
            options += ["--symlink", str(Path(link).readlink()), link]
        else:
            options += ["--ro-bind-try", link, link]
    for path in _HOST_ETC + (_HOST_ETC_INDEX if network is Network.INDEX else ()):
        options += ["--ro-bind-try", path, path]
    return options


class BubblewrapBackend:
    """Sandboxes by bubblewrap."""

    name = "bubblewrap"

    def __init__(self) -> None:
        self.program = find_bubblewrap()
        self.version = version_of(self.program)

    def probe(self) -> Capabilities:
        """Try what this machine can do (Backend.probe)."""
        groups = find_cgroups()
        version = ".".join(map(str, self.version))
        missing = dict(ALONE) if groups.version == "none" else {}
        try:
            held, failed, seconds = probe_limits(self.open, frozenset(missing))
        except (SandboxError, OSError) as error:
            return unusable(self.name, f"bubblewrap cannot make a sandbox here: {error}; {HINT}", version)
        missing = {name: missing.get(name, "was seen not to hold") for name in failed}
        if build_filter() is None:
            missing["system_calls"] = f"no filter of system calls is written for {platform.machine()}"
        if self.version < _DISABLES_USERNS:
            missing["user_namespaces"] = "only the filter of system calls forbids new ones; bubblewrap 0.8 would too"
        return Capabilities(
            backend=self.name, usable=True, version=version, enforced=held, missing=missing, cgroup=groups.version,
            start_seconds=seconds,
        )  # fmt: skip

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[BubblewrapSession]:
        """Open a sandbox (Backend.open)."""
        check_binds(spec.binds)
        remove_leftovers()
        session = BubblewrapSession(spec, self)
        try:
            session.start()
            yield session
        finally:
            session.close()
