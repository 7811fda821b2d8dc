"""The whole search against comparing each pair, on real functions of the standard library."""

from fractions import Fraction

import pytest

from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig
from schemas.records import DuplicateCluster
from tests.dedup.by_rows import deduplicate, in_keeper_order
from tests.dedup.corpus import brute_force, components, real_functions, rows_of

N_FUNCTIONS = 1_500


@pytest.mark.parametrize("threshold", ["0.7", "0.6"])
def test_pairs_similarities_and_keepers_are_those_of_brute_force(threshold: str) -> None:
    rows = rows_of(real_functions(N_FUNCTIONS, seed=7))
    result = deduplicate(rows, DedupConfig(threshold=float(threshold)))

    first_of: dict[str, str] = {}
    for row in in_keeper_order(rows):
        first_of.setdefault(row.text, row.row_id)
    differing = [row for row in in_keeper_order(rows) if first_of[row.text] == row.row_id]
    sets = [frozenset(ids.tolist()) for ids in load_tokenizer().encode_batch([row.text for row in differing])]
    compared = [ids if len(ids) >= 5 else frozenset() for ids in sets]
    near = brute_force(compared, Fraction(threshold))
    keeper = components(len(differing), near)

    ids = [row.row_id for row in differing]
    assert {(pair.row_id_a, pair.row_id_b): pair.jaccard for pair in result.pairs if not pair.exact} == {
        (min(ids[a], ids[b]), max(ids[a], ids[b])): jaccard for (a, b), jaccard in near.items()
    }
    assert len(near) > 50
    assert result.kept_ids == sorted(ids[position] for position in set(keeper))
    final = {row_id: ids[position] for row_id, position in zip(ids, keeper, strict=True)}
    members: dict[str, list[str]] = {}
    for row in rows:
        members.setdefault(final[first_of[row.text]], []).append(row.row_id)
    assert result.clusters == [
        DuplicateCluster(row_id, tuple(sorted(group))) for row_id, group in sorted(members.items()) if len(group) > 1
    ]
    exact = [pair for pair in result.pairs if pair.exact]
    assert len(exact) == len(rows) - len(differing) > 20
    assert all(pair.jaccard == 1.0 for pair in exact)
