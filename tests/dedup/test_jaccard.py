from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.jaccard
from dedup.jaccard import (
    Pairs,
    count_common,
    exact_threshold,
    join_pairs,
    join_sets,
    order_of,
    reaches,
    similarity,
    token_sets,
    verify,
)
from dedup.overlaps import count_overlaps
from schemas.errors import ConfigError
from tests.dedup.corpus import jaccard, sets_from

groups = st.lists(st.frozensets(st.integers(0, 30), max_size=20), min_size=2, max_size=12)
SEVEN_TENTHS = Fraction(7, 10)


def plain(pairs: Pairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.common.tolist(), strict=True))


def test_sets_hold_each_id_once_in_ascending_order() -> None:
    sets = token_sets([np.array([5, 3, 5, 1], np.int32), np.array([], np.int32), np.array([9], np.int32)], 10)
    assert sets.offsets.tolist() == [0, 3, 3, 4]
    assert sets.ids.tolist() == [1, 3, 5, 9]
    assert sets.ids.dtype == np.int32
    assert sets.sizes.tolist() == [3, 0, 1]


def test_sets_that_are_taken_can_be_written_and_are_their_own() -> None:
    sets = token_sets([np.array([1, 2], np.int32), np.array([7], np.int32)], 10)
    taken = sets.take(np.array([1, 0, 1]))
    assert taken.ids.flags.writeable
    taken.ids[:] = 0
    assert sets.ids.tolist() == [1, 2, 7]


@given(st.lists(st.sampled_from([0, 1, 2, 5, 2**40, 2**60, 2**63 - 1]), max_size=30))
def test_numbers_are_put_in_order_and_equal_ones_stay_as_they_come(keys: list[int]) -> None:
    expected = sorted(range(len(keys)), key=lambda place: keys[place])
    assert order_of(np.array(keys, np.int64)).tolist() == expected


def test_numbers_of_any_width_are_put_in_order() -> None:
    for width in range(1, 64):
        keys = [2**width - 1, 0, 2**width - 1, 1, 2 ** (width - 1)]
        assert order_of(np.array(keys, np.int64)).tolist() == sorted(range(5), key=keys.__getitem__)


def test_no_sequences_give_no_sets() -> None:
    sets = token_sets([], 10)
    assert (sets.offsets.tolist(), sets.ids.tolist()) == ([0], [])


def test_parts_are_joined_in_order() -> None:
    sets = join_sets([sets_from([{1, 2}, set()], 9), sets_from([], 9), sets_from([{3}], 9)], 9)
    assert (sets.offsets.tolist(), sets.ids.tolist(), sets.vocab_size) == ([0, 2, 2, 3], [1, 2, 3], 9)
    assert join_sets([], 9).offsets.tolist() == [0]


def test_sets_are_taken_by_position() -> None:
    taken = sets_from([{1}, {2, 3}, set(), {4, 5, 6}]).take(np.array([3, 1, 2]))
    assert (taken.offsets.tolist(), taken.ids.tolist()) == ([0, 3, 5, 5], [4, 5, 6, 2, 3])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.7, Fraction(7, 10)),
        (1.0, Fraction(1)),
        (1, Fraction(1)),
        (0.85, Fraction(17, 20)),
        (1e-9, Fraction(1, 10**9)),
    ],
)
def test_threshold_is_the_decimal_that_was_written(written: float, meant: Fraction) -> None:
    assert exact_threshold(written) == meant


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_threshold_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match="must be above 0 and at most 1"):
        exact_threshold(value)


def test_threshold_with_too_many_decimals_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at most nine decimals, not 0\.30000000000000004"):
        exact_threshold(0.1 + 0.2)


def test_threshold_is_inclusive() -> None:
    # Unions of 10, 1,000, 100 and 1,000 ids.
    common, total = np.array([7, 699, 70, 701]), np.array([17, 1699, 170, 1701])
    assert reaches(common, total, SEVEN_TENTHS).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("common", "size_a", "size_b", "expected"),
    [(7, 10, 7, 0.7), (0, 3, 4, 0.0), (5, 5, 5, 1.0), (13, 14, 15, 0.8125), (0, 0, 0, 1.0), (0, 0, 3, 0.0)],
)
def test_similarity_is_common_over_union(common: int, size_a: int, size_b: int, expected: float) -> None:
    assert similarity(common, size_a, size_b) == expected


@given(groups, st.data())
def test_common_ids_are_counted_in_the_order_of_pairs(members: list[frozenset[int]], data: st.DataObject) -> None:
    position = st.integers(0, len(members) - 1)
    pairs = data.draw(st.lists(st.tuples(position, position), max_size=30))
    left, right = np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)
    counted = join_pairs(count_common(sets_from(members), left, right))
    assert plain(counted) == [(a, b, len(members[a] & members[b])) for a, b in pairs]


@pytest.mark.parametrize("dense", [0, 10**9], ids=["pair by pair", "as a product"])
def test_both_ways_of_counting_agree(monkeypatch: pytest.MonkeyPatch, dense: int) -> None:
    monkeypatch.setattr(dedup.jaccard, "_DENSE", dense)
    members = [frozenset(range(start, start + 3 + start % 5)) for start in range(40)]
    left, right = np.triu_indices(40, 1)
    counted = join_pairs(count_common(sets_from(members), left, right))
    assert plain(counted) == [
        (a, b, len(members[a] & members[b])) for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]


@given(groups, st.data())
def test_compiled_code_counts_the_same(members: list[frozenset[int]], data: st.DataObject) -> None:
    position = st.integers(0, len(members) - 1)
    pairs = data.draw(st.lists(st.tuples(position, position), max_size=30))
    left, right = np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)
    expected = [len(members[a] & members[b]) for a, b in pairs]
    assert count_overlaps(sets_from(members), left, right).tolist() == expected


def test_chunks_bound_the_memory_and_lose_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup.jaccard, "_CHUNK_TOKENS", 25)
    monkeypatch.setattr(dedup.jaccard, "_DENSE", 0)
    members = [frozenset(range(size)) for size in (3, 40, 5, 7, 2, 60)]
    left, right = np.triu_indices(6, 1)
    chunks = list(count_common(sets_from(members), left, right))
    assert len(chunks) > 5
    assert plain(join_pairs(chunks)) == [
        (a, b, len(members[a] & members[b])) for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]


@given(groups, st.fractions(Fraction(1, 100), 1, max_denominator=100))
def test_verified_pairs_are_those_at_or_above_the_threshold(members: list[frozenset[int]], threshold: Fraction) -> None:
    left, right = np.triu_indices(len(members), 1)
    verified = join_pairs(verify(sets_from(members), left, right, threshold))
    assert [pair[:2] for pair in plain(verified)] == [
        (a, b)
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
        if not (members[a] | members[b]) or jaccard(members[a], members[b]) >= threshold
    ]


def test_no_pairs_are_verified_to_none() -> None:
    nothing = np.zeros(0, np.int64)
    assert plain(join_pairs(verify(sets_from([{1}, {1}]), nothing, nothing, SEVEN_TENTHS))) == []
