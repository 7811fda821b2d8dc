"""The backend `docker`: containers of any engine with Docker's interface on this machine, one for each session.

Commands run as one unprivileged user in a container without capabilities and network, on a read-only root; `/w/src`,
`/tmp` and `/dev/shm` are file systems in memory, each limited to the session's disk limit, together by its memory.
Commands for which the package index is reachable run in a second container with the host's network; they see the
original tree, and only what they write to writable binds stays.
"""

import contextlib
import os
import re
import shutil
import socket
import stat
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.backends.bubblewrap import UNPRIVILEGED_ID
from sandbox.backends.containers import Api, Container, settings
from sandbox.backends.held import check_binds, remove_leftovers, stages, writable_place
from sandbox.backends.owners import is_orphan, owned_name
from sandbox.backends.probing import probe_limits, unusable
from sandbox.backends.seccomp import build_profile
from sandbox.holder.files import copy_tree, give
from sandbox.protocol import HANDED_IN, SOURCE, Capabilities, Limits, Network, SandboxSpec
from schemas.errors import ConfigError, SandboxError
from schemas.execution import ExecResult, KilledBy

LABEL = "postquem.sandbox"
# Where the container sees what it copies from.
_ORIGINAL, _PUT = "/run/postquem/original", "/run/postquem/put"
_PREPARE = f"""
chmod -R u+rwx {SOURCE} /tmp /dev/shm 2>/dev/null
find {SOURCE} /tmp /dev/shm -mindepth 1 -delete && if [ -d {_ORIGINAL} ]; then cp -a {_ORIGINAL}/. {SOURCE}/; fi
"""
_PLACE = f"""
number=0
for target in "$@"; do
  folder=${{target%/*}}; mkdir -p "$folder" || exit 1
  [ "$(cd -P "$folder" && pwd -P)" = "$folder" ] || {{ echo "$folder leads through a symbolic link" >&2; exit 1; }}
  mode=644; [ -f "$target" ] && [ ! -L "$target" ] && mode=$(stat -c %a "$target")
  rm -f "$target" && cat {_PUT}/$number > "$target" && chmod "$mode" "$target" || exit 1
  number=$((number + 1))
done
"""
_READ = """
[ -f "$1" ] && [ ! -L "$1" ] && [ "$(cd -P "${1%/*}" && pwd -P)" = "${1%/*}" ] || exit 1
head -c "$2" "$1"
"""
_ETC = {
    "passwd": "root:x:0:0:root:/:/bin/sh\nuser:x:{0}:{1}::/tmp:/bin/sh\n",
    "group": "root:x:0:\nuser:x:{1}:\n",
}
DOCKER_SOCKET = "/var/run/docker.sock"
_INSTALL = "start a Docker-compatible engine on this machine, or say where it listens by DOCKER_HOST"
_DIGEST = re.compile(r"(?:.+@)?sha256:[0-9a-f]{64}|[0-9a-f]{12,64}")


class DockerSession:
    """An open sandbox."""

    def __init__(self, spec: SandboxSpec, engine: "DockerBackend") -> None:
        self.spec = spec
        self.engine = engine
        # Root's engine gives files of the session to a user that belongs to no account; other users work as themselves.
        self.user = (UNPRIVILEGED_ID, UNPRIVILEGED_ID) if os.getuid() == 0 else (os.getuid(), os.getgid())
        self.name = owned_name()
        self.stage = stages() / self.name
        self.containers: dict[Network, Container] = {}

    def start(self) -> None:
        """Start the container and copy the tree into it."""
        for folder in (self.stage, self.stage / "in", self.stage / "put"):
            folder.mkdir(mode=0o755)
        entries = {
            "passwd": "root:x:0:0:root:/:/bin/sh\nuser:x:{0}:{1}::/tmp:/bin/sh\n",
            "group": "root:x:0:\nuser:x:{1}:\n",
        }
        for name, text in entries.items():
            (self.stage / name).write_text(text.format(*self.user), encoding="utf-8")
        for bind in self.spec.binds:
            if bind.writable and os.getuid() == 0 and bind.host.stat().st_uid != self.user[0]:
                give(str(bind.host.resolve()), self.user)
        if self.spec.source and os.getuid() == 0 and not readable_by_all(self.spec.source):
            original = self.stage / "original"
            original.mkdir()
            os.chown(original, *self.user)
            copy_tree(str(self.spec.source.resolve()), str(original), self.user)
        self._container(Network.OFF)

    def _container(self, network: Network) -> Container:
        """Return the container for commands with or without a network, started when it is first needed."""
        if network not in self.containers:
            container = Container(
                self.engine.api, self.engine.address, f"{self.name}-{network.value}", self.spec.limits
            )
            self.containers[network] = container
            mode = "none" if network is Network.OFF else "host"
            user = ":".join(map(str, self.user))
            host = settings(self.spec.limits, user, mode, self.engine.profile) | {"binds": self._binds(network)}
            container.start(self.engine.image, user, {LABEL: container.name}, host)
            self._ours(container, _PREPARE)
            container.finish()
        return self.containers[network]

    def _binds(self, network: Network) -> list[str]:
        places = {self.stage / "in": HANDED_IN, self.stage / "put": _PUT}
        places |= {self.stage / name: f"/etc/{name}" for name in ("passwd", "group")}
        if self.spec.source:
            copied = self.stage / "original"
            places[copied if copied.exists() else self.spec.source.resolve()] = _ORIGINAL
        if network is Network.INDEX and Path("/etc/ssl/certs").exists():
            places[Path("/etc/ssl/certs")] = "/etc/ssl/certs"
        binds = [f"{host}:{inside}:ro" for host, inside in places.items()]
        return binds + [
            f"{bind.host.resolve()}:{bind.inside}:{'rw' if bind.writable else 'ro'}" for bind in self.spec.binds
        ]

    @staticmethod
    def _ours(container: Container, script: str, *arguments: str) -> None:
        finished = container.script(script, *arguments)
        if finished.returncode != 0:
            raise SandboxError(
                f"the sandbox failed: {finished.tails[1].value()[-600:].decode(errors='replace').strip()}"
            )

    def exec(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        network: Network = Network.OFF,
    ) -> ExecResult:
        """Run a command (Session.exec)."""
        limits = limits or self.spec.limits
        with _engine_errors():
            container = self._container(network)
            self._place(container, files or {})
            container.limit(limits)
            finished = container.run(argv, {**self.spec.env, **(env or {})}, limits)
            usage, full = container.finish()
        causes = {
            KilledBy.OOM: usage.out_of_memory,
            KilledBy.PIDS: usage.out_of_pids,
            KilledBy.DISK: full,
            KilledBy.OUTPUT: finished.ended == "flood",
            KilledBy.TIMEOUT: finished.ended == "timeout",
        }
        out, errors = finished.tails
        return ExecResult(
            returncode=finished.returncode, stdout=out.value(), stderr=errors.value(),
            wall_seconds=finished.wall_seconds, cpu_seconds=usage.cpu_seconds or 0.0, memory_bytes=usage.memory_bytes,
            truncated=out.truncated or errors.truncated,
            killed_by=next((cause for cause, hit in causes.items() if hit), KilledBy.NONE),
        )  # fmt: skip

    def _place(self, container: Container, files: Mapping[str, bytes]) -> None:
        targets: list[str] = []
        for path, data in files.items():
            folder, relative = writable_place(path)
            if ".." in Path(relative).parts:
                raise SandboxError(f"no file can be called {path}")
            if folder == "disk/in":
                place = self.stage / "in" / relative
                place.parent.mkdir(parents=True, exist_ok=True)
            else:
                place = self.stage / "put" / str(len(targets))
                targets.append(path)
            place.write_bytes(data)
        if targets:
            self._ours(container, _PLACE, *targets)

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file that commands left (Session.read)."""
        writable_place(path)
        with _engine_errors():
            finished = self._container(Network.OFF).script(_READ, path, str(max_bytes), output_bytes=max_bytes)
        return finished.tails[0].value() if finished.returncode == 0 else None

    def reset(self) -> None:
        """Drop everything that was written (Session.reset)."""
        for left in (self.stage / "in").iterdir():  # the folder itself is bound
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        with _engine_errors():
            self._ours(self._container(Network.OFF), _PREPARE)

    def close(self) -> None:
        """Remove the containers and the session's folder."""
        with _engine_errors():
            for container in self.containers.values():
                container.remove()
        shutil.rmtree(self.stage, ignore_errors=True)


def readable_by_all(folder: Path) -> bool:
    """Tell whether any user may read a tree, such as the one that commands run as."""
    for path, _, names in os.walk(folder):
        if Path(path).stat().st_mode & 0o005 != 0o005:
            return False
        files = ((Path(path) / name).lstat().st_mode for name in names)
        if any(stat.S_ISREG(mode) and not mode & stat.S_IROTH for mode in files):
            return False
    return True


@contextmanager
def _engine_errors() -> Iterator[None]:
    """Raise what the engine or the way to it failed at as an error of the sandbox."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"the container engine failed: {error}") from error


def connect() -> tuple[Api, str]:
    """Return the interface of an engine on this machine, and its address: DOCKER_HOST, Docker's socket or Podman's."""
    import docker
    from docker.errors import DockerException

    podman = [Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / "podman/podman.sock", Path("/run/podman/podman.sock")]
    addresses = [os.environ.get("DOCKER_HOST") or f"unix://{DOCKER_SOCKET}"]
    if "DOCKER_HOST" not in os.environ:
        addresses += [f"unix://{socket}" for socket in podman if socket.exists()]
    failures = []
    for address in addresses:
        if not address.startswith("unix://"):
            raise ConfigError(f"DOCKER_HOST is {address}: folders of this machine can be bound only by an engine on it")
        try:
            with socket.socket(socket.AF_UNIX) as trial:  # the SDK would leave its socket open
                trial.connect(address.removeprefix("unix://"))
            return docker.APIClient(base_url=address, version="auto"), address
        except (OSError, DockerException) as error:
            failures.append(f"{address}: {error}")
    raise ConfigError(f"no container engine answers ({'; '.join(failures)}); {_INSTALL}")


class DockerBackend:
    """Sandboxes by containers."""

    name = "docker"

    def __init__(self, image: str) -> None:
        if not _DIGEST.fullmatch(image):
            raise ConfigError(
                f"real_code.image {f'is {image!r}' if image else 'is not set'}: name an image by digest "
                "(name@sha256:...) or local id; a tag may change"
            )
        self.image = image
        self.api, self.address = connect()
        weakref.finalize(self, self.api.close)
        self.version = self.api.version()
        # Podman takes the name of a file on the engine's side where Docker takes the profile itself.
        podman = any("podman" in part["Name"].lower() for part in self.version.get("Components") or ())
        self.profile = None if podman else build_profile()
        self._find_image()

    def _find_image(self) -> None:
        from docker.errors import DockerException, ImageNotFound

        try:
            self.api.inspect_image(self.image)
        except ImageNotFound:
            if "@" not in self.image:
                raise ConfigError(f"the engine has no image {self.image}: import or build it first") from None
            try:
                self.api.pull(self.image)
            except DockerException as error:
                raise ConfigError(f"the image {self.image} cannot be pulled: {error}") from error

    def probe(self) -> Capabilities:
        """Try what this machine can do (Backend.probe)."""
        information = self.api.info()
        try:
            held, failed, seconds = probe_limits(self.open)
        except (SandboxError, OSError) as error:
            return unusable(self.name, str(error), self.version["Version"])
        missing = dict.fromkeys(failed, "was seen not to hold with this engine")
        if self.profile is None:
            missing["system_calls"] = "refused by the engine's own filter only, which may leave AF_VSOCK open"
        return Capabilities(
            backend=self.name, usable=True, version=self.version["Version"], enforced=held,
            missing=missing,
            cgroup=f"v{information.get('CgroupVersion', '1')}", start_seconds=seconds,
        )  # fmt: skip

    def remove_leftovers(self) -> None:
        """Remove the containers of killed runs."""
        for found in self.api.containers(all=True, filters={"label": LABEL}):
            if is_orphan(found["Labels"][LABEL].rpartition("-")[0]):
                with contextlib.suppress(Exception):
                    self.api.remove_container(found["Id"], force=True, v=True)

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[DockerSession]:
        """Open a sandbox (Backend.open)."""
        check_binds(spec.binds)
        remove_leftovers()
        with _engine_errors():
            self.remove_leftovers()
        session = DockerSession(spec, self)
        try:
            with _engine_errors():
                session.start()
            yield session
        finally:
            session.close()
