"""`postquem report` and `postquem review`: look at a release, mark its rows, compare reviewers."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from schemas.review import SAMPLE_SIZE, ReviewMark

if TYPE_CHECKING:  # imported when a command runs: the help of all others must not wait for them
    from publishing.report.review import Agreement, ReviewShare

_RELEASE = click.argument("release", type=click.Path(path_type=Path))


@click.command("report")
@_RELEASE
@click.option("--out", type=click.Path(path_type=Path), help="The page; default: beside the release, <version>.html.")
@click.option(
    "--rows", default=SAMPLE_SIZE, show_default=True, type=click.IntRange(min=0), help="Rows to look at and to mark."
)
@click.option("--seed", default=0, show_default=True, help="Seed of their draw.")
def report(release: Path, out: Path | None, rows: int, seed: int) -> None:
    """Write one HTML page about the release in folder RELEASE, with rows to review; it works offline."""
    from publishing.report.page import write_page

    written = write_page(release, out or release.absolute().with_name(f"{release.absolute().name}.html"), rows, seed)
    click.echo(
        f"{written.path}: {written.n_rows:,} rows to look at, {written.size / 1e6:.1f} MB. Open it in a browser."
    )


@click.group("review")
def review() -> None:
    """Marks that reviewers gave rows on the page of `postquem report`."""


@review.command("import")
@_RELEASE
@click.argument("marks", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), help="Parquet file for a row of every mark.")
@click.option("--json", "as_json", is_flag=True, help="Print shares and agreement as JSON on standard output.")
def import_marks(release: Path, marks: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Read the files of MARKS, check them against RELEASE, print shares of valid rows and reviewers' agreement."""
    from publishing.report.review import agreements, read_marks, review_shares
    from warehouse.tables import write_rows

    read = read_marks(release, marks)
    if out is not None:
        write_rows(out, read, ReviewMark)
    shares, compared = review_shares(read), agreements(read)
    if as_json:
        document = {"shares": list(map(asdict, shares)), "agreement": list(map(asdict, compared))}
        click.echo(json.dumps(document | {"reasons": _reasons(read)}, indent=2))
        return
    console = Console()
    _print_shares(console, shares, _reasons(read))
    _print_agreements(console, compared)


def _reasons(marks: Sequence[ReviewMark]) -> dict[str, int]:
    counts = Counter(mark.reason.value for mark in marks if mark.reason is not None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _print_shares(console: Console, shares: "Sequence[ReviewShare]", reasons: dict[str, int]) -> None:
    table = Table("reviewer", "testbed", "reviewed", "valid", "share", "95% interval", title="Reviewed rows")
    for item in shares:
        share = f"{100 * item.valid / item.reviewed:.1f}%"
        interval = f"{100 * item.low:.1f}% to {100 * item.high:.1f}%"
        table.add_row(item.reviewer, item.testbed, f"{item.reviewed:,}", f"{item.valid:,}", share, interval)
    console.print(table)
    if reasons:
        console.print("Not valid because: " + ", ".join(f"{name} {count:,}" for name, count in reasons.items()))


def _print_agreements(console: Console, compared: "Sequence[Agreement]") -> None:
    for item in compared:
        total = item.both_valid + item.only_first + item.only_second + item.both_invalid
        if item.observed is None:
            console.print(f"{item.first} and {item.second} marked no row in common.")
            continue
        kappa = "undefined: both gave every row the same mark" if item.kappa is None else (
            f"{item.kappa:.2f} ± {item.kappa_error:.2f}"
        )  # fmt: skip
        console.print(
            f"{item.first} and {item.second}: {total:,} common rows, {100 * item.observed:.1f}% equal, "
            f"Cohen's kappa {kappa}."
        )
        for testbed, row_id in item.disagreements:
            console.print(f"  differ: {testbed} {row_id}")
