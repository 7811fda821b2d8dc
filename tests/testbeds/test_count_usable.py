"""How many points a testbed could use, whatever its sample."""

import pytest

from schemas.config import TestbedsConfig
from testbeds.build import build_testbed, count_usable
from testbeds.sampling import SAMPLING_REASONS
from tests.builders import make_point

CONFIG = TestbedsConfig(size=2, max_per_repo=1)
POINTS = [
    *(make_point(fun_name=f"f{index}", repo=f"o/{index % 2}") for index in range(4)),
    make_point(fun_name="test_f", is_test=True),
    make_point(fun_name="plain", docstring=None, code="def plain(a):\n    return a"),
]


@pytest.mark.parametrize(("name", "usable"), [("raw_data", 6), ("raw_data_docstring", 5), ("with_docstring", 4)])
def test_usable_points_are_those_that_sampling_could_take(name: str, usable: int) -> None:
    assert count_usable(name, POINTS, {}, CONFIG) == usable
    kept = build_testbed(name, POINTS, {}, CONFIG)
    sampled_out = sum(item.reason in SAMPLING_REASONS for item in kept.excluded)
    assert len(kept.rows) + sampled_out == usable
