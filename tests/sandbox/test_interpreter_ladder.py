"""The order in which interpreters are tried, what is remembered, and interpreters of images."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sandbox import build
from sandbox.build import build_environment
from sandbox.collecting import Collected
from sandbox.environment import SourceCommit, Stage
from sandbox.interpreters import Interpreter, find_in_image
from sandbox.protocol import Backend
from sandbox.uv import Workbench
from schemas.errors import DataError, PipelineError, TransientError
from schemas.execution import Environment, RealCodeConfig
from tests.sandbox.trees import write_tree

PYTHONS = [Interpreter((3, minor, 1), Path(f"/opt/python3.{minor}")) for minor in (9, 10, 11, 12)]
AT = SourceCommit("example/x", "1" * 40, datetime(2024, 3, 1, tzinfo=UTC))
ENVIRONMENT = Environment("", "lock", "", (), (), (), "none")


@dataclass
class Attempts:
    """Stands for what builds: gives an outcome for each minor version and notes who was tried."""

    outcomes: dict[int, PipelineError]
    tried: list[int] = field(default_factory=list)

    def __call__(self, bench: Workbench, source: Path, tree: Path, *_: object) -> SimpleNamespace:
        minor = bench.interpreter.minor[1]

        def run() -> Collected:
            self.tried.append(minor)
            bench.folder.mkdir(parents=True)
            bench.stages.append(Stage("lock", minor not in self.outcomes, 1.0))
            if minor in self.outcomes:
                raise self.outcomes[minor]
            return Collected((f"test_a.py::test_{minor}",), (), True, (), "")

        return SimpleNamespace(run=run, source=source, environment=lambda _: ENVIRONMENT)


@dataclass
class Ladder:
    """Builds with the given outcomes."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def build(
        self, outcomes: dict[int, PipelineError], config: RealCodeConfig | None = None
    ) -> tuple[object, list[int]]:
        attempts = Attempts(outcomes)
        self.monkeypatch.setattr(build, "Attempt", attempts)
        self.monkeypatch.setattr(build, "find_interpreters", lambda _: PYTHONS)
        tree = self.root / "tree"
        if not tree.exists():
            write_tree(tree, {"test_a.py": ""})
        backend = cast(Backend, FakeBackend())
        try:
            built = build_environment(tree, AT, backend, config or RealCodeConfig(), self.root / "environments")
        except PipelineError as error:
            return error, attempts.tried
        return built.collected, attempts.tried

    @property
    def kept(self) -> list[str]:
        return sorted(path.name for path in (self.root / "environments" / "building").glob("*"))


@dataclass(eq=False)
class FakeBackend:
    name: str = "fake"
    output: bytes = b""
    asked: list[Sequence[str]] = field(default_factory=list)

    def probe(self) -> SimpleNamespace:
        return SimpleNamespace(isolation="fake+none")

    @contextmanager
    def open(self, spec: object) -> Iterator[SimpleNamespace]:
        def execute(argv: Sequence[str]) -> SimpleNamespace:
            self.asked.append(argv)
            return SimpleNamespace(stdout=self.output)

        yield SimpleNamespace(exec=execute)


@pytest.fixture
def ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ladder:
    return Ladder(tmp_path, monkeypatch)


def failed(reason: str, detail: str = "") -> DataError:
    return DataError(reason, detail)


def test_the_first_that_works_is_taken(ladder: Ladder) -> None:
    assert ladder.build({}) == (("test_a.py::test_11",), [11])
    assert ladder.build({}) == (("test_a.py::test_11",), [])
    assert ladder.kept == []


def test_neighbours_are_tried_after_it(ladder: Ladder) -> None:
    broken = {11: failed("collection_error"), 12: failed("dep_needs_source_build")}
    assert ladder.build(broken) == (("test_a.py::test_10",), [11, 12, 10])


def test_of_three_failures_the_first_is_told_and_remembered(ladder: Ladder) -> None:
    reasons = {11: failed("collection_error", "best"), 12: failed("project_build_failed"), 10: failed("no_interpreter")}
    error, tried = ladder.build(reasons)
    assert (repr(error), tried) == ("DataError('collection_error: best')", [11, 12, 10])
    error, tried = ladder.build({})
    assert (repr(error), tried) == ("DataError('collection_error: best')", [])


@pytest.mark.parametrize("reason", ["no_tests", "direct_url_dependency", "needs_network", "needs_env_secret"])
def test_what_another_interpreter_does_not_change_ends_the_search(ladder: Ladder, reason: str) -> None:
    error, tried = ladder.build({11: failed(reason)})
    assert (cast(DataError, error).reason, tried) == (reason, [11])
    assert ladder.build({})[1] == []


@pytest.mark.parametrize("reason", ["timeout", "oom", "disk_full", "pids", "backend_error"])
def test_what_another_day_may_change_is_not_remembered(ladder: Ladder, reason: str) -> None:
    error, tried = ladder.build({11: failed(reason)})
    assert (cast(DataError, error).reason, tried) == (reason, [11])
    assert ladder.build({}) == (("test_a.py::test_11",), [11])


def test_a_fault_of_the_machine_is_raised_and_nothing_is_kept(ladder: Ladder) -> None:
    error, tried = ladder.build({11: TransientError("no index")})
    assert (repr(error), tried, ladder.kept) == ("TransientError('no index')", [11], [])
    assert ladder.build({})[1] == [11]


def test_what_makes_another_environment_is_built_anew_and_what_does_not_is_found(ladder: Ladder) -> None:
    assert ladder.build({})[1] == [11]
    assert ladder.build({}, RealCodeConfig(runs=7, suite_seconds=5, memory_mib=100))[1] == []
    assert ladder.build({}, RealCodeConfig(index_cut=False))[1] == [11]
    assert ladder.build({}, RealCodeConfig(test_packages=("pytest-mock",)))[1] == [11]


def test_interpreters_of_an_image_are_asked_inside_it() -> None:
    told = [
        ["cpython", [3, 12, 4], "/usr/local", [1, "/usr/local/lib", "x"]],
        ["pypy", [3, 10, 1], "/opt", [0, "", ""]],
    ]
    told += [["cpython", [3, 11, 2], "/usr", [0, None, None]], told[0]]
    backend = FakeBackend(output="".join(json.dumps(line) + "\n" for line in told).encode())
    found = find_in_image(cast(Backend, backend))
    assert found == [
        Interpreter((3, 11, 2), Path("/usr"), of_image=True),
        Interpreter((3, 12, 4), Path("/usr/local"), of_image=True),
    ]
    assert [(item.inside, item.binds) for item in found] == [
        ("/usr/bin/python3.11", ()),
        ("/usr/local/bin/python3.12", ()),
    ]
    assert [list(argv[:2]) for argv in backend.asked] == [["/bin/sh", "-c"]]
