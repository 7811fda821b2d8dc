"""A small release's inputs for tests; run as a script it writes one and can be killed on the way."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from publishing.inputs import ReleaseInputs
from publishing.release import write_release
from schemas.arrow import to_table
from schemas.config import Config, ReleaseConfig, SourceConfig, WindowConfig
from schemas.execution import Environment, MockKind, MockResult, RealCode, Verdict
from schemas.records import DataPoint, Exclusion, RepositoryRecord, StageReport
from schemas.tasks import CommitGen, FromDocString, RandomCut, SummarizationGen, WithDocString
from tests.builders import make_point

Row = TypeVar("Row", bound=DataPoint)
SINCE = datetime(2024, 1, 1, tzinfo=UTC)
CONFIG = Config(
    sources=(
        SourceConfig(git=("../shapes",)),
        SourceConfig(git=("https://user:secret@example.org/o/n.git",)),
        SourceConfig(git=("/home/ada/private/tools.git",), branch="main"),
    ),
    window=WindowConfig(since=SINCE, until=datetime(2025, 1, 1, tzinfo=UTC)),
    release=ReleaseConfig(version="1.2.0", name="shapes"),
)
REPOSITORIES = (
    RepositoryRecord("o/n", "example.org", 7, "https://example.org/o/n", "devel", "e" * 40, 30, ("o/earlier",)),
    RepositoryRecord("example/shapes", "local", None, None, "main", "d" * 40, 12),
)
FUNNEL = (
    StageReport("mine", "example/shapes", 5, 4, {"moved": 1}, "digest", "0.1.0", SINCE, SINCE),
    StageReport("mine", "o/n", 4, 3, {"bad_blob": 1}),
    StageReport("dedup", "all", 7, 6, {"near_duplicate": 1}),
)
EXCLUSIONS = (
    Exclusion("o/n@e1:x.py", "mine", "bad_blob", "cannot read /home/ada/private/tools.git/objects"),
    Exclusion("0" * 32, "dedup", "near_duplicate", "keeper 1, similarity 0.71"),
    Exclusion("1" * 32, "mine", "moved", "from é.py"),
)


def points() -> list[DataPoint]:
    """Six rows of two repositories, out of order, with nulls and text that is not ASCII."""
    base = datetime(2024, 3, 1, tzinfo=UTC)
    rows = [
        make_point(fun_name=f"méthode_{index}", start_byte=100 * index, committer_date=base + timedelta(days=-index))
        for index in range(4)
    ]
    return [
        make_point(repo="o/n", license=None, docstring=None, doc_language=None, doc_language_confidence=None),
        *rows,
        make_point(
            repo="o/n", fun_name="b", path="a\tb|c.py", license="BSD-3-Clause", code="def b():\r\n    return '\0'"
        ),
    ]


def task(point: DataPoint, row_type: type[Row], **columns: object) -> Row:
    shared: dict[str, Any] = {name: getattr(point, name) for name in DataPoint.__slots__}
    return row_type(**shared, **columns)


def rows_by_testbed(rows: Sequence[DataPoint]) -> dict[str, Sequence[DataPoint]]:
    """All seven testbeds; summarization_gen has no row."""
    return {
        "raw_data": rows,
        "raw_data_docstring": [row for row in rows if row.docstring],
        "random_cut": [task(row, RandomCut, prefix="a", target="b", cut_byte=1) for row in rows[:4]],
        "with_docstring": [task(row, WithDocString, prefix="a", target="b", cut_byte=1) for row in rows[1:3]],
        "from_docstring": [task(row, FromDocString, prompt_code="p", target="t") for row in rows[1:2]],
        "commit_gen": [task(row, CommitGen, diff="@@ -1 +1 @@\n+x\r\n") for row in rows],
        "summarization_gen": [],
    }


ROW_TYPES: dict[str, type] = {
    "raw_data": DataPoint,
    "raw_data_docstring": DataPoint,
    "random_cut": RandomCut,
    "with_docstring": WithDocString,
    "from_docstring": FromDocString,
    "commit_gen": CommitGen,
    "summarization_gen": SummarizationGen,
}


def real_code_row(point: DataPoint) -> RealCode:
    """A row of real_code with nested columns, empty lists among them."""
    mocks = (
        MockResult(MockKind.PASS, "    pass\n", Verdict.CAUGHT, ('t.py::test_a[é "b"]',), "AssertionError"),
        MockResult(MockKind.RAISE, "    raise\n", Verdict.SURVIVED, ()),
    )
    environment = Environment("3.12.1", "pytest==8.3.4\n", "2026-01-02", ("pytest",), (), ("-q",), "bubblewrap+rlimits")
    return task(
        point, RealCode, instance_id=f"o__n-{point.row_id}", base_commit="e" * 40, intent_type="function",
        left_context="def f():\n", canonical_solution="    return 1\n", right_context="", PASS_TO_PASS=("a", "b"),
        FAIL_TO_PASS=("a",), mocks=mocks, environment=environment, test_command="pytest", runs=4, flaky_tests=(),
    )  # fmt: skip


def make_inputs(rows: Sequence[DataPoint] | None = None, **overrides: Any) -> ReleaseInputs:  # noqa: ANN401 - as fields
    """Return the inputs of the small release."""
    tables = rows_by_testbed(points() if rows is None else rows)
    inputs = ReleaseInputs(
        config=CONFIG,
        code_version="0.1.0",
        tokenizer_sha256="7" * 64,
        grammar_version="tree-sitter-python 0.25.0",
        repositories=REPOSITORIES,
        tables={name: to_table(tables[name], ROW_TYPES[name]) for name in tables},
        exclusions=to_table(EXCLUSIONS, Exclusion),
        funnel=FUNNEL,
        python_version="3.11.9",
    )
    return replace(inputs, **overrides)


def with_release(**values: Any) -> Config:  # noqa: ANN401 - as fields
    """Return the configuration with another `[release]`."""
    return replace(CONFIG, release=replace(CONFIG.release, **values))


def die_at_rename(number: int) -> None:
    """Kill this process with SIGKILL instead of its n-th rename."""
    count = 0
    rename, replace_ = Path.rename, Path.replace

    def counted(real: Any, path: Path, target: Path) -> Path:  # noqa: ANN401 - a method of Path
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        result: Path = real(path, target)
        return result

    Path.rename = lambda path, target: counted(rename, path, target)  # type: ignore[method-assign]
    Path.replace = lambda path, target: counted(replace_, path, target)  # type: ignore[method-assign]


if __name__ == "__main__":
    folder, code_version, number = sys.argv[1:]
    die_at_rename(int(number))
    write_release(make_inputs(config=with_release(overwrite=True), code_version=code_version), Path(folder))
