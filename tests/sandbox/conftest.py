from pathlib import Path

import pytest

from sandbox.environment import BuiltEnvironment
from tests.sandbox.environments import make_environment


@pytest.fixture(scope="session")
def small_environment(tmp_path_factory: pytest.TempPathFactory) -> BuiltEnvironment:
    return make_environment(Path(tmp_path_factory.mktemp("environment")))
