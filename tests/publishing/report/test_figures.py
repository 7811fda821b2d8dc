"""The numbers of the page are those of the release's files, counted here by other means."""

import json
import math
import shutil
import statistics
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from publishing.glossary import reason_meaning, stage_meaning
from publishing.release import write_release
from publishing.report.charts import Bar
from publishing.report.figures import (
    FEATURES,
    ExecutedRepository,
    FeatureFigure,
    StageFigure,
    read_columns,
    read_figures,
    read_manifest,
)  # fmt: skip
from schemas.arrow import to_table
from schemas.errors import ConfigError
from schemas.execution import RealCode
from schemas.records import DataPoint, Exclusion, StageReport
from tests.builders import make_point
from tests.publishing.releases import FUNNEL, make_inputs, points, real_code_row


def counts(bars: list[Bar]) -> list[tuple[str, int]]:
    return [(bar.label, bar.count) for bar in bars]


def release_of(folder: Path, rows: list[DataPoint], **inputs: Any) -> Path:  # noqa: ANN401 - as fields
    """Write a release whose only testbed with rows is raw_data."""
    tables = {"raw_data": to_table(rows, DataPoint)}
    return write_release(make_inputs(tables=tables, **inputs), folder).folder


def test_testbeds_stand_in_the_manifests_order_with_their_rows(release: Path) -> None:
    figures = read_figures(release)
    assert counts(figures.testbeds) == [
        ("raw_data", 6), ("raw_data_docstring", 5), ("random_cut", 4), ("with_docstring", 2), ("from_docstring", 1),
        ("commit_gen", 6), ("summarization_gen", 0), ("real_code", 1),
    ]  # fmt: skip
    assert figures.testbeds[0] == Bar("raw_data", 6, 100.0, "24.0%")
    assert figures.manifest == json.loads((release / "manifest.json").read_text())


def test_the_funnel_has_every_stage_with_its_reasons_most_first(release: Path) -> None:
    [mine, dedup] = read_figures(release).funnel
    assert mine == StageFigure(
        "mine", stage_meaning("mine"), 9, 7, pytest.approx(77.78, abs=0.01),  # type: ignore[arg-type] # compares as a float
        [("bad_blob", reason_meaning("bad_blob"), 1), ("moved", reason_meaning("moved"), 1)],
    )  # fmt: skip
    assert dedup.reasons == [("near_duplicate", reason_meaning("near_duplicate"), 1)]


def test_reasons_with_more_rows_come_first_and_an_empty_stage_keeps_all(tmp_path: Path) -> None:
    funnel = (
        StageReport("mine", "a", 9, 2, {"moved": 2, "bad_blob": 5}),
        StageReport("dedup", "all", 0, 0, {}),
    )
    [mine, dedup] = read_figures(release_of(tmp_path, points(), funnel=funnel)).funnel
    assert [(reason, n) for reason, _, n in mine.reasons] == [("bad_blob", 5), ("moved", 2)]
    assert (dedup.kept, dedup.reasons) == (100.0, [])


@pytest.mark.parametrize("feature", FEATURES)
def test_features_are_those_of_the_column(release: Path, feature: str) -> None:
    values = pq.read_table(release / "raw_data")[feature].to_pylist()
    [figure] = [figure for figure in read_figures(release).features["raw_data"] if figure.name == feature]
    assert figure == FeatureFigure(
        feature,
        pytest.approx(statistics.fmean(values)),  # type: ignore[arg-type] # compares as a float
        pytest.approx(statistics.stdev(values)),  # type: ignore[arg-type] # compares as a float
        statistics.median(values),
        max(values),
        figure.svg,
    )
    assert f'aria-label="{feature}: rows by value"' in figure.svg


def test_testbeds_without_rows_have_no_features(release: Path) -> None:
    assert list(read_figures(release).features) == [
        "raw_data", "raw_data_docstring", "random_cut", "with_docstring", "from_docstring", "commit_gen", "real_code",
    ]  # fmt: skip


def test_origin_is_counted_over_raw_data(release: Path) -> None:
    figures = read_figures(release)
    query = "select coalesce({0}, 'unknown'), count(*) from read_parquet('{1}/raw_data/*.parquet') group by 1"
    for column, bars in (("repo", figures.repositories), ("license", figures.licences)):
        counted = duckdb.sql(query.format(column, release)).fetchall()
        assert sorted(counts(bars)) == sorted(counted)
        assert [bar.count for bar in bars] == sorted((n for _, n in counted), reverse=True)
    assert ("unknown", 1) in counts(figures.licences)


def test_months_without_rows_are_shown_as_such(tmp_path: Path) -> None:
    dates = [
        datetime(2024, 2, 29, 23, 59, tzinfo=UTC),
        datetime(2024, 5, 1, tzinfo=UTC),
        datetime(2024, 5, 2, tzinfo=UTC),
    ]
    rows = [make_point(start_byte=index, committer_date=date) for index, date in enumerate(dates)]
    assert counts(read_figures(release_of(tmp_path, rows)).months) == [
        ("2024-02", 1), ("2024-03", 0), ("2024-04", 0), ("2024-05", 2),
    ]  # fmt: skip


def test_months_go_over_the_turn_of_the_year(tmp_path: Path) -> None:
    dates = [datetime(2024, 11, 30, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC)]
    rows = [make_point(start_byte=index, committer_date=date) for index, date in enumerate(dates)]
    inputs = make_inputs()
    config = replace(inputs.config, window=replace(inputs.config.window, until=None))
    assert counts(read_figures(release_of(tmp_path, rows, config=config)).months) == [
        ("2024-11", 1), ("2024-12", 0), ("2025-01", 0), ("2025-02", 1),
    ]  # fmt: skip


def test_many_repositories_end_in_one_bar(tmp_path: Path) -> None:
    rows = [make_point(repo=f"o/r{index:02d}", start_byte=index) for index in range(17)]
    bars = read_figures(release_of(tmp_path, rows)).repositories
    assert len(bars) == 15
    assert bars[-1].label == "3 others"
    assert sum(bar.count for bar in bars) == 17


def test_novelty_is_what_the_feature_stage_left_out_and_the_rest_is_new(tmp_path: Path) -> None:
    excluded = {"license_not_allowed": 2, "novelty_modified": 30, "novelty_moved": 5}
    funnel = (*FUNNEL, StageReport("features", "o/n", 50, 13, excluded))
    figures = read_figures(release_of(tmp_path, points(), funnel=funnel))
    assert counts(figures.novelty) == [("modified", 30), ("new", 15), ("moved", 5)]
    assert math.isclose(sum(bar.count for bar in figures.novelty), 50)


def test_real_code_has_tasks_and_reasons_of_each_repository(tmp_path: Path) -> None:
    proven = real_code_row(points()[0])
    exclusions = [
        *(Exclusion(f"{index:032x}", "real_code", "not_covered", "", "o/n", "c", "p.py", "f") for index in range(3)),
        Exclusion("e" * 32, "real_code", "is_test", "", "o/n", "c", "t.py", "test_f"),
        Exclusion("f" * 32, "real_code", "no_tests", "", "example/shapes", "c", "p.py", "g"),
        Exclusion("d" * 32, "dedup", "near_duplicate", "", "o/other", "c", "p.py", "h"),
    ]
    inputs = make_inputs(exclusions=to_table(exclusions, Exclusion))
    tables = {**inputs.tables, "real_code": to_table([proven], RealCode)}
    folder = write_release(replace(inputs, tables=tables), tmp_path).folder
    executed = read_figures(folder).executed
    assert executed[0] == ExecutedRepository("example/shapes", 0, [Bar("no_tests", 1, 100.0, "100.0%")])
    assert (executed[1].repo, executed[1].tasks) == ("o/n", 1)
    assert [(bar.label, bar.count, bar.share) for bar in executed[1].reasons] == [
        ("not_covered", 3, "75.0%"),
        ("is_test", 1, "25.0%"),
    ]
    assert len(executed) == 2


def test_a_release_without_real_code_and_rows_has_empty_figures(tmp_path: Path) -> None:
    figures = read_figures(release_of(tmp_path, []))
    assert (figures.features, figures.repositories, figures.months, figures.executed) == ({}, [], [], [])


def test_columns_of_several_files_are_read_in_order(release: Path, tmp_path: Path) -> None:
    table = pq.read_table(release / "raw_data" / "test-00000-of-00001.parquet")
    folder = tmp_path / "raw_data"
    folder.mkdir()
    pq.write_table(table.slice(0, 2), folder / "test-00000-of-00002.parquet")
    pq.write_table(table.slice(2), folder / "test-00001-of-00002.parquet")
    assert read_columns(tmp_path, "raw_data", ["row_id"]).to_pylist() == table.select(["row_id"]).to_pylist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no release: manifest.json cannot be read"),
        ("{", "is damaged"),
        ('{"rows": {}}', "is no man"),
    ],
)
def test_what_is_no_release_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_manifest(tmp_path)


def test_a_moved_release_gives_the_same_figures(release: Path, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere" / "1.2.0"
    shutil.copytree(release, copied)
    assert read_figures(copied) == read_figures(release)
