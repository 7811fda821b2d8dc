"""The number of authors of each cluster."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from dedup.jaccard import Ints
from miners.authors import number_authors
from schemas.arrow import schema_of
from schemas.comparisons import DescribedCluster


def count_authors(clusters: pa.Table, members: pa.Table, clones: Mapping[str, Path]) -> pa.Table:
    """Return clusters (DescribedCluster) with their numbers of authors; null where an author cannot be told.

    `members` has the columns repo and commit_id of all members, cluster by cluster; `clones` are the git directories
    by repository. One commit has one author, so that only the commits of other clusters are read.
    """
    several = np.flatnonzero(clusters.column("n_commits").to_numpy() > 1)
    cluster = np.repeat(np.arange(clusters.num_rows), clusters.column("size").to_numpy())
    read = np.flatnonzero(np.isin(cluster, several))
    cluster, author = cluster[read], _authors(members.take(pa.array(read)), clones)
    width = int(author.max(initial=0)) + 2
    distinct = np.sort(cluster * width + author + 1)
    distinct = distinct[np.flatnonzero(np.diff(distinct, prepend=-1))] // width
    count = np.bincount(distinct, minlength=clusters.num_rows)
    count[np.setdiff1d(np.arange(clusters.num_rows), several, assume_unique=True)] = 1
    unknown = np.zeros(clusters.num_rows, np.bool_)
    unknown[cluster[author < 0]] = True
    field = schema_of(DescribedCluster).field("n_authors")
    return clusters.set_column(clusters.schema.get_field_index("n_authors"), field, pa.array(count, mask=unknown))


def _authors(commits: pa.Table, clones: Mapping[str, Path]) -> Ints:
    """Return the number of the author of each commit (columns repo, commit_id), -1 for one that cannot be told."""
    repo, commit = (commits.column(name).combine_chunks().dictionary_encode() for name in ("repo", "commit_id"))
    width = max(len(commit.dictionary), 1)
    keys = repo.indices.to_numpy().astype(np.int64) * width + commit.indices.to_numpy()
    distinct, place = np.unique(keys, return_inverse=True)
    is_cloned = np.array([name in clones for name in repo.dictionary.to_pylist()], np.bool_)
    cloned = np.flatnonzero(is_cloned[distinct // width])
    names, ids = (
        column.dictionary.take(pa.array(number[cloned])).to_pylist()
        for column, number in ((repo, distinct // width), (commit, distinct % width))
    )
    pairs = list(zip(names, ids, strict=True))
    found = number_authors(pairs, clones)
    number = np.full(len(distinct), -1)
    number[cloned] = [found.get(pair, -1) for pair in pairs]
    author: Ints = number[place]
    return author
