"""Rows about code that is no data point: what data points are compared with, and what was found similar."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from schemas.references import Role
from schemas.scalars import Sha256, TokenIds


class Change(StrEnum):
    """How a row of an earlier release differs in a new one."""

    GONE = "gone"
    RETURNED = "returned"


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


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """A set of known code that data points are compared with (table `reference_sets`)."""

    reference: str
    """Name of the set."""
    role: Role
    """`benchmark` or `release`."""
    files: tuple[str, ...]
    """Names of its files, sorted."""
    sha256: tuple[str, ...]
    """SHA-256 of each file."""
    n_rows: int
    """Rows of the wanted language."""
    n_other_language: int
    """Rows left aside because their language is another."""
    n_texts: int
    """Texts to compare with: the functions of each row, or the row's whole text."""


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """A text of a reference set (table `reference_texts`)."""

    reference: str
    """Name of the set."""
    reference_id: str
    """Id of the row: its id column's value, or file name and row number."""
    part: str | None
    """Qualified name of the function in the row's code; null where the whole text is compared."""
    text: str
    """What is compared: the function without its docstring, its own indentation removed, or the whole text."""


@dataclass(frozen=True, slots=True)
class ReferenceMatch:
    """A data point that resembles a row of a reference set (table `reference_matches`), the most similar row of each
    set."""

    row_id: str
    """Row id of the data point."""
    reference: str
    """Name of the set."""
    role: Role
    """`benchmark` or `release`."""
    reference_id: str
    """Id of the most similar row; of equals the first in the order of files and rows."""
    part: str | None
    """Qualified name of the function in that row; null where the whole text was compared."""
    jaccard: float
    """Exact Jaccard similarity of the two sets of BPE token ids."""
    exact: bool
    """The two texts are equal, docstring apart."""
    n_matches: int
    """Texts of the set at or above the threshold."""
    excluded: bool
    """The data point was left out for it; false for a row that an earlier release holds and `keep` lets stay."""


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """What became of rows of an earlier release (table `release_changes`)."""

    reference: str
    """Name of the earlier release."""
    row_id: str
    """Row id of the data point."""
    change: Change
    """`gone`: was in `raw_data` there and is not here, though `keep = "reference"`; `returned`: was left out there as a
    duplicate or as in a reference set, and is here."""
    reason: str
    """`gone`: the reason here, `no_data_point` for a row that did not come as far; `returned`: the reason there."""
    detail: str
    """The detail of that exclusion."""


@dataclass(frozen=True, slots=True)
class TextTokens:
    """The token set of a data point's, an old method's or a reference set's text (table `tokens`), in the order of the
    table that it was made from."""

    row_id: str
    """Row id of the data point; of an old method blob and first byte; of a reference text the id of its row."""
    text_sha256: Sha256
    """SHA-256 of the compared text's UTF-8 form: equal digests are equal texts."""
    token_ids: TokenIds
    """Distinct BPE token ids of the text, ascending; unsigned, two bytes each, the low byte first."""


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A distinct text that the duplicate search compared (table `compared_texts`), the texts of the rows that stay
    first of equal ones, by committer date and row id. A later search goes on from here."""

    text_sha256: Sha256
    """SHA-256 of the text's UTF-8 form."""
    keeper: int
    """Number of the cluster's first text in this table, counted from 0; its own where that is the text itself."""
    partner: int
    """Number of the most similar other text, the first of equals; -1 without one at the threshold."""
    jaccard: float
    """Exact Jaccard similarity to that one; -1.0 without one."""


@dataclass(frozen=True, slots=True)
class SimilarTexts:
    """Two texts at or above the threshold in a cluster whose pairs are all listed (table `similar_texts`)."""

    left: int
    """Number of the first text in table `compared_texts`, counted from 0."""
    right: int
    """Number of the second text."""
    common: int
    """Token ids that both have."""


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """A connected component of duplicate pairs (table `duplicate_clusters`)."""

    cluster_id: str
    """Row id of the oldest member: earliest committer date, then smallest row id."""
    keeper: str | None
    """Row id of the member that stays; null when none does (`keep = "none"`)."""
    members: tuple[str, ...]
    """Row ids of all members, sorted."""
    size: int
    """Number of members."""
    n_repos: int
    """Repositories that members come from."""
    cross_repository: bool
    """They come from more than one."""
    n_commits: int
    """Commits that brought members; 1 for copies that were made at once."""
    n_authors: int | None
    """Addresses of those commits' authors, capitals apart; null when one cannot be told. No address is stored."""
    threshold: float
    """Jaccard similarity from which two rows are a pair."""


@dataclass(frozen=True, slots=True)
class TestbedDuplicates:
    """What the removal of duplicates means for one testbed (table `testbed_duplicates`)."""

    __test__ = False  # pytest takes the name for a test class

    testbed: str
    """Name of the testbed."""
    n_rows: int
    """Data points that the testbed could use, had no duplicates been removed."""
    n_duplicates: int
    """Those of them that were removed as exact or near duplicates."""
    n_left: int
    """Those that were left to draw from: n_rows - n_duplicates."""
    n_final: int
    """Rows of the testbed after sampling."""
