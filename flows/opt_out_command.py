"""`postquem optout`: write an entry, show all, tell what they remove. Imports what it needs when it is called."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from schemas.errors import PipelineError
from schemas.opt_out import OptOut


@click.group("optout")
def optout() -> None:
    """Keep the ledger of who does not want to be in a release."""


@optout.command("add")
@click.option("--file", "path", type=click.Path(path_type=Path), default=Path("optout.toml"), show_default=True,
              help="The ledger; made when there is none.")  # fmt: skip
@click.option("--repository", help="owner/name; `owner/*` is all of an owner's.")
@click.option("--repo-id", type=click.IntRange(min=1), help="The host's numeric id of the repository.")
@click.option("--path", "pattern", help="Pattern of the file's path, such as `src/*`.")
@click.option("--author", help="Pattern of an author's name or address, such as `*@example.org`.")
@click.option("--reason", required=True, help="Why, or who asked; never published.")
def add(
    path: Path, repository: str | None, repo_id: int | None, pattern: str | None, author: str | None, reason: str
) -> None:
    """Write an entry, dated today; what all its patterns hold for is left out of the next release."""
    from flows.opting_out import add_entry, today

    n_entries = add_entry(path, OptOut(today(), reason, repository, repo_id, pattern, author))
    click.echo(f"{path} has {n_entries} entries; name it in [optout] files and build a new version")


@optout.command("list")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="Configuration that names the ledgers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_entries(config: Path, as_json: bool) -> None:
    """Show the entries of a configuration's ledgers."""
    from flows.opting_out import configured_entries

    entries = configured_entries(config)
    if as_json:
        click.echo(json.dumps([asdict(entry) | {"date": entry.date.isoformat()} for entry in entries], indent=2))
        return
    for number, entry in enumerate(entries, 1):
        click.echo(f"{number:>4}  {entry.date}  {_patterns(entry)}  ({entry.reason})")


@optout.command("check")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="Configuration that names the ledgers.")
@click.option("--workspace", type=click.Path(path_type=Path), default=Path("data"), show_default=True,
              help="Folder for clones, tables and releases.")  # fmt: skip
def check(config: Path, workspace: Path) -> None:
    """Tell how many mined methods each entry removes, and which releases still hold some; exit code 1 if any does."""
    from flows.opt_out_check import check_entries
    from flows.opting_out import configured_entries
    from warehouse.lock import open_workspace

    entries = configured_entries(config)
    found = check_entries(entries, open_workspace(workspace))
    for number, (entry, rows) in enumerate(zip(entries, found.mined, strict=True), 1):
        click.echo(f"{number:>4}  {_patterns(entry)}: {rows:,} mined methods")
    if found.unknown:
        click.echo(f"      of {found.unknown:,} methods the author cannot be read; they are left out, too")
    for release, rows in found.releases.items():
        click.echo(f"Release {release}: {rows:,} rows that should be out" if rows else f"Release {release}: none")
    if any(found.releases.values()):
        raise PipelineError("a release holds rows that should be out; build a new version and withdraw that one")


def _patterns(entry: OptOut) -> str:
    values = {
        "repository": entry.repository, "repo_id": entry.repo_id, "path": entry.path, "author": entry.author,
    }  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
