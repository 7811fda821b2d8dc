"""`postquem release`: build a release. Imports what it needs when it is called."""

from pathlib import Path

import click

from flows.carry_out import carry_out, run_options


@click.group("release")
def release() -> None:
    """Build releases."""


@release.command("build")
def build(config: Path, workspace: Path, workers: int | None, as_json: bool) -> None:
    """Do what is not done yet and write the release, without Prefect."""
    carry_out(config, workspace, workers, as_json=as_json, until="release", prefect=False)


run_options(build)
