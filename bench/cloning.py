"""What fetching costs: whole repositories beside the parts that are read, over HTTPS from a real `git http-backend`.

    python -m bench.cloning REPOSITORY.git ... [--since 2024-01-01] [--history none 2y 5y all]

Bytes are counted where the server sends them. CPU seconds are those of client and server together, which run on this
machine; wall seconds mean something only when it does nothing else. `--tables` mines both clones too and compares all
tables.
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

from miners.clone import Clone, CloneOptions, identify, open_clone
from miners.mine import MinedRepository, finish_mining
from miners.needed import plan_and_fetch
from miners.remote import folder_size
from miners.take import take_range
from schemas.config import MiningConfig, SourceConfig, WindowConfig
from schemas.errors import ConfigError
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


def measure(hub: Hub, fetch: Callable[[], Clone]) -> tuple[Clone, Cost]:
    """Return the clone and what fetching it cost."""
    hub.git_bytes, began, cpu = 0, time.perf_counter(), _cpu()
    clone = fetch()
    wall = time.perf_counter() - began
    return clone, Cost(hub.git_bytes, wall, _cpu() - cpu, folder_size(clone.git_dir))


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


def _print(name: str, what: str, cost: Cost, full: Cost) -> None:
    print(
        f"{name:>16} {what:>7} {cost.sent / 1e6:8.1f} MB {cost.sent / full.sent:5.2f}  wall {cost.wall:6.1f} s"
        f" {cost.wall / full.wall:5.2f}  CPU {cost.cpu:6.1f} s {cost.cpu / full.cpu:5.2f}"
        f"  kept {cost.kept / 1e6:.1f} MB",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the repositories named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--since", default="2024-01-01")
    parser.add_argument("--history", nargs="+", default=["none", "2y"])
    parser.add_argument("--tables", action="store_true")
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
