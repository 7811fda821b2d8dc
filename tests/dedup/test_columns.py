"""Extending a search over columns is doing it again."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup.clusters import NearDuplicates
from dedup.columns import Search, join_shares, placed_among, search_share, search_texts
from dedup.evidence import Findings
from dedup.jaccard import Pairs
from schemas.config import DedupConfig
from tests.dedup.by_rows import DedupRow, in_keeper_order, search_rows, tokens_of
from tests.dedup.corpus import START, real_functions, rows_of
from tests.dedup.test_near import plain
from tests.dedup.test_run import families

CONFIG = DedupConfig()


def compared(found: tuple[Search, Findings]) -> tuple[object, ...]:
    """Return what must be equal whichever way a search took."""
    search, findings = found
    tables = (findings.excluded, findings.pairs, findings.clusters)
    return search.digest.to_pylist(), plain(search.near), findings.kept.tolist(), tables, findings.reports


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(families(), st.integers(0, 20), st.randoms(use_true_random=False))
def test_extended_search_is_the_search_over_all_rows(rows: list[DedupRow], cut: int, random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    earlier, _ = search_rows(shuffled[:cut], CONFIG)
    assert compared(search_rows(rows, CONFIG, earlier)) == compared(search_rows(rows, CONFIG))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(families(), st.integers(0, 20), st.integers(0, 20))
def test_search_goes_on_from_rows_of_which_some_are_gone(rows: list[DedupRow], start: int, stop: int) -> None:
    earlier, _ = search_rows(rows[:stop], CONFIG)
    assert compared(search_rows(rows[start:], CONFIG, earlier)) == compared(search_rows(rows[start:], CONFIG))


@given(st.permutations(range(6)), st.integers(0, 6), st.permutations(range(8)), st.integers(0, 8))
def test_texts_are_found_wherever_they_stand_now(
    earlier: list[int], n_earlier: int, now: list[int], n_now: int
) -> None:
    one, other = earlier[:n_earlier], now[:n_now]
    none = np.zeros(0, np.int64)
    near = NearDuplicates(none, none, none.astype(np.float64), Pairs(none, none, none), 0)
    digests = [pa.array([bytes([number]) * 32 for number in texts], pa.binary(32)) for texts in (one, other)]
    expected = [other.index(number) if number in other else -1 for number in one]
    assert placed_among(Search(digests[0], near), digests[1]).place.tolist() == expected


def test_three_steps_are_one_search_of_real_functions() -> None:
    rows = rows_of(real_functions(1_200, seed=52))
    earlier = None
    for count in (300, 700, 1_200):
        found = search_rows(rows[:count], CONFIG, earlier)
        earlier = found[0]
    assert compared(found) == compared(search_rows(rows, CONFIG))
    assert len(found[1].kept) < 1_100


def test_row_that_takes_the_first_place_of_an_old_text_moves_the_text() -> None:
    rows = [DedupRow("b", START + timedelta(1), "x = 1\n"), DedupRow("c", START + timedelta(2), "y = 2\n")]
    new = DedupRow("a", START, "y = 2\n")
    found = search_rows([*rows, new], CONFIG, search_rows(rows, CONFIG)[0])
    assert compared(found) == compared(search_rows([*rows, new], CONFIG))
    assert found[1].kept.tolist() == [2, 0]


def test_no_rows() -> None:
    earlier, findings = search_rows([], CONFIG)
    assert (findings.kept.tolist(), earlier.near.n_pairs) == ([], 0)
    assert compared(search_rows([], CONFIG, earlier)) == compared((earlier, findings))


def shares(texts: Sequence[str], n_parts: int) -> tuple[NearDuplicates, NearDuplicates]:
    tokens = tokens_of(texts)
    digest = tokens.digest.combine_chunks()
    parts = [search_share(tokens.sets, CONFIG, part, n_parts) for part in range(n_parts)]
    whole = search_texts(tokens.sets, digest, CONFIG, threads=1)
    return join_shares(tokens.sets, digest, CONFIG, parts).near, whole.near


def test_shares_of_real_functions_give_the_whole() -> None:
    texts = [row.text for row in in_keeper_order(rows_of(sorted(set(real_functions(1_500, seed=53)))))]
    for n_parts in (1, 2, 7):
        one, whole = shares(texts, n_parts)
        assert plain(one) == plain(whole)
    assert whole.n_pairs > 100
