"""Compare the miner with the oracle: `python -m tests.oracles.audit GIT_DIR --since 2024-01-01`."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from miners.clone import Clone
from miners.mine import mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import RepositoryRecord
from tests.oracles.ast_oracle import compare, extract, git

# The contract's bar for files that parse.
MIN_F1 = 0.999


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("git_dir", type=Path)
    parser.add_argument("--since", type=datetime.fromisoformat, default=datetime(2024, 1, 1))
    parser.add_argument("--until", type=datetime.fromisoformat, default=None)
    parser.add_argument("--all-classes", action="store_true", help="also list differences between the other classes")
    options = parser.parse_args()
    since = options.since.replace(tzinfo=UTC)
    until = None if options.until is None else options.until.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    git_dir = options.git_dir / ".git" if (options.git_dir / ".git").exists() else options.git_dir
    head = git(git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord("local/audit", "local", None, None, "HEAD", head, 0)
    mined = mine_repository(Clone(git_dir, record), MiningConfig(), WindowConfig(since, until), now)
    result = compare(mined, extract(git_dir, since, until or now))
    for line in result.differences + (result.other_classes if options.all_classes else []):
        print(line)
    print(
        f"added: miner {result.n_mined}, oracle {result.n_oracle}, both {result.n_both}; left out: "
        f"{result.n_marked} marked, {result.n_unjudged} unjudged; other classes differ in {len(result.other_classes)}"
    )
    print(f"precision {result.precision:.5f} recall {result.recall:.5f} F1 {result.f1:.5f}")
    return 0 if result.f1 >= MIN_F1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
