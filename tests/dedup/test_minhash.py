from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dedup.jaccard import Pairs, join_pairs, verify
from dedup.minhash import minhash_candidates
from dedup.near import find_near_duplicates
from tests.dedup.corpus import real_functions, sets_from, sets_of

SEVEN_TENTHS = Fraction(7, 10)


def positions(pairs: Pairs) -> set[tuple[int, int]]:
    return set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def test_equal_sets_are_proposed_and_disjoint_ones_are_not() -> None:
    assert minhash_candidates(sets_from([{1, 2, 3}, {7, 8, 9}, {1, 2, 3}]), 0.7) == [(0, 2)]


def test_no_sets_give_no_proposals() -> None:
    assert minhash_candidates(sets_from([]), 0.7) == []


def test_proposals_are_the_same_every_time() -> None:
    sets = sets_of(real_functions(100))
    assert minhash_candidates(sets, 0.7) == minhash_candidates(sets, 0.7)


def test_every_confirmed_proposal_of_minhash_is_found_by_the_exact_join(
    record_property: Callable[[str, object], None],
) -> None:
    sets = sets_of(sorted(set(real_functions(1_500, seed=11))))
    proposed = np.array(minhash_candidates(sets, 0.7), np.int64)
    confirmed = positions(join_pairs(verify(sets, proposed[:, 0], proposed[:, 1], SEVEN_TENTHS)))
    ours = positions(find_near_duplicates(sets, SEVEN_TENTHS, min_distinct=1).pairs)
    record_property("minhash_recall", len(confirmed) / len(ours))
    record_property("minhash_precision", len(confirmed) / len(proposed))
    assert confirmed <= ours
    # The figures that speak for the exact join (docs/adr/0002); the permutations are seeded, so they are stable.
    assert 0.5 < len(confirmed) / len(ours) < 1.0
    assert len(confirmed) < len(proposed)
