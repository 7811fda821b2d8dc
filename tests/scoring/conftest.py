import compileall
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.environment import BuiltEnvironment
from tests.sandbox.environments import make_environment


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> BuiltEnvironment:
    """An environment whose packages need not be compiled at every start, without the base interpreter's plugins."""
    folder = Path(tmp_path_factory.mktemp("environment"))
    built = make_environment(folder)
    compileall.compile_dir(folder, quiet=2)
    return replace(built, env={**built.env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
