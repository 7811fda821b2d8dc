"""`postquem release`: build a release, check it, compare two. Imports what it needs when it is called."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from flows.carry_out import Asked, carry_out, dask_option, run_options
from flows.hub_command import push, yank
from schemas.errors import PipelineError

if TYPE_CHECKING:
    from flows.rebuilding import Rebuilding


@click.group("release")
def release() -> None:
    """Build releases, check them, compare them, publish and withdraw them."""


@release.command("build")
@click.option("--from", "manifest", type=click.Path(path_type=Path), help="Manifest of a release to build again.")
@click.option(
    "--base",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    help="With --from: where relative locations of its configuration start.",
)
@click.option("--repository", "locations", multiple=True, metavar="NAME=LOCATION",
              help="With --from: where a repository is; may be given more than once.")  # fmt: skip
@click.option("--other-versions", is_flag=True, help="With --from: go on with other versions of code and libraries.")
def build(  # noqa: PLR0913 - one parameter for each option, as click passes them
    config: Path, workspace: Path, workers: int | None, as_json: bool, dask: str | None, manifest: Path | None,
    base: Path, locations: tuple[str, ...], other_versions: bool,
) -> None:  # fmt: skip
    """Do what is not done yet and write the release, without Prefect.

    With --from, build a release again from its manifest alone, and tell whether the bytes are the same.
    """
    if manifest is None:
        carry_out(Asked(config, workspace, workers, dask, as_json), "release", prefect=False)
        return
    if dask is not None:
        raise click.BadParameter("a release is built again on one machine", param_hint="--dask")
    from flows.rebuilding import Rebuilding

    asked = Rebuilding(manifest, workspace, base, _read_locations(locations), workers, other_versions)
    _rebuild(asked, as_json=as_json)


def _read_locations(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the locations by repository."""
    for text in texts:
        if not all(text.partition("=")[::2]):
            raise click.BadParameter(f"{text!r} is no NAME=LOCATION, such as owner/name=../name.git")
    return {name: location for name, _, location in (text.partition("=") for text in texts)}


def _rebuild(asked: "Rebuilding", *, as_json: bool) -> None:
    """Build a release again and print what came of it."""
    from flows import stopping
    from flows.rebuilding import rebuild
    from flows.summary import as_json as summary_as_json
    from flows.summary import print_summary

    started = time.monotonic()
    stopping.arm(asked.workspace)
    rebuilt = rebuild(asked)
    seconds = time.monotonic() - started
    if as_json:
        told = summary_as_json(rebuilt.result, seconds) | {"differing": rebuilt.differing}
        click.echo(json.dumps(told, indent=2))
    else:
        print_summary(Console(), rebuilt.result, asked.workspace.resolve(), seconds)
    if rebuilt.differing:
        raise PipelineError(f"other bytes than in {asked.manifest}: {', '.join(rebuilt.differing)}")
    if not as_json:
        click.echo("Every file has the bytes that the manifest lists.")


dask_option(run_options(build))
release.add_command(push)
release.add_command(yank)


@release.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--only", "names", multiple=True, help="Name of a check to make; may be given more than once.")
@click.option("--json", "as_json", is_flag=True, help="Print every fault as JSON on standard output.")
def check(folder: Path, names: tuple[str, ...], as_json: bool) -> None:
    """See whether a release FOLDER keeps its promises; exit code 1 when it does not."""
    from flows.release_summary import check_as_json, print_check
    from flows.versions import code_version
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
