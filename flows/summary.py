"""The end of a run: a table for people, JSON for machines."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from flows.recipe import BuildResult
from schemas.records import StageReport
from warehouse.reports import combine_reports


def as_json(result: BuildResult, seconds: float) -> dict[str, object]:
    """Return the summary in plain JSON types; its keys are documented in docs/commands.md."""
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
                "seconds": round(_seconds(result.reports, row.stage), 3),
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
    for row in combine_reports(result.reports):
        work = f"{_seconds(result.reports, row.stage):.1f}"
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
    console.print(
        f"Took {seconds:.1f} s. `work s` is kept for the next run; commits, files, methods and index share one pass.",
        markup=False,
    )


def _seconds(reports: Sequence[StageReport], stage: str) -> float:
    """Return the work of a stage in seconds, summed over its partitions."""
    return sum(
        (report.finished_at - report.started_at).total_seconds()
        for report in reports
        if report.stage == stage and report.started_at and report.finished_at
    )
