"""Rows of the lake's tables: frozen, slotted, one docstring line under each field.

A column's name is the field's name; `schemas.arrow` derives the Arrow schema from the annotations.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from schemas.errors import PipelineError

Row = TypeVar("Row")
LOCAL = "local"


class Novelty(StrEnum):
    """How a method at a commit relates to the parent tree (data contract, "Data points")."""

    ADDED = "added"
    MOVED = "moved"
    RENAMED = "renamed"
    MODIFIED = "modified"
    REFORMATTED = "reformatted"
    VENDORED = "vendored"
    GENERATED = "generated"
    COPIED_OLD = "copied_old"
    RESTORED = "restored"
    REPEATED = "repeated"


def make_repository_key(repo: str, host: str, repo_id: int | None, web_url: str | None) -> str:
    """Return what identifies a repository through renames: `host:id` with a numeric id, else owner/name.

    A local clone (`local`) has its id from the host of its web address; local ids without one are a host of their own.
    """
    return repo if repo_id is None else f"{home_of(host, web_url)}:{repo_id}"


def home_of(host: str, web_url: str | None) -> str:
    """Return the host that knows a repository: of a local clone that of its web address."""
    return urlsplit(web_url).netloc.lower() if host == LOCAL and web_url else host


def make_row_id(repository_key: str, commit_id: str, path: str, fun_name: str, start_byte: int) -> str:
    """Return the 32 hex digits that identify a method: BLAKE2b-128 of the five NUL-joined parts.

    The first is `make_repository_key`'s, so that a repository with a numeric id keeps its row ids when it is renamed.
    """
    text = "\0".join((repository_key, commit_id, path, fun_name, str(start_byte)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One row, file, commit or repository that does not go on, and why."""

    row_id: str
    """What was left out: a row_id; before rows exist `owner/name` (a repository, or its location when it has no name),
    `owner/name@commit` or `owner/name@commit:path`."""
    stage: str
    """The stage that left it out."""
    reason: str
    """A stable snake_case reason, counted in the funnel."""
    detail: str = ""
    """Evidence for a reader: the keeper and similarity, the error, the offending value."""
    repo: str | None = None
    """owner/name, filled in a release and in the catalogue; null for what has none."""
    commit_id: str | None = None
    """The commit, filled in a release and in the catalogue; null for repositories."""
    path: str | None = None
    """Path of the file, filled in a release and in the catalogue; null for repositories and commits."""
    fun_name: str | None = None
    """Qualified name of a method, filled in a release and in the catalogue; null for all else."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[Row]):
    """What a step hands on: the rows it kept and an Exclusion for every other row."""

    rows: list[Row]
    """Rows that go on, in the step's stated order."""
    excluded: list[Exclusion]
    """One entry for every row that does not."""


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """A mined repository (table `repositories`)."""

    repo: str
    """owner/name."""
    host: str
    """Host of the clone URL, with its port unless that is the default; `local` for paths and imported samples."""
    repo_id: int | None
    """The host's numeric id, null when there is none."""
    web_url: str | None
    """Address that permalinks are built from, null for repositories without one."""
    default_branch: str
    """Branch that was walked."""
    head: str
    """Commit id of that branch when it was mined."""
    n_commits: int
    """Commits reachable from head."""
    aliases: tuple[str, ...] = ()
    """Other names of the repository that the configuration gives, such as earlier ones, sorted. Names that only an
    earlier search saw are no part of it (`discovered_repositories`): whoever was not there does not know them."""

    @property
    def key(self) -> str:
        """Return what row ids name the repository by (`make_repository_key`)."""
        return make_repository_key(self.repo, self.host, self.repo_id, self.web_url)


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit inside the window (table `commits`)."""

    repo: str
    """owner/name."""
    commit_id: str
    """Full hexadecimal commit id."""
    parent_ids: tuple[str, ...]
    """Parents in order; empty for a root commit."""
    author_date: datetime
    """Author date, UTC."""
    committer_date: datetime
    """Committer date, UTC."""
    commit_message: str
    """Full message, decoded with the commit's `encoding` header (UTF-8 without one)."""
    author_is_bot: bool
    """The author's or committer's name or address is one a bot uses."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A Python file to which a commit brings a method that its parents do not have (table `changed_files`)."""

    repo: str
    """owner/name."""
    commit_id: str
    """The commit."""
    path: str
    """Path after the change; bytes that are not UTF-8 as `\\xNN`, backslashes doubled."""
    old_path: str | None
    """Path before the change when git's rename detection says it differs, else null."""
    blob_id: str
    """Blob after the change."""
    old_blob_id: str | None
    """Blob in the first parent, null when the file is new there."""
    diff: str
    """Unified diff against the first parent, three lines of context."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method that a commit of the window brought or touched, of any novelty class (table `methods`)."""

    row_id: str
    """Hash of repository (`host:id` with a numeric id, else owner/name), commit, path, qualified name and start byte
    (`make_row_id`)."""
    repo: str
    """owner/name."""
    repo_id: int | None
    """The host's numeric id, null when there is none."""
    url: str | None
    """Permalink to the lines at the commit, null when the repository has no web address."""
    license: str | None
    """SPDX expression of the file at the commit, null when unknown."""
    license_matches: tuple[str, ...]
    """Every licence found, as `where: SPDX id` (`LICENSE: MIT`): the header, then the file's folder and those above."""
    copyrights: tuple[str, ...]
    """Lines that name holders of the copyright, as they stand in the file's head and the licence texts that count."""
    commit_id: str
    """The commit that brought this version of the method."""
    parent_id: str | None
    """First parent, null for a root commit."""
    author_date: datetime
    """Author date, UTC."""
    committer_date: datetime
    """Committer date, UTC."""
    path: str
    """Path of the file after the change."""
    file_name: str
    """Last component of the path."""
    fun_name: str
    """Qualified name, `Class.method`."""
    language: str
    """Programming language, `python`."""
    blob_id: str
    """Blob that holds the method."""
    start_byte: int
    """Offset of the first decorator's (or the `def`'s) line's first code byte in the blob."""
    end_byte: int
    """Offset just behind the last statement in the blob."""
    start_line: int
    """First line, counted from 1."""
    end_line: int
    """Last line, counted from 1."""
    novelty: Novelty
    """Class against the parent tree."""
    earlier_path: str | None
    """Evidence: path of the earlier definition, null without one."""
    earlier_fun_name: str | None
    """Evidence: qualified name of the earlier definition, null without one."""
    earlier_commit_id: str | None
    """Evidence: a commit in whose tree it stands: the parent compared with, or the commit that brought it or
    still had it (`restored`, `repeated`); null without one."""
    similarity: float | None
    """Evidence: Jaccard similarity of both texts' sets of words and single other characters; null without one."""
    token_key: str
    """Digest of the characters of the tokens without own name, docstring and comments: equal tokens, equal keys."""
    is_test: bool
    """The method or its file belongs to tests."""
    commit_message: str
    """Full commit message."""
    author_is_bot: bool
    """The commit was made by a bot."""
    code: str
    """The definition with its own indentation removed, so that it parses alone."""


@dataclass(frozen=True, slots=True)
class DataPoint:
    """A brand-new method with its features (table `data_points`, `raw_data` in a release).

    The four dimensions follow Galeras (ICSME 2023): identification, documentation, syntax, software metrics.
    """

    row_id: str
    """Hash of repository (`host:id` with a numeric id, else owner/name), commit, path, qualified name, start byte."""
    repo: str
    """owner/name."""
    repo_id: int | None
    """The host's numeric id, null when there is none."""
    url: str | None
    """Permalink to the lines at the commit, null when the repository has no web address."""
    license: str | None
    """SPDX expression of the file at the commit, null when unknown."""
    license_matches: tuple[str, ...]
    """Every licence found, as `where: SPDX id` (`LICENSE: MIT`): the header, then the file's folder and those above."""
    copyrights: tuple[str, ...]
    """Lines that name holders of the copyright, as they stand in the file's head and the licence texts that count."""
    commit_id: str
    """The commit that brought the method."""
    parent_id: str | None
    """First parent, null for a root commit."""
    author_date: datetime
    """Author date, UTC."""
    committer_date: datetime
    """Committer date, UTC."""
    path: str
    """Path of the file after the change; bytes that are not UTF-8 as `\\xNN`, backslashes doubled."""
    file_name: str
    """Last component of the path."""
    fun_name: str
    """Qualified name, `Class.method`."""
    language: str
    """Programming language, `python`."""
    blob_id: str
    """Blob that holds the method."""
    start_byte: int
    """Byte offset of the first decorator or `def` in the blob."""
    end_byte: int
    """Byte offset just behind the last statement in the blob."""
    start_line: int
    """First line, counted from 1."""
    end_line: int
    """Last line, counted from 1."""
    novelty: Novelty
    """Class against the parent tree; `added` unless the configuration lets others through."""
    is_test: bool
    """The method or its file belongs to tests."""
    commit_message: str
    """Full commit message."""
    author_is_bot: bool
    """The commit was made by a bot."""
    docstring: str | None
    """First statement of the body when it is a string, cleaned as inspect.cleandoc does; null if none."""
    doc_language: str | None
    """ISO 639-1 code of the docstring's natural language, null without docstring or without a letter in it."""
    doc_language_confidence: float | None
    """Probability of doc_language given by the language identifier, 0 to 1; null where doc_language is."""
    doc_n_words: int
    """White-space separated words of docstring; 0 if none."""
    doc_vocab_size: int
    """Distinct white-space separated words of docstring."""
    doc_n_whitespaces: int
    """U+0020 characters of docstring."""
    code: str
    """The definition with its own indentation removed, so that it parses alone."""
    signature: str
    """From `def` or `async def` to the colon that ends the header, decorators left out."""
    n_ast_errors: int
    """ERROR nodes of the tree-sitter tree of code."""
    n_ast_missing: int
    """MISSING nodes of the tree-sitter tree of code."""
    n_ast_levels: int
    """Nodes on the longest root-to-leaf path of the tree-sitter tree of code, root counted."""
    n_ast_nodes: int
    """tree-sitter nodes of code, named and anonymous, below the root (total - 1)."""
    n_identifiers: int
    """Distinct texts of `identifier` nodes of code."""
    n_words: int
    """White-space separated words of code."""
    vocab_size: int
    """Distinct white-space separated words of code."""
    n_whitespaces: int
    """U+0020 characters of code."""
    token_count: int
    """lizard's token_count of code: lexical tokens from the name on, comments and nested functions left out."""
    parses: bool
    """The running CPython's ast.parse accepts code."""
    nloc: int
    """lizard's nloc of code: lines that hold code, without comments, docstring, blank lines, nested functions."""
    complexity: int
    """lizard's cyclomatic complexity (CCN) of code: 1 + conditions, nested functions left out."""


@dataclass(frozen=True, slots=True)
class UniqueRow:
    """A data point that deduplication kept (table `unique_rows`)."""

    row_id: str
    """Row id of the data point."""
    novelty: Novelty
    """Class of the data point; `copied_old` where it was compared with old code, resembles some and is wanted."""


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two rows at or above the threshold (table `duplicates`)."""

    row_id_a: str
    """Smaller row id of the two."""
    row_id_b: str
    """Larger row id of the two."""
    jaccard: float
    """Exact Jaccard similarity of the two sets of BPE token ids; 1.0 for exact duplicates."""
    exact: bool
    """The two token sequences are equal."""
    cluster_id: str
    """Row id of the cluster's keeper."""


@dataclass(frozen=True, slots=True)
class DuplicateCluster:
    """A connected component of duplicate pairs; table `duplicate_clusters` says more of it (`DescribedCluster`)."""

    cluster_id: str
    """Row id of the keeper: earliest committer date, then smallest row id."""
    members: tuple[str, ...]
    """Row ids of all members, sorted, the keeper among them."""


@dataclass(frozen=True, slots=True)
class StageReport:
    """Accounts for every row of one stage over one partition (table `runs`)."""

    stage: str
    """Name of the stage."""
    partition: str
    """owner/name of the repository; name of the testbed for a testbed's stage; `all` for other global stages."""
    rows_in: int
    """Rows the stage was given."""
    rows_out: int
    """Rows it handed on."""
    excluded_by_reason: dict[str, int] = field(default_factory=dict)
    """Rows left out, by reason."""
    config_digest: str = ""
    """Digest of the resolved configuration."""
    code_version: str = ""
    """Version of Postquem."""
    started_at: datetime | None = None
    """When the stage began, UTC."""
    finished_at: datetime | None = None
    """When it ended, UTC."""

    def __post_init__(self) -> None:
        """Refuse a report that loses or invents a row."""
        accounted = self.rows_out + sum(self.excluded_by_reason.values())
        if self.rows_in != accounted:
            raise PipelineError(
                f"stage {self.stage} over {self.partition} does not add up: {self.rows_in} rows in, "
                f"{self.rows_out} out and {accounted - self.rows_out} excluded; please report this as a bug"
            )


def count_reasons(excluded: Sequence[Exclusion]) -> dict[str, int]:
    """Return the number of exclusions of each reason, sorted by reason."""
    return dict(sorted(Counter(item.reason for item in excluded).items()))
