"""A parent's version with a syntax error: what it may have held already is not called new."""

from pathlib import Path

import pytest

from tests.builders import RepoBuilder
from tests.miners.test_mine import OLD, mine, rows

KEPT = b"def as_boolean(value):\n    return bool(value)\n"
OTHER = b"\n\ndef brand_new(value):\n    return [value, value]\n"
HIDDEN = "a syntax error in the earlier version may hide an earlier"
NEW = ("logic.py", "brand_new", "added", None, None)


@pytest.mark.parametrize(
    ("before", "after", "details"),
    [
        # The definition itself is broken in the parent; its neighbour is found there, unchanged.
        (
            b"def count_bits:\n    return 1\n\n\n" + KEPT,
            b"def count_bits(value):\n    return 1\n\n\n" + KEPT + OTHER,
            [f"logic.py:1: {HIDDEN} count_bits"],
        ),
        # A bracket that is never closed swallows the definition behind it.
        (b"x = foo(\n" + KEPT, b"x = foo()\n" + KEPT + OTHER, [f"logic.py:2: {HIDDEN} as_boolean"]),
        (
            b"x = foo(\n" + KEPT,
            b"x = foo()\n\n\ndef as_boolean(value):\n    return not not value\n" + OTHER,
            [f"logic.py:4: {HIDDEN} as_boolean"],
        ),
        # The name does not stand in the broken parent: nothing is hidden.
        (b"x = foo(\n", b"x = foo()\n" + OTHER, []),
        # It stands there as a part of another name only.
        (b"x = foo(\ndef brand_new_car(): pass\n", b"x = foo()\n" + OTHER, []),
    ],
)
def test_only_what_the_broken_parent_may_hide_is_left_out(
    tmp_path: Path, before: bytes, after: bytes, details: list[str]
) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"logic.py": before}, "Break", OLD)
    builder.commit({"logic.py": after}, "Mend")
    mined = mine(builder)
    assert rows(mined) == [NEW]
    assert [(item.stage, item.reason, item.detail) for item in mined.excluded] == [
        ("methods", "earlier_version_broken", detail) for detail in details
    ]
    [report] = [report for report in mined.reports if report.stage == "methods"]
    assert (report.rows_in, report.rows_out) == (1 + len(details), 1)
