"""The end of a run: a table for people, JSON for machines."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from flows.recipe import BuildResult
from schemas.records import StageReport
from warehouse.reports import combine_reports


def as_json(result: BuildResult, seconds: float) -> dict[str, object]:
    """Return the summary in plain JSON types; its keys are documented in docs/commands.md."""
    spent = _seconds(result.reports)
    return {
        "seconds": round(seconds, 3),
        "release": None if result.release is None else str(result.release.folder),
        "release_status": None if result.release is None else str(result.release.status),
        "testbeds": result.testbed_rows,
        "stages": [
            {
                "stage": row.stage,
                "rows_in": row.rows_in,
                "rows_out": row.rows_out,
                "excluded_by_reason": row.excluded_by_reason,
                "seconds": round(spent.get(row.stage, 0.0), 3),
            }
            for row in combine_reports(result.reports)
        ],
    }


def print_summary(console: Console, result: BuildResult, workspace: Path, seconds: float) -> None:
    """Print rows in, rows out, what was left out and why, the time, and where the output is."""
    table = Table(title="What became of every row", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("stage / reason", no_wrap=True)
    for name in ("rows in", "rows out", "left out", "work s"):
        table.add_column(name, justify="right", no_wrap=True)
    spent = _seconds(result.reports)
    for row in combine_reports(result.reports):
        work = f"{spent[row.stage]:.1f}" if row.stage in spent else ""
        table.add_row(row.stage, f"{row.rows_in:,}", f"{row.rows_out:,}", f"{row.excluded:,}", work)
        for reason, count in row.excluded_by_reason.items():
            table.add_row(f"    {reason}", "", "", f"{count:,}", "", style="dim")
    console.print(table)
    if result.release is not None:
        console.print(f"Release {result.release.status}: {result.release.folder}", markup=False, soft_wrap=True)
        console.print(
            f"  load_dataset({str(result.release.folder)!r}, 'raw_data', split='test')", markup=False, soft_wrap=True
        )
    console.print(f"Tables and run log: {workspace / 'postquem.duckdb'}", markup=False, soft_wrap=True)
    console.print(f"Took {seconds:.1f} s", markup=False)


def _seconds(reports: Sequence[StageReport]) -> dict[str, float]:
    """Return the seconds of work of this run by stage, summed over partitions.

    Stages that one unit of work reports together share its time, which counts for the first of them; work that an
    earlier run did counts for none. The report of `sources` tells when this run began.
    """
    began = next((report.started_at for report in reports if report.stage == "sources"), None)
    seconds: dict[str, float] = {}
    counted: set[tuple[str, datetime]] = set()
    for report in reports:
        if report.started_at is None or report.finished_at is None or began is None or report.started_at < began:
            continue
        unit = (report.partition, report.started_at)
        if unit not in counted:
            counted.add(unit)
            spent = (report.finished_at - report.started_at).total_seconds()
            seconds[report.stage] = seconds.get(report.stage, 0.0) + spent
    return seconds
