"""What the terminal shows while a run goes on: a line per finished item, a spinner per running one (stderr)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from schemas.records import StageReport

_NOUN = {"discovery": "repositories", "mine": "changed methods", "features": "methods", "cutoff": "old files"}


class RunProgress:
    """Shows the items of a run; thread-safe as rich's Progress is."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=self.console, transient=True
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()

    @contextmanager
    def running(self, stage: str, item: str) -> Iterator[None]:
        """Show a spinner with the elapsed time while the block runs."""
        task = self._progress.add_task(f"{stage}: {item}", total=None)
        try:
            yield
        finally:
            self._progress.remove_task(task)

    def finished(self, stage: str, item: str, reports: Sequence[StageReport], *, reused: bool) -> None:
        """Print one line about a finished item: what went in and what came out, of a mined repository the methods.

        An item without reports is a by-product and needs none.
        """
        if not reports:
            return
        first, last = reports[0], reports[-1]
        if stage == "mine":
            first = last = next(report for report in reports if report.stage == "methods")
        suffix = "up to date" if reused else _seconds(reports)
        self.console.print(
            f"{stage:>9}  {item}: {first.rows_in:,} {_NOUN.get(stage, 'rows')} in, {last.rows_out:,} out ({suffix})",
            markup=False,
            soft_wrap=True,
        )

    def note(self, text: str) -> None:
        """Print one line."""
        self.console.print(text, markup=False, soft_wrap=True)


def _seconds(reports: Sequence[StageReport]) -> str:
    """Return the time from the first start to the last end."""
    starts = [report.started_at for report in reports if report.started_at]
    ends = [report.finished_at for report in reports if report.finished_at]
    return f"{(max(ends) - min(starts)).total_seconds():.1f} s" if starts and ends else "done"
