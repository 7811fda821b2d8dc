"""Mining side by side: PyDriller as its users write it, and us, on the same repository in one process tree.

python -m bench.mining [--repo PATH] [--since 2024-01-01]. PyDriller finds methods by lizard and calls new what
was not there before under the same signature; we classify against the parent tree (moved, renamed, modified
and so on), which is more work.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import measure, print_ratio
from miners.clone import identify, open_clone
from miners.mine import mine_repository
from schemas.config import MiningConfig, SourceConfig, WindowConfig
from schemas.records import Novelty


def pydriller_added(repo: str, since: str) -> int:
    """Return the number of new methods that a PyDriller user finds: the usual loop over modified files."""
    from pydriller import Repository

    found = 0
    start = datetime.fromisoformat(since).replace(tzinfo=UTC)
    for commit in Repository(
        repo, since=start, only_no_merge=True, only_modifications_with_file_types=[".py"]
    ).traverse_commits():
        for file in commit.modified_files:
            if file.filename.endswith(".py"):
                before = {method.long_name for method in file.methods_before}
                found += sum(method.long_name not in before for method in file.methods)
    return found


def postquem_added(repo: str, since: str) -> int:
    """Return the number of methods of class `added` that our miner finds, clone included."""
    with tempfile.TemporaryDirectory() as folder:
        place = identify(SourceConfig(git=(repo,), repo="bench/repo"), repo, Path.cwd())
        clone = open_clone(place, Path(folder))
        window = WindowConfig(datetime.fromisoformat(since).replace(tzinfo=UTC))
        mined = mine_repository(clone, MiningConfig(), window, datetime.now(UTC))
        return sum(method.novelty is Novelty.ADDED for method in mined.methods)


def main() -> None:
    """Measure both and print the ratio of their CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", default=".", help="a git repository; default: this one")
    parser.add_argument("--since", default="2024-01-01")
    options = parser.parse_args()
    repo = str(Path(options.repo).resolve())
    with tempfile.TemporaryDirectory() as folder:  # PyDriller writes to the repository's configuration
        copy = f"{folder}/copy.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", repo, copy], check=True)
        runs: list[tuple[str, Callable[[str, str], int]]] = [
            ("PyDriller", pydriller_added),
            ("postquem", postquem_added),
        ]
        results = [measure(name, run, copy, options.since) for name, run in runs]
    print_ratio("mining: new methods since " + options.since, [item for item in results if item is not None], "methods")


if __name__ == "__main__":
    main()
