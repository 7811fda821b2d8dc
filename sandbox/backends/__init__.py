"""Kinds of sandbox; `open_backend` gives the one that the configuration names."""

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.docker_engine import DockerBackend
from sandbox.backends.unsafe_local import UnsafeLocalBackend
from sandbox.protocol import Backend
from schemas.execution import BackendName, RealCodeConfig


def open_backend(config: RealCodeConfig) -> Backend:
    """Return the backend that the configuration names; ConfigError, with what to do, when it cannot be used here."""
    if config.backend is BackendName.BUBBLEWRAP:
        return BubblewrapBackend()
    if config.backend is BackendName.DOCKER:
        return DockerBackend(config.image)
    return UnsafeLocalBackend()
