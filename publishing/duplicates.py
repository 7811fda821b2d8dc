"""What the card and the manifest say of duplicates: clusters, testbeds, reference sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from publishing.markdown import code, plain, share, table
from schemas.comparisons import DescribedCluster, ReferenceSet, TestbedDuplicates

_LARGEST = 5  # clusters that the card lists


@dataclass(frozen=True, slots=True)
class LargeCluster:
    """One of the largest clusters and where its oldest member stands."""

    size: int
    """Members."""
    n_repos: int
    """Repositories that they come from."""
    n_commits: int
    """Commits that brought them."""
    n_authors: int | None
    """Their authors; null when one cannot be told."""
    repo: str
    """Repository of the oldest member."""
    path: str
    """Its path."""
    fun_name: str
    """Its qualified name."""


@dataclass(frozen=True, slots=True)
class DuplicateFacts:
    """Duplicates of a release."""

    n_clusters: int = 0
    """Clusters of two rows and more."""
    n_members: int = 0
    """Rows in them."""
    n_cross_repository: int = 0
    """Clusters with members of several repositories."""
    n_one_commit: int = 0
    """Clusters that one commit brought."""
    n_one_author: int = 0
    """Clusters of several commits by one author, as far as authors can be told."""
    largest: tuple[LargeCluster, ...] = ()
    """The largest clusters, largest first."""
    testbeds: tuple[TestbedDuplicates, ...] = ()
    """What the removal means for each testbed, in the order of the configuration."""
    references: tuple[ReferenceSet, ...] = ()
    """Reference sets, in the order of the configuration."""


Place = tuple[str, str, str]


def largest_clusters(clusters: Sequence[DescribedCluster]) -> list[DescribedCluster]:
    """Return the clusters that the card lists: the largest, of equals the first by id."""
    return list(islice(sorted(clusters, key=lambda item: (-item.size, item.cluster_id)), _LARGEST))


def duplicate_facts(
    clusters: Sequence[DescribedCluster],
    places: dict[str, Place],
    testbeds: Sequence[TestbedDuplicates],
    references: Sequence[ReferenceSet],
) -> DuplicateFacts:
    """Return the facts; `places` has repository, path and name of the oldest member of each of `largest_clusters`."""
    return DuplicateFacts(
        n_clusters=len(clusters),
        n_members=sum(item.size for item in clusters),
        n_cross_repository=sum(item.cross_repository for item in clusters),
        n_one_commit=sum(item.n_commits == 1 for item in clusters),
        n_one_author=sum(item.n_commits > 1 and item.n_authors == 1 for item in clusters),
        largest=tuple(
            LargeCluster(item.size, item.n_repos, item.n_commits, item.n_authors, *places[item.cluster_id])
            for item in largest_clusters(clusters)
        ),
        testbeds=tuple(testbeds),
        references=tuple(references),
    )


def duplicates_section(facts: DuplicateFacts, dedup: dict[str, Any]) -> str:
    """Return the card's section; `dedup` is that part of the manifest's configuration."""
    what = "none of them stays" if dedup["keep"] == "none" else "of each the earliest stays"
    across, at_once, by_one = (
        f"{share(part, facts.n_clusters)} of the clusters ({part:,})"
        for part in (facts.n_cross_repository, facts.n_one_commit, facts.n_one_author)
    )
    blocks = [
        "## Duplicates",
        f"{facts.n_clusters:,} clusters of rows that are equal or similar (Jaccard similarity of "
        f"{dedup['threshold']} or more, pair by pair) with {facts.n_members:,} rows; {what}. "
        f"{across} have members of several repositories, {at_once} came with one commit, {by_one} with several commits "
        "of one author. Authors are told apart by their addresses, of which nothing is stored.",
    ]
    if facts.testbeds:
        blocks += ["What the removal means for each testbed, before its sample is drawn:", _testbeds(facts.testbeds)]
    if facts.largest:
        blocks += ["The largest clusters, with their earliest member:", _largest(facts.largest)]
    if facts.references:
        blocks += ["Reference sets, whose similar rows were left out:", _references(facts.references)]
    return "\n\n".join(blocks)


def _testbeds(rows: Sequence[TestbedDuplicates]) -> str:
    cells = [
        [
            code(row.testbed), f"{row.n_rows:,}", f"{row.n_duplicates:,}", share(row.n_duplicates, row.n_rows),
            f"{row.n_left:,}", f"{row.n_final:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["testbed", "usable rows", "duplicates", "rate", "left", "in the release"], cells)


def _largest(clusters: Sequence[LargeCluster]) -> str:
    cells = [
        [
            f"{item.size:,}",
            f"{item.n_repos:,}",
            f"{item.n_commits:,}",
            "unknown" if item.n_authors is None else f"{item.n_authors:,}",
            code(item.repo),
            code(item.path),
            code(item.fun_name),
        ]
        for item in clusters
    ]
    return table(["rows", "repositories", "commits", "authors", "repository", "path", "name"], cells)


def _references(sets: Sequence[ReferenceSet]) -> str:
    cells = [
        [code(item.reference), str(item.role), f"{item.n_rows:,}", f"{item.n_texts:,}", plain(", ".join(item.files))]
        for item in sets
    ]
    return table(["set", "role", "rows", "texts compared", "files"], cells)
