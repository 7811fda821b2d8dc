"""The numbers about a release's rows, against plain Python's."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from publishing.statistics import FEATURES, Attribution, Spread, read_statistics
from schemas.arrow import to_table
from schemas.records import DataPoint
from tests.builders import make_point
from warehouse.tables import write_table

MOMENT = datetime(2024, 3, 10, 12, tzinfo=UTC)


def point(number: int, **values: object) -> DataPoint:
    return make_point(fun_name=f"f{number}", start_byte=number, **values)


def write(folder: Path, name: str, rows: Sequence[DataPoint], n_shards: int = 1) -> list[Path]:
    paths = [folder / name / f"{index}.parquet" for index in range(n_shards)]
    for index, path in enumerate(paths):
        write_table(path, to_table(rows[index::n_shards], DataPoint))
    return paths


def test_features_have_the_mean_and_the_samples_deviation(tmp_path: Path) -> None:
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 100_000]
    rows = [point(index, nloc=value, complexity=7) for index, value in enumerate(values)]
    found = read_statistics({"raw_data": write(tmp_path, "raw_data", rows, 3)}).features["raw_data"]
    assert list(found) == list(FEATURES)
    assert found["nloc"] == Spread(statistics.fmean(values), pytest.approx(statistics.stdev(values), rel=1e-15))
    assert found["complexity"] == Spread(7.0, 0.0)


def test_large_numbers_lose_nothing(tmp_path: Path) -> None:
    """Where a sum of squares as floating-point numbers would give a deviation of 0."""
    rows = [point(0, n_words=100_000_000), point(1, n_words=100_000_001)]
    found = read_statistics({"raw_data": write(tmp_path, "raw_data", rows)}).features["raw_data"]
    assert found["n_words"] == Spread(100_000_000.5, 0.5**0.5)


@pytest.mark.parametrize(("rows", "expected"), [([], Spread(0.0, 0.0)), ([point(0, nloc=4)], Spread(4.0, 0.0))])
def test_few_rows_have_no_deviation(tmp_path: Path, rows: list[DataPoint], expected: Spread) -> None:
    found = read_statistics({"raw_data": write(tmp_path, "raw_data", rows)})
    assert found.features["raw_data"]["nloc"] == expected
    assert len(found.since) == len(rows)


def test_rows_count_for_a_day_when_both_dates_are_on_or_after_it(tmp_path: Path) -> None:
    far = timezone(timedelta(hours=14))
    rows = [
        point(0, author_date=MOMENT, committer_date=MOMENT),
        point(1, author_date=MOMENT, committer_date=MOMENT + timedelta(days=60)),
        point(2, author_date=MOMENT + timedelta(days=60), committer_date=MOMENT),
        point(3, author_date=datetime(2024, 4, 1, tzinfo=UTC), committer_date=datetime(2024, 5, 9, tzinfo=UTC)),
        # The first of May by the author's clock, the last of April by UTC.
        point(4, author_date=datetime(2024, 5, 1, 8, tzinfo=far), committer_date=datetime(2024, 5, 1, 8, tzinfo=far)),
    ]
    shards = {"raw_data": write(tmp_path, "raw_data", rows), "random_cut": write(tmp_path, "random_cut", rows[3:])}
    assert read_statistics(shards).since == (
        (date(2024, 3, 1), {"raw_data": 5, "random_cut": 2}),
        (date(2024, 4, 1), {"raw_data": 2, "random_cut": 2}),
    )


@pytest.mark.parametrize(
    ("last", "days"),
    [
        (datetime(2026, 2, 28, tzinfo=UTC), [date(2024 + month // 12, month % 12 + 1, 1) for month in range(2, 26)]),
        (
            datetime(2026, 3, 1, tzinfo=UTC),
            [date(2024 + quarter // 4, quarter % 4 * 3 + 1, 1) for quarter in range(9)],
        ),
    ],
)
def test_two_years_are_told_by_months_and_more_by_quarters(tmp_path: Path, last: datetime, days: list[date]) -> None:
    rows = [point(0, author_date=MOMENT, committer_date=MOMENT), point(1, author_date=last, committer_date=last)]
    found = read_statistics({"raw_data": write(tmp_path, "raw_data", rows)}).since
    assert [day for day, _ in found] == days
    assert found[-1][1] == {"raw_data": 1}


def test_code_is_attributed_to_its_repository_and_the_files_that_state_its_licence(tmp_path: Path) -> None:
    both = "(MIT OR Apache-2.0)"
    rows = [
        point(0, repo="o/b", license="MIT", license_matches=("LICENSE: MIT", "COPYING: MIT-0", "setup.cfg: MIT")),
        point(1, repo="o/b", license="MIT", license_matches=("header: MIT", "LICENSE: BSD-3-Clause"),
              copyrights=("(c) Bob",)),
        point(2, repo="o/b", license=None, license_matches=("LICENSE: NOASSERTION",), copyrights=()),
        point(3, repo="o/a", license=both, license_matches=("LICENSE-MIT: MIT", "LICENSE-APACHE: Apache-2.0")),
        replace(point(0, repo="o/b"), license="MIT"),  # stands in another testbed as well, and counts once
    ]  # fmt: skip
    shards = {"raw_data": write(tmp_path, "raw_data", rows[:4]), "random_cut": write(tmp_path, "random_cut", rows[4:])}
    assert read_statistics(shards).attributions == (
        Attribution("o/a", both, 1, ("LICENSE-APACHE", "LICENSE-MIT"), ("Copyright (c) 2020 Ada Author",)),
        Attribution("o/b", None, 1, (), ()),
        Attribution("o/b", "MIT", 2, ("LICENSE", "header", "setup.cfg"), ("(c) Bob", "Copyright (c) 2020 Ada Author")),
    )
