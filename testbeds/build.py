"""The registry of testbeds and the one function that builds any of them."""

from collections import Counter
from collections.abc import Sequence

from schemas.config import TestbedsConfig
from schemas.errors import ConfigError, DataError, PipelineError
from schemas.records import DataPoint, Exclusion, Kept
from schemas.tasks import CommitGen, FromDocString, RandomCut, SummarizationGen, WithDocString
from testbeds.commit_gen import commit_gen
from testbeds.from_docstring import from_docstring
from testbeds.order import total_order
from testbeds.random_cut import random_cut
from testbeds.raw_data import raw_data, raw_data_docstring
from testbeds.sampling import sample_rows
from testbeds.summarization_gen import summarization_gen
from testbeds.task import Diffs, Inputs, Testbed
from testbeds.with_docstring import with_docstring

REGISTRY: dict[str, Testbed] = {
    "raw_data": Testbed(DataPoint, raw_data, sampled=False),
    "raw_data_docstring": Testbed(DataPoint, raw_data_docstring, sampled=False),
    "random_cut": Testbed(RandomCut, random_cut),
    "with_docstring": Testbed(WithDocString, with_docstring),
    "from_docstring": Testbed(FromDocString, from_docstring),
    "commit_gen": Testbed(CommitGen, commit_gen, capped_by_commit=True),
    "summarization_gen": Testbed(SummarizationGen, summarization_gen),
}
ROW_TYPES: dict[str, type] = {name: testbed.row_type for name, testbed in REGISTRY.items()}


def build_testbed(name: str, points: Sequence[DataPoint], diffs: Diffs, config: TestbedsConfig) -> Kept[DataPoint]:
    """Return the rows of a testbed, of type `ROW_TYPES[name]`, and an exclusion for every other point.

    `points` are the deduplicated data points, each row id once; `diffs` maps (repo, commit_id, path) to the file's
    diff and is only looked at by commit_gen. Rows and exclusions are in the release's total order
    (`testbeds.order.total_order`), whatever the order of `points`; the stage of the exclusions is `testbed_<name>`.
    ConfigError for a name that is no testbed.
    """
    testbed = REGISTRY.get(name)
    if testbed is None:
        raise ConfigError(f"unknown testbed {name!r}; known testbeds: {', '.join(REGISTRY)}")
    ordered = sorted(points, key=total_order)
    _require_distinct(ordered)
    inputs = Inputs(diffs, config.seed)
    rows: list[DataPoint] = []
    reasons: dict[str, Exclusion] = {}
    for point in ordered:
        try:
            rows.append(testbed.make_row(point, inputs))
        except DataError as error:
            reasons[point.row_id] = Exclusion(point.row_id, f"testbed_{name}", error.reason, error.detail)
    if testbed.sampled:
        rows, left_out = sample_rows(
            rows, name, config, per_commit=config.max_per_commit if testbed.capped_by_commit else None
        )
        reasons |= left_out
    return Kept(rows, [reasons[point.row_id] for point in ordered if point.row_id in reasons])


def count_usable(name: str, points: Sequence[DataPoint], diffs: Diffs, config: TestbedsConfig) -> int:
    """Return the number of points that a testbed can use, before it draws its sample; arguments as `build_testbed`."""
    testbed, inputs = REGISTRY[name], Inputs(diffs, config.seed)
    usable = 0
    for point in points:
        try:
            testbed.make_row(point, inputs)
            usable += 1
        except DataError:
            continue  # counted here only; no row of it was asked for
    return usable


def _require_distinct(points: Sequence[DataPoint]) -> None:
    """Refuse points that share a row id: their exclusions could not be told apart."""
    repeated = [row_id for row_id, count in Counter(point.row_id for point in points).items() if count > 1]
    if repeated:
        raise PipelineError(
            f"row id {repeated[0]} occurs more than once among the data points; remove duplicates first"
        )
