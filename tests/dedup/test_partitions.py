"""The compiled join against the definition, and its pieces against the whole."""

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from operator import xor
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dedup.join
import dedup.partitions
from dedup.jaccard import Pairs, TokenSets, join_pairs
from dedup.join import join_between, join_within
from dedup.ordered import count_ranks, narrow_rank, new_marks, put_in_order
from dedup.partitions import (
    join_all,
    join_partition,
    join_sides,
    prepare_between,
    prepare_target,
    prepare_within,
    ranges,
)
from tests.dedup.corpus import real_functions, sets_from, sets_of
from tests.dedup.test_join import Group, plain, reaching, similar_sets, thresholds

SEVEN_TENTHS = Fraction(7, 10)


def columns(blocks: Iterable[Pairs]) -> list[tuple[int, int, int]]:
    """Return the pairs in the order in which they come."""
    pairs = join_pairs(blocks)
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.common.tolist(), strict=True))


def narrow(sets: TokenSets) -> TokenSets:
    """Return the sets with ids of two bytes."""
    return TokenSets(sets.offsets, sets.ids.astype(np.uint16), sets.vocab_size)


@settings(max_examples=300, deadline=None)
@given(similar_sets(), thresholds, st.integers(0, 8))
def test_pairs_within_are_those_of_the_definition(members: list[Group], threshold: Fraction, floor: int) -> None:
    assert plain(join_pairs(join_all(prepare_within(sets_from(members), threshold, floor), 1))) == [
        (a, b, len(one & members[b]))
        for a, one in enumerate(members)
        for b in range(a + 1, len(members))
        if reaching(one, members[b], threshold, floor)
    ]


@settings(max_examples=300, deadline=None)
@given(similar_sets(), st.integers(0, 25), thresholds, st.integers(0, 8))
def test_pairs_between_are_those_of_the_definition(
    members: list[Group], cut: int, threshold: Fraction, floor: int
) -> None:
    rows, references = members[:cut], members[cut:]
    found = plain(join_pairs(join_sides(sets_from(rows), sets_from(references), threshold, floor, 1)))
    assert found == [
        (a, b, len(one & other))
        for a, one in enumerate(rows)
        for b, other in enumerate(references)
        if reaching(one, other, threshold, floor)
    ]


@pytest.mark.parametrize("threshold", ["7/10", "1/2", "9/10", "1"])
def test_both_engines_find_the_same_pairs_of_real_functions(threshold: str) -> None:
    sets = sets_of(real_functions(3_000, seed=21))
    expected = plain(join_pairs(join_within(sets, Fraction(threshold), 5)))
    assert len(expected) > 20
    assert plain(join_pairs(join_all(prepare_within(sets, Fraction(threshold), 5)))) == expected
    assert plain(join_pairs(join_all(prepare_within(narrow(sets), Fraction(threshold), 5)))) == expected


def test_large_collections_go_to_the_compiled_join(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = sets_of(real_functions(800, seed=22))
    one, other = sets.take(np.arange(300)), sets.take(np.arange(300, 800))
    expected = [columns(join_within(sets, SEVEN_TENTHS, 5)), columns(join_between(one, other, SEVEN_TENTHS, 5))]
    for limit in ("_MAX_MATCHES", "MAX_PLAIN_IDS"):
        with monkeypatch.context() as patch:
            patch.setattr(dedup.join, limit, 1_000)
            patch.setattr(dedup.join, "iter_candidates", None)
            found = [columns(join_within(sets, SEVEN_TENTHS, 5)), columns(join_between(one, other, SEVEN_TENTHS, 5))]
        assert [sorted(pairs) for pairs in found] == [sorted(pairs) for pairs in expected]
        assert min(len(pairs) for pairs in found) > 5


@settings(max_examples=30, deadline=None)
@given(similar_sets(), st.integers(1, 40), st.randoms(use_true_random=False))
def test_ranges_in_any_number_and_order_give_the_same_pairs(members: list[Group], count: int, random: Random) -> None:
    join = prepare_within(sets_from(members), SEVEN_TENTHS, 1)
    expected = columns(join_all(join, 1))
    parts = ranges(join.n_probes, count)
    found = {part: columns(join_partition(join, *part)) for part in random.sample(parts, len(parts))}
    assert [pair for part in parts for pair in found[part]] == expected


@pytest.mark.parametrize(("n_probes", "count"), [(0, 4), (1, 4), (10, 3), (10, 10), (3, 64)])
def test_ranges_cover_every_probe_once(n_probes: int, count: int) -> None:
    parts = ranges(n_probes, count)
    assert [probe for start, stop in parts for probe in range(start, stop)] == list(range(n_probes))
    assert len(parts) == min(n_probes, count)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_neither_pairs_nor_their_order(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    sets = sets_of(real_functions(2_000, seed=23))
    expected = columns(join_partition(prepare_within(sets, SEVEN_TENTHS, 5), 0, len(sets.sizes)))
    # A block holds as many pairs as there are sets, at least: ranges of families need several.
    monkeypatch.setattr(dedup.partitions, "_MIN_FOUND", 1)
    monkeypatch.setattr(dedup.partitions, "_RANGES", 7)
    assert columns(join_all(prepare_within(sets, SEVEN_TENTHS, 5), threads)) == expected
    assert len(expected) > 100


def test_reader_that_stops_early_leaves_no_thread_behind() -> None:
    blocks = join_all(prepare_within(sets_of(real_functions(2_000, seed=23)), SEVEN_TENTHS, 5), 2)
    assert len(next(blocks).left) > 0
    blocks.close()  # type: ignore[attr-defined]  # a generator
    assert list(blocks) == []


def test_blocks_bound_the_pairs_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup.partitions, "_MIN_FOUND", 1)
    members = [frozenset([*range(40), 40 + number]) for number in range(500)]
    sizes = [len(pairs.left) for pairs in join_all(prepare_within(sets_from(members), SEVEN_TENTHS, 5), 1)]
    assert sum(sizes) == 500 * 499 // 2
    assert max(sizes) <= 500


def test_either_side_may_be_the_larger_one() -> None:
    rows, references = (sets_of(real_functions(count, seed=count)) for count in (900, 200))
    found = plain(join_pairs(join_sides(rows, references, SEVEN_TENTHS, 5)))
    assert sorted((b, a, common) for a, b, common in found) == plain(
        join_pairs(join_sides(references, rows, SEVEN_TENTHS, 5))
    )
    assert len(found) > 20


@settings(deadline=None)
@given(
    st.sets(st.integers(0, 69_999), max_size=300), st.sampled_from([1, 256, 8_192, 60_000, 70_000]), st.integers(0, 300)
)
def test_ranks_are_put_in_order_and_folded_by_bits(ids: set[int], vocab_size: int, count: int) -> None:
    rank = narrow_rank(np.arange(vocab_size)[::-1])
    n_ranks = count_ranks(vocab_size)
    assert (n_ranks % 256, sorted(rank.tolist())) == (0, [*range(n_ranks - vocab_size, n_ranks)])
    ranks = rank[sorted({number % vocab_size for number in ids})]
    expected, marks = np.sort(ranks).tolist(), new_marks(rank)
    lowest, bits, frequent = np.full(len(ranks), 7, rank.dtype), np.full(4, 7, np.uint64), np.full(4, 7, np.uint64)
    put_in_order(ranks, count, marks, lowest, bits, frequent)
    assert lowest.tolist() == expected[:count] + [7] * (len(ranks) - count)
    assert as_number(bits) == reduce(xor, (1 << value % 256 for value in expected), 0)
    assert as_number(frequent) == sum(1 << value - (n_ranks - 256) for value in expected if value >= n_ranks - 256)
    assert not marks.words.any()
    assert not marks.filled.any()


def as_number(bits: np.ndarray) -> int:
    """Return the number that 64-bit words make, the first the lowest."""
    return int.from_bytes(bits.astype("<u8").tobytes(), "little")


@pytest.mark.parametrize("threshold", ["1/1000000000", "1/40000", "999999999/1000000000"])
def test_extreme_thresholds_neither_overflow_nor_take_long(threshold: str) -> None:
    groups = [set(range(3_000)), set(range(2_999, 6_000)), {7}, set(range(7_000, 7_900)), set(range(3_000))]
    reached = [
        (a, b, len(one & groups[b]))
        for a, one in enumerate(groups)
        for b in range(a + 1, len(groups))
        if Fraction(len(one & groups[b]), len(one | groups[b])) >= Fraction(threshold)
    ]
    sets = sets_from(groups, vocab_size=8_000)
    assert plain(join_pairs(join_all(prepare_within(sets, Fraction(threshold), 1), 1))) == reached
    both = plain(join_pairs(join_sides(sets, sets_from(groups[:2], vocab_size=8_000), Fraction(threshold), 1, 1)))
    assert both == [
        (a, b, len(one & groups[b]))
        for a, one in enumerate(groups)
        for b in range(2)
        if Fraction(len(one & groups[b]), len(one | groups[b])) >= Fraction(threshold)
    ]


def test_one_target_serves_many_collections() -> None:
    references = sets_of(real_functions(300, seed=24))
    target = prepare_target(references, SEVEN_TENTHS, 5)
    for seed in (25, 26):
        rows = sets_of(real_functions(300, seed=seed))
        expected = plain(join_pairs(join_between(rows, references, SEVEN_TENTHS, 5)))
        assert plain(join_pairs(join_all(prepare_between(rows, target)))) == expected
        assert len(expected) > 10


def test_sets_larger_than_a_bitmap_and_a_vocabulary_of_more_than_two_bytes() -> None:
    wide = [range(70_000, 75_000), range(70_000, 73_500), range(70_000, 73_499), {1}, set()]
    sets = sets_from([set(group) for group in wide], vocab_size=80_000)
    assert plain(join_pairs(join_all(prepare_within(sets, SEVEN_TENTHS, 1)))) == [(0, 1, 3_500), (1, 2, 3_499)]


@pytest.mark.parametrize("members", [[], [set()], [set(), set()], [{1}], [{1}, {2}], [set(), {1}]])
def test_nothing_similar_gives_no_pairs(members: list[set[int]]) -> None:
    assert columns(join_all(prepare_within(sets_from(members), SEVEN_TENTHS, 0))) == []
    assert columns(join_sides(sets_from(members), sets_from([{3}]), SEVEN_TENTHS, 0)) == []
