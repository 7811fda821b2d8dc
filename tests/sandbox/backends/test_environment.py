"""An environment for containers, built in containers: packages with the host's network, the rest without any."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.backends import open_backend
from sandbox.build import build_environment
from sandbox.environment import SourceCommit
from sandbox.protocol import SandboxSpec
from sandbox.uv import Workbench
from schemas.execution import BackendName, RealCodeConfig
from tests.sandbox.index import serve, wheel
from tests.sandbox.trees import write_tree

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "pkg"
version = "1"
dependencies = ["needed"]
"""


@pytest.mark.skipif(sys.base_prefix in ("/usr", "/usr/local"), reason="the small image has no interpreter of its own")
def test_an_environment_is_built_in_containers(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "pyproject.toml": PROJECT,
        "src/pkg/__init__.py": "import needed\nVALUE = 1\n",
        "tests/test_a.py": "import pkg\n\ndef test_a():\n    assert pkg.VALUE == 1\n",
    }
    own = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    config = RealCodeConfig(backend=BackendName.DOCKER, image=image, pythons=(own,))
    backend = open_backend(config)
    monkeypatch.setattr(Workbench, "compile", lambda _: None)  # half of the time, and the same everywhere
    at = SourceCommit("example/x", "2" * 40, datetime(2024, 1, 1, tzinfo=UTC))
    with serve() as index:
        index.add(wheel("needed", "1.0", {"needed.py": ""}))
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
        built = build_environment(write_tree(tmp_path / "tree", files), at, backend, config, tmp_path / "environments")
    assert built.collected == ("tests/test_a.py::test_a",)
    assert built.environment.install == "editable"
    assert "needed==1.0" in built.environment.lock
    assert built.environment.isolation.startswith("docker+")
    with backend.open(SandboxSpec(built.source, built.binds, built.env)) as session:
        result = session.exec((built.python, "-c", "import pkg; print(pkg.__file__)"))
    assert result.stdout == b"/w/src/src/pkg/__init__.py\n"
