"""What the commands that run the recipe share: their options, and the run with its summary."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from flows import stopping


def run_options(command: click.Command) -> click.Command:
    """Add the options that every command over a configuration and a workspace has."""
    for option in (
        click.Option(["--json", "as_json"], is_flag=True, help="Print the summary as JSON on standard output."),
        click.Option(["--workers"], type=click.IntRange(min=1), help="Processes at work; default: one per core."),
        click.Option(
            ["--workspace"], type=click.Path(path_type=Path), default=Path("data"), show_default=True,
            help="Folder for clones, tables and releases.",
        ),
        click.Option(
            ["--config"], type=click.Path(path_type=Path), default=Path("configs/quickstart.toml"), show_default=True,
            help="Configuration file.",
        ),
    ):  # fmt: skip
        command.params.insert(0, option)
    return command


def dask_option(command: click.Command) -> click.Command:
    """Add the option of every command that computes stages."""
    text = "Address of a Dask scheduler, as tcp://host:8786, whose workers compute."
    command.params.append(click.Option(["--dask"], metavar="ADDRESS", help=text))
    return command


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options of `run_options` say."""

    config: Path
    """Configuration file."""
    workspace: Path
    """Folder for clones, tables and releases."""
    workers: int | None
    """Processes at work."""
    dask: str | None
    """Dask scheduler."""
    as_json: bool
    """Print the summary as JSON."""


def carry_out(asked: Asked, until: str, *, prefect: bool) -> None:
    """Run the recipe and print its summary."""
    from flows.summary import as_json as summary_as_json
    from flows.summary import print_summary

    config, workspace, workers = asked.config, asked.workspace, asked.workers
    started = time.monotonic()
    stopping.arm(workspace)
    if prefect:
        from flows.prefect_settings import isolate_prefect

        isolate_prefect(workspace)
        from flows.build_testbeds import build_testbeds

        try:
            result = build_testbeds(config, workspace, workers, asked.dask)
        finally:
            stopping.end_watch()
    else:
        from flows.recipe import build as build_recipe
        from flows.run import open_run
        from flows.steppers import PlainStepper

        with open_run(config, workspace, workers, asked.dask) as run:
            result = build_recipe(run, PlainStepper(), until)
    seconds = time.monotonic() - started
    if asked.as_json:
        click.echo(json.dumps(summary_as_json(result, seconds), indent=2))
    else:
        print_summary(Console(), result, workspace.resolve(), seconds)
