from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.jaccard import Pairs, join_pairs
from dedup.join import join_between, join_within
from tests.dedup.corpus import sets_from

SEVEN_TENTHS = Fraction(7, 10)
thresholds = st.one_of(st.just(SEVEN_TENTHS), st.fractions(Fraction(1, 20), 1, max_denominator=20))
Group = frozenset[int]


def plain(pairs: Pairs) -> list[tuple[int, int, int]]:
    return sorted(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.common.tolist(), strict=True))


def reaching(one: Group, other: Group, threshold: Fraction, min_distinct: int) -> bool:
    """Decide a pair by the definition."""
    compared = min(len(one), len(other)) >= max(min_distinct, 1)
    return compared and Fraction(len(one & other), len(one | other)) >= threshold


@st.composite
def similar_sets(draw: st.DrawFn) -> list[Group]:
    """Sets made of a few bases by taking away and adding ids, so that many similarities lie near the threshold."""
    ids = st.integers(0, 40)
    bases = draw(st.lists(st.frozensets(ids, max_size=25), min_size=1, max_size=3))
    changes = st.tuples(st.sampled_from(bases), st.frozensets(ids, max_size=6), st.frozensets(ids, max_size=6))
    return [(base - less) | more for base, less, more in draw(st.lists(changes, max_size=25))]


@settings(max_examples=200)
@given(similar_sets(), thresholds, st.integers(0, 8))
def test_pairs_within_are_those_of_the_definition(members: list[Group], threshold: Fraction, floor: int) -> None:
    found = plain(join_pairs(join_within(sets_from(members), threshold, floor)))
    assert found == [
        (a, b, len(one & members[b]))
        for a, one in enumerate(members)
        for b in range(a + 1, len(members))
        if reaching(one, members[b], threshold, floor)
    ]


@settings(max_examples=200)
@given(similar_sets(), st.integers(0, 25), thresholds, st.integers(0, 8))
def test_pairs_between_are_those_of_the_definition(
    members: list[Group], cut: int, threshold: Fraction, floor: int
) -> None:
    rows, references = members[:cut], members[cut:]
    found = plain(join_pairs(join_between(sets_from(rows), sets_from(references), threshold, floor)))
    assert found == [
        (a, b, len(one & other))
        for a, one in enumerate(rows)
        for b, other in enumerate(references)
        if reaching(one, other, threshold, floor)
    ]


@pytest.mark.parametrize(("rows", "references"), [([], []), ([{1}], []), ([], [{1}]), ([set()], [set()])])
def test_nothing_to_compare_gives_no_pairs(rows: list[set[int]], references: list[set[int]]) -> None:
    assert plain(join_pairs(join_between(sets_from(rows), sets_from(references), SEVEN_TENTHS, 1))) == []


@pytest.mark.parametrize(("common", "reached"), [(69, False), (70, True), (71, True)])
def test_planted_similarity_falls_on_the_right_side(common: int, reached: bool) -> None:
    # The union holds 100 ids: `common` shared, the others on one side or the other.
    one, other = range(common + 10), [*range(common), *range(common + 10, 100)]
    expected = [(0, 0, common)] if reached else []
    assert plain(join_pairs(join_between(sets_from([one]), sets_from([other]), SEVEN_TENTHS, 5))) == expected
    within = plain(join_pairs(join_within(sets_from([one, other]), SEVEN_TENTHS, 5)))
    assert within == ([(0, 1, common)] if reached else [])


def test_pairs_have_positions_of_type_int64() -> None:
    (pairs,) = join_between(sets_from([range(9)]), sets_from([range(9)]), SEVEN_TENTHS, 1)
    assert [column.dtype for column in (pairs.left, pairs.right, pairs.common)] == [np.int64] * 3
