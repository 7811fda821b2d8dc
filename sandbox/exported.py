"""A commit's tree in a folder of its own, for as long as it is executed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from miners.checkout import export_tree
from miners.commits import read_commit
from miners.git_process import ObjectReader
from sandbox.environment import SourceCommit

# A larger tree is a collection of data, whose tests we would not wait for.
_MAX_TREE_BYTES = 4 << 30


@contextmanager
def exported(git_dir: Path, repo: str, commit_id: str, folder: Path) -> Iterator[tuple[Path, SourceCommit]]:
    """Write the tree of a commit below `folder` and say which it is; it is removed in the end.

    Raises DataError as `export_tree` and `read_commit` do.
    """
    with ObjectReader(git_dir) as reader:
        at = SourceCommit(repo, commit_id, read_commit(reader, commit_id, repo).committer_date)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f"{repo.replace('/', '__')}-"
    with tempfile.TemporaryDirectory(dir=folder, prefix=prefix, ignore_cleanup_errors=True) as work:
        tree = Path(work) / "tree"
        export_tree(git_dir, commit_id, tree, _MAX_TREE_BYTES)
        yield tree, at
