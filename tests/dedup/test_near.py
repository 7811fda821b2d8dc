"""Clusters, partners and listed pairs of token sets against the definition; equal sets among them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dedup.join
from dedup.clusters import NearDuplicates
from dedup.near import extend_near_duplicates, find_near_duplicates
from tests.dedup.corpus import brute_force, components, sets_from
from tests.dedup.test_join import Group, similar_sets

SEVEN_TENTHS = Fraction(7, 10)


@st.composite
def with_repetitions(draw: st.DrawFn) -> list[Group]:
    members = draw(similar_sets())
    return members + (draw(st.lists(st.sampled_from(members), max_size=15)) if members else [])


@settings(max_examples=150, deadline=None)
@given(with_repetitions(), st.integers(0, 6), st.integers(1, 12), st.booleans())
def test_result_is_that_of_brute_force(members: list[Group], floor: int, limit: int, small: bool) -> None:
    compared = [group if len(group) >= max(floor, 1) else frozenset() for group in members]
    truth = brute_force(compared, SEVEN_TENTHS)
    keeper = components(len(members), truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.join, "_MAX_MATCHES", 10**9 if small else -1)
        found = find_near_duplicates(sets_from(members), SEVEN_TENTHS, floor, limit)
    assert found.keeper.tolist() == keeper
    assert found.n_pairs == len(truth)
    partner = []
    for one in range(len(members)):
        others = [(-similarity, a + b - one) for (a, b), similarity in truth.items() if one in (a, b)]
        partner.append(min(others)[1] if others else -1)
    assert found.partner.tolist() == partner
    assert found.similarity.tolist() == [
        truth[min(one, other), max(one, other)] if other >= 0 else -1.0 for one, other in enumerate(partner)
    ]
    listed = zip(found.pairs.left.tolist(), found.pairs.right.tolist(), found.pairs.common.tolist(), strict=True)
    assert list(listed) == [
        (a, b, len(members[a] & members[b])) for a, b in sorted(truth) if keeper.count(keeper[a]) <= limit
    ]


@settings(max_examples=150, deadline=None)
@given(with_repetitions(), st.data(), st.integers(0, 6), st.integers(1, 12), st.booleans())
def test_adding_sets_gives_what_doing_all_again_gives(
    members: list[Group], data: st.DataObject, floor: int, limit: int, small: bool
) -> None:
    count = len(members)
    is_new = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    sets = sets_from(members)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.join, "_MAX_MATCHES", 10**9 if small else -1)
        earlier = find_near_duplicates(sets.take(np.flatnonzero(~is_new)), SEVEN_TENTHS, floor, limit)
        found = extend_near_duplicates(sets, is_new, earlier, SEVEN_TENTHS, floor, limit)
        whole = find_near_duplicates(sets, SEVEN_TENTHS, floor, limit)
    assert plain(found) == plain(whole)


def plain(found: NearDuplicates) -> tuple[list[list[int]], list[float], int]:
    pairs = found.pairs
    columns = (found.keeper, found.partner, pairs.left, pairs.right, pairs.common)
    return [column.tolist() for column in columns], found.similarity.tolist(), found.n_pairs


def test_added_set_before_an_old_keeper_takes_its_place() -> None:
    sets = sets_from([range(10), range(9), range(20, 30)])
    earlier = find_near_duplicates(sets.take(np.array([1, 2])), SEVEN_TENTHS, 1)
    assert earlier.keeper.tolist() == [0, 1]
    found = extend_near_duplicates(sets, np.array([True, False, False]), earlier, SEVEN_TENTHS, 1)
    assert found.keeper.tolist() == [0, 0, 2]


def test_cluster_of_thousands_of_near_duplicates() -> None:
    n_sets = 4_000
    sets = sets_from(([*range(40), 40 + number] for number in range(n_sets)), vocab_size=5_000)
    found = find_near_duplicates(sets, SEVEN_TENTHS, 5)
    assert found.n_pairs == n_sets * (n_sets - 1) // 2
    assert found.keeper.tolist() == [0] * n_sets
    assert found.partner.tolist() == [1] + [0] * (n_sets - 1)
    assert len(found.pairs.left) == 0


def test_all_equal_sets_need_no_pair_by_pair_work() -> None:
    n_sets = 50_000
    found = find_near_duplicates(sets_from([range(20)] * n_sets), SEVEN_TENTHS, 5)
    assert found.n_pairs == n_sets * (n_sets - 1) // 2
    assert np.flatnonzero(found.keeper).tolist() == []
    assert found.partner.tolist() == [1] + [0] * (n_sets - 1)
    assert len(found.pairs.left) == 0
