"""The Prefect flow that keeps the lake up to date between releases: search, fetch, mine, features; no release."""

from pathlib import Path
from typing import Any

from prefect import flow

from flows import artifacts
from flows.prefect_steps import RUNNER, PrefectStepper
from flows.recipe import BuildResult, build
from flows.run import open_run


@flow(
    name="mine-commits",
    task_runner=RUNNER,  # type: ignore[arg-type] # Prefect types a runner's futures invariantly, so none of its own fits
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
