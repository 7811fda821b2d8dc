"""Clusters, partners and listed pairs of token sets against the definition; equal sets among them."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dedup.join
import dedup.near
from dedup.clusters import NearDuplicates
from dedup.near import (
    Former,
    explain_removals,
    extend_near_duplicates,
    find_near_duplicates,
    finish_near_duplicates,
    search_part,
)
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
        found = extend_near_duplicates(sets, Former(earlier, np.flatnonzero(~is_new)), SEVEN_TENTHS, floor, limit)
        whole = find_near_duplicates(sets, SEVEN_TENTHS, floor, limit)
    assert found is not None
    assert plain(found) == plain(whole)


@settings(max_examples=200, deadline=None)
@given(with_repetitions(), st.data(), st.integers(1, 12))
def test_sets_that_are_gone_or_moved_leave_what_doing_all_again_gives(
    members: list[Group], data: st.DataObject, limit: int
) -> None:
    count = len(members)
    held = data.draw(st.lists(st.integers(0, count - 1), unique=True) if count else st.just([]))
    kept = sorted(data.draw(st.permutations(range(count))) if data.draw(st.booleans()) else range(count))
    gone = set(data.draw(st.lists(st.sampled_from(held), unique=True)) if held else [])
    # Sets that are still there, in an order of their own; `held` is what was searched, in another order.
    now = [number for number in data.draw(st.permutations(kept)) if number not in gone]
    place = np.array([now.index(number) if number in now else -1 for number in held], np.int64)
    earlier = find_near_duplicates(sets_from([members[number] for number in held]), SEVEN_TENTHS, 1, limit)
    sets = sets_from([members[number] for number in now])
    found = extend_near_duplicates(sets, Former(earlier, place), SEVEN_TENTHS, 1, limit)
    if found is None:
        assert np.bincount(earlier.keeper).max() > limit
    else:
        assert plain(found) == plain(find_near_duplicates(sets, SEVEN_TENTHS, 1, limit))


@settings(max_examples=100, deadline=None)
@given(with_repetitions(), st.integers(1, 5), st.integers(0, 6), st.integers(1, 12), st.randoms())
def test_shares_of_any_number_and_order_give_the_whole(
    members: list[Group], n_parts: int, floor: int, limit: int, random: Random
) -> None:
    sets = sets_from(members)
    order = random.sample(range(n_parts), n_parts)
    shares = [search_part(sets, SEVEN_TENTHS, floor, part, n_parts, limit) for part in order]
    found = finish_near_duplicates(sets, floor, shares, limit)
    assert plain(found) == plain(find_near_duplicates(sets, SEVEN_TENTHS, floor, limit))


def plain(found: NearDuplicates) -> tuple[list[list[int]], list[float], int]:
    pairs = found.pairs
    columns = (found.keeper, found.partner, pairs.left, pairs.right, pairs.common)
    return [column.tolist() for column in columns], found.similarity.tolist(), found.n_pairs


def test_added_set_before_an_old_keeper_takes_its_place() -> None:
    sets = sets_from([range(10), range(9), range(20, 30)])
    earlier = find_near_duplicates(sets.take(np.array([1, 2])), SEVEN_TENTHS, 1)
    assert earlier.keeper.tolist() == [0, 1]
    found = extend_near_duplicates(sets, Former(earlier, np.array([1, 2])), SEVEN_TENTHS, 1)
    assert found is not None
    assert found.keeper.tolist() == [0, 0, 2]


def test_cluster_of_thousands_of_near_duplicates() -> None:
    n_sets = 4_000
    sets = sets_from(([*range(40), 40 + number] for number in range(n_sets)), vocab_size=5_000)
    found = find_near_duplicates(sets, SEVEN_TENTHS, 5)
    assert found.n_pairs == n_sets * (n_sets - 1) // 2
    assert found.keeper.tolist() == [0] * n_sets
    assert found.partner.tolist() == [1] + [0] * (n_sets - 1)
    assert len(found.pairs.left) == 0


@pytest.mark.parametrize("large", [0, 10**9], ids=["compiled", "plain"])
def test_row_that_a_chain_leads_to_its_keeper_has_the_similarity_to_it(
    monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(dedup.near, "MAX_PLAIN_IDS", large)
    sets = sets_from([set(range(start, start + 20)) for start in range(8)])
    removals = explain_removals(sets, find_near_duplicates(sets, SEVEN_TENTHS, 5), SEVEN_TENTHS)
    assert removals.position.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert removals.keeper.tolist() == [0] * 7
    assert removals.jaccard.tolist() == [(20 - number) / (20 + number) for number in range(1, 8)]
    assert removals.direct.tolist() == [True, True, True, False, False, False, False]


def test_all_equal_sets_need_no_pair_by_pair_work() -> None:
    n_sets = 50_000
    found = find_near_duplicates(sets_from([range(20)] * n_sets), SEVEN_TENTHS, 5)
    assert found.n_pairs == n_sets * (n_sets - 1) // 2
    assert np.flatnonzero(found.keeper).tolist() == []
    assert found.partner.tolist() == [1] + [0] * (n_sets - 1)
    assert len(found.pairs.left) == 0
