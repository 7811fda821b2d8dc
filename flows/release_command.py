"""`postquem release`: build a release, check it, compare two. Imports what it needs when it is called."""

import json
from pathlib import Path

import click
from rich.console import Console

from flows.carry_out import carry_out, run_options
from flows.hub_command import push, yank
from schemas.errors import PipelineError


@click.group("release")
def release() -> None:
    """Build releases, check them, compare them, publish and withdraw them."""


@release.command("build")
def build(config: Path, workspace: Path, workers: int | None, as_json: bool) -> None:
    """Do what is not done yet and write the release, without Prefect."""
    carry_out(config, workspace, workers, as_json=as_json, until="release", prefect=False)


run_options(build)
release.add_command(push)
release.add_command(yank)


@release.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--only", "names", multiple=True, help="Name of a check to make; may be given more than once.")
@click.option("--json", "as_json", is_flag=True, help="Print every fault as JSON on standard output.")
def check(folder: Path, names: tuple[str, ...], as_json: bool) -> None:
    """See whether a release FOLDER keeps its promises; exit code 1 when it does not."""
    from flows.release_summary import check_as_json, print_check
    from flows.run import code_version
    from publishing.check import CHECKS, check_release

    if unknown := set(names) - set(CHECKS):
        raise click.BadParameter(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    results = check_release(folder, code_version(), names)
    if as_json:
        click.echo(json.dumps(check_as_json(str(folder), results), indent=2))
    else:
        print_check(Console(), str(folder), results)
    if any(result.faults for result in results):
        raise PipelineError(f"{folder} has faults; do not publish it")


@release.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--rows", "with_rows", is_flag=True, help="Tell every row that changed, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON on standard output.")
def diff(before: Path, after: Path, with_rows: bool, as_json: bool) -> None:
    """Tell what changed from one release folder to another, and why."""
    from flows.release_summary import diff_as_json, print_diff
    from publishing.diff import compare, open_side

    one, other = open_side(before), open_side(after)
    changes, rows = compare(one, other)
    versions = (one.manifest.version, other.manifest.version)
    shown = rows if with_rows else None
    if as_json:
        click.echo(json.dumps(diff_as_json(versions, changes, shown), indent=2))
    else:
        print_diff(Console(), versions, changes, shown)
