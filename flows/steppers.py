"""How the steps of a recipe are carried out: here plainly, in `flows.prefect_steps` as Prefect tasks."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from flows.run import Run
from schemas.errors import ConfigError, PipelineError, TransientError

Item = TypeVar("Item")
Out = TypeVar("Out")

# One retry brings back work that a dead worker or a network hiccup lost; a second covers both at once.
RETRIES = 2


class Stepper(Protocol):
    """Carries out one step for every item, several at a time, and returns the results in the items' order.

    When some items fail the others are finished first, so that their work is kept; then the error is raised.
    """

    def each(
        self, stage: str, step: Callable[[Run, Item], Out], run: Run, items: Sequence[Item], name: Callable[[Item], str]
    ) -> list[Out]:
        """Return [step(run, item) for item in items]."""
        ...


class PlainStepper:
    """Threads that wait for the worker processes; no Prefect."""

    def each(
        self, stage: str, step: Callable[[Run, Item], Out], run: Run, items: Sequence[Item], name: Callable[[Item], str]
    ) -> list[Out]:
        """See `Stepper.each`."""

        def attempt(item: Item) -> Out | PipelineError:
            for _ in range(RETRIES):
                try:
                    return step(run, item)
                except TransientError as error:
                    run.progress.note(f"{stage}  {name(item)}: {error}; trying again")
                except PipelineError as error:
                    return error
            try:
                return step(run, item)
            except PipelineError as error:
                return error

        with ThreadPoolExecutor(run.workers) as threads:
            futures = [threads.submit(attempt, item) for item in items]
            try:
                return all_or_error(stage, [future.result() for future in futures], [name(item) for item in items])
            except BaseException:  # Ctrl-C included: nobody may go on waiting for a worker
                run.pool.close()
                raise


def all_or_error(stage: str, results: Sequence[Out | PipelineError], names: Sequence[str]) -> list[Out]:
    """Return the results, or raise one error that names every failed item; ConfigError if any is one."""
    failed = [(name, result) for name, result in zip(names, results, strict=True) if isinstance(result, PipelineError)]
    if failed:
        kind = next((type(error) for _, error in failed if isinstance(error, ConfigError)), PipelineError)
        lines = [f"{name}: {error}" for name, error in failed]
        head = f"{stage} failed for {len(failed)} of {len(results)}; what is finished is kept, run again to go on"
        raise kind("\n  ".join([head, *lines]) if len(results) > 1 else lines[0])
    return [result for result in results if not isinstance(result, PipelineError)]
