"""pass@k against enumeration and the formula of others, its interval against textbook values and simulation."""

import itertools
import math
import random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.pass_at_k import PassAtK, Tally, estimate, pass_at_k


@pytest.mark.parametrize(
    ("n", "c", "k"), [(n, c, k) for n in range(1, 8) for c in range(n + 1) for k in range(1, n + 1)]
)
def test_estimate_of_a_task_is_the_share_of_k_subsets_with_a_passing_answer(n: int, c: int, k: int) -> None:
    answers = [place < c for place in range(n)]
    chosen = [any(subset) for subset in itertools.combinations(answers, k)]
    assert pass_at_k(n, c, k) == pytest.approx(sum(chosen) / len(chosen), abs=1e-12)


def code_eval_estimator(n: int, c: int, k: int) -> float:
    """Return what Hugging Face evaluate's metric code_eval computes (HumanEval's product form)."""
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimate_of_a_task_is_that_of_code_eval(case: tuple[int, int, int]) -> None:
    assert pass_at_k(*case) == pytest.approx(code_eval_estimator(*case), abs=1e-9)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0), (0, 0, 1)])
def test_impossible_numbers_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="needs at least"):
        pass_at_k(n, c, k)


def test_estimator_is_unbiased() -> None:
    """The mean over all outcomes of n answers, weighted by their chance, is the chance that one of k passes."""
    n, k, chance = 6, 3, 0.3
    expected = sum(
        math.comb(n, c) * chance**c * (1 - chance) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1)
    )  # fmt: skip
    assert expected == pytest.approx(1 - (1 - chance) ** k)


def test_interval_of_clusters_of_one_task_is_students() -> None:
    # Two of 1 and two of 0: mean 1/2, standard deviation 0.57735; t with 3 degrees of freedom is 3.182446.
    tallies = [Tally(f"r{place}", 10, 4 + place % 2 * 2) for place in range(4)]
    half = pytest.approx(3.182446305 * 0.1 * 0.57735027)
    found = estimate(tallies, 1)
    assert found.low is not None
    assert found.high is not None
    assert (0.5 - found.low, found.high - 0.5) == (half, half)


def test_interval_is_that_of_the_formula_worked_by_hand() -> None:
    # a: 1, 1, 0; b: 0, 0; c: 1. Mean 1/2; deviations sum to 1/2, -1, 1/2; variance 3/2 * 1.5 / 36 = 1/16.
    tallies = [Tally(*row) for row in [("a", 1, 1), ("a", 1, 1), ("a", 1, 0), ("b", 1, 0), ("b", 1, 0), ("c", 1, 1)]]
    assert estimate(tallies, 1) == PassAtK(1, 0.5, 0.0, 1.0, 6, 3)
    many = [
        Tally(f"{repo}{copy}", n, c) for copy in range(20) for repo, n, c in [("a", 1, 1), ("b", 1, 0), ("b", 1, 0)]
    ]
    # 20 repositories of one passed task, 20 of two failed ones: mean 1/3, deviations 2/3 and -2/3.
    half = 2.0226909 * math.sqrt(40 / 39 * 40 * (4 / 9) / 3600)
    found = estimate(many, 1)
    assert found == PassAtK(1, pytest.approx(1 / 3), pytest.approx(1 / 3 - half), pytest.approx(1 / 3 + half), 60, 40)


def test_one_repository_has_no_interval() -> None:
    assert estimate([Tally("a", 2, 1), Tally("a", 2, 2)], 1) == PassAtK(1, 0.75, None, None, 2, 1)


def test_tasks_with_fewer_answers_than_k_do_not_count() -> None:
    assert estimate([Tally("a", 5, 5), Tally("b", 4, 0), Tally("c", 0, 0)], 5) == PassAtK(5, 1.0, None, None, 1, 1)
    assert estimate([Tally("b", 4, 0)], 5) == PassAtK(5, None, None, None, 0, 0)


def test_order_does_not_matter() -> None:
    tallies = [Tally(f"r{place % 7}", 10, place % 11) for place in range(60)]
    shuffled = random.Random(3).sample(tallies, len(tallies))
    assert estimate(shuffled, 3) == estimate(tallies, 3)


def coverage(groups: int, *, clustered: bool) -> float:
    """Return how often the interval holds the truth when tasks of one repository share their difficulty."""
    random_ = random.Random(5)
    hits = []
    for _ in range(400):
        tallies = []
        for repo in range(groups):
            chance = random_.betavariate(1, 1)  # mean one half
            for task in range(10):
                name = f"r{repo}" if clustered else f"r{repo}-{task}"
                tallies.append(Tally(name, 1, int(random_.random() < chance)))
        found = estimate(tallies, 1)
        assert found.low is not None
        assert found.high is not None
        hits.append(found.low <= 0.5 <= found.high)
    return fmean(hits)


@pytest.mark.parametrize("groups", [5, 12, 30])
def test_interval_holds_the_truth_as_often_as_it_says(groups: int) -> None:
    assert 0.93 <= coverage(groups, clustered=True) <= 0.98
    assert coverage(groups, clustered=False) < 0.80
