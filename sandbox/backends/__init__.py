"""Kinds of sandbox; `open_backend` gives the one that the configuration names."""

from sandbox.backends.bubblewrap import HINT, BubblewrapBackend
from sandbox.backends.docker_engine import DockerBackend
from sandbox.backends.unsafe_local import UnsafeLocalBackend
from sandbox.protocol import Backend, SandboxSpec
from schemas.errors import ConfigError, SandboxError
from schemas.execution import BackendName, RealCodeConfig


def make_backend(name: BackendName, image: str = "") -> Backend:
    """Return a backend; ConfigError, with what to do, when its program, engine or image is not there."""
    if name is BackendName.BUBBLEWRAP:
        return BubblewrapBackend()
    if name is BackendName.DOCKER:
        return DockerBackend(image)
    return UnsafeLocalBackend()


def open_backend(config: RealCodeConfig) -> Backend:
    """Return the backend that the configuration names, after a command ran in it.

    ConfigError, with what to do, when it cannot be used on this machine.
    """
    backend = make_backend(config.backend, config.image)
    try:
        with backend.open(SandboxSpec()) as session:
            result = session.exec(("true",))
    except SandboxError as error:
        hint = f"; {HINT}" if config.backend is BackendName.BUBBLEWRAP else ""
        raise ConfigError(f"the backend {backend.name} cannot be used on this machine: {error}{hint}") from error
    if result.returncode != 0:
        raise ConfigError(f"a command that does nothing fails in the backend {backend.name}: {result.stderr[-300:]!r}")
    return backend
