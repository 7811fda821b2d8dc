"""The end of a scoring run: a table for people, JSON for machines."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from scoring.pass_at_k import PassAtK
from scoring.report import ScoreReport

_SHOWN_IDS = 5


def as_json(report: ScoreReport, seconds: float, out: Path | None) -> dict[str, object]:
    """Return the report in plain JSON types; its keys are documented in docs/commands.md."""
    values = asdict(report)
    values["pass_at_k"] = {
        str(found["k"]): {k: v for k, v in found.items() if k != "k"} for found in values["pass_at_k"]
    }
    return {"seconds": round(seconds, 3), "out": None if out is None else str(out), **values}


def print_report(console: Console, report: ScoreReport, seconds: float, out: Path | None) -> None:
    """Print counts by repository, pass@k with its interval, and what was left out."""
    table = Table(title="Answers", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("repository", no_wrap=True)
    for name in ("tasks", "answered", "answers", "passed", "unscored"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.repositories:
        numbers = (row.tasks, row.answered, row.answers, row.passed, row.unscored)
        table.add_row(row.repo, *(f"{number:,}" for number in numbers))
    console.print(table)
    for line in [*_lines(report), *([] if out is None else [f"Rows: {out}"]), f"Took {seconds:.1f} s"]:
        console.print(line, markup=False, soft_wrap=True)


def _lines(report: ScoreReport) -> Iterator[str]:
    """Yield what stands below the table."""
    yield from map(_line, report.pass_at_k)
    yield "Verdicts: " + ", ".join(f"{count:,} {verdict}" for verdict, count in report.verdicts.items() if count)
    for reason, count in report.unscored.items():
        yield f"  unscored, {reason}: {count:,}"
    if report.missing:
        n_missing = len(report.missing)
        yield f"No answer to {n_missing:,} of {report.tasks:,} tasks, which do not count{_some(report.missing)}"
    if report.unknown:
        yield f"No task is called so: {len(report.unknown):,} ids{_some(report.unknown)}"
    if report.repeated:
        yield f"{report.repeated:,} answers equal an earlier one to the same task; they count"


def _line(found: PassAtK) -> str:
    """Return one line about pass@k."""
    name = f"pass@{found.k}"
    if found.value is None:
        return f"{name}: no task has {found.k} judged answers"
    tasks = "task" if found.n_tasks == 1 else "tasks"
    repositories = "repository" if found.n_repos == 1 else "repositories"
    over = f"{found.n_tasks:,} {tasks} of {found.n_repos:,} {repositories}"
    if found.low is None or found.high is None:
        return f"{name}: {found.value:.3f} over {over}; no interval from one repository"
    return f"{name}: {found.value:.3f} (95% interval {found.low:.3f} to {found.high:.3f}, clustered) over {over}"


def _some(ids: tuple[str, ...]) -> str:
    more = ", ..." if len(ids) > _SHOWN_IDS else ""
    return f": {', '.join(ids[:_SHOWN_IDS])}{more}"
