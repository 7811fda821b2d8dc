"""Which tests measure time, by their code."""

import datetime
import time
import timeit
from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Protocol

import pytest

from sandbox.inside.clocks import measures_time


class Stats(Protocol):
    @property
    def stats(self) -> dict[str, float]: ...
    def __call__(self, function: Callable[[], float]) -> float: ...


def work() -> float:
    return 1.0


def by_module() -> None:
    start = time.perf_counter()
    work()
    assert time.perf_counter() - start < 1


def by_name() -> None:
    start = perf_counter()
    work()
    assert perf_counter() - start < 1


def of_the_day() -> None:
    start = time.time()
    work()
    assert time.time() - start < 1


async def asynchronous() -> None:
    deadline = time.monotonic_ns() + 5
    work()
    assert time.monotonic_ns() < deadline


def in_a_function_inside() -> None:
    def took() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    assert took() < 1


def by_timeit() -> None:
    assert timeit.timeit(work, number=1) < 1


def by_benchmark(benchmark: Stats) -> None:
    benchmark(work)
    assert benchmark.stats["median"] < 1


def decorated(test: Callable[[], None]) -> Callable[[], None]:
    @wraps(test)
    def wrapper() -> None:
        test()

    return wrapper


@decorated
def behind_a_decorator() -> None:
    start = time.perf_counter()
    work()
    assert time.perf_counter() - start < 1


def with_one_date() -> None:
    assert work() < time.time()


def that_sleeps() -> None:
    time.sleep(0)
    work()
    time.sleep(0)


def that_is_only_run_by_a_benchmark(benchmark: Stats) -> None:
    assert benchmark(work) == 1


def with_other_stats(found: Stats) -> None:
    assert found.stats["n"] == work()


def with_times_of_dates() -> None:
    first, second = datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)
    assert first.time() == second.time()


def with_a_name_in_a_text() -> None:
    assert str(work()) not in ("time.monotonic", "time.monotonic()", "perf_counter")


class Item:
    def __call__(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    "test",
    [
        by_module,
        by_name,
        of_the_day,
        asynchronous,
        in_a_function_inside,
        by_timeit,
        by_benchmark,
        behind_a_decorator,
    ],
)
def test_what_compares_elapsed_time_is_found(test: object) -> None:
    assert measures_time(test)


@pytest.mark.parametrize(
    "test",
    [
        with_one_date,
        that_sleeps,
        that_is_only_run_by_a_benchmark,
        with_other_stats,
        with_times_of_dates,
        with_a_name_in_a_text,
        Item(),
        None,
    ],
)
def test_other_tests_are_left_alone(test: object) -> None:
    assert not measures_time(test)
