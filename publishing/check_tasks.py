"""Check of a release's task files for harnesses."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from publishing.checking import CheckResult, Fault, Release
from publishing.harness.export import PROMPTS_NAME, assigned_prompt, read_prompts, write_task_files


def check_tasks(release: Release) -> CheckResult:
    """See that every row has the prompt that seed, task and row id give it, and that the files are as was written.

    The latter only when this program made the release: prompts and code of the files may differ between versions.
    """
    made = release.manifest.code_version
    ours = made == release.code_version
    faults = [*_prompt_faults(release, ours=ours), *(_file_faults(release) if ours else ())]
    looked_at = sum(len(table) for table in release.testbeds.values())
    note = "" if ours else f"made by {made}, so the files are not written again to compare"
    return CheckResult("tasks", looked_at, tuple(faults), note)


def _file_faults(release: Release) -> Iterator[Fault]:
    """Yield the files that are missing or other than those of testbeds with rows."""
    offered = {name: ["any"] for name, rows in release.manifest.rows.items() if rows}
    with tempfile.TemporaryDirectory(prefix="postquem-") as folder:
        for entry in write_task_files(Path(folder), offered, 0, release.manifest.version):
            found = release.folder / entry.path
            same = found.is_file() and found.read_bytes() == (Path(folder) / entry.path).read_bytes()
            if entry.path != PROMPTS_NAME and not same:
                yield Fault(entry.path, "is not the file of this version")


def _prompt_faults(release: Release, *, ours: bool) -> Iterator[Fault]:
    """Yield the rows whose prompt is missing or another one, and the tasks with other prompts."""
    try:
        tasks = json.loads((release.folder / PROMPTS_NAME).read_bytes())["tasks"]
        read = [(name, task["testbed"], tuple(task["prompts"]), dict(task["assigned"])) for name, task in tasks.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield Fault(PROMPTS_NAME, f"cannot be read ({type(error).__name__})")
        return
    for name, testbed, prompts, assigned in read:
        if ours and prompts != read_prompts().get(name, ()):
            yield Fault(PROMPTS_NAME, f"has other prompts of {name} than this version")
        table = release.testbeds.get(testbed)
        for row_id in () if table is None or not prompts else table["row_id"].to_pylist():
            if assigned.get(row_id) != assigned_prompt(release.config.testbeds.seed, name, row_id, len(prompts)):
                yield Fault(PROMPTS_NAME, f"has not the prompt of {name} that the seed gives", row_id)
