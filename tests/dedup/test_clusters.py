from collections.abc import Callable
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.clusters
from dedup.clusters import NearDuplicates, group_pairs
from dedup.jaccard import Pairs
from tests.dedup.corpus import components

N_SETS = 12
SIZES = np.full(N_SETS, 10, np.int64)
pair_maps = st.dictionaries(
    st.tuples(st.integers(0, N_SETS - 1), st.integers(0, N_SETS - 1)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(7, 10),
    max_size=30,
)


def block(pairs: list[tuple[int, int, int]]) -> Pairs:
    columns = np.array(pairs, np.int64).reshape(-1, 3)
    return Pairs(columns[:, 0], columns[:, 1], columns[:, 2])


def plain(found: NearDuplicates) -> tuple[list[int], list[int], list[tuple[int, ...]], int]:
    pairs = list(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), found.pairs.common.tolist(), strict=True))
    return found.keeper.tolist(), found.partner.tolist(), pairs, found.n_pairs


def test_chain_is_one_cluster_with_its_smallest_position_as_keeper() -> None:
    found = group_pairs(SIZES[:6], [block([(3, 5, 8), (1, 3, 9)]), block([(0, 4, 10)])])
    assert plain(found) == ([0, 1, 2, 1, 0, 1], [4, 3, -1, 1, 0, 3], [(0, 4, 10), (1, 3, 9), (3, 5, 8)], 3)


@pytest.mark.parametrize("links", [lambda order: order[:-1], lambda order: order[:1] * (len(order) - 1)])
def test_long_chain_and_star_in_any_order_are_one_cluster(links: Callable[[list[int]], list[int]]) -> None:
    for seed in range(20):
        order = Random(seed).sample(range(500), 500)
        pairs = {(min(pair), max(pair)) for pair in zip(links(order), order[1:], strict=True)}
        found = group_pairs(np.full(500, 10), [block([(*pair, 8) for pair in pairs])])
        assert found.keeper.tolist() == [0] * 500


def test_no_pairs_leave_every_set_alone() -> None:
    assert plain(group_pairs(SIZES[:3], [])) == ([0, 1, 2], [-1, -1, -1], [], 0)
    assert plain(group_pairs(SIZES[:0], [])) == ([], [], [], 0)


def test_partner_is_the_most_similar_and_the_smallest_of_equals() -> None:
    blocks = [block([(2, 5, 8)]), block([(3, 5, 9), (4, 5, 9)]), block([(0, 5, 7), (1, 5, 9)])]
    assert group_pairs(SIZES[:6], blocks).partner.tolist() == [5, 5, 5, 5, 5, 1]


def test_partner_is_chosen_by_similarity_not_by_common_ids() -> None:
    sizes = np.array([100, 100, 72], np.int64)
    # 84 common ids of 116 (0.724) against 72 of 100 (0.72), then 72 of 72.
    assert group_pairs(sizes, [block([(0, 1, 84), (0, 2, 72)])]).partner.tolist() == [1, 0, 0]
    sizes[0] = 72
    assert group_pairs(sizes, [block([(0, 1, 72), (0, 2, 60)])]).partner.tolist() == [1, 0, 0]
    assert group_pairs(sizes, [block([(0, 1, 72), (0, 2, 61)])]).partner.tolist() == [2, 0, 0]


@given(pair_maps, st.randoms(use_true_random=False), st.integers(1, 5))
def test_result_is_the_components_whatever_the_order_and_blocks(
    pairs: dict[tuple[int, int], int], random: Random, n_blocks: int
) -> None:
    listed = [(a, b, common) for (a, b), common in pairs.items()]
    random.shuffle(listed)
    found = group_pairs(SIZES, [block(listed[start::n_blocks]) for start in range(n_blocks)])
    best = []
    for one in range(N_SETS):
        others = [(-common, a + b - one) for (a, b), common in pairs.items() if one in (a, b)]
        best.append(min(others)[1] if others else -1)
    assert plain(found) == (components(N_SETS, pairs), best, sorted(listed), len(listed))


@given(pair_maps, st.integers(1, N_SETS))
def test_pairs_of_large_clusters_are_counted_and_not_listed(pairs: dict[tuple[int, int], int], limit: int) -> None:
    listed = [(a, b, common) for (a, b), common in pairs.items()]
    whole = group_pairs(SIZES, [block(listed)])
    found = group_pairs(SIZES, [block(listed)], max_listed=limit)
    size = np.bincount(whole.keeper, minlength=N_SETS)[whole.keeper]
    expected = [pair for pair in sorted(listed) if size[pair[0]] <= limit]
    assert plain(found) == (whole.keeper.tolist(), whole.partner.tolist(), expected, len(listed))


@given(pair_maps)
def test_folding_after_every_pair_changes_nothing(pairs: dict[tuple[int, int], int]) -> None:
    listed = [(a, b, common) for (a, b), common in pairs.items()]
    expected = plain(group_pairs(SIZES, [block(listed)], max_listed=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.clusters, "_LOGGED_PAIRS", 0)
        assert plain(group_pairs(SIZES, [block([pair]) for pair in listed], max_listed=3)) == expected


def test_large_cluster_holds_few_pairs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup.clusters, "_LOGGED_PAIRS", 1_000)
    monkeypatch.setattr(dedup.clusters, "_PLAIN_PAIRS", 100)
    n_sets, limit = 400, 20
    logged: list[int] = []
    fold = dedup.clusters._fold

    def watched(log: dedup.clusters._Log, max_listed: int, weights: npt.NDArray[np.int64]) -> None:
        logged.append(log.n_logged)
        fold(log, max_listed, weights)

    monkeypatch.setattr(dedup.clusters, "_fold", watched)
    rows = [block([(a, b, 9) for a in range(b)]) for b in range(1, n_sets)]
    found = group_pairs(np.full(n_sets, 10, np.int64), rows, max_listed=limit)
    assert found.keeper.tolist() == [0] * n_sets
    assert found.n_pairs == n_sets * (n_sets - 1) // 2
    assert len(found.pairs.left) == 0
    # Pairs are held until compiled code takes over, then until the cluster is too large to be listed, and no longer.
    assert logged == [13 * 14 // 2, limit * (limit - 1) // 2]


@given(pair_maps, st.integers(1, N_SETS), st.integers(0, 10))
def test_compiled_grouping_from_any_pair_on_changes_nothing(
    pairs: dict[tuple[int, int], int], limit: int, n_plain: int
) -> None:
    listed = [(a, b, common) for (a, b), common in pairs.items()]
    expected = plain(group_pairs(SIZES, [block(listed)], max_listed=limit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.clusters, "_LOGGED_PAIRS", 3)
        patch.setattr(dedup.clusters, "_PLAIN_PAIRS", n_plain)
        assert plain(group_pairs(SIZES, [block([pair]) for pair in listed], max_listed=limit)) == expected


@pytest.mark.parametrize("n_plain", [0, 2_000_000])
def test_equal_sets_count_by_their_weight(monkeypatch: pytest.MonkeyPatch, n_plain: int) -> None:
    monkeypatch.setattr(dedup.clusters, "_PLAIN_PAIRS", n_plain)
    weights = np.array([3, 2, 1, 4], np.int64)
    blocks = [block([(0, 1, 8), (1, 2, 9)])]
    assert plain(group_pairs(SIZES[:4], blocks, 6, weights)) == ([0, 0, 0, 3], [1, 2, 1, -1], [(0, 1, 8), (1, 2, 9)], 8)
    assert plain(group_pairs(SIZES[:4], blocks, 5, weights)) == ([0, 0, 0, 3], [1, 2, 1, -1], [], 8)


@given(pair_maps, st.integers(0, 30), st.integers(1, N_SETS), st.sampled_from([0, 2_000_000]))
def test_result_is_gone_on_from(pairs: dict[tuple[int, int], int], cut: int, limit: int, n_plain: int) -> None:
    listed = [(a, b, common) for (a, b), common in pairs.items()]
    earlier = group_pairs(SIZES, [block(listed[:cut])], max_listed=limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup.clusters, "_PLAIN_PAIRS", n_plain)
        found = group_pairs(SIZES, [block(listed[cut:])], max_listed=limit, earlier=earlier)
    whole = group_pairs(SIZES, [block(listed)], max_listed=limit)
    assert plain(found) == plain(whole)
    assert found.similarity.tolist() == whole.similarity.tolist()


def test_similarity_is_that_of_the_partner() -> None:
    found = group_pairs(SIZES[:4], [block([(0, 1, 8), (1, 2, 9)])])
    assert found.similarity.tolist() == [8 / 12, 9 / 11, 9 / 11, -1.0]
