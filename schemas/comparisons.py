"""Rows about code that is no data point: what data points are compared with, and what was found similar."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Where a repository stood at the cutoff (table `cutoffs`, one row per repository)."""

    repo: str
    """owner/name."""
    since: datetime
    """The window's first moment."""
    commit_id: str | None
    """Newest commit before it on the branch's first-parent chain; null when the repository is younger."""
    committer_date: datetime | None
    """Committer date of that commit, UTC; null without one."""
    n_files: int
    """Distinct Python files (blobs) of its tree that could be read."""
    n_methods: int
    """Methods in them; equal files count once."""


@dataclass(frozen=True, slots=True)
class OldMethod:
    """A method of the tree at the cutoff; of equal ones that of the smallest path (table `old_methods`)."""

    repo: str
    """owner/name."""
    commit_id: str
    """The cutoff's commit."""
    path: str
    """Path of the file; bytes that are not UTF-8 as `\\xNN`, backslashes doubled."""
    fun_name: str
    """Qualified name, `Class.method`."""
    blob_id: str
    """Blob that holds the method."""
    start_byte: int
    """Offset of the first decorator's or the `def`'s first code byte in the blob."""
    end_byte: int
    """Offset just behind the last statement in the blob."""
    start_line: int
    """First line, counted from 1."""
    text: str
    """What is compared: the definition without its docstring, its own indentation removed."""


@dataclass(frozen=True, slots=True)
class OldCopy:
    """A brand-new method that resembles one of the tree at the cutoff (table `copied_old`)."""

    row_id: str
    """Row id of the data point."""
    repo: str
    """The data point's owner/name."""
    jaccard: float
    """Exact Jaccard similarity of the two sets of BPE token ids, the highest that the row reaches."""
    exact: bool
    """The two texts are equal, docstring apart."""
    old_repo: str
    """Repository of the old method."""
    old_commit_id: str
    """The cutoff's commit there."""
    old_path: str
    """Path of the old method; of equally similar ones the first by repository, path and place."""
    old_fun_name: str
    """Its qualified name."""
    old_start_line: int
    """Its first line, counted from 1."""
