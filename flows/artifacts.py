"""What a flow run shows on a Prefect server: progress of each stage, the funnel, where the release is.

Only on a server that somebody can look at; that of a run on its own ends with it.
"""

import os
import threading
import time
from pathlib import Path
from uuid import UUID

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.recipe import BuildResult
from warehouse.reports import combine_reports

_EVERY_SECONDS = 5.0  # between two updates of a stage's progress: a request to the server each


def watched() -> bool:
    """Tell whether the run is on a server that outlives it."""
    return "PREFECT_API_URL" in os.environ


class StageProgress:
    """The progress of one stage over its items, in per cent; thread-safe."""

    def __init__(self, stage: str, total: int) -> None:
        self._total, self._done = total, 0
        self._lock = threading.Lock()
        self._told = time.monotonic()
        self._id: UUID | None = None
        if watched() and total:
            self._id = create_progress_artifact(  # type: ignore[assignment] # typed for async callers too
                progress=0.0, key=f"progress-{stage.replace('_', '-')}", description=f"{stage}: {total:,} items"
            )

    def finished(self) -> None:
        """Count one item."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            if self._id is None or (self._done < self._total and now - self._told < _EVERY_SECONDS):
                return
            self._told = now
            update_progress_artifact(artifact_id=self._id, progress=100.0 * self._done / self._total)


def show_result(result: BuildResult) -> None:
    """Put the funnel and the release's place beside the flow run."""
    if not watched():
        return
    rows = combine_reports(result.reports)
    create_table_artifact(
        key="funnel",
        table=[
            {
                "stage": row.stage,
                "rows in": row.rows_in,
                "rows out": row.rows_out,
                "left out": row.excluded,
                "reasons": ", ".join(f"{reason} {count:,}" for reason, count in row.excluded_by_reason.items()),
            }
            for row in rows
        ],
        description="What became of every row",
    )
    if result.release is not None:
        folder: Path = result.release.folder
        counts = "\n".join(f"| {name} | {count:,} |" for name, count in result.release.rows.items())
        create_markdown_artifact(
            key="release",
            markdown=f"Release `{folder.name}` ({result.release.status}) in `{folder}`\n\n"
            f"| config | rows |\n|---|---|\n{counts}\n",
            description="The release and its rows",
        )


def show_published(repo: str, version: str, link: str) -> None:
    """Put a link to the published version beside the flow run."""
    if watched():
        create_link_artifact(key="published", link=link, link_text=f"{repo} {version}", description="On the Hub")
