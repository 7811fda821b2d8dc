"""Shared by the tests of clones: fixtures and the place of a local path."""

from pathlib import Path

import pytest

from miners.clone import Place, identify
from schemas.config import SourceConfig
from tests.builders import RepoBuilder


def place_of(path: Path, **settings: str) -> Place:
    """Return the place of a local path with settings of its source."""
    return identify(SourceConfig(git=(str(path),), **settings), str(path), Path("/"))  # type: ignore[arg-type] # all strings


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "src" / "shapes")


@pytest.fixture
def repos(tmp_path: Path) -> Path:
    return tmp_path / "data" / "repos"
