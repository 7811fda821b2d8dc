"""Clones of repositories as an earlier run saw them: with the commit that was their newest one then."""

from pathlib import Path

from miners.clone import DETACHED, Clone, open_clone
from miners.git_process import run_git
from miners.places import Place
from schemas.errors import DataError
from schemas.records import LOCAL, RepositoryRecord


def pinned_place(record: RepositoryRecord, location: str) -> Place:
    """Return a repository at a location: an https URL, a `git fast-import` stream (a file), or a folder."""
    kind = "https" if location.startswith("https://") else "fast_import" if Path(location).is_file() else "path"
    owner, _, name = record.repo.rpartition("/")
    branch = None if record.default_branch == DETACHED else record.default_branch
    return Place(kind, location, LOCAL, owner, name, None, branch, None)


def open_pinned(record: RepositoryRecord, location: str, repos: Path) -> Clone:
    """Return a clone below `repos` that has the record's head, made from a location or brought up to date.

    The clone's own branches may have gone on: what is mined starts at the record's head. Raises DataError
    `commit_missing` when the location has not got that commit, and as `open_clone`.
    """
    clone = open_clone(pinned_place(record, location), repos)
    try:
        run_git(clone.git_dir, "cat-file", "-e", f"{record.head}^{{commit}}")
    except DataError:
        raise DataError("commit_missing", f"{location} has not got commit {record.head}") from None
    return Clone(clone.git_dir, record)
