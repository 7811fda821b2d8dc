"""The Prefect flow that keeps the lake up to date between releases: search, fetch, mine, features; no release."""

import os
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from flows import artifacts
from flows.prefect_steps import PrefectStepper
from flows.recipe import BuildResult, build
from flows.run import open_run


@flow(
    name="mine-commits",
    # The default is unbounded. Prefect types a runner's futures invariantly, so no runner of its own fits.
    task_runner=ThreadPoolTaskRunner(max_workers=os.cpu_count() or 1),  # type: ignore[arg-type]
    persist_result=False,
)
def mine_commits(
    config: Path,
    workspace: Path = Path("data"),
    workers: int | None = None,
    dask: str | None = None,
    overrides: dict[str, Any] | None = None,
) -> BuildResult:
    """Fetch what is new, mine it and compute features; parameters as those of `build_testbeds`."""
    with open_run(config, workspace, workers, dask, overrides) as run:
        result = build(run, PrefectStepper(), until="features")
    artifacts.show_result(result)
    return result
