"""The command `postquem`: thin over the recipe. Imports Prefect only when it runs something under it.

Exit codes: 0 done, 1 the job failed (what is finished is kept), 2 configuration or usage, 130 interrupted, 143
terminated.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from flows import stopping
from flows.carry_out import Asked, carry_out, dask_option, run_options
from flows.opt_out_command import optout
from flows.release_command import release
from flows.report_command import report, review
from schemas.errors import ConfigError, PipelineError
from schemas.execution import BackendName

EXIT_CONFIG = 2

_STAGE_HELP = {
    "discover": "Search GitHub for the repositories of [search]; clones none.",
    "mine": "Clone or fetch the repositories and mine their methods.",
    "features": "Mine, then compute the features of the brand-new methods.",
    "dedup": "Mine, compute features, then remove exact and near duplicates.",
    "testbeds": "Do everything up to the testbeds' tables, but write no release.",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="postquem", message="postquem %(version)s")
def cli() -> None:
    """Build code-model benchmarks from code that is provably younger than a training cutoff."""


@cli.command()
@click.option("--no-prefect", is_flag=True, help="Carry out the same steps without Prefect.")
def build(
    config: Path, workspace: Path, workers: int | None, as_json: bool, dask: str | None, no_prefect: bool
) -> None:
    """Do the whole job as a Prefect flow.

    Repositories in, a release with loadable testbeds out. --no-prefect saves the start of Prefect's server.
    """
    carry_out(Asked(config, workspace, workers, dask, as_json), "release", prefect=not no_prefect)


dask_option(run_options(build))


def _add_stage(name: str, text: str) -> None:
    def run_stage(config: Path, workspace: Path, workers: int | None, as_json: bool, dask: str | None) -> None:
        carry_out(Asked(config, workspace, workers, dask, as_json), name, prefect=False)

    cli.add_command(dask_option(run_options(click.command(name, help=text)(run_stage))))


for _name, _text in _STAGE_HELP.items():
    _add_stage(_name, _text)


@cli.command()
def status(config: Path, workspace: Path, workers: int | None, as_json: bool) -> None:
    """Show what is done in the workspace; changes nothing."""
    from flows.status import print_status

    print_status(config, workspace, as_json=as_json)


run_options(status)


@cli.command()
@click.option("--config", type=click.Path(path_type=Path), help="Configuration file, for the image of backend docker.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output.")
def doctor(config: Path | None, as_json: bool) -> None:
    """Say which sandboxes this machine can make, and what each keeps its promise about; for real_code.

    Tries every backend by commands that break promises. Exit code 1 when no backend isolates what it runs.
    """
    from flows.doctor import print_doctor

    if not print_doctor(config, as_json=as_json):
        raise click.exceptions.Exit(stopping.EXIT_FAILED)


@cli.command()
@click.argument("testbed", type=click.Choice(["real_code"]))
@click.option(
    "--answers", type=click.Path(path_type=Path), required=True, help="JSON lines: instance_id, and answer or answers."
)
@click.option("--release", type=click.Path(path_type=Path), required=True, help="Folder of the release.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    default=Path("data"),
    show_default=True,
    help="Folder for clones, environments and what was judged already; a repository that is not there is cloned.",
)
@click.option(
    "--backend", type=click.Choice([name.value for name in BackendName]), help="Sandbox; default: that of the release."
)
@click.option("--image", help="Image of the docker backend; default: that of the release.")
@click.option("--k", "ks", default="1", show_default=True, help="Values of k, as 1,5,10.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File, .parquet or .jsonl, for a row of every answer (table answer_scores).",
)
@click.option("--workers", type=click.IntRange(min=1), help="Sandboxes at a time; default: one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
def score(  # noqa: PLR0913 - one parameter for each option, as click passes them
    testbed: str,
    answers: Path,
    release: Path,
    workspace: Path,
    backend: str | None,
    image: str | None,
    ks: str,
    out: Path | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Run models' answers against the tests of their tasks, in the sandbox, and print pass@k."""
    from flows.score_answers import Scoring, score_real_code
    from flows.score_summary import as_json as report_as_json
    from flows.score_summary import print_report

    started = time.monotonic()
    stopping.arm(workspace)
    asked = Scoring(answers, release, workspace, _read_ks(ks), backend, image, out, workers or os.cpu_count() or 1)
    report = score_real_code(asked)
    seconds = time.monotonic() - started
    if as_json:
        click.echo(json.dumps(report_as_json(report, seconds, out), indent=2))
    else:
        print_report(Console(), report, seconds, out)


def _read_ks(text: str) -> tuple[int, ...]:
    """Return the values of k, ascending."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{text!r} is no list of numbers from 1 on, such as 1,5,10", param_hint="--k")
    return tuple(sorted({int(part) for part in parts}))


cli.add_command(optout)
cli.add_command(report)
cli.add_command(review)
cli.add_command(release)


def main() -> NoReturn:
    """Run the command; print an error in one paragraph instead of a traceback, and say what to do."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ConfigError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_CONFIG)
    except PipelineError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(stopping.EXIT_FAILED)
    except OSError as error:
        click.echo(f"Error: {error}; see to its permissions or disk and run again", err=True)
        sys.exit(stopping.EXIT_FAILED)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"Interrupted. {stopping.GO_ON}", err=True)
        sys.exit(stopping.EXIT_INTERRUPTED)
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
