"""Settings of all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.github.server import make_certificate

# The tests start some hundred processes of ours; without kept byte code each would compile all modules anew, which
# takes as long as the small runs themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadline for one example: on a loaded machine, or when the first example loads a model, it tells nothing about
# the code. All else stays as in the profile that hypothesis chose, which is another one under CI.
settings.register_profile("postquem", deadline=None)
settings.load_profile("postquem")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key, for tests over HTTPS."""
    made = make_certificate(tmp_path_factory.mktemp("certificate"))
    if made is None:
        pytest.skip("openssl makes the certificate of the loopback server")
    return made
