"""Builds an environment again from what a released row says of it."""

from pathlib import Path

from sandbox.attempt import Attempt
from sandbox.collecting import Collected
from sandbox.environment import SourceCommit
from sandbox.plan import Solution
from sandbox.project import read_project
from sandbox.project_build import MissingRequirements, build_project
from sandbox.uv import Workbench
from schemas.errors import DataError
from schemas.execution import Environment


def rebuild(
    bench: Workbench, environment: Environment, source: Path, tree: Path, at: SourceCommit
) -> tuple[Path, Collected]:
    """Install a lock and the project of a tree; return the tree to execute and what it collects.

    DataError when the project does not build any more or a test module cannot be collected.
    """
    project = read_project(source)
    attempt = Attempt(bench, source, tree, project, at, environment.index_date)
    attempt.solution = Solution(environment.lock, (), ())
    attempt.python_path = environment.python_path
    with bench.stage("install"):
        bench.install(environment.lock)
    if environment.install == "editable":
        with bench.stage("build"):
            built = build_project(bench, source, project, at)
            if isinstance(built, MissingRequirements):
                raise DataError("project_build_failed", f"the lock lacks {', '.join(built.requires)}")
        attempt.add_project(built)
    attempt.compile()
    attempt.fixed_arguments = environment.pytest_args
    collected = attempt.collect()
    return attempt.source, attempt.without_broken(collected)
