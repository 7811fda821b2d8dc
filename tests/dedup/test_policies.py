"""Policies: what goes for a reference set, what stays of a cluster, what changed against an earlier release."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.comparisons import Change, DescribedCluster, ReferenceMatch, ReferenceSet, ReferenceText, ReleaseChange
from schemas.config import DedupConfig
from schemas.records import Exclusion
from schemas.references import Keep, Role
from tests.dedup.by_rows import (
    DedupRow,
    Origin,
    Reference,
    deduplicate,
    exclude_matches,
    match_references,
    release_changes,
)
from tests.dedup.corpus import START
from tests.dedup.test_run import families, is_duplicate, planted, text_of

OLDEST, NONE, REFERENCE = (DedupConfig(keep=keep) for keep in (Keep.OLDEST, Keep.NONE, Keep.REFERENCE))


def reference(name: str, role: Role, texts: dict[str, Sequence[int]], part: str | None = None) -> Reference:
    rows = [ReferenceText(name, row_id, part, text_of(numbers)) for row_id, numbers in texts.items()]
    return Reference(ReferenceSet(name, role, ("f",), ("0",), len(rows), 0, len(rows)), rows)


BENCH = reference("bench", Role.BENCHMARK, {"T/1": range(8), "T/2": range(9)}, "solve")
FIRST = reference("0.1.0", Role.RELEASE, {"r0": range(10), "x": range(20, 29)})
SECOND = reference("0.2.0", Role.RELEASE, {"z": range(10), "r2": range(40, 50)})
ROWS = planted(range(10), range(20, 30), range(40, 50), range(60, 70))  # r0 to r3


def match(row_id: str, name: str, role: Role, row: str, jaccard: float, **values: object) -> ReferenceMatch:
    part, n_matches, excluded = values.get("part"), values.get("n", 1), values.get("excluded", True)
    return ReferenceMatch(
        row_id, name, role, row, part, jaccard, jaccard == 1.0, n_matches, excluded  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_most_similar_row_of_each_set_is_told() -> None:
    matches = match_references(ROWS, [BENCH, FIRST, SECOND], OLDEST)
    assert matches == [
        match("r0", "0.1.0", Role.RELEASE, "r0", 1.0),
        match("r0", "0.2.0", Role.RELEASE, "z", 1.0),
        match("r0", "bench", Role.BENCHMARK, "T/2", 0.9, part="solve", n=2),
        match("r1", "0.1.0", Role.RELEASE, "x", 0.9),
        match("r2", "0.2.0", Role.RELEASE, "r2", 1.0),
    ]
    assert exclude_matches(matches) == [
        Exclusion("r0", "dedup_references", "in_reference", "set=bench row=T/2 jaccard=0.9 part=solve"),
        Exclusion("r1", "dedup_references", "in_earlier_release", "set=0.1.0 row=x jaccard=0.9"),
        Exclusion("r2", "dedup_references", "in_earlier_release", "set=0.2.0 row=r2 jaccard=1.0"),
    ]
    assert match_references(ROWS, [BENCH, FIRST, SECOND], NONE) == matches


def test_rows_that_an_earlier_release_holds_stay_when_references_are_kept() -> None:
    matches = match_references(ROWS, [FIRST, SECOND], REFERENCE)
    assert [(item.row_id, item.reference, item.excluded) for item in matches] == [
        ("r0", "0.1.0", False),
        ("r0", "0.2.0", False),
        ("r1", "0.1.0", True),
        ("r2", "0.2.0", False),
    ]
    assert [item.row_id for item in exclude_matches(matches)] == ["r1"]


def test_a_benchmark_outweighs_an_earlier_release() -> None:
    matches = match_references(ROWS, [FIRST, BENCH], REFERENCE)
    assert [item.row_id for item in exclude_matches(matches)] == ["r0", "r1"]


def test_a_released_row_stays_though_an_older_one_now_resembles_it() -> None:
    older = DedupRow("new", START.replace(year=2000), text_of(range(9)))
    rows = [*planted(range(10)), older]
    assert deduplicate(rows, OLDEST).kept_ids == ["new"]
    gone = {item.row_id for item in exclude_matches(match_references(rows, [FIRST], REFERENCE))}
    assert gone == {"new"}
    assert deduplicate([row for row in rows if row.row_id not in gone], REFERENCE).kept_ids == ["r0"]


def test_the_limits_are_those_of_the_configuration() -> None:
    assert match_references(ROWS, [BENCH], DedupConfig(threshold=0.91)) == []
    assert match_references(ROWS, [BENCH], DedupConfig(min_distinct_tokens=10)) == []
    assert match_references(ROWS, [], OLDEST) == match_references([], [BENCH], OLDEST) == []


def test_what_changed_against_an_earlier_release_is_told() -> None:
    earlier = [Exclusion("r3", "dedup_near", "near_duplicate", "keeper=x"), Exclusion("r9", "dedup_near", "x", "")]
    excluded = {"x": Exclusion("x", "dedup_old", "copied_old", "jaccard=0.8")}
    returned = ReleaseChange("0.1.0", "r3", Change.RETURNED, "near_duplicate", "keeper=x")
    assert release_changes(FIRST, earlier, {"r3"}, excluded, Keep.REFERENCE) == [
        ReleaseChange("0.1.0", "r0", Change.GONE, "no_data_point", ""),
        returned,
        ReleaseChange("0.1.0", "x", Change.GONE, "copied_old", "jaccard=0.8"),
    ]
    assert release_changes(FIRST, earlier, {"r3"}, excluded, Keep.OLDEST) == [returned]


def test_no_member_of_a_cluster_stays_when_none_is_kept() -> None:
    rows = [
        *planted(range(10), range(9), range(100, 110), range(200, 210), range(200, 209)),
        DedupRow("s0", START, text_of(range(10))),
        DedupRow("s1", START, text_of(range(9))),
    ]
    result = deduplicate(rows, NONE)
    assert result.kept_ids == ["r2"]
    assert result.excluded == [
        Exclusion("r0", "dedup_exact", "exact_duplicate", "cluster=r0 via=s0 jaccard=1.0"),
        Exclusion("s0", "dedup_exact", "exact_duplicate", "cluster=r0 jaccard=1.0"),
        Exclusion("s1", "dedup_exact", "exact_duplicate", "cluster=r0 jaccard=0.9 via=r1 jaccard=1.0"),
        Exclusion("r1", "dedup_near", "near_duplicate", "cluster=r0 jaccard=0.9"),
        Exclusion("r3", "dedup_near", "near_duplicate", "cluster=r3 via=r4 jaccard=0.9"),
        Exclusion("r4", "dedup_near", "near_duplicate", "cluster=r3 jaccard=0.9"),
    ]
    assert [(item.rows_in, item.rows_out, item.excluded_by_reason) for item in result.reports] == [
        (7, 4, {"exact_duplicate": 3}),
        (4, 1, {"near_duplicate": 3}),
    ]
    assert (result.pairs, result.clusters) == (deduplicate(rows, OLDEST).pairs, deduplicate(rows, OLDEST).clusters)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(families())
def test_without_keepers_exactly_the_rows_without_a_duplicate_stay(rows: list[DedupRow]) -> None:
    result = deduplicate(rows, NONE)
    alone = [row.row_id for row in rows if not any(is_duplicate(row, other) for other in rows if other is not row)]
    assert result.kept_ids == sorted(alone)
    assert sorted(result.kept_ids + [item.row_id for item in result.excluded]) == sorted(row.row_id for row in rows)
    for report in result.reports:
        assert report.rows_in == report.rows_out + sum(report.excluded_by_reason.values())


@pytest.mark.parametrize(("config", "keeper"), [(OLDEST, "r0"), (REFERENCE, "r0"), (NONE, None)])
def test_clusters_are_described(config: DedupConfig, keeper: str | None) -> None:
    rows = planted(range(10), range(9), range(20, 30), range(8), range(20, 29), range(50, 60))
    places = [("o/n", "1"), ("o/m", "1"), ("o/n", "2"), ("o/n", "2"), ("o/n", "2")]
    origins = {f"r{number}": Origin(*place) for number, place in enumerate(places)}
    assert deduplicate(rows, config, origins).described == [
        DescribedCluster("r0", keeper, ("r0", "r1", "r3"), 3, 2, True, 3, None, 0.7),
        DescribedCluster("r2", "r2" if keeper else None, ("r2", "r4"), 2, 1, False, 1, None, 0.7),
    ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(families(), st.integers(0, 20))
def test_adding_rows_never_takes_a_released_row_away(rows: list[DedupRow], n_first: int) -> None:
    released = set(deduplicate(rows[:n_first], OLDEST).kept_ids)
    texts = [ReferenceText("0.1.0", row.row_id, None, row.text) for row in rows if row.row_id in released]
    earlier = Reference(ReferenceSet("0.1.0", Role.RELEASE, ("f",), ("0",), len(texts), 0, len(texts)), texts)
    gone = {item.row_id for item in exclude_matches(match_references(rows, [earlier], REFERENCE))}
    kept_ids = set(deduplicate([row for row in rows if row.row_id not in gone], REFERENCE).kept_ids)
    assert released <= kept_ids
    assert release_changes(earlier, [], kept_ids, {}, Keep.REFERENCE) == []
    kept = [row for row in rows if row.row_id in kept_ids]
    assert not [1 for one in kept for other in kept if one is not other and is_duplicate(one, other)]
