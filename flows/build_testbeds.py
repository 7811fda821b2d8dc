"""The Prefect flow of the main job: repositories in, a release out, on the Hub too when that is asked for."""

import os
from pathlib import Path
from typing import Any

from prefect import flow, task

from flows import artifacts
from flows.prefect_steps import RUNNER, PrefectStepper, retry_transient
from flows.publish_release import Published, publish_release
from flows.recipe import BuildResult, build
from flows.run import open_run
from flows.steppers import RETRIES


@flow(
    name="build-testbeds",
    task_runner=RUNNER,  # type: ignore[arg-type] # Prefect types a runner's futures invariantly, so none of its own fits
    persist_result=False,
)
def build_testbeds(  # noqa: PLR0913 - one parameter for each option, as a deployment gives them
    config: Path,
    workspace: Path = Path("data"),
    workers: int | None = None,
    dask: str | None = None,
    overrides: dict[str, Any] | None = None,
    calendar_version: bool = False,
    publish_to: str | None = None,
) -> BuildResult:
    """Mine, compute features, remove duplicates, build the testbeds and write the release.

    Each step is one Prefect task per repository (or testbed); `flows.recipe.build` lists them.

    Args:
        config: configuration file.
        workspace: folder for clones, tables and releases.
        workers: processes at work; one per core when left out.
        dask: address of a Dask scheduler whose workers compute instead of processes of this machine.
        overrides: values that replace those of the file, by dotted key, as {"window.since": "2026-01-01"}.
        calendar_version: name the release after the day, as 2026.12.01, whatever the file says.
        publish_to: data set repository on the Hub, owner/name, that the release is pushed to.
    """
    values = dict(overrides or {})
    if calendar_version:
        values["release.version"] = ""
    with open_run(config, workspace, workers, dask, values) as run:
        result = build(run, PrefectStepper())
    artifacts.show_result(result)
    if publish_to is not None and result.release is not None:
        _publish(result.release.folder, publish_to)
    return result


@task(name="publish", retries=RETRIES, retry_condition_fn=retry_transient, persist_result=False)
def _publish(folder: Path, repo: str) -> Published:
    """Push a release and show where it is."""
    published = publish_release(folder, repo)
    link = f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co')}/datasets/{repo}/tree/{published.result.version}"
    artifacts.show_published(repo, published.result.version, link)
    return published
