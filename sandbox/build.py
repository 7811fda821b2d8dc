"""Builds the environment of a repository at a commit, once: what was built is found again by what it is made from."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sandbox.attempt import Attempt
from sandbox.collecting import Collected
from sandbox.environment import BuiltEnvironment, SourceCommit, Stage, run_variables
from sandbox.environment_cache import Entry, EnvironmentCache, Found
from sandbox.interpreters import Interpreter, choose, find_in_image, find_interpreters
from sandbox.project import Project, read_project
from sandbox.protocol import ENVIRONMENT, Backend, Bind
from sandbox.rebuild import rebuild
from sandbox.uv import Deadline, Workbench, find_uv
from schemas.errors import DataError
from schemas.execution import Environment, RealCodeConfig

# Counted up when the same inputs would give another environment.
_RULES = "1"
# Interpreters that are tried; a repository that fits none of three needs something else.
_INTERPRETERS = 3
# What says nothing about the repository on another day or machine is not remembered.
_PASSING = ("timeout", "oom", "pids", "disk_full", "backend_error")
# Reasons that another interpreter does not change.
_FINAL = ("no_tests", "direct_url_dependency", "needs_network", "needs_env_secret", "needs_display", *_PASSING)
_IMAGE_BACKEND = "docker"

# By backend and image: what was found when it was tried, which takes one to two seconds.
_ISOLATION: dict[tuple[str, str], str] = {}

Maker = Callable[[Entry], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Means:
    """What every step needs."""

    backend: Backend
    config: RealCodeConfig
    cache: Path

    def bench(self, folder: Path, interpreter: Interpreter, deadline: Deadline) -> Workbench:
        """Return the workbench of an attempt in a folder."""
        uv_cache = EnvironmentCache(self.cache, 0).uv
        return Workbench(self.backend, interpreter, self.config, find_uv(), uv_cache, folder / "env", deadline)


@dataclass(frozen=True, slots=True)
class _Made:
    """What an attempt gave."""

    environment: Environment
    interpreter: Interpreter
    collected: Collected
    has_tree: bool


def build_environment(
    source: Path, at: SourceCommit, backend: Backend, config: RealCodeConfig, cache: Path
) -> BuiltEnvironment:
    """Return an environment in which the tests of an exported tree can be collected.

    `cache` is a folder of ours (`<workspace>/environments`). Raises DataError with a reason of the closed list, and
    TransientError when the package index or the sandbox cannot be used.
    """
    project = read_project(source)
    if not project.has_tests:
        raise DataError("no_tests", "no file is named like a test module")
    interpreters = choose(_interpreters(backend, config), project.requires_python, at.date)
    if not interpreters:
        raise DataError("no_interpreter", f"none of those found fits requires-python {project.requires_python!r}")
    means = _Means(backend, config, cache)
    key = _digest("build", at.commit_id, _cut(at, config), backend.name, _choices(config), _texts(interpreters))

    def make(entry: Entry) -> dict[str, Any]:
        return _try_interpreters(entry, source, project, at, means, interpreters)

    return _cached(key, source, at, means, make)


def rebuild_environment(
    environment: Environment, source: Path, at: SourceCommit, backend: Backend, config: RealCodeConfig, cache: Path
) -> BuiltEnvironment:
    """Return the environment of a released row, built from its lock alone; nothing is resolved again.

    The interpreter is one of the same version, or failing that of the same minor version. Raises DataError
    `no_interpreter`, `project_build_failed` ... and TransientError as `build_environment`.
    """
    wanted = tuple(int(part) for part in environment.python.split("."))
    same = [item for item in _interpreters(backend, config) if item.minor == wanted[:2]]
    if not same:
        raise DataError("no_interpreter", f"Python {environment.python} is not there, nor another of its minor version")
    means = _Means(backend, config, cache)
    interpreter = max(same, key=lambda item: (item.version == wanted, item.version))
    key = _digest("rebuild", at.commit_id, asdict(environment), backend.name, _texts([interpreter]))

    def make(entry: Entry) -> dict[str, Any]:
        bench = means.bench(entry.start() / "0", interpreter, Deadline(config.build_seconds))
        tree, collected = rebuild(bench, environment, source, entry.building / "0" / "source", at)
        built = replace(environment, python=interpreter.text, isolation=_isolation(means))
        return _record(entry, "0", _Made(built, interpreter, collected, tree != source), bench.stages)

    return _cached(key, source, at, means, make)


def _interpreters(backend: Backend, config: RealCodeConfig) -> list[Interpreter]:
    """Return the interpreters that sandboxes of a backend can have: an image's own, unless some are named by path."""
    named = any("/" in item for item in config.pythons)
    return find_in_image(backend) if backend.name == _IMAGE_BACKEND and not named else find_interpreters(config.pythons)


def _choices(config: RealCodeConfig) -> list[object]:
    """Return what of the configuration makes another environment."""
    return [config.image, config.test_packages]


def _texts(interpreters: Sequence[Interpreter]) -> list[str]:
    return [f"{item.text} {item.home}" for item in interpreters]


def _cut(at: SourceCommit, config: RealCodeConfig) -> str:
    """Return the first moment whose uploads are not admitted: the end of the commit's day."""
    if not config.index_cut:
        return ""
    day = at.date.astimezone(UTC).date() + timedelta(days=1)
    return datetime.combine(day, time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _digest(*parts: object) -> str:
    text = json.dumps([_RULES, version("uv"), *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _isolation(means: _Means) -> str:
    """Return what a backend can enforce; it is tried once in a process, not once for each repository."""
    kind = means.backend.name, means.config.image
    if kind not in _ISOLATION:
        _ISOLATION[kind] = means.backend.probe().isolation
    return _ISOLATION[kind]


def _cached(key: str, source: Path, at: SourceCommit, means: _Means, make: Maker) -> BuiltEnvironment:
    """Return what the cache has, made first when it is not there; a remembered failure is raised again."""
    store = EnvironmentCache(means.cache, means.config.environments_gib << 30)
    made = False
    found = store.find(key)
    while found is None:
        with store.making(key) as entry:
            if entry.read() is None:
                entry.finish(make(entry))
                made = True
        found = store.find(key)
    if made:
        store.evict()
    if "reason" in found.record:
        raise DataError(found.record["reason"], found.record["detail"])
    return _restore(found, source, at, made)


def _try_interpreters(
    entry: Entry,
    source: Path,
    project: Project,
    at: SourceCommit,
    means: _Means,
    interpreters: Sequence[Interpreter],
) -> dict[str, Any]:
    """Return the record of the first interpreter with which tests can be collected, or of the first one's failure."""
    folder, stages, first = entry.start(), list[Stage](), None
    deadline = Deadline(means.config.build_seconds)
    for number, interpreter in enumerate(interpreters[:_INTERPRETERS]):
        bench = means.bench(folder / str(number), interpreter, deadline)
        tree = folder / str(number) / "source"
        attempt = Attempt(bench, source, tree, project, at, _cut(at, means.config))
        try:
            collected = attempt.run()
        except DataError as error:
            first = first or error
            stages += _named(bench)
            shutil.rmtree(folder / str(number), ignore_errors=True)
            if error.reason in _FINAL:
                break
            continue
        stages += _named(bench)
        environment = attempt.environment(_isolation(means))
        made = _Made(environment, interpreter, collected, attempt.source == tree)
        return _record(entry, str(number), made, stages)
    if first is None or first.reason in _PASSING:
        raise first or DataError("no_interpreter")
    return {"reason": first.reason, "detail": first.detail, "stages": [asdict(stage) for stage in stages]}


def _named(bench: Workbench) -> list[Stage]:
    """Return a workbench's stages with its interpreter."""
    minor = ".".join(str(number) for number in bench.interpreter.minor)
    return [Stage(f"{minor}: {stage.name}", stage.ok, stage.seconds, stage.detail) for stage in bench.stages]


def _record(entry: Entry, number: str, made: _Made, stages: Sequence[Stage]) -> dict[str, Any]:
    """Move an attempt's folders to their place and return the record of its environment."""
    interpreter = made.interpreter
    for name in ("env", "source") if made.has_tree else ("env",):
        (entry.building / number / name).rename(entry.building / name)
    shutil.rmtree(entry.building / number)
    return {
        "environment": asdict(made.environment),
        "interpreter": {
            "version": interpreter.version,
            "home": str(interpreter.home),
            "library": None if interpreter.library is None else str(interpreter.library),
            "of_image": interpreter.of_image,
        },
        "has_tree": made.has_tree,
        "collected": made.collected.ids,
        "stages": [asdict(stage) for stage in stages],
    }


def _restore(found: Found, source: Path, at: SourceCommit, made: bool) -> BuiltEnvironment:
    """Return the environment that a record describes."""
    record = found.record
    values: dict[str, Any] = {}
    for name, item in record["environment"].items():
        values[name] = tuple(item) if isinstance(item, list) else item
    environment = Environment(**values)
    told = record["interpreter"]
    major, minor, patch = told["version"]
    library = None if told["library"] is None else Path(told["library"])
    interpreter = Interpreter((major, minor, patch), Path(told["home"]), library, told["of_image"])
    return BuiltEnvironment(
        environment,
        found.folder / "source" if record["has_tree"] else source,
        (*interpreter.binds, Bind(found.folder / "env", ENVIRONMENT)),
        run_variables(at, environment.python_path),
        collected=tuple(record["collected"]),
        stages=tuple(Stage(**stage) for stage in record["stages"]) if made else (),
        hold=found.hold,
    )
