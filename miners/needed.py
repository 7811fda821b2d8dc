"""What the miner reads of a repository: fetched before it reads, in a few large requests, where a clone lacks it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from miners.clone import Clone, complete
from miners.commits import CommitHeader, select, walk
from miners.cutoff import find_cutoff
from miners.git_process import run_git
from miners.licences import may_tell_licence
from miners.partial import fetch_files, fetch_objects, fetch_trees, is_partial, list_blobs
from miners.plan import FormerRun, MiningPlan, ancestors, is_from, plan_mining
from schemas.config import MiningConfig, WindowConfig
from schemas.errors import DataError

_PYTHON = b".py"


def plan_and_fetch(
    clone: Clone, config: MiningConfig, window: WindowConfig, now: datetime, former: FormerRun | None = None,
) -> MiningPlan:  # fmt: skip
    """Return the plan of `miners.plan.plan_mining`, with all that its ranges and the cutoff's tree read at hand.

    Two requests to the source at the most while little is new: one for trees, one for blobs. Raises as `plan_mining`
    and, where the clone is partial, as `miners.remote.ask`.
    """
    if not is_partial(clone.git_dir):
        return plan_mining(clone, config, window, now, former)
    try:
        _fetch_trees(clone, config, window, now, former)
        plan = plan_mining(clone, config, window, now, former)
        fetch_objects(clone.git_dir, (blob_id for _, blob_id in sorted(_blobs(clone, window, plan))))
    except DataError as error:
        if error.reason != "git_failed":
            raise
        complete(clone.git_dir)  # the source cannot give parts, or lacks some
        return plan_mining(clone, config, window, now, former)
    return plan


def fetch_cutoff(clone: Clone, commit_id: str) -> None:
    """Fetch the Python files of the tree at the cutoff where they are not at hand."""
    fetch_files(clone.git_dir, commit_id, _PYTHON)


def _fetch_trees(
    clone: Clone, config: MiningConfig, window: WindowConfig, now: datetime, former: FormerRun | None
) -> None:  # fmt: skip
    """Fetch the trees of the head, of the cutoff, and of the commits that are mined or searched and their parents."""
    headers = walk(clone.git_dir, clone.record.head)
    selected = select(headers, window, now, clone.record.repo).rows
    first = config.history_start(window.since)
    known: frozenset[str] = frozenset()
    if former is not None and former.searched and not former.future & {header.commit_id for header in selected}:
        known = ancestors(headers, former.head) or known
    old = [header for header in headers if is_from(header, first) and header.commit_id not in known]
    commits = {clone.record.head: None, **dict.fromkeys(_cutoff(clone, window))}
    for header in (*selected, *(old if selected else ())):
        commits |= dict.fromkeys((header.commit_id, *header.parent_ids))
    fetch_trees(clone.git_dir, commits)


def _cutoff(clone: Clone, window: WindowConfig) -> list[str]:
    """Return the commit of the cutoff, if there is one."""
    try:
        found = find_cutoff(clone.git_dir, clone.record.head, window.since)
    except DataError:
        return []
    return [] if found is None else [found.commit_id]


def _blobs(clone: Clone, window: WindowConfig, plan: MiningPlan) -> set[tuple[bytes, str]]:
    """Return (path, blob) of every file that may be read."""
    mined = [changes.commit_id for changes in plan.changes]
    found = {item for item in _changed(clone, mined) if item[0].endswith(_PYTHON) or may_tell_licence(item[0])}
    found |= {item for item in _changed(clone, plan.old_ids) if item[0].endswith(_PYTHON)}
    for commit_id in _edge(plan.headers, frozenset(mined)):
        tree = list_blobs(clone.git_dir, commit_id)
        found |= {item for item in tree if item[0].endswith(_PYTHON) or may_tell_licence(item[0])}
    for commit_id in _cutoff(clone, window):
        found |= {item for item in list_blobs(clone.git_dir, commit_id) if item[0].endswith(_PYTHON)}
    return found


def _edge(headers: Iterable[CommitHeader], mined: frozenset[str]) -> list[str]:
    """Return the parents of mined commits that are not mined themselves."""
    parents = (parent_id for header in headers if header.commit_id in mined for parent_id in header.parent_ids)
    return [commit_id for commit_id in dict.fromkeys(parents) if commit_id not in mined]


def _changed(clone: Clone, commit_ids: Sequence[str]) -> Iterator[tuple[bytes, str]]:
    """Yield (path, blob) of the regular files before and after each change, a merge's being those against all parents.

    Raises DataError `git_failed` when git cannot read a commit's trees.
    """
    lines = "".join(f"{commit_id}\n" for commit_id in commit_ids).encode()
    flags = ("--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--root", "-c", "--no-commit-id")
    output = run_git(clone.git_dir, "diff-tree", *flags, input=lines) if commit_ids else b""
    tokens = iter(output.split(b"\0"))
    for token in tokens:
        if token.startswith(b":"):
            path, n_parents = next(tokens), len(token) - len(token.lstrip(b":"))
            parts = token[n_parents:].decode().split(" ")
            modes, ids = parts[: n_parents + 1], parts[n_parents + 1 : 2 * n_parents + 2]
            yield from ((path, blob_id) for mode, blob_id in zip(modes, ids, strict=True) if mode.startswith("100"))
