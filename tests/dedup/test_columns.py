"""The search over columns is the search over rows, and extending it is doing it again."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup.columns import Duplicates, find_duplicates
from dedup.rows import DedupRow
from dedup.run import deduplicate
from dedup.token_table import TokenTable, tokenise
from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig
from tests.dedup.corpus import START, real_functions, rows_of
from tests.dedup.test_run import families

CONFIG = DedupConfig()


def columns_of(rows: Sequence[DedupRow]) -> tuple[TokenTable, np.ndarray]:
    ids, texts = pa.array([row.row_id for row in rows], pa.string()), pa.array([row.text for row in rows], pa.string())
    dates = [int((row.committer_date - START) / timedelta(microseconds=1)) for row in rows]
    return tokenise([(ids, texts)], load_tokenizer()), np.array(dates, np.int64)


def search(rows: Sequence[DedupRow], earlier: Duplicates | None = None) -> Duplicates:
    return find_duplicates(*columns_of(rows), CONFIG, earlier)


def kept_ids(rows: Sequence[DedupRow], found: Duplicates) -> list[str]:
    return sorted(rows[place].row_id for place in found.kept().tolist())


def plain(rows: Sequence[DedupRow], found: Duplicates) -> tuple[list[str], list[list[int]], int]:
    near = found.near
    columns = (found.text, found.first, near.keeper, near.partner, near.pairs.left, near.pairs.right, near.pairs.common)
    return [rows[place].row_id for place in found.order], [column.tolist() for column in columns], near.n_pairs


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(families())
def test_same_rows_stay_as_in_the_search_over_rows(rows: list[DedupRow]) -> None:
    result, found = deduplicate(rows, CONFIG), search(rows)
    assert kept_ids(rows, found) == result.kept_ids
    assert found.near.n_pairs == result.n_near_pairs
    assert not found.extended


def test_same_rows_stay_of_real_functions() -> None:
    rows = rows_of(real_functions(1_500, seed=51))
    result = deduplicate(rows, CONFIG)
    assert kept_ids(rows, search(rows)) == result.kept_ids
    assert len(result.kept_ids) < 1_400


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(families(), st.integers(0, 20), st.randoms(use_true_random=False))
def test_extended_search_is_the_search_over_all_rows(rows: list[DedupRow], cut: int, random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    earlier = search(shuffled[:cut])
    assert plain(rows, search(rows, earlier)) == plain(rows, search(rows))


def test_later_rows_extend_a_search() -> None:
    rows = rows_of(real_functions(400, seed=52))
    late = [DedupRow(f"z{row.row_id}", START + timedelta(days=9_000), row.text + "    pass\n") for row in rows[:50]]
    found = search([*rows, *late], search(rows))
    assert found.extended
    assert plain([*rows, *late], found) == plain([*rows, *late], search([*rows, *late]))


def test_row_that_takes_the_first_place_of_an_old_text_makes_the_search_start_anew() -> None:
    rows = [DedupRow("b", START + timedelta(1), "x = 1\n"), DedupRow("c", START + timedelta(2), "y = 2\n")]
    new = DedupRow("a", START, "y = 2\n")
    found = search([*rows, new], search(rows))
    assert not found.extended
    assert plain([*rows, new], found) == plain([*rows, new], search([*rows, new]))


def test_no_rows() -> None:
    found = search([])
    assert (found.order.tolist(), found.first.tolist(), found.near.n_pairs) == ([], [], 0)
    assert search([], found).extended
