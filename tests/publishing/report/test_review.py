"""Marks are checked against the release they belong to, and reviewers are compared as Cohen did."""

import json
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from flows.cli import cli
from publishing.report.page import MARKS_FORMAT, manifest_digest
from publishing.report.review import (
    Agreement,
    ReviewShare,
    agreements,
    read_marks,
    review_shares,
    wilson_interval,
)  # fmt: skip
from schemas.errors import ConfigError
from schemas.review import ReviewMark, ReviewReason
from warehouse.tables import read_rows


def ids(release: Path, testbed: str) -> list[str]:
    return list(pq.read_table(release / testbed)["row_id"].to_pylist())


def mark(row_id: str, valid: bool = True, reason: str | None = None, **values: object) -> dict[str, Any]:
    return {"testbed": "raw_data", "row_id": row_id, "valid": valid, "reason": reason, "note": ""} | values


def save(folder: Path, of: Path, reviewer: str, marks: list[dict[str, Any]], **values: object) -> Path:
    path = folder / f"marks-{reviewer}.json"
    content = {
        "format": MARKS_FORMAT,
        "release": {"name": "shapes", "version": "1.2.0", "manifest_sha256": manifest_digest(of)},
        "sample": {"size": 960, "seed": 0},
        "reviewer": reviewer,
        "marks": marks,
    }
    path.write_text(json.dumps(content | values))
    return path


def table_of(yes: int, left: int, right: int, no: int) -> list[ReviewMark]:
    """Return the marks of two reviewers with these counts of (both, first only, second only, none)."""
    cells = [(True, True)] * yes + [(True, False)] * left + [(False, True)] * right + [(False, False)] * no
    return [
        ReviewMark(reviewer, "raw_data", f"{index:03d}", valid, None if valid else ReviewReason.OTHER, "")
        for index, pair in enumerate(cells)
        for reviewer, valid in zip(("Ada", "Bo"), pair, strict=True)
    ]


def test_marks_of_two_reviewers_are_read_and_compared(release: Path, tmp_path: Path) -> None:
    first, second, third = ids(release, "raw_data")[:3]
    paths = [
        save(tmp_path, release, "Bo", [mark(first), mark(second, False, "not_new", note="see the parent")]),
        save(tmp_path, release, "Ada", [mark(first), mark(second), mark(third)]),
    ]
    marks = read_marks(release, paths)
    assert marks == sorted(
        [
            *(ReviewMark("Ada", "raw_data", row, True, None, "") for row in (first, second, third)),
            ReviewMark("Bo", "raw_data", first, True, None, ""),
            ReviewMark("Bo", "raw_data", second, False, ReviewReason.NOT_NEW, "see the parent"),
        ],
        key=lambda item: (item.reviewer, item.row_id),
    )
    assert review_shares(marks) == [
        ReviewShare("Ada", "raw_data", 3, 3, *wilson_interval(3, 3)),
        ReviewShare("Bo", "raw_data", 2, 1, *wilson_interval(1, 2)),
    ]
    assert agreements(marks) == [Agreement("Ada", "Bo", 1, 1, 0, 0, 0.5, 0.0, sqrt(0.5), (("raw_data", second),))]


def test_kappa_of_worked_examples() -> None:
    """Tables with known values: 20/5/10/15 gives 0.4; 45/15/25/15 and 25/35/5/35 give 0.1304 and 0.2593."""
    [first] = agreements(table_of(20, 5, 10, 15))
    assert (first.observed, first.kappa) == (0.7, pytest.approx(0.4))
    assert first.kappa_error == pytest.approx(0.1296, abs=1e-4)
    assert agreements(table_of(45, 15, 25, 15))[0].kappa == pytest.approx(0.1304, abs=1e-4)
    assert agreements(table_of(25, 35, 5, 35))[0].kappa == pytest.approx(0.2593, abs=1e-4)
    assert len(first.disagreements) == 15


def test_kappa_is_undefined_where_chance_agrees_on_all() -> None:
    [same] = agreements(table_of(5, 0, 0, 0))
    assert (same.observed, same.kappa, same.kappa_error) == (1.0, None, None)
    nothing_in_common = [mark for mark in table_of(2, 0, 0, 0) if (mark.reviewer == "Ada") == (mark.row_id == "000")]
    assert agreements(nothing_in_common) == [Agreement("Ada", "Bo", 0, 0, 0, 0, None, None, None, ())]


@pytest.mark.parametrize(("successes", "trials"), [(8, 10), (1, 960), (480, 960), (0, 10), (10, 10)])
def test_both_ends_of_the_interval_solve_wilsons_equation(successes: int, trials: int) -> None:
    share, z = successes / trials, NormalDist().inv_cdf(0.975)
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= share <= high <= 1
    assert low < high
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / trials, abs=1e-12)


def test_files_that_do_not_belong_here_are_refused(release: Path, tmp_path: Path) -> None:
    row = ids(release, "raw_data")[0]
    other = {"name": "shapes", "version": "1.1.0", "manifest_sha256": "0" * 64}
    cases = [
        (save(tmp_path, release, "a", [mark(row)], release=other), "belongs to release 1.1.0, whose manifest is anoth"),
        (save(tmp_path, release, "b", [mark("f" * 32)]), f"raw_data of the release has no row {'f' * 32}"),
        (save(tmp_path, release, "c", [mark(row, testbed="nothing")]), "the release has no testbed nothing"),
        (save(tmp_path, release, "d", [mark(row)], format="1"), "is no file of marks: its format is '1'"),
        (save(tmp_path, release, "e", [mark(row, False, "bad")]), "no file of marks that the page saved: ValueError"),
        (save(tmp_path, release, "f", [mark(row, valid=1)]), "TypeError valid is 1"),
        (save(tmp_path, release, "  ", [mark(row)]), "does not name its reviewer"),
        (tmp_path / "missing.json", "cannot be read: No such file or directory"),
    ]
    for path, message in cases:
        with pytest.raises(ConfigError, match=message):
            read_marks(release, [path])
    twice = [tmp_path / "1", tmp_path / "2"]
    for folder, valid in zip(twice, (True, False), strict=True):
        folder.mkdir()
        save(folder, release, "Ada", [mark(row, valid, None if valid else "other")])
    with pytest.raises(ConfigError, match=f"Ada marks raw_data {row} otherwise than in another file"):
        read_marks(release, [folder / "marks-Ada.json" for folder in twice])


def test_the_command_writes_a_row_of_every_mark_and_tells_the_agreement(release: Path, tmp_path: Path) -> None:
    rows = ids(release, "raw_data")
    paths = [
        save(tmp_path, release, "Ada", [mark(row) for row in rows]),
        save(tmp_path, release, "Bo", [mark(rows[0], False, "licence"), *(mark(row) for row in rows[1:])]),
    ]
    out = tmp_path / "review.parquet"
    arguments = ["review", "import", str(release), *map(str, paths)]
    done = CliRunner().invoke(cli, [*arguments, "--out", str(out)], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    assert "Ada and Bo: 6 common rows, 83.3% equal, Cohen's kappa 0.00 ± 0.91." in done.output
    assert f"differ: raw_data {rows[0]}" in done.output
    assert "Not valid because: licence 1" in done.output
    assert read_rows(out, ReviewMark) == read_marks(release, paths)
    told = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert [(row["reviewer"], row["reviewed"], row["valid"]) for row in told["shares"]] == [("Ada", 6, 6), ("Bo", 6, 5)]
    assert told["reasons"] == {"licence": 1}
