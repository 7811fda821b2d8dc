"""The best match of each row in another set, against brute force."""

from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.dedup.by_rows import Match, match_texts
from tests.dedup.test_run import text_of

LIMIT = Fraction(7, 10)


def matches(rows: list[str], others: list[str], min_distinct: int = 5) -> list[Match]:
    return match_texts(rows, others, LIMIT, min_distinct)


def test_the_most_similar_text_is_named_and_the_others_are_counted() -> None:
    rows = [text_of(range(10)), text_of(range(50, 60))]
    others = [text_of(range(8)), text_of(range(9)), text_of(range(1, 10)), text_of(range(200, 210))]
    assert matches(rows, others) == [Match(0, 1, 0.9, exact=False, n_matches=3)]


def test_an_equal_text_comes_before_an_equal_set() -> None:
    rows = [text_of(range(10))]
    others = [text_of(range(9)), text_of([*range(9, -1, -1)]), text_of(range(10)), text_of(range(10))]
    assert matches(rows, others) == [Match(0, 2, 1.0, exact=True, n_matches=4)]
    assert matches(rows, others[:2]) == [Match(0, 1, 1.0, exact=False, n_matches=2)]


def test_short_texts_match_equal_ones_only() -> None:
    rows = [text_of([1, 2, 3, 4]), text_of([4, 3, 2, 1])]
    assert matches(rows, [text_of([1, 2, 3, 4])]) == [Match(0, 0, 1.0, exact=True, n_matches=1)]
    assert matches([""], [""]) == [Match(0, 0, 1.0, exact=True, n_matches=1)]
    assert matches([""], ["x"], min_distinct=0) == []


def test_the_threshold_is_inclusive() -> None:
    assert matches([text_of(range(85))], [text_of(range(15, 100))]) == [Match(0, 0, 0.7, exact=False, n_matches=1)]
    assert matches([text_of(range(84))], [text_of(range(15, 100))]) == []


def test_nothing_matches_nothing() -> None:
    assert matches([], []) == matches([text_of(range(9))], []) == matches([], [text_of(range(9))]) == []


number_lists = st.lists(st.lists(st.integers(0, 25), max_size=20), max_size=12)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(number_lists, number_lists)
def test_brute_force_finds_the_same(rows: list[list[int]], others: list[list[int]]) -> None:
    expected = []
    for position, row in enumerate(rows):
        found = []
        for other_position, other in enumerate(others):
            a, b = set(row), set(other)
            near = min(len(a), len(b)) >= 5 and len(a & b) * 10 >= 7 * len(a | b)
            if row == other or near:
                similarity = Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)
                found.append((-similarity, row != other, other_position))
        if found:
            similarity, differs, other_position = min(found)
            expected.append(Match(position, other_position, float(-similarity), not differs, len(found)))
    assert matches([text_of(row) for row in rows], [text_of(other) for other in others]) == expected
