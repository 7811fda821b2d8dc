"""What the commands of releases print: a table for people, JSON for machines."""

from collections.abc import Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from publishing.changes import CONCLUSIONS, Changes, Kind, ReasonCount, RowChange
from publishing.checking import CheckResult
from publishing.glossary import reason_meaning

_WIDE = 60  # characters of a value that the terminal shows; --json has all
_SHOWN = 20  # faults of a check that the terminal shows; --json has all


def check_as_json(folder: str, results: Sequence[CheckResult]) -> dict[str, object]:
    """Return the checks in plain JSON types; the keys are documented in docs/release.md."""
    return {
        "release": folder,
        "faults": sum(len(result.faults) for result in results),
        "checks": [asdict(result) for result in results],
    }


def print_check(console: Console, folder: str, results: Sequence[CheckResult]) -> None:
    """Print a line for every check, then what is wrong."""
    table = Table(title=escape(folder), title_justify="left", box=box.SIMPLE_HEAD)
    for name, justify in (("check", "left"), ("looked at", "right"), ("faults", "right"), ("", "left")):
        table.add_column(name, justify=justify, no_wrap=name != "")  # type: ignore[arg-type]
    for result in results:
        faults = f"[red]{len(result.faults):,}[/red]" if result.faults else "0"
        table.add_row(result.name, f"{result.looked_at:,}", faults, escape(result.note))
    console.print(table)
    for result in results:
        for fault in result.faults[:_SHOWN]:
            row = "" if fault.row_id is None else f" {fault.row_id}"
            console.print(f"{result.name}  {fault.where}{row}: {fault.text}", markup=False, soft_wrap=True)
        if len(result.faults) > _SHOWN:
            console.print(f"{result.name}  ... {len(result.faults) - _SHOWN:,} more; --json has all", markup=False)


def diff_as_json(versions: tuple[str, str], changes: Changes, rows: Sequence[RowChange] | None) -> dict[str, object]:
    """Return the difference in plain JSON types, the rows when they are given."""
    told = {"before": versions[0], "after": versions[1], **asdict(changes)}
    del told["version"]  # `before` names it
    return told if rows is None else {**told, "rows": [asdict(row) for row in rows]}


def print_diff(
    console: Console, versions: tuple[str, str], changes: Changes, rows: Sequence[RowChange] | None
) -> None:  # fmt: skip
    """Print what the releases were made from that differs, what changed in each testbed and why, then the rows."""
    title = escape(f"{versions[0]} -> {versions[1]}")
    causes = _table(f"{title}: made from", ("what", "before", "after"))
    for cause in changes.causes:
        causes.add_row(escape(cause.what), *(_short(value) for value in (cause.before, cause.after)))
    console.print(causes if changes.causes else f"{title}: made from the same")
    beds = _table("Rows", ("testbed", "before", "after", "added", "removed", "changed"), n_left=1)
    for bed in changes.testbeds:
        counts = (bed.before, bed.after, bed.added, bed.removed, bed.changed)
        beds.add_row(bed.testbed, *(f"{count:,}" for count in counts))
    console.print(beds)
    why = _table("Why", ("testbed", "change", "rows", "reason", "meaning"))
    for bed in changes.testbeds:
        for reason in bed.reasons:
            why.add_row(bed.testbed, reason.change, f"{reason.rows:,}", escape(reason.reason), escape(_meaning(reason)))
    if why.row_count:
        console.print(why)
    for row in rows or ():
        text = f"{row.testbed}  {row.change}  {row.row_id}  {row.repo} {row.fun_name}: {row.reason} {row.detail}"
        console.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)


def _table(title: str, columns: Sequence[str], n_left: int | None = None) -> Table:
    """Return an empty table; columns behind the first `n_left` hold numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if n_left is None or index < n_left else "right")
    return table


def _meaning(reason: ReasonCount) -> str:
    """Return what a reason means; columns that changed mean themselves."""
    if reason.change is Kind.CHANGED:
        return ""
    return CONCLUSIONS.get(reason.reason) or reason_meaning(reason.reason)


def _short(value: str | None) -> str:
    """Return a value as far as a terminal has room for it."""
    if value is None:
        return "[dim]none[/dim]"
    return escape(value if len(value) <= _WIDE else f"{value[: _WIDE - 3]}...")
