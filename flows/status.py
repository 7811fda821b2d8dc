"""`postquem status`: what is done in a workspace."""

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from schemas.config import load_config
from schemas.errors import ConfigError
from warehouse.ledger import Ledger
from warehouse.lock import open_workspace


def print_status(config_path: Path, workspace_path: Path, *, as_json: bool) -> None:
    """Print the finished units and the releases of a workspace, and whether they are of this configuration."""
    digest = load_config(config_path).digest()
    if not workspace_path.is_dir():
        raise ConfigError(f"there is no workspace {workspace_path} yet; `postquem build` makes it")
    workspace = open_workspace(workspace_path)
    units = Ledger(workspace.tables).units()
    releases = sorted(path.name for path in workspace.releases.iterdir() if (path / "manifest.json").is_file())
    rows = [
        {
            "stage": report.stage,
            "partition": report.partition,
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "finished_at": None if report.finished_at is None else report.finished_at.isoformat(timespec="seconds"),
            "this_configuration": report.config_digest == digest,
        }
        for unit in units
        for report in unit.reports
    ]
    if as_json:
        click.echo(json.dumps({"units": rows, "releases": releases}, indent=2))
        return
    table = Table("stage", "partition", "rows in", "rows out", "finished at (UTC)", "this configuration")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console = Console()
    console.print(table)
    console.print(f"Releases: {', '.join(releases) or 'none yet'}", markup=False)
