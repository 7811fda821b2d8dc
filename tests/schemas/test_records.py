import pickle

import pytest

from schemas.errors import ConfigError, DataError, PipelineError, TransientError
from schemas.records import Exclusion, RepositoryRecord, StageReport, count_reasons, make_repository_key, make_row_id


def test_row_id_is_the_blake2b_of_the_five_parts() -> None:
    # printf 'o/n\0c1\0a/b.py\0C.m\0017' | b2sum -l 128
    assert make_row_id("o/n", "c1", "a/b.py", "C.m", 17) == "89e4ed2ac41e11979876bbdf028113e9"


def test_row_id_tells_every_part_apart() -> None:
    ids = {
        make_row_id("o/n", "c1", "a.py", "f", 1),
        make_row_id("o/m", "c1", "a.py", "f", 1),
        make_row_id("o/n", "c2", "a.py", "f", 1),
        make_row_id("o/n", "c1", "b.py", "f", 1),
        make_row_id("o/n", "c1", "a.py", "g", 1),
        make_row_id("o/n", "c1", "a.py", "f", 2),
    }
    assert len(ids) == 6


@pytest.mark.parametrize(
    ("host", "repo_id", "web_url", "key"),
    [
        ("github.com", None, "https://github.com/o/n", "o/n"),
        ("github.com", 7, "https://github.com/o/n", "github.com:7"),
        ("git.example:8443", 7, None, "git.example:8443:7"),
        ("gitlab.com", 7, "https://github.com/o/n", "gitlab.com:7"),
        ("local", 7, "https://GitHub.com/o/n", "github.com:7"),
        ("local", 7, None, "local:7"),
        ("local", None, "https://github.com/o/n", "o/n"),
    ],
)
def test_a_repository_is_its_id_on_its_host(host: str, repo_id: int | None, web_url: str | None, key: str) -> None:
    assert make_repository_key("o/n", host, repo_id, web_url) == key
    assert RepositoryRecord("o/n", host, repo_id, web_url, "main", "a" * 40, 1).key == key


def test_stage_report_that_loses_a_row_is_refused() -> None:
    with pytest.raises(PipelineError, match="does not add up: 3 rows in, 1 out and 1 excluded"):
        StageReport("features", "o/n", rows_in=3, rows_out=1, excluded_by_reason={"too_long": 1})


def test_stage_report_that_accounts_for_every_row_is_accepted() -> None:
    report = StageReport("features", "o/n", 3, 1, {"too_long": 2})
    assert (report.rows_in, report.rows_out, report.excluded_by_reason) == (3, 1, {"too_long": 2})


def test_reasons_are_counted_in_sorted_order() -> None:
    excluded = [Exclusion("1", "s", "b"), Exclusion("2", "s", "a"), Exclusion("3", "s", "b")]
    assert list(count_reasons(excluded).items()) == [("a", 1), ("b", 2)]


def test_error_tree_lets_callers_catch_by_kind() -> None:
    assert all(issubclass(kind, PipelineError) for kind in (ConfigError, DataError, TransientError))
    assert not issubclass(DataError, TransientError)


def test_data_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(DataError("blob_missing", "abc")))
    assert (error.reason, error.detail, str(error)) == ("blob_missing", "abc", "blob_missing: abc")
