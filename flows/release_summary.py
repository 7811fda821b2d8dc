"""What the commands of releases print: a table for people, JSON for machines."""

from collections.abc import Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from publishing.checking import CheckResult

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
