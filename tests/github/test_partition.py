"""Windows neither overlap nor leave gaps, whatever the repositories are like; what cannot be split is reported."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miners.partition import Part, Partition
from miners.search import Page, Window, fixed_query, read_repository, reduce_repository, root_windows
from schemas.search import Axis, Bounds, DiscoveredRepository, SearchConfig, Wanted
from tests.github.queries import matching
from tests.github.server import least_calls
from tests.github.support import STARTED, MemoryAsker
from tests.github.universe import EPOCH, TODAY, Repository, equal_universe, ids, large_universe, young_universe

MOMENTS = [EPOCH, TODAY, datetime(2020, 5, 17, tzinfo=UTC), datetime(2020, 5, 17, 12, tzinfo=UTC)]


def cover(rows: list[Repository], config: SearchConfig | None = None) -> tuple[list[Part], MemoryAsker]:
    asker = MemoryAsker(rows)
    partition = Partition(asker, STARTED)  # type: ignore[arg-type] # it has the one method that counts
    return [part for root in root_windows(config or SearchConfig()) for part in partition.cover(root)], asker


def row_of(repository: Repository) -> DiscoveredRepository:
    return read_repository(reduce_repository(repository.json("https://hub.example")))


def found_ids(parts: list[Part]) -> list[int]:
    return sorted(repo_id for part in parts for repo_id in part.rows)


@st.composite
def universes(draw: st.DrawFn) -> list[Repository]:
    """Draw repositories of some clumps, each with columns that are equal, few or many, more than a window shows."""
    rng = random.Random(draw(st.integers(0, 10_000)))
    rows: list[Repository] = []
    for _ in range(draw(st.integers(1, 4))):
        stars = draw(st.sampled_from([[0], [7], [3, 4], list(range(5_000))]))
        sizes = draw(st.sampled_from([[0], [100], list(range(90_000))]))
        forks = draw(st.sampled_from([[0], [1, 2], list(range(3_000))]))
        spread = draw(st.sampled_from([0, 86_400, 300_000_000]))
        moment = draw(st.sampled_from(MOMENTS[:1] + MOMENTS[2:]))
        for _ in range(draw(st.sampled_from([1, 90, 700, 1_100, 1_600]))):
            created = moment + timedelta(seconds=rng.randrange(spread + 1))
            rows.append(
                Repository(
                    len(rows) + 1,
                    f"o/r{len(rows)}",
                    rng.choice(stars),
                    rng.choice(forks),
                    rng.choice(sizes),
                    created,
                    created + timedelta(seconds=rng.randrange(spread + 1)),
                )
            )
    return rows


@settings(max_examples=15)
@given(universes(), st.sampled_from(["", ">=3", "4..900"]), st.sampled_from(["", "2020-05-17", "<=2020-05-17"]))
def test_windows_hold_every_point_once_and_all_is_found_or_reported(
    rows: list[Repository], stars: str, created: str
) -> None:
    config = SearchConfig(stars=stars, created=created)
    parts, _ = cover(rows, config)
    [root] = root_windows(config)
    matched = matching(rows, root.query)
    found = found_ids(parts)
    assert len(found) == len(set(found))
    assert set(found) <= {row.repo_id for row in matched}
    assert len(found) + sum(part.uncovered for part in parts) == len(matched)
    assert sum(part.total for part in parts) == len(matched)
    for part in parts:
        assert len(part.rows) + part.uncovered == part.total == len(matching(rows, part.window.query))
        assert part.uncovered == max(0, part.total - 1_000)
    points = [*rows[:60], *(replace(row, stars=row.stars + 1, size=row.size + 1) for row in rows[:60])]
    points += [Repository(1, "o/x", 0, 0, 0, moment, moment) for moment in MOMENTS]
    for point in map(row_of, points):
        assert sum(part.window.holds(point) for part in parts) == root.holds(point)


class TestKnownUniverses:
    def test_one_star_count_with_more_than_github_shows(self) -> None:
        rows = large_universe()
        parts, asker = cover(rows, SearchConfig(stars=">1000"))
        assert found_ids(parts) == ids(rows)
        split = [part for part in parts if part.window.range_of(Axis.CREATED) != Bounds()]
        assert sum(part.total for part in split) == 1_200
        assert {part.window.range_of(Axis.STARS) for part in split} == {Bounds(1_500, 1_500)}
        assert len(asker.asked) <= 1.2 * least_calls([len(rows)])

    def test_many_star_counts_with_more_than_github_shows(self) -> None:
        rows = young_universe(7_000)
        config = SearchConfig(stars=">=3", created="2024-01-01..2024-12-31")
        wanted = [row.repo_id for row in rows if row.stars >= 3]
        parts, asker = cover(rows, config)
        assert found_ids(parts) == sorted(wanted)
        assert len(asker.asked) <= 1.25 * least_calls([len(wanted)])

    def test_no_request_is_made_twice(self) -> None:
        _, asker = cover(young_universe(5_000), SearchConfig(stars=">=3"))
        assert len(set(asker.asked)) == len(asker.asked)

    @pytest.mark.parametrize(
        ("column", "axis"),
        [("created", Axis.CREATED), ("pushed", Axis.PUSHED), ("size", Axis.SIZE), ("forks", Axis.FORKS)],
    )
    def test_repositories_that_differ_in_one_thing_alone(self, column: str, axis: Axis) -> None:
        values = range(2_300)
        rows = [
            replace(row, **{column: EPOCH + timedelta(seconds=value) if axis.is_time else value})
            for row, value in zip(equal_universe(2_300), values, strict=True)
        ]
        parts, asker = cover(rows)
        assert found_ids(parts) == ids(rows)
        assert {axis for part in parts if part.total for axis in part.window.bounds} >= {Axis.STARS, axis}
        assert len(asker.asked) <= 1.5 * least_calls([len(rows)])

    def test_equal_repositories_are_uncovered(self) -> None:
        parts, asker = cover(equal_universe(1_500))
        assert [(part.total, len(part.rows), part.uncovered) for part in parts if part.total] == [(1_500, 1_000, 500)]
        assert {query for query, _ in asker.asked if "size:100..100" in query and "forks:1..1" in query}

    @pytest.mark.parametrize(("n", "calls"), [(0, 1), (1, 1), (100, 1), (101, 2), (1_000, 10)])
    def test_a_search_that_fits_costs_its_pages(self, n: int, calls: int) -> None:
        parts, asker = cover(equal_universe(n))
        assert [(part.total, len(part.rows), part.window.qualifiers()) for part in parts] == [(n, n, {})]
        assert len(asker.asked) == calls

    def test_each_licence_is_a_search_of_its_own(self) -> None:
        rows = [
            *equal_universe(3),
            *(replace(row, repo_id=row.repo_id + 10, licence="ISC") for row in equal_universe(2)),
        ]
        parts, asker = cover(rows, SearchConfig(licences=("MIT", "ISC", "0BSD")))
        assert [(part.window.licence, sorted(part.rows)) for part in parts] == [
            ("MIT", [1, 2, 3]), ("ISC", [11, 12]), ("0BSD", []),
        ]  # fmt: skip
        assert asker.asked == [
            (f"language:Python is:public license:{name}", 1) for name in ("mit", "isc", "0bsd")
        ]  # fmt: skip


class MovingAsker(MemoryAsker):
    """Stars come and go before every page."""

    def __init__(self, rows: list[Repository], rate: float) -> None:
        super().__init__(rows)
        self.rate, self.rng = rate, random.Random(5)

    def page(self, window: Window, sort: str | None, number: int, attempt: int = 0) -> Page:
        self.rows = [
            replace(row, stars=row.stars + self.rng.choice([1, 1, 1, -1])) if self.rng.random() < self.rate else row
            for row in self.rows
        ]
        self.kept = {}
        return super().page(window, sort, number, attempt)


@pytest.mark.parametrize(("rate", "missed"), [(0.00002, 0), (0.001, 12)])
def test_stars_that_come_and_go_while_windows_are_read(rate: float, missed: int) -> None:
    """A star in twenty pages costs nothing; two and a half in each may cost some repositories, but no window."""
    rows = large_universe(2_400)
    asker = MovingAsker(rows, rate)
    [root] = root_windows(SearchConfig(stars=">1000"))
    parts = Partition(asker, STARTED).cover(root)  # type: ignore[arg-type] # it has the one method that counts
    always = {row.repo_id for row in matching(asker.rows, root.query)} & {row.repo_id for row in rows}
    assert len(always - set(found_ids(parts))) <= missed
    for point in map(row_of, rows[::7]):
        assert sum(part.window.holds(point) for part in parts) == 1


class TestQuery:
    def test_qualifiers_are_written_as_github_reads_them(self) -> None:
        bounds = {
            Axis.STARS: Bounds(3, None),
            Axis.SIZE: Bounds(0, 30_000),
            Axis.FORKS: Bounds(None, 4),
            Axis.CREATED: Bounds(1_704_067_200, 1_704_067_200),
            Axis.PUSHED: Bounds(None, 1_704_067_199),
        }
        assert Window("language:C", "MPL-2.0", bounds).query == (
            "language:C license:mpl-2.0 stars:>=3 created:2024-01-01T00:00:00Z..2024-01-01T00:00:00Z "
            "pushed:<=2023-12-31T23:59:59Z size:<=30000 forks:<=4"
        )

    @pytest.mark.parametrize(
        ("config", "query"),
        [
            (SearchConfig(), "language:Python is:public"),
            (SearchConfig(language="Jupyter Notebook"), 'language:"Jupyter Notebook" is:public'),
            (
                SearchConfig(forks=Wanted.INCLUDE, archived=Wanted.EXCLUDE),
                "language:Python is:public fork:true archived:false",
            ),
            (
                SearchConfig(forks=Wanted.ONLY, archived=Wanted.ONLY),
                "language:Python is:public fork:only archived:true",
            ),
        ],
    )
    def test_fixed_qualifiers(self, config: SearchConfig, query: str) -> None:
        assert fixed_query(config) == query
