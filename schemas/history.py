"""Rows of the lake's tables about what stands outside the window or has left the history."""

from dataclasses import dataclass

from schemas.records import Novelty


@dataclass(frozen=True, slots=True)
class HistoricFile:
    """A blob with which a commit outside the window brought or changed definitions (table `historic_files`)."""

    repo: str
    """owner/name."""
    commit_id: str
    """The commit that brought the definitions."""
    blob_id: str
    """The blob."""
    headers: tuple[str, ...]
    """Digests of the lines that begin these definitions, 8 hex digits each, sorted; some begin others beside them."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A Python blob of a parent tree outside the window, where moved code may come from (table `indexed_files`)."""

    repo: str
    """owner/name."""
    commit_id: str
    """Of the commits whose trees hold the blob, the smallest id."""
    path: str
    """Its smallest path there."""
    blob_id: str
    """The blob."""
    problem: str | None = None
    """Reason why its definitions are not known, null when they are."""
    detail: str = ""
    """What went wrong."""


@dataclass(frozen=True, slots=True)
class VanishedMethod:
    """A method that was mined and whose commit a rewritten branch no longer has (table `vanished_methods`)."""

    row_id: str
    """Hash of repository, commit, path, qualified name and start byte."""
    repo: str
    """owner/name."""
    commit_id: str
    """The commit that brought the method."""
    path: str
    """Path of the file after the change."""
    fun_name: str
    """Qualified name, `Class.method`."""
    novelty: Novelty
    """Class against the parent tree."""
    last_head: str
    """The last head of the branch with which the method was mined."""
