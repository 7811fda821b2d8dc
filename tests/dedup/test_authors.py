"""The number of authors of a cluster, from real commits."""

from pathlib import Path

import pyarrow as pa

from dedup.authors import count_authors
from miners.authors import number_authors
from schemas.arrow import from_table, to_table
from schemas.comparisons import DescribedCluster
from tests.builders import RepoBuilder

ADA, ADA_AT_WORK, BOB = "Ada <ada@example.org>", "A. Lovelace <Ada@Example.org>", "Bob <bob@example.org>"


def cluster(name: str, members: tuple[str, ...], n_commits: int, n_authors: int | None = None) -> DescribedCluster:
    return DescribedCluster(name, name, members, len(members), 1, False, n_commits, n_authors, 0.7)


def test_addresses_are_told_apart_without_capitals(tmp_path: Path) -> None:
    one, other = RepoBuilder(tmp_path / "one.git"), RepoBuilder(tmp_path / "other.git")
    ada, work, bob = (one.commit({}, "Change", author=author) for author in (ADA, ADA_AT_WORK, BOB))
    elsewhere = other.commit({}, "Change", author=BOB)
    nobody = one.raw_commit(b"tree " + one.tree({}).encode() + b"\n\nNo author\n")
    commits = [("o/one", ada), ("o/one", work), ("o/one", bob), ("o/other", elsewhere)]
    unknown = [("o/one", nobody), ("o/one", "0" * 40), ("o/gone", ada)]
    found = number_authors(commits + unknown, {"o/one": one.path, "o/other": other.path})
    assert [found[commit] for commit in commits] == [0, 0, 1, 1]
    assert found.keys() == set(commits)


def test_clusters_tell_how_many_authors_they_have_or_nothing(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "one.git")
    ada, work, bob = (builder.commit({}, "Change", author=author) for author in (ADA, ADA_AT_WORK, BOB))
    commit_of = {"a": ada, "b": work, "c": bob, "d": bob, "e": bob, "f": "0" * 40}
    clusters = [
        cluster("a", ("a", "b"), 2), cluster("b", ("b", "c", "d"), 2), cluster("c", ("c", "f"), 2),
        cluster("d", ("d", "e"), 1),
    ]  # fmt: skip
    commits = [commit_of[member] for item in clusters for member in item.members]
    members = pa.table({"repo": ["o/one"] * len(commits), "commit_id": commits})
    counted = count_authors(to_table(clusters, DescribedCluster), members, {"o/one": builder.path})
    assert [(item.cluster_id, item.n_authors) for item in from_table(counted, DescribedCluster)] == [
        ("a", 1),
        ("b", 2),
        ("c", None),
        ("d", 1),
    ]
    assert counted.schema.equals(to_table(clusters, DescribedCluster).schema, check_metadata=True)
    without = count_authors(to_table(clusters, DescribedCluster), members, {})
    assert without.column("n_authors").to_pylist() == [None, None, None, 1]
    nothing = to_table([], DescribedCluster)
    assert count_authors(nothing, members.slice(0, 0), {}).equals(nothing)
