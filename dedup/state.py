"""A search for near duplicates as tables: the lake keeps it for the next one, processes hand their shares on."""

import numpy as np
import pyarrow as pa

from dedup.clusters import NearDuplicates
from dedup.columns import Search
from dedup.jaccard import Ints, Pairs
from schemas.arrow import schema_of
from schemas.comparisons import ComparedText, SimilarTexts
from schemas.errors import PipelineError

_N_PAIRS = b"postquem.n_pairs"
_NEAR = ("keeper", "partner", "jaccard")


def near_to_arrow(near: NearDuplicates) -> tuple[pa.Table, pa.Table]:
    """Return what a search found: a row for each set, and the listed pairs (SimilarTexts)."""
    schema = schema_of(ComparedText)
    fields = [schema.field(name) for name in _NEAR]
    columns = [pa.array(column) for column in (near.keeper, near.partner, near.similarity)]
    pairs = [pa.array(column) for column in (near.pairs.left, near.pairs.right, near.pairs.common)]
    metadata = {**schema.metadata, _N_PAIRS: str(near.n_pairs)}
    return pa.table(columns, pa.schema(fields, metadata)), pa.table(pairs, schema_of(SimilarTexts))


def near_from_arrow(sets: pa.Table, pairs: pa.Table) -> NearDuplicates:
    """Return what a search found; raise PipelineError for a table that none wrote."""
    count = (sets.schema.metadata or {}).get(_N_PAIRS)
    if count is None:
        raise PipelineError("a table of compared texts does not say how many pairs there were; remove it and run again")
    keeper, partner = (_numbers(sets, name) for name in ("keeper", "partner"))
    similarity = sets.column("jaccard").to_numpy().astype(np.float64)
    listed = Pairs(*(_numbers(pairs, name) for name in ("left", "right", "common")))
    return NearDuplicates(keeper, partner, similarity, listed, int(count))


def search_to_arrow(search: Search) -> tuple[pa.Table, pa.Table]:
    """Return a search as the tables `compared_texts` and `similar_texts`."""
    near, pairs = near_to_arrow(search.near)
    field = schema_of(ComparedText).field("text_sha256")
    table = near.add_column(0, field, search.digest)
    return table.replace_schema_metadata(near.schema.metadata), pairs


def search_from_arrow(texts: pa.Table, pairs: pa.Table) -> Search:
    """Return the search that the tables `compared_texts` and `similar_texts` hold."""
    return Search(texts.column("text_sha256").combine_chunks(), near_from_arrow(texts, pairs))


def _numbers(table: pa.Table, name: str) -> Ints:
    numbers: Ints = table.column(name).to_numpy().astype(np.int64)
    return numbers
