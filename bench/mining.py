"""Mining side by side: PyDriller, the floor and us, on the same repositories in one process tree.

    python -m bench.mining [--repo PATH ...] [--since 2024-01-01] [--no-peers]

PyDriller is run twice: as its users write it, methods by lizard, and at its fastest with our tree-sitter parsing of
each file before and after. Both call new what had another name or was not there before; we classify against the
parents' whole trees (moved, renamed, modified and so on), which is more work. The floor is what nobody can leave out:
`git log --raw`, one `git cat-file --batch` and one parse of each different blob that a commit of the window brings.
Our cost is also shown for a half and a quarter of the window's commits, and the wall time of `postquem mine` with one
and two workers, on each repository and on all of them together. Each run is a process of its own and imports what that
contestant needs: what others need would cost each a second.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Measurement, measure

Contestant = Callable[[str, str], int]


def pydriller_added(repo: str, since: str) -> int:
    """Return the number of new methods that a PyDriller user finds: the usual loop over modified files."""
    from pydriller import Repository

    found = 0
    for commit in Repository(
        repo, since=_moment(since), only_no_merge=True, only_modifications_with_file_types=[".py"]
    ).traverse_commits():
        for file in commit.modified_files:
            if file.filename.endswith(".py"):
                before = {method.long_name for method in file.methods_before}
                found += sum(method.long_name not in before for method in file.methods)
    return found


def pydriller_parsed_added(repo: str, since: str) -> int:
    """Return the number of new methods by PyDriller's texts and our parsing: lizard and all metrics left out."""
    from pydriller import Repository

    from miners.methods import find_methods
    from miners.syntax import parse

    def names(source: bytes) -> list[str]:
        return [span.fun_name for span in find_methods(source, parse(source))]

    found = 0
    for commit in Repository(
        repo, since=_moment(since), only_no_merge=True, only_modifications_with_file_types=[".py"]
    ).traverse_commits():
        for file in commit.modified_files:
            if file.filename.endswith(".py") and file.content is not None:
                before = set(names(file.content_before or b""))
                found += sum(name not in before for name in names(file.content))
    return found


def floor(repo: str, since: str) -> int:
    """Return the number of different blobs that commits of the window bring; each is read and parsed once."""
    from miners.syntax import parse

    blobs = b"".join(blob + b"\n" for blob in dict.fromkeys(_blobs_after(repo, _moment(since).timestamp())))
    with tempfile.TemporaryFile() as ids:
        ids.write(blobs)
        ids.seek(0)
        command = ["git", f"--git-dir={repo}", "cat-file", "--batch", "--buffer"]
        with subprocess.Popen(command, stdin=ids, stdout=subprocess.PIPE) as process:
            found = 0
            while process.stdout is not None and (header := process.stdout.readline()):
                parse(process.stdout.read(int(header.split()[2]) + 1)[:-1])
                found += 1
    return found


def _blobs_after(repo: str, since: float) -> Iterator[bytes]:
    """Yield the blobs of Python files behind each commit of the window that is no deletion."""
    log = [
        "log",
        "--raw",
        "-r",
        "-z",
        "-c",
        "--no-abbrev",
        "--no-renames",
        "--format=%x01%ct %at",
        "HEAD",
        "--",
        "*.py",
    ]
    inside = False
    for piece in subprocess.run(["git", f"--git-dir={repo}", *log], capture_output=True, check=True).stdout.split(
        b"\0"
    ):
        token = piece.lstrip(b"\n")
        if token.startswith(b"\x01"):
            inside = all(float(date) >= since for date in token[1:].split())
        elif inside and token.startswith(b":"):
            n_parents = len(token) - len(token.lstrip(b":"))
            blob = token[n_parents:].split(b" ")[2 * n_parents + 1]
            if blob.strip(b"0"):
                yield blob


def postquem_added(repo: str, since: str) -> int:
    """Return the number of methods of class `added` that our miner finds, clone included."""
    from miners.clone import identify, open_clone
    from miners.mine import mine_repository
    from schemas.config import MiningConfig, SourceConfig, WindowConfig
    from schemas.records import Novelty

    with tempfile.TemporaryDirectory() as folder:
        place = identify(SourceConfig(git=(repo,), repo="bench/repo"), repo, Path.cwd())
        clone = open_clone(place, Path(folder))
        mined = mine_repository(clone, MiningConfig(), WindowConfig(_moment(since)), datetime.now(UTC))
        return sum(method.novelty is Novelty.ADDED for method in mined.methods)


def postquem_shared(repos: Sequence[str], since: str, n_workers: int) -> int:
    """Return the number of methods of class `added` that `postquem mine` finds with so many workers, clones and all."""
    from flows.recipe import build
    from flows.run import Computers, open_run_of
    from flows.steppers import PlainStepper
    from schemas.config import Config, SourceConfig, WindowConfig
    from schemas.records import Novelty

    sources = tuple(SourceConfig(git=(repo,), repo=f"bench/{Path(repo).stem}") for repo in repos)
    config, now = Config(sources, WindowConfig(_moment(since))), datetime.now(UTC)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_run_of(config, Path.cwd(), Path(folder), Computers(n_workers), now) as run,
    ):
        build(run, PlainStepper(), until="mine")
        units = [run.ledger.former("mine", source.repo or "") for source in sources]
        columns = [run.ledger.read(unit, "methods").column("novelty") for unit in units if unit is not None]
        return sum(column.to_pylist().count(Novelty.ADDED) for column in columns)


def sharing(runs: Sequence[Measurement]) -> str:
    """Return a line for each number of workers, one first: wall seconds and how many times faster than one."""
    return "\n".join(
        f"  {item.name:23} {item.wall:8.2f} s wall, {runs[0].wall / item.wall:5.2f} times as fast as one"
        for item in runs
    )


def _moment(since: str) -> datetime:
    moment = datetime.fromisoformat(since)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


PEERS: dict[str, Contestant] = {
    "PyDriller": pydriller_added,
    "PyDriller + tree-sitter": pydriller_parsed_added,
    "floor": floor,
}


def windows(repo: str, since: str) -> list[tuple[str, int]]:
    """Return the starts of windows with a quarter, a half and all of the commits since a date, with their numbers."""
    command = ["git", f"--git-dir={repo}", "log", "--format=%ct", "HEAD"]
    dates = sorted(int(line) for line in subprocess.run(command, capture_output=True, check=True).stdout.split())
    dates = [date for date in dates if date >= _moment(since).timestamp()]
    found = []
    for share in (4, 2):
        count = len(dates) // share
        if count:
            start = dates[-count]
            found.append((datetime.fromtimestamp(start, UTC).isoformat(), sum(date >= start for date in dates)))
    return [*found, (since, len(dates))]


def report(title: str, runs: Sequence[Measurement], n_commits: int) -> str:
    """Return a table of runs over the same commits; the last one is ours."""
    lines = [
        title,
        f"  {'':23} {'found':>8} {'CPU s':>8} {'/ ours':>6} {'commits/s':>9} {'found/s':>8} {'peak MiB':>8}",
    ]
    for item in runs:
        lines.append(
            f"  {item.name:23} {item.result:8,} {item.cpu:8.2f} {item.cpu / runs[-1].cpu:6.2f} "
            f"{n_commits / item.cpu:9.1f} {item.result / item.cpu:8.1f} {item.peak_mib:8.0f}"
        )
    return "\n".join(lines)


def scaling(runs: Sequence[tuple[int, Measurement]]) -> str:
    """Return a line per window: commits, CPU seconds, milliseconds a commit, and those that one more commit costs."""
    lines = ["  our cost by commits in the window:"]
    for index, (count, item) in enumerate(runs):
        more = ""
        if index and count > runs[index - 1][0]:
            added = (item.cpu - runs[index - 1][1].cpu) / (count - runs[index - 1][0])
            more = f", {1000 * added:6.2f} ms for each one more"
        lines.append(
            f"  {count:8,} commits {item.cpu:8.2f} CPU s, {1000 * item.cpu / max(count, 1):8.2f} ms each{more}, "
            f"{item.peak_mib:.0f} MiB"
        )
    return "\n".join(lines)


def bench_repository(repo: str, since: str, *, peers: bool) -> int:
    """Measure all contestants on one repository and print the tables; return how many failed."""
    with tempfile.TemporaryDirectory() as folder:  # PyDriller writes to the repository's configuration
        copy = f"{folder}/copy.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", repo, copy], check=True)
        starts = windows(copy, since)
        ours = [(count, measure("postquem", postquem_added, copy, start)) for start, count in starts]
        others = [measure(name, run, copy, since) for name, run in PEERS.items()] if peers else []
    found = [item for item in (*others, ours[-1][1]) if item is not None]
    if ours[-1][1] is not None:
        print(report(f"mining {Path(repo).name}: new methods since {since}", found, starts[-1][1]))
        print(scaling([(count, item) for count, item in ours if item is not None]))
    runs = [*others, *(item for _, item in ours)]
    return sum(item is None for item in runs)


def share(repos: Sequence[str], since: str) -> int:
    """Measure one and two workers on repositories and print how they compare; return how many failed."""
    runs = [measure(f"{count} worker(s)", postquem_shared, repos, since, count) for count in (1, 2)]
    together = [item for item in runs if item is not None]
    if len(together) == len(runs):
        print(f"`postquem mine` on {', '.join(Path(repo).name for repo in repos)}")
        print(sharing(together))
    return len(runs) - len(together)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every repository; exit code 1 when a contestant failed."""
    parser = argparse.ArgumentParser(description="Mining side by side.")
    parser.add_argument("--repo", action="append", help="a git repository, may be repeated; default: this one")
    parser.add_argument("--since", default="2024-01-01")
    parser.add_argument("--no-peers", action="store_true", help="measure us alone")
    options = parser.parse_args(arguments)
    repos = [str(Path(repo).resolve()) for repo in options.repo or ["."]]
    failed = sum(bench_repository(repo, options.since, peers=not options.no_peers) for repo in repos)
    groups = [[repo] for repo in repos] + ([repos] if len(repos) > 1 else [])
    failed += sum(share(group, options.since) for group in groups)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
