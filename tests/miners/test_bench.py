"""The benchmark of mining: its contestants on a small history, its windows and its tables."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cloning import Loss, loss
from bench.measure import Measurement
from bench.mining import floor, postquem_added, pydriller_added, pydriller_parsed_added, report, scaling, windows
from miners.clone import Clone, open_clone
from miners.git_process import run_git
from miners.places import identify
from schemas.config import MiningConfig, SourceConfig, WindowConfig
from tests.builders import RepoBuilder

OLD = datetime(2023, 5, 1, tzinfo=UTC)
SINCE = "2024-01-01"


@pytest.fixture
def repo(tmp_path: Path) -> str:
    builder = RepoBuilder(tmp_path / "shapes.git")
    builder.commit({"a.py": b"def f():\n    return 1\n"}, author_date=OLD, committer_date=OLD)
    for day, source in enumerate(
        [b"def f():\n    return 2\n", b"def f():\n    return 2\n\n\ndef g(x):\n    return x\n"], 2
    ):
        when = datetime(2024, 3, day, tzinfo=UTC)
        builder.commit({"a.py": source, "b.py": b"def f():\n    return 1\n"}, author_date=when, committer_date=when)
    return str(builder.git_dir)


def test_all_find_the_same_new_method(repo: str) -> None:
    # PyDriller does not see that b.py's method stood in a.py before.
    assert postquem_added(repo, SINCE) == 1
    assert floor(repo, SINCE) == 3


def test_pydriller_takes_a_moved_method_for_a_new_one(repo: str) -> None:
    pytest.importorskip("pydriller", reason="PyDriller comes with the bench extra only")
    assert pydriller_added(repo, SINCE) == pydriller_parsed_added(repo, SINCE) == 2


def test_windows_end_with_the_whole_one(repo: str) -> None:
    assert windows(repo, SINCE) == [("2024-03-03T00:00:00+00:00", 1), (SINCE, 2)]
    assert windows(repo, "2023-01-01") == [("2024-03-03T00:00:00+00:00", 1), ("2023-01-01", 3)]


def test_tables() -> None:
    ours = Measurement("postquem", 10, 2.0, 3.0, 40.0)
    assert report("title", [Measurement("floor", 30, 4.0, 5.0, 20.0), ours], 8).splitlines()[2:] == [
        "  floor                         30     4.00   2.00       2.0      7.5       20",
        "  postquem                      10     2.00   1.00       4.0      5.0       40",
    ]
    assert scaling([(4, Measurement("postquem", 5, 1.5, 2.0, 30.0)), (8, ours)]).splitlines()[1:] == [
        "         4 commits     1.50 CPU s,   375.00 ms each, 30 MiB",
        "         8 commits     2.00 CPU s,   250.00 ms each, 125.00 ms for each one more, 40 MiB",
    ]


def test_what_a_shallow_clone_lacks(tmp_path: Path) -> None:
    """git stops at the first older commit, behind which there are younger ones."""
    builder = RepoBuilder(tmp_path / "dates.git")
    first = ["2021-01-01", "2023-06-01", "2024-02-01", "2023-08-01", "2024-03-01"]  # the third: a clock that was ahead
    for number, day in enumerate(first):
        when = datetime.fromisoformat(day).replace(tzinfo=UTC)
        builder.commit({"a.py": b"x = %d\n" % number}, author_date=when, committer_date=when)
    whole = open_clone(identify(SourceConfig(git=("x",)), str(builder.path), Path("/")), tmp_path / "whole")
    window = WindowConfig(datetime(2024, 1, 1, tzinfo=UTC))
    lacks = {}
    for since in ("2020-01-01", "2023-07-01", "2024-01-01"):
        folder = tmp_path / f"{since}.git"
        url = f"file://{builder.git_dir}"
        run_git(None, "clone", "--quiet", "--bare", "--no-tags", f"--shallow-since={since}T00:00:00Z", url, str(folder))
        lacks[since] = loss(whole, Clone(folder, whole.record), MiningConfig(search_history="2y"), window)
    assert lacks == {
        "2020-01-01": Loss(window=0, old=0, parents=0, cutoff=False),
        "2023-07-01": Loss(window=0, old=1, parents=1, cutoff=True),
        "2024-01-01": Loss(window=1, old=2, parents=1, cutoff=True),
    }
