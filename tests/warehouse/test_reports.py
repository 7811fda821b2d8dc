from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.arrow import from_table
from schemas.errors import PipelineError
from schemas.records import StageReport
from warehouse.reports import FunnelRow, combine_reports, funnel_table

MOMENT = datetime(2024, 6, 1, tzinfo=UTC)
REPORTS = [
    StageReport("mine", "o/a", 10, 7, {"moved": 2, "bad_blob": 1}, "d", "0.1.0", MOMENT, MOMENT),
    StageReport("mine", "o/b", 5, 4, {"moved": 1}),
    StageReport("features", "o/a", 7, 7),
    StageReport("features", "o/b", 4, 3, {"code_too_long": 1}),
    StageReport("dedup", "all", 10, 9, {"near_duplicate": 1}),
]
FUNNEL = [
    FunnelRow("mine", 15, 11, {"bad_blob": 1, "moved": 3}),
    FunnelRow("features", 11, 10, {"code_too_long": 1}),
    FunnelRow("dedup", 10, 9, {"near_duplicate": 1}),
]


def test_partitions_are_summed_and_stages_keep_their_order() -> None:
    assert combine_reports(REPORTS) == FUNNEL


def test_reasons_are_sorted_whatever_the_order_of_partitions() -> None:
    funnel = combine_reports([REPORTS[1], REPORTS[0]])
    assert funnel == FUNNEL[:1]
    assert [*funnel[0].excluded_by_reason] == ["bad_blob", "moved"]


def test_nothing_reported_is_an_empty_funnel() -> None:
    assert combine_reports([]) == []
    assert funnel_table([]).num_rows == 0


def test_excluded_is_the_sum_over_reasons() -> None:
    assert [row.excluded for row in FUNNEL] == [4, 1, 1]


def test_a_partition_reported_twice_is_an_error() -> None:
    with pytest.raises(PipelineError, match="stage mine reported o/a twice"):
        combine_reports([*REPORTS, REPORTS[0]])


def test_a_report_that_was_changed_behind_its_check_is_an_error() -> None:
    report = StageReport("mine", "o/a", 2, 1, {"moved": 1})
    report.excluded_by_reason["moved"] = 5
    with pytest.raises(PipelineError, match="stage mine does not add up: 2 rows in, 1 out and 5 excluded"):
        combine_reports([report])


def test_the_table_holds_the_funnel() -> None:
    table = funnel_table(FUNNEL)
    assert table.column_names == ["stage", "rows_in", "rows_out", "excluded_by_reason"]
    assert list(from_table(table, FunnelRow)) == FUNNEL


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["mine", "features"]),
            st.integers(0, 50),
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)),
        )
    )
)
def test_no_row_is_lost_or_invented(parts: list[tuple[str, int, dict[str, int]]]) -> None:
    reports = [
        StageReport(stage, f"o/{index}", kept + sum(reasons.values()), kept, reasons)
        for index, (stage, kept, reasons) in enumerate(parts)
    ]
    funnel = combine_reports(reports)
    assert sum(row.rows_in for row in funnel) == sum(report.rows_in for report in reports)
    assert all(row.rows_in == row.rows_out + row.excluded for row in funnel)
