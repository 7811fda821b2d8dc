"""Compare the miner with the oracle: `python -m tests.oracles.audit GIT_DIR --since 2024-01-01`."""

import argparse
import os
import resource
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from miners.clone import Clone
from miners.mine import mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import Novelty, RepositoryRecord
from tests.oracles.ast_oracle import Truth, extract
from tests.oracles.comparison import CLASSES, Comparison, compare
from tests.oracles.evidence import Checked, check_evidence
from tests.oracles.plain_git import git

# The contract's bar for files that parse.
BAR = 0.999


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences, the tables and a line for the docs; return 0 when the bar is reached, else 1."""
    options = parse_options(arguments)
    since = options.since.replace(tzinfo=UTC)
    until = None if options.until is None else options.until.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    git_dir = options.git_dir / ".git" if (options.git_dir / ".git").exists() else options.git_dir
    head = git(git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord("local/audit", "local", None, None, "HEAD", head, 0)
    config = MiningConfig(search_history=options.history)
    mined = mine_repository(Clone(git_dir, record), config, WindowConfig(since, until), now)
    truth = extract(git_dir, since, until or now, search_history=options.history)
    result = compare(mined, truth)
    checked = check_evidence(git_dir, mined.methods, truth)
    for line in [*result.differences, *checked.problems]:
        print(line)
    print(*result.lines(), sep="\n")
    print(f"{result.n_judged} methods judged, {result.n_marked} marked, {result.n_unjudged} unjudged")
    print(
        f"evidence checked: {counted(checked.n_checked)}; {checked.n_unjudged} unjudged; wrong: {len(checked.problems)}"
    )
    reasons = Counter(
        f"{item.stage} {item.reason}" for item in mined.excluded if item.stage not in ("index", "history")
    )
    print(
        "excluded by the miner:", ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())) or "none"
    )
    print(f"{len(truth.inside)} commits of {len(truth.commits)} in the window, head {head[:10]}, {used()}")
    name = git_dir.name.removesuffix(".git") or git_dir.parent.name
    print(table_row(f"{name} {head[:10]}", options, truth, result, checked))
    added = result.agreement(Novelty.ADDED)
    return 0 if min(added.precision, added.recall) >= BAR and not checked.problems else 1


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("git_dir", type=Path)
    parser.add_argument("--since", type=datetime.fromisoformat, default=datetime(2024, 1, 1))
    parser.add_argument("--until", type=datetime.fromisoformat, default=None)
    parser.add_argument(
        "--history", default=MiningConfig().search_history, help="which commits before the window both sides search"
    )
    return parser.parse_args(arguments)


def counted(counts: Counter[str]) -> str:
    """Return counts as text."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def used() -> str:
    """Return the CPU seconds and the memory that this process and its children took."""
    times, peak = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{sum(times[:4]):.0f} CPU seconds, {peak // 1024} MiB"


def table_row(name: str, options: argparse.Namespace, truth: Truth, result: Comparison, checked: Checked) -> str:
    """Return the line of the table in `docs/audit.md`."""
    added = result.agreement(Novelty.ADDED)
    others = [result.agreement(novelty) for novelty in CLASSES if novelty is not Novelty.ADDED]
    cells = [
        name,
        f"{len(truth.commits):,}",
        f"{options.since:%Y-%m-%d}",
        f"{len(truth.inside):,}",
        options.history,
        f"{result.n_judged:,}",
        f"{result.n_unjudged:,}",
        f"{added.n_mined:,}",
        f"{added.precision:.5f}",
        f"{added.recall:.5f}",
        f"{sum(item.n_both for item in others):,} of {sum(item.n_oracle for item in others):,}",
        f"{checked.n_checked.total():,}",
        f"{len(checked.problems):,}",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
