import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from schemas.config import TestbedsConfig
from schemas.records import DataPoint, Exclusion
from testbeds.order import draw, total_order
from testbeds.sampling import sample_rows
from tests.builders import make_point

ROOT = Path(__file__).parents[2]


def points_of(counts: Sequence[int]) -> list[DataPoint]:
    return [
        make_point(repo=f"owner/{repo}", start_byte=index * 100)
        for repo, count in enumerate(counts)
        for index in range(count)
    ]


def test_draw_is_fixed_for_ever() -> None:
    assert draw(7, "cut", "0" * 32) == 12925677401711091504955908726942554509
    assert draw(8, "cut", "0" * 32) != draw(7, "cut", "0" * 32) != draw(7, "sample", "0" * 32)


def test_draw_does_not_depend_on_the_hash_seed() -> None:
    program = "from testbeds.order import draw; print([draw(seed, 'cut', 'ab') for seed in range(3)])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert outputs == {f"{[draw(seed, 'cut', 'ab') for seed in range(3)]}\n"}


def test_total_order_compares_repo_date_commit_path_byte_and_row_id() -> None:
    point = make_point()
    assert total_order(point) == (
        "example/shapes",
        point.committer_date,
        "a" * 40,
        "shapes/rectangle.py",
        0,
        point.row_id,
    )


@given(
    counts=st.lists(st.integers(0, 12), max_size=6),
    size=st.integers(1, 40),
    cap=st.integers(1, 15),
    seed=st.integers(0, 2**64),
)
def test_size_is_exact_and_cap_holds(counts: list[int], size: int, cap: int, seed: int) -> None:
    points = points_of(counts)
    sample, excluded = sample_rows(points, "random_cut", TestbedsConfig(size=size, max_per_repo=cap, seed=seed))
    assert len(sample) == min(size, sum(min(count, cap) for count in counts))
    assert all(count <= cap for count in Counter(point.repo for point in sample).values())
    assert [point.row_id for point in points if point.row_id not in excluded] == [point.row_id for point in sample]
    assert list(excluded) == [point.row_id for point in points if point.row_id in excluded]
    assert {item.reason for item in excluded.values()} <= {"not_sampled", "repo_cap"}


@given(order=st.permutations(range(12)))
def test_sample_does_not_depend_on_the_input_order(order: list[int]) -> None:
    points = points_of([5, 7])
    config = TestbedsConfig(size=6, max_per_repo=4, seed=3)
    expected, expected_excluded = sample_rows(points, "with_docstring", config)
    sample, excluded = sample_rows([points[index] for index in order], "with_docstring", config)
    assert sorted(sample, key=total_order) == sorted(expected, key=total_order)
    assert excluded == expected_excluded


def test_reasons_tell_the_full_sample_from_the_full_repository() -> None:
    points = points_of([4, 1])
    capped, excluded = sample_rows(points, "random_cut", TestbedsConfig(size=10, max_per_repo=2, seed=1))
    assert Counter(point.repo for point in capped) == {"owner/0": 2, "owner/1": 1}
    assert [(item.stage, item.reason, item.detail) for item in excluded.values()] == [
        ("testbed_random_cut", "repo_cap", "2 rows of owner/0")
    ] * 2
    _, excluded = sample_rows(points[4:] + points[:1], "random_cut", TestbedsConfig(size=1, max_per_repo=2, seed=1))
    (only,) = excluded.values()
    assert only == Exclusion(only.row_id, "testbed_random_cut", "not_sampled", "sample of 1 is full")


def test_testbeds_and_seeds_sample_differently() -> None:
    points = points_of([60])

    def sample(testbed: str, seed: int) -> list[str]:
        rows, _ = sample_rows(points, testbed, TestbedsConfig(size=20, max_per_repo=60, seed=seed))
        return [row.row_id for row in rows]

    assert sample("random_cut", 1) == sample("random_cut", 1)
    assert sample("random_cut", 1) != sample("random_cut", 2)
    assert sample("random_cut", 1) != sample("with_docstring", 1)


def test_every_row_is_equally_likely() -> None:
    points = points_of([10])
    times = Counter(
        row.row_id
        for seed in range(1000)
        for row in sample_rows(points, "random_cut", TestbedsConfig(size=3, max_per_repo=10, seed=seed))[0]
    )
    # 3,000 draws over 10 rows: 300 each, standard deviation 14.5; the seeds are fixed, so this cannot flicker.
    assert all(240 < times[point.row_id] < 360 for point in points)
