"""Mines a test repository: the shared helper of the tests of the whole miner."""

from datetime import UTC, datetime

from miners.clone import Clone
from miners.git_process import run_git
from miners.mine import MinedRepository, mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import RepositoryRecord
from tests.builders import RepoBuilder

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "1660000000 +0000"  # 2022: old commits that are searched by default
REPO = "example/shapes"


def clone_of(builder: RepoBuilder, head: str | None = None) -> Clone:
    """Return the repository as a clone whose branch ends at a commit, by default at HEAD."""
    tip = head or run_git(builder.git_dir, "rev-parse", "HEAD").decode().strip()
    return Clone(builder.git_dir, RepositoryRecord(REPO, "local", None, None, "main", tip, 1))


def mine_at(
    builder: RepoBuilder,
    head: str | None = None,
    *,
    former: MinedRepository | None = None,
    config: MiningConfig | None = None,
    now: datetime = NOW,
    n_ranges: int = 1,
) -> MinedRepository:
    """Mine the repository as it stood at a commit, by default at HEAD."""
    clone = clone_of(builder, head)
    return mine_repository(clone, config or MiningConfig(), WindowConfig(SINCE), now, former, n_ranges)
