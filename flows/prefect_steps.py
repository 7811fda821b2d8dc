"""The steps of a recipe as Prefect tasks: one task per repository and stage, retried by error type."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from flows import stopping
from flows.artifacts import StageProgress
from flows.run import Run
from flows.steppers import RETRIES, all_or_error
from schemas.errors import PipelineError, TransientError

Item = TypeVar("Item")
Out = TypeVar("Out")


# The default is unbounded.
RUNNER: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=os.cpu_count() or 1)
# For limits on a server that several machines share: `prefect concurrency-limit create github-search 1` (docs).
_TAGS = {"discovery": ("github-search",), "clone": ("github-clone",)}


def retry_transient(task: Any, run: Any, state: State[Any]) -> bool:  # noqa: ANN401 - Prefect's own signature
    """Retry only what a retry can mend."""
    try:
        state.result()
    except TransientError:
        return True
    except Exception:  # noqa: BLE001 - any other failure of the task is final
        return False
    return False


class PrefectStepper:
    """Submits every item to the running flow's task runner; made inside the flow, in the main thread."""

    def __init__(self) -> None:
        stopping.install()
        stopping.watch_server()

    def each(
        self, stage: str, step: Callable[[Run, Item], Out], run: Run, items: Sequence[Item], name: Callable[[Item], str]
    ) -> list[Out]:
        """See `flows.steppers.Stepper.each`."""
        progress = StageProgress(stage, len(items))
        # State is on disk, in our own ledger: Prefect's result cache would neither resume faster nor see a lost file.
        futures = [
            task(
                name=stage,
                task_run_name=f"{stage} {name(item)}".replace("{", "(").replace("}", ")"),
                tags=_TAGS.get(stage, ()),
                retries=RETRIES,
                retry_condition_fn=retry_transient,
                cache_policy=NO_CACHE,
                persist_result=False,
            )(_bind(step, run, item, progress)).submit()
            for item in items
        ]
        try:
            outcomes: list[Out | PipelineError] = [_outcome(future) for future in futures]
            return all_or_error(stage, outcomes, [name(item) for item in items])
        except BaseException:  # Ctrl-C included: nobody may go on waiting for a worker
            run.pool.close()
            raise


def _bind(step: Callable[[Run, Item], Out], run: Run, item: Item, progress: StageProgress) -> Callable[[], Out]:
    """Return the step with its arguments bound: task parameters would be serialised and shown in Prefect's UI."""

    def carry_out() -> Out:
        result = step(run, item)
        progress.finished()
        return result

    return carry_out


def _outcome(future: PrefectFuture[Any]) -> Any:  # noqa: ANN401 - what the task returned, or our error
    """Wait for a task; return what it returned or the error that we raise on purpose; raise anything else."""
    try:
        return future.result()
    except PipelineError as error:
        return error
