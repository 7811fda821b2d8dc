"""What fetching costs: whole repositories beside the parts that are read, over HTTPS from a real `git http-backend`.

    python -m bench.cloning REPOSITORY.git ... [--since 2024-01-01] [--history none 2y 5y all] [--shallow]

Bytes are counted where the server sends them. CPU seconds are those of client and server together, which run on this
machine; wall seconds mean something only when it does nothing else: the load before each fetch stands beside them.
`--tables` mines all clones too and compares their tables. `--shallow` fetches with `--shallow-since` as well, from the
window's start and from the start of each history, and tells what such clones lack.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from miners.clone import Clone, CloneOptions, Place, identify, open_clone, shallow_boundary
from miners.commits import select, walk
from miners.cutoff import find_cutoff
from miners.mine import MinedRepository, finish_mining
from miners.needed import plan_and_fetch
from miners.plan import is_from
from miners.remote import ask, folder_size
from miners.take import take_range
from schemas.config import MiningConfig, SourceConfig, WindowConfig
from schemas.errors import ConfigError, DataError, PipelineError
from tests.github.server import Hub, make_certificate, serving

_NOW = datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of fetching costs."""

    sent: int
    """Bytes that the server sent."""
    wall: float
    """Wall seconds."""
    cpu: float
    """CPU seconds of this process and its children, the server's git among them."""
    kept: int
    """Bytes of the clone."""
    load: float
    """The machine's load, of the last minute, before."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a shallow clone lacks of a whole one."""

    window: int
    """Commits of the window that are not there."""
    old: int
    """Commits of the searched years before it that are not there."""
    parents: int
    """Commits of the window that look as if they had brought every file, because a parent is not there."""
    cutoff: bool
    """Whether another commit than the whole clone's is the cutoff's, or none."""


def loss(whole: Clone, shallow: Clone, config: MiningConfig, window: WindowConfig) -> Loss:
    """Return what a shallow clone lacks of what the miner walks in a whole one."""
    headers = walk(whole.git_dir, whole.record.head)
    there = {header.commit_id for header in walk(shallow.git_dir, whole.record.head)}
    wanted = {header.commit_id for header in select(headers, window, _NOW, whole.record.repo).rows}
    old = {header.commit_id for header in headers if is_from(header, config.history_start(window.since))} - wanted
    return Loss(
        window=len(wanted - there),
        old=len(old - there),
        parents=len(wanted & set(shallow_boundary(shallow.git_dir))),
        cutoff=_cutoff(whole, window) != _cutoff(shallow, window),
    )


def _cutoff(clone: Clone, window: WindowConfig) -> str | None:
    try:
        found = find_cutoff(clone.git_dir, clone.record.head, window.since)
    except DataError:
        return None
    return None if found is None else found.commit_id


def shallow_clone(place: Place, folder: Path, whole: Clone, since: datetime) -> Clone:
    """Return a clone of all objects of the commits that git finds by walking back to a date; raise as `remote.ask`."""
    flags = ["--bare", "--quiet", "--single-branch", "--no-tags", f"--branch={whole.record.default_branch}"]
    folder.mkdir(parents=True)
    ask(place, folder, "clone", *flags, f"--shallow-since={since.isoformat()}", "--", place.url, "clone.git")
    return Clone(folder / "clone.git", whole.record)


def measure(hub: Hub, fetch: Callable[[], Clone]) -> tuple[Clone, Cost]:
    """Return the clone and what fetching it cost."""
    load = os.getloadavg()[0]
    hub.git_bytes, began, cpu = 0, time.perf_counter(), _cpu()
    clone = fetch()
    wall = time.perf_counter() - began
    return clone, Cost(hub.git_bytes, wall, _cpu() - cpu, folder_size(clone.git_dir), load)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def mine(clone: Clone, config: MiningConfig, window: WindowConfig) -> MinedRepository:
    """Mine a clone."""
    plan = plan_and_fetch(clone, config, window, _NOW)
    return finish_mining(
        clone, config, plan, [take_range(clone, config, plan.selected, part) for part in plan.ranges(1)]
    )


def compare(hub: Hub, name: str, folder: Path, options: argparse.Namespace) -> None:
    """Print what one repository costs, whole and in parts."""
    location = f"{hub.base}/o/{name}"
    place = identify(SourceConfig(git=(location,)), location, Path("/"))
    window = WindowConfig(datetime.fromisoformat(options.since).replace(tzinfo=UTC))
    whole, full = measure(hub, lambda: open_clone(place, folder / "whole", options=CloneOptions(whole=True)))
    _print(name, "whole", full, full)
    for history in options.history:
        config = MiningConfig(search_history=history)

        def fetch(history: str = history, config: MiningConfig = config) -> Clone:
            clone = open_clone(place, folder / history)
            plan_and_fetch(clone, config, window, _NOW)
            return clone

        part, cost = measure(hub, fetch)
        _print(name, history, cost, full)
        if options.tables:
            print(f"{'':>24} same tables: {mine(part, config, window) == mine(whole, config, window)}")
    if options.shallow:
        _compare_shallow(hub, name, place, folder, (whole, full), options)


def _compare_shallow(
    hub: Hub, name: str, place: Place, folder: Path, full: tuple[Clone, Cost], options: argparse.Namespace
) -> None:
    """Print what shallow clones cost and lack: from the window's start and from that of each history."""
    window = WindowConfig(datetime.fromisoformat(options.since).replace(tzinfo=UTC))
    for history in options.history:
        config = MiningConfig(search_history=history)
        first = config.history_start(window.since)
        since = window.since if first is None else datetime.fromtimestamp(first, UTC)

        def fetch(history: str = history, since: datetime = since) -> Clone:
            return shallow_clone(place, folder / f"shallow-{history}", full[0], since)

        try:
            clone, cost = measure(hub, fetch)
        except PipelineError as error:
            print(f"{name:>16} shallow {history}: {error}", flush=True)
            continue
        _print(name, f"shallow {history}", cost, full[1])
        lacks = loss(full[0], clone, config, window)
        print(f"{'':>24} {lacks}", flush=True)
        if options.tables:
            _print_methods(mine(full[0], config, window), clone, config, window)


def _print_methods(right: MinedRepository, clone: Clone, config: MiningConfig, window: WindowConfig) -> None:
    """Print how many methods of a shallow clone have another novelty, or are too many or too few."""
    wanted = {row.row_id: row.novelty for row in right.methods}
    found = {row.row_id: row.novelty for row in mine(clone, config, window).methods}
    other = sum(wanted[row_id] is not novelty for row_id, novelty in found.items() if row_id in wanted)
    lost, more = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    print(f"{'':>24} of {len(wanted)} methods {len(lost)} lost, {other} another novelty; {len(more)} too many")


def _print(name: str, what: str, cost: Cost, full: Cost) -> None:
    print(
        f"{name:>16} {what:>12} {cost.sent / 1e6:8.1f} MB {cost.sent / full.sent:5.2f}  wall {cost.wall:6.1f} s"
        f" {cost.wall / full.wall:5.2f}  CPU {cost.cpu:6.1f} s {cost.cpu / full.cpu:5.2f}"
        f"  kept {cost.kept / 1e6:.1f} MB  load {cost.load:.1f}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the repositories named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--since", default="2024-01-01")
    parser.add_argument("--history", nargs="+", default=["none", "2y"])
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--shallow", action="store_true")
    options = parser.parse_args(arguments)
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        certificate = make_certificate(folder)
        if certificate is None:
            raise ConfigError("openssl makes the certificate of the loopback server; install it")
        os.environ["GIT_SSL_CAINFO"] = str(certificate[0])
        root = folder / "www"
        (root / "o").mkdir(parents=True)
        hub = Hub([], root=root)
        with serving(hub, certificate):
            for repository in options.repositories:
                name = repository.name.removesuffix(".git")
                (root / "o" / f"{name}.git").symlink_to(repository.resolve())
                compare(hub, name, folder / name, options)


if __name__ == "__main__":
    main()
