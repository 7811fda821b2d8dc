"""Repositories from their sources: opened, mined, their clones thinned out when the disk is full; faults by type."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeVar

from flows import steps, work
from flows.discovering import explain_unusable
from flows.run import Run
from flows.sources import Source, drop_repeated
from flows.steppers import Stepper
from flows.versions import code_version
from miners.clone import Clone, CloneOptions, check_shallow, open_clone, thin_out
from miners.faults import reading_clone
from miners.partial import clones_below, is_partial
from miners.remote import Limits, folder_size
from schemas.arrow import from_table
from schemas.clones import ClonesConfig
from schemas.errors import DataError
from schemas.records import Exclusion, Kept
from schemas.references import OldCode
from warehouse.ledger import Ledger, Unit, unit_key

STAGE = "sources"
PARTITION = "all"

Out = TypeVar("Out")


class Mined(NamedTuple):
    """The repositories of a run."""

    clones: list[Clone]
    """Clones of those that were mined."""
    units: list[Unit]
    """What was mined of each."""
    excluded: list[Exclusion]
    """Those that could not be used, and why."""


def open_sources(run: Run, stepper: Stepper, sources: Sequence[Source]) -> Kept[Clone]:
    """Clone or fetch every repository, each history once; what cannot be used is excluded, to be tried again."""
    _Disk(run).make_room()
    fetching = threading.BoundedSemaphore(run.config.clones.parallel)

    def open_one(run: Run, source: Source) -> Clone | Exclusion:
        with fetching:
            return open_source(run, source)

    opened = stepper.each("clone", open_one, run, sources, lambda source: source.repo)
    distinct = drop_repeated([item for item in opened if isinstance(item, Clone)])
    return Kept(distinct.rows, [*(item for item in opened if isinstance(item, Exclusion)), *distinct.excluded])


def mine_clones(run: Run, stepper: Stepper, clones: Sequence[Clone], sources: Sequence[Source]) -> Mined:
    """Mine every repository; one whose files cannot be had is excluded, to be tried again at the next run."""
    disk = _Disk(run)
    by_repo = {source.repo: source for source in sources}
    # The longest history first: begun last, it would keep one worker busy when the others are done.
    order = sorted(range(len(clones)), key=lambda index: -clones[index].record.n_commits)
    longest_first = [clones[index] for index in order]
    sizes = [clone.record.n_commits for clone in longest_first]
    n_workers = {clone.record.repo: n for clone, n in zip(longest_first, shares_of(sizes, run.workers), strict=True)}

    def mine_one(run: Run, clone: Clone) -> Unit | Exclusion:
        return _mine(run, clone, disk, by_repo[clone.record.repo], n_workers[clone.record.repo])

    done = stepper.each("mine", mine_one, run, longest_first, lambda clone: clone.record.repo)
    by_index = dict(zip(order, done, strict=True))
    mined = [by_index[index] for index in range(len(clones))]
    units = [item for item in mined if isinstance(item, Unit)]
    kept = [clone for clone, item in zip(clones, mined, strict=True) if isinstance(item, Unit)]
    return Mined(kept, units, [item for item in mined if isinstance(item, Exclusion)])


def shares_of(sizes: Sequence[int], n_workers: int) -> list[int]:
    """Return among how many workers each of several works is divided that are begun in this order.

    As many as its size is of all that is left when it begins: dividing costs a tenth to a quarter more, which is lost
    where no worker would be idle.
    """
    left = list(accumulate(reversed(sizes)))
    return [max(1, round(n_workers * size / max(1, rest))) for size, rest in zip(sizes, reversed(left), strict=True)]


def open_source(run: Run, source: Source) -> Clone | Exclusion:
    """Clone or fetch one repository; an unusable one is excluded, a wrong location is the user's to mend.

    So is a network that fails for a source that must not be missing; others are tried again at the next run.
    """

    def do() -> Clone:
        clone = open_clone(source.place, run.workspace.repos, source.former, clone_options(run.config.clones))
        check_shallow(clone, run.config.window.since)
        return clone

    with run.progress.running("clone", source.repo):
        return _of_source(run, source, do)


def clone_options(config: ClonesConfig) -> CloneOptions:
    """Return how repositories are cloned by a configuration."""
    return CloneOptions(config.whole, Limits(config.timeout_minutes * 60.0, config.max_megabytes * 1_000_000))


def _mine(run: Run, clone: Clone, disk: "_Disk", source: Source, n_workers: int) -> Unit | Exclusion:
    """Mine a repository and read its tree at the cutoff, as long as their files are at hand."""

    def do() -> Unit:
        if run.config.dedup.copied_old is OldCode.OFF:
            return steps.mine_commits(run, clone, n_workers)
        with ThreadPoolExecutor(1) as thread:
            reading: list[Future[Unit]] = []

            def read() -> None:
                if not reading:
                    reading.append(thread.submit(steps.read_cutoff, run, clone))

            if not is_partial(clone.git_dir):  # else both would fetch at the same time
                read()  # beside the planning, which is one worker's
            unit = steps.mine_commits(run, clone, n_workers, beside=read)
            read()
            reading[0].result()
        return unit

    mined = _of_source(run, source, do)
    if isinstance(mined, Unit):
        disk.settle(clone.git_dir)
    return mined


def _of_source(run: Run, source: Source, do: Callable[[], Out]) -> Out | Exclusion:
    """Return what comes of a source, or why nothing does; for one that must not be missing see `reading_clone`."""
    try:
        with reading_clone(optional=source.config.optional):
            return do()
    except DataError as error:
        found = source.found if error.reason in ("source_missing", "repository_refused") else None
        why = None if found is None else explain_unusable(run, found)
        return why or Exclusion(source.repo, STAGE, error.reason, error.detail)


@dataclass
class _Disk:
    """How much the clones take; what is mined is thinned out when that is too much."""

    run: Run
    sizes: dict[Path, int] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def limit(self) -> int:
        """Return the bytes that all clones may take together."""
        return self.run.config.clones.disk_gigabytes * 1_000_000_000

    def make_room(self) -> None:
        """Thin out clones of earlier runs, those that were fetched longest ago first, until there is room."""
        sizes = {path: folder_size(path) for path in clones_below(self.run.workspace.repos)}
        for path in sorted(filter(is_partial, sizes), key=lambda path: (path.stat().st_mtime, path)):
            if sum(sizes.values()) <= self.limit:
                return
            thin_out(path)
            sizes[path] = folder_size(path)

    def settle(self, git_dir: Path) -> None:
        """Thin out a clone that is mined when all of them take too much."""
        with self.lock:
            if self.sizes is None:
                self.sizes = {path: folder_size(path) for path in clones_below(self.run.workspace.repos)}
            self.sizes[git_dir] = folder_size(git_dir)
            if sum(self.sizes.values()) > self.limit and thin_out(git_dir):
                self.sizes[git_dir] = folder_size(git_dir)


def record_left_out(run: Run, excluded: Sequence[Exclusion]) -> Unit:
    """Record which sources this run could not use: table exclusions."""
    started = datetime.now(UTC)
    key = unit_key(STAGE, "1", sorted([item.row_id, item.reason, item.detail] for item in excluded), [])
    known = run.ledger.find(STAGE, PARTITION, key, run.now)
    if known is not None:
        return known
    job = work.Job(STAGE, PARTITION, key, run.workspace.tables, run.config, code_version(), run.now)
    unit = work.finish(job, started, {"exclusions": (Exclusion, list(excluded))}, [])
    run.ledger.record(unit)
    return unit


def left_out(ledger: Ledger) -> dict[str, str]:
    """Return the reason of every source that the last run could not use, by its name."""
    unit = ledger.former(STAGE, PARTITION)
    rows = [] if unit is None else from_table(ledger.read(unit, "exclusions"), Exclusion)
    return {row.row_id: row.reason for row in rows}
