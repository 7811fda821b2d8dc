from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dedup.candidates
from dedup.candidates import iter_candidates, prepare_search
from dedup.jaccard import TokenSets
from tests.dedup.corpus import brute_force, real_functions, sets_from, sets_of

SEVEN_TENTHS = Fraction(7, 10)
thresholds = st.one_of(st.just(SEVEN_TENTHS), st.fractions(Fraction(1, 20), 1, max_denominator=20))


def candidates(sets: TokenSets, threshold: Fraction = SEVEN_TENTHS) -> list[tuple[int, int]]:
    found = []
    for longer, shorter in iter_candidates(prepare_search(sets, threshold)):
        assert (sets.sizes[longer] >= sets.sizes[shorter]).all()
        found += [(min(pair), max(pair)) for pair in zip(longer.tolist(), shorter.tolist(), strict=True)]
    return found


@st.composite
def similar_sets(draw: st.DrawFn) -> list[frozenset[int]]:
    """Sets made of a few bases by taking away and adding ids, so that many similarities lie near the threshold."""
    bases = draw(st.lists(st.frozensets(st.integers(0, 40), max_size=25), min_size=1, max_size=3))
    changes = st.tuples(
        st.sampled_from(bases),
        st.frozensets(st.integers(0, 40), max_size=6),
        st.frozensets(st.integers(0, 40), max_size=6),
    )
    return [(base - less) | more for base, less, more in draw(st.lists(changes, min_size=2, max_size=25))]


@settings(max_examples=300)
@given(similar_sets(), thresholds)
def test_every_pair_at_or_above_the_threshold_is_a_candidate_once(
    members: list[frozenset[int]], threshold: Fraction
) -> None:
    found = candidates(sets_from(members), threshold)
    assert len(found) == len(set(found))
    assert set(brute_force(members, threshold)) <= set(found)


@pytest.mark.parametrize("products", [1, 50, 10**9], ids=["a block per row", "small blocks", "one block"])
def test_blocks_do_not_change_the_candidates(monkeypatch: pytest.MonkeyPatch, products: int) -> None:
    sets = sets_of(real_functions(150, seed=3))
    whole = sorted(candidates(sets))
    monkeypatch.setattr(dedup.candidates, "_BLOCK_PRODUCTS", products)
    assert sorted(candidates(sets)) == whole


def test_small_blocks_bound_what_is_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup.candidates, "_BLOCK_PRODUCTS", 2_000)
    members = [frozenset([*range(40), 40 + number]) for number in range(300)]
    sizes = [len(longer) for longer, _ in iter_candidates(prepare_search(sets_from(members), SEVEN_TENTHS))]
    assert sum(sizes) == 300 * 299 // 2
    # A block holds at most the budget, or one row's matches: 8 to 13 prefix ids, each in 300 sets at most.
    assert max(sizes) <= 2_000 + 300


def test_sets_too_different_in_size_are_no_candidates() -> None:
    assert candidates(sets_from([range(100), range(69)])) == []
    assert candidates(sets_from([range(100), range(70)])) == [(0, 1)]


def test_sets_without_a_common_rare_id_are_no_candidates() -> None:
    common = range(50)
    members = [{*common, *range(100 + 50 * number, 150 + 50 * number)} for number in range(8)]
    assert candidates(sets_from(members)) == []


def test_few_candidates_are_wrong_on_real_functions() -> None:
    functions = real_functions(1_000, seed=1)
    found = candidates(sets_of(functions))
    assert len(found) < 0.01 * len(functions) * (len(functions) - 1) / 2


@pytest.mark.parametrize("members", [[], [set()], [set(), set()], [{1}], [set(), {1}], [{1}, {2}]])
def test_sets_with_nothing_in_common_give_no_candidates(members: list[set[int]]) -> None:
    assert candidates(sets_from(members)) == []


def test_equal_sets_are_candidates() -> None:
    assert sorted(candidates(sets_from([{1}, {1}, {1}]), Fraction(1))) == [(0, 1), (0, 2), (1, 2)]


def test_positions_are_those_of_the_sets_given() -> None:
    members = [range(30), [500], range(29), [501, 502], range(31)]
    assert sorted(candidates(sets_from(members))) == [(0, 2), (0, 4), (2, 4)]
    assert candidates(sets_from([[500], *members]).take(np.array([1, 3]))) == [(0, 1)]
