import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.equal
import dedup.jaccard
from dedup.equal import expand_pairs, group_equal
from dedup.jaccard import Pairs
from tests.dedup.corpus import sets_from

members_of = st.lists(st.frozensets(st.integers(0, 6), max_size=4), max_size=25)


def expected_groups(members: list[frozenset[int]], floor: int) -> list[int]:
    """Return each set's first equal set, itself for one that is too small."""
    return [number if len(one) < max(floor, 1) else members.index(one) for number, one in enumerate(members)]


@given(members_of, st.integers(0, 3))
def test_equal_sets_are_one_group(members: list[frozenset[int]], floor: int) -> None:
    groups = group_equal(sets_from(members), floor)
    expected = expected_groups(members, floor)
    assert groups.first[groups.group].tolist() == expected
    assert groups.first.tolist() == sorted(set(expected))
    assert groups.weights.tolist() == [expected.count(first) for first in groups.first.tolist()]


@given(members_of)
def test_sets_with_one_digest_are_told_apart(members: list[frozenset[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.equal, "_MIX", np.uint64(0))  # every digest is 0
        groups = group_equal(sets_from(members), 1)
    assert all(members[first] == members[number] for number, first in enumerate(groups.first[groups.group].tolist()))


def test_chunks_change_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [frozenset(range(number % 7, 12)) for number in range(60)]
    whole = group_equal(sets_from(members), 1)
    monkeypatch.setattr(dedup.jaccard, "_CHUNK_TOKENS", 25)
    parts = group_equal(sets_from(members), 1)
    assert (parts.first.tolist(), parts.group.tolist()) == (whole.first.tolist(), whole.group.tolist())


def test_pairs_of_groups_stand_for_pairs_of_their_sets() -> None:
    groups = group_equal(sets_from([{1, 2}, {3}, {1, 2}, {1}, {3}, {3}]), 1)
    assert groups.first.tolist() == [0, 1, 3]
    pairs = Pairs(np.array([0]), np.array([2]), np.array([1]))
    found = expand_pairs(pairs, groups, np.array([2, 1, 1]), np.array([True, True, True]))
    assert list(zip(found.left.tolist(), found.right.tolist(), found.common.tolist(), strict=True)) == [
        (0, 2, 2), (0, 3, 1), (1, 4, 1), (1, 5, 1), (2, 3, 1), (4, 5, 1),
    ]  # fmt: skip
    unlisted = expand_pairs(pairs, groups, np.array([2, 1, 1]), np.array([True, False, True]))
    assert list(zip(unlisted.left.tolist(), unlisted.right.tolist(), strict=True)) == [(0, 2), (0, 3), (2, 3)]
