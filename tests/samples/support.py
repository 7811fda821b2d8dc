"""Imports of the sample repositories by plain git, and all of them run through the real stages."""

import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from features.compute import compute_features
from features.docstrings import code_without_docstring
from features.old_methods import distinct_old_methods
from miners.clone import identify, open_clone
from miners.cutoff import OldTree, find_cutoff
from miners.mine import MinedRepository, mine_repository
from schemas.comparisons import OldCopy
from schemas.config import TESTBEDS, Config, load_config
from schemas.records import DataPoint, Exclusion, Kept
from testbeds.build import build_testbed
from tests.builders import GIT_ENVIRONMENT, git
from tests.dedup.by_rows import DedupResult, DedupRow, NewMethod, deduplicate, exclude_copies, find_copies

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
QUICKSTART = ROOT / "configs" / "quickstart.toml"
# Later than every date of the samples but the one in 2099.
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def import_stream(stream: bytes, git_dir: Path) -> subprocess.CompletedProcess[bytes]:
    """Import a stream into a new bare repository by git alone; HEAD is left as git makes it."""
    subprocess.run(
        ["git", "-c", "init.defaultBranch=nowhere", "init", "--quiet", "--bare", str(git_dir)],
        env=GIT_ENVIRONMENT,
        check=True,
    )
    command = ["git", f"--git-dir={git_dir}", "fast-import", "--quiet"]
    return subprocess.run(command, input=stream, env=GIT_ENVIRONMENT, check=True, capture_output=True)


def text_of(git_dir: Path, *args: str) -> str:
    return git(git_dir, *args).decode().strip()


@dataclass(frozen=True, slots=True)
class Run:
    """What every stage says about the samples."""

    config: Config
    mined: dict[str, MinedRepository]
    """By the stream's name without its suffix."""
    blobs: dict[str, bytes]
    """Contents of every blob that a method row names."""
    features: Kept[DataPoint]
    copies: list[OldCopy]
    """What resembles code from before the cutoff."""
    copied: list[Exclusion]
    dedup: DedupResult
    testbeds: dict[str, Kept[DataPoint]]


def run_all(folder: Path) -> Run:
    """Run the quickstart's sample repositories through mining, features, deduplication and testbeds."""
    config = load_config(QUICKSTART)
    mined: dict[str, MinedRepository] = {}
    blobs: dict[str, bytes] = {}
    old = []
    for location in config.sources[0].fast_import:
        clone = open_clone(identify(config.sources[0], location, QUICKSTART.parent), folder)
        repository = mine_repository(clone, config.mining, config.window, NOW)
        mined[Path(location).stem] = repository
        cutoff = find_cutoff(clone.git_dir, clone.record.head, config.window.since)
        if cutoff is not None:
            tree = OldTree(clone.git_dir, clone.record.repo, cutoff.commit_id, config.mining.max_file_bytes)
            old.append(distinct_old_methods(clone.record.repo, cutoff.commit_id, tree.definitions()))
        for blob_id in {method.blob_id for method in repository.methods}:
            blobs[blob_id] = git(clone.git_dir, "cat-file", "blob", blob_id)
    methods = [method for repository in mined.values() for method in repository.methods]
    features = compute_features(methods, config.features, config.mining, config.licences)
    new = [NewMethod(row.row_id, row.repo, row.novelty, code_without_docstring(row.code)) for row in features.rows]
    copies = [
        copy
        for methods in old
        if methods
        for copy in find_copies([row for row in new if row.repo == methods[0].repo], [methods], config.dedup)
    ]
    copied = exclude_copies(new, copies, config.features.novelty)
    gone = {item.row_id for item in copied}
    rows = [
        DedupRow(point.row_id, point.committer_date, row.text)
        for point, row in zip(features.rows, new, strict=True)
        if point.row_id not in gone
    ]
    dedup = deduplicate(rows, config.dedup)
    kept_ids = set(dedup.kept_ids)
    kept = [row for row in features.rows if row.row_id in kept_ids]
    files = [file for repository in mined.values() for file in repository.files]
    diffs = {(file.repo, file.commit_id, file.path): file.diff for file in files}
    # Without the cap on a commit's rows, so that the rules show on every method of the few commits.
    testbeds_config = replace(config.testbeds, max_per_commit=1_000)
    testbeds = {name: build_testbed(name, kept, diffs, testbeds_config) for name in TESTBEDS}
    return Run(config, mined, blobs, features, copies, copied, dedup, testbeds)


@cache
def readme_ids() -> tuple[str, ...]:
    """Return the ids of the tables in samples/README.md, in order."""
    lines = (SAMPLES / "README.md").read_text(encoding="utf-8").splitlines()
    cells = (line.split("|")[1].strip() for line in lines if line.startswith("| `"))
    return tuple(cell.strip("`") for cell in cells if cell.strip("`").replace("_", "a").isalnum())
