"""RealCode: functions of one repository whose tests prove their body, put together from what was executed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from miners.at_head import Standing, find_standing
from sandbox.prove import Evidence
from sandbox.splice import Spliced, split_body
from schemas.errors import DataError
from schemas.execution import DocstringNeed, Environment, RealCode, RealCodeConfig
from schemas.records import DataPoint, Exclusion, Kept
from testbeds.order import total_order
from testbeds.task import extend, require_generation

STAGE = "real_code"
_COMMIT_DIGITS = 12  # of the commit id in an instance id, as SWE-bench's readers are used to; the row id is whole


@dataclass(frozen=True, slots=True)
class Candidate:
    """A data point that stands in the tree to be executed."""

    point: DataPoint
    """The data point."""
    place: Standing
    """Its file there, and where in it."""
    parts: Spliced
    """The file in three parts; the middle one is the body."""


def choose_candidates(
    points: Iterable[DataPoint], git_dir: Path, commit_id: str, config: RealCodeConfig, max_bytes: int
) -> Kept[Candidate]:
    """Return what can be proven at a commit, in the release's order, and an exclusion for every other point.

    Left out are test functions and bodies without meaning (as from every generation testbed), functions without a
    docstring where one is required, those that do not stand in the tree as their commit brought them, and files that
    are no UTF-8: their text in a row would not be the file's bytes.
    """
    usable, excluded = [], []
    for point in sorted(points, key=total_order):
        try:
            require_generation(point)
            if config.docstring is DocstringNeed.REQUIRED and point.docstring is None:
                raise DataError("no_docstring")
            usable.append(point)
        except DataError as error:
            excluded.append(Exclusion(point.row_id, STAGE, error.reason, error.detail))
    candidates = []
    for point, place in find_standing(git_dir, commit_id, usable, max_bytes):
        try:
            if isinstance(place, DataError):
                raise place
            candidates.append(Candidate(point, place, _split(place)))
        except DataError as error:
            excluded.append(Exclusion(point.row_id, STAGE, error.reason, error.detail))
    rank = {point.row_id: total_order(point) for point in usable}
    return Kept(sorted(candidates, key=lambda item: rank[item.point.row_id]), excluded)


def _split(place: Standing) -> Spliced:
    if place.source.raw != place.source.utf8:
        raise DataError("code_not_utf8", f"the file is in {place.source.encoding}")
    return split_body(place.source.raw, place.start_byte)


@dataclass(frozen=True, slots=True)
class Execution:
    """What the evidence of one repository has in common."""

    base_commit: str
    """Commit whose tree was executed."""
    environment: Environment
    """How its environment was built."""
    test_command: str
    """Command that runs tests."""
    runs: int
    """Runs of the original."""


def make_instance_id(repo: str, commit_id: str, row_id: str) -> str:
    """Return `owner__name-<12 digits of the commit>-<row_id>`."""
    return f"{repo.replace('/', '__')}-{commit_id[:_COMMIT_DIGITS]}-{row_id}"


def make_row(candidate: Candidate, evidence: Evidence, execution: Execution) -> RealCode:
    """Return the row of a proven candidate."""
    point, parts = candidate.point, candidate.parts
    return extend(
        point,
        RealCode,
        instance_id=make_instance_id(point.repo, execution.base_commit, point.row_id),
        base_commit=execution.base_commit,
        intent_type="method" if "." in point.fun_name else "function",
        left_context=parts.left.decode("utf-8"),
        canonical_solution=parts.body.decode("utf-8"),
        right_context=parts.right.decode("utf-8"),
        PASS_TO_PASS=evidence.pass_to_pass,
        FAIL_TO_PASS=evidence.fail_to_pass,
        mocks=evidence.mocks,
        environment=execution.environment,
        test_command=execution.test_command,
        runs=execution.runs,
        flaky_tests=evidence.flaky_tests,
    )


def exclude_all(candidates: Sequence[Candidate], reason: str, detail: str) -> list[Exclusion]:
    """Return an exclusion for every candidate of a repository that cannot be executed."""
    return [Exclusion(item.point.row_id, STAGE, reason, detail) for item in candidates]
