"""The Prefect flow of the main job: repositories in, a release out."""

import os
from pathlib import Path

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from flows.prefect_steps import PrefectStepper
from flows.recipe import BuildResult, build
from flows.run import open_run


@flow(
    name="build-testbeds",
    # The default is unbounded. Prefect types a runner's futures invariantly, so no runner of its own fits.
    task_runner=ThreadPoolTaskRunner(max_workers=os.cpu_count() or 1),  # type: ignore[arg-type]
    persist_result=False,
)
def build_testbeds(config: Path, workspace: Path = Path("data"), workers: int | None = None) -> BuildResult:
    """Mine, compute features, remove duplicates, build the testbeds and write the release.

    Each step is one Prefect task per repository (or testbed); `flows.recipe.build` lists them.
    """
    with open_run(config, workspace, workers) as run:
        return build(run, PrefectStepper())
