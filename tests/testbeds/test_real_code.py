"""Which data points can be proven at a commit, and what a proven one's row says."""

from pathlib import Path

import pytest

from features.compute import compute_features
from sandbox.prove import Evidence
from sandbox.targets import Target, read_function
from schemas.arrow import from_table, to_table
from schemas.config import FeaturesConfig, LicencesConfig, MiningConfig
from schemas.execution import (
    DocstringNeed,
    Environment,
    MockKind,
    MockResult,
    RealCode,
    RealCodeConfig,
    Verdict,
)
from schemas.records import DataPoint
from testbeds.real_code import Candidate, Execution, choose_candidates, exclude_all, make_row
from tests.builders import RepoBuilder
from tests.miners.mining import mine_at

LIMIT = 1_000_000
FILE = '''\
"""Shapes."""


class Box:
    @property
    def volume(self):
        """Say how much fits into it."""
        # three sides
        return self.a * self.b * self.c  # product

    def stub(self):
        raise NotImplementedError


def double(a):
    return 2 * a


def test_double():
    assert double(2) == 4
'''


@pytest.fixture
def repository(tmp_path: Path) -> tuple[RepoBuilder, str]:
    builder = RepoBuilder(tmp_path / "r.git")
    builder.commit({"shapes.py": FILE.replace("2 * a", "a + a").encode()}, "bring")
    head = builder.commit({"shapes.py": FILE.encode(), "latin.py": LATIN.encode("latin-1")}, "change")
    return builder, head


LATIN = "# coding: latin-1\ndef greet(name):\n    return 'é' + name\n"


def points_of(builder: RepoBuilder) -> list[DataPoint]:
    methods = mine_at(builder).methods
    return compute_features(methods, FeaturesConfig(), MiningConfig(), LicencesConfig()).rows


def test_candidates_are_what_stands_at_the_commit_and_asks_for_something(
    repository: tuple[RepoBuilder, str],
) -> None:
    builder, head = repository
    points = points_of(builder)
    names = {point.row_id: point.fun_name for point in points}
    kept = choose_candidates(reversed(points), builder.git_dir, head, RealCodeConfig(), LIMIT)
    assert [item.point.fun_name for item in kept.rows] == ["Box.volume"]
    assert kept.rows[0].parts.body == b"        # three sides\n        return self.a * self.b * self.c  # product"
    assert {names[item.row_id]: (item.stage, item.reason) for item in kept.excluded} == {
        "Box.stub": ("real_code", "trivial_body"),
        "double": ("real_code", "not_at_head"),
        "test_double": ("real_code", "is_test"),
        "greet": ("real_code", "code_not_utf8"),
    }


def test_a_docstring_can_be_required(repository: tuple[RepoBuilder, str]) -> None:
    builder, _ = repository
    config = RealCodeConfig(docstring=DocstringNeed.REQUIRED)
    first = points_of(builder)[0].commit_id
    kept = choose_candidates(points_of(builder), builder.git_dir, first, config, LIMIT)
    assert [item.point.fun_name for item in kept.rows] == ["Box.volume"]
    reasons = {item.reason for item in kept.excluded}
    assert "no_docstring" in reasons


def test_the_row_holds_the_file_byte_for_byte(repository: tuple[RepoBuilder, str]) -> None:
    builder, head = repository
    [candidate] = choose_candidates(points_of(builder), builder.git_dir, head, RealCodeConfig(), LIMIT).rows
    environment = Environment("3.12.1", "pytest==8\n", "2026-01-01", (), (), (), "bubblewrap+rlimits")
    mock = MockResult(MockKind.PASS, "        pass", Verdict.CAUGHT, ("t.py::t",))
    target = Target(candidate.point.row_id, "shapes.py", "Box.volume", candidate.place.start_byte)
    function = read_function(candidate.place.source.raw, target)
    evidence = Evidence(function, ("t.py::t", "t.py::u"), ("t.py::t",), (mock,), ("t.py::flaky",))
    row = make_row(candidate, evidence, Execution(head, environment, "pytest -q", 4))
    assert row.left_context + row.canonical_solution + row.right_context == FILE
    point = candidate.point
    assert row.instance_id == f"example__shapes-{head[:12]}-{point.row_id}"
    assert (row.base_commit, row.intent_type, row.runs) == (head, "method", 4)
    assert (row.PASS_TO_PASS, row.FAIL_TO_PASS) == (("t.py::t", "t.py::u"), ("t.py::t",))
    assert all(getattr(row, name) == getattr(point, name) for name in DataPoint.__slots__)
    assert list(from_table(to_table([row], RealCode), RealCode)) == [row]


def test_a_repository_that_cannot_be_executed_excludes_all(repository: tuple[RepoBuilder, str]) -> None:
    builder, head = repository
    candidates: list[Candidate] = choose_candidates(
        points_of(builder), builder.git_dir, head, RealCodeConfig(), LIMIT
    ).rows
    [excluded] = exclude_all(candidates, "no_tests", "nothing was collected")
    assert (excluded.row_id, excluded.stage, excluded.reason, excluded.detail) == (
        candidates[0].point.row_id,
        "real_code",
        "no_tests",
        "nothing was collected",
    )
