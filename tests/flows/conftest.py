"""Fixtures of the flow tests."""

import pytest

from sandbox.backends import open_backend
from schemas.errors import ConfigError
from schemas.execution import RealCodeConfig


@pytest.fixture(scope="session")
def sandboxed() -> None:
    """Skip, and say why, where this machine has no sandbox: real_code is empty there."""
    try:
        open_backend(RealCodeConfig())
    except ConfigError as error:
        pytest.skip(str(error))
