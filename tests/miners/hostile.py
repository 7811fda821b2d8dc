"""Shared by the tests of hostile input: everything the miner tells of a repository, and what it should tell."""

from datetime import UTC, datetime
from pathlib import Path

from miners.clone import Clone
from miners.mine import MinedRepository, mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import RepositoryRecord
from tests.builders import RepoBuilder, git

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "1660000000 +0000"  # 2022: old commits that are searched by default
REPO = "example/hostile"
GOOD = b"def good(width, height):\n    return width * height\n"
BETTER = b"def better(value):\n    return -(-value // 1)\n"

Row = tuple[str, str, str, int, int, int, int]
"""Path, qualified name, class, start and end byte, first and last line."""
LeftOut = tuple[str, str, str]
"""Stage, reason, and what it is without the repository's name: `@commit` or `@commit:path`."""
Told = tuple[list[Row], list[LeftOut]]


def row(path: str, fun_name: str, source: bytes, text: bytes, novelty: str = "added") -> Row:
    """Return the row of a method whose code is the only `text` in its file; lines are those of Python."""
    start = source.index(text)
    assert source.count(text) == 1
    first = _line_ends(source[:start]) + 1
    return path, fun_name, novelty, start, start + len(text), first, first + _line_ends(text)


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def good(path: str, novelty: str = "added") -> Row:
    """Return the row of a file that is `GOOD`."""
    return row(path, "good", GOOD, GOOD.rstrip(), novelty)


def better(path: str, novelty: str = "added") -> Row:
    """Return the row of a file that is `BETTER`."""
    return row(path, "better", BETTER, BETTER.rstrip(), novelty)


def told(mined: MinedRepository) -> Told:
    """Return all rows and everything left out; the accounts have to agree with both."""
    rows: list[Row] = [
        (r.path, r.fun_name, r.novelty.value, r.start_byte, r.end_byte, r.start_line, r.end_line) for r in mined.methods
    ]
    accounts = {report.stage: report for report in mined.reports}
    assert accounts["methods"].rows_out == len(rows)
    assert accounts["commits"].rows_out == len(mined.commits)
    stages = [item.stage for item in mined.excluded if item.stage != "sources"]
    assert sum(sum(report.excluded_by_reason.values()) for report in mined.reports) == len(stages)
    return rows, [(item.stage, item.reason, item.row_id.removeprefix(REPO)) for item in mined.excluded]


def mine_dir(git_dir: Path, config: MiningConfig | None = None) -> MinedRepository:
    """Mine a repository's HEAD."""
    head = git(git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord(REPO, "local", None, None, "main", head, 1)
    return mine_repository(Clone(git_dir, record), config or MiningConfig(), WindowConfig(SINCE), NOW)


def mine(builder: RepoBuilder, config: MiningConfig | None = None) -> Told:
    """Mine a built repository and return everything it tells."""
    return told(mine_dir(builder.git_dir, config))
