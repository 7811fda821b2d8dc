"""The outcomes that samples/README.md promises, checked against the real miner, features, dedup and testbeds."""

import ast
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

from dedup.evidence import NEAR_STAGE
from features.docstrings import code_without_docstring
from schemas.config import TESTBEDS
from schemas.records import DataPoint, Exclusion, Method, Novelty
from schemas.tasks import FromDocString, RandomCut, SummarizationGen, WithDocString
from tests.samples.cases import (
    EXCLUDED,
    IN_TESTBEDS,
    METHODS,
    POINTS,
    REAL_CODE,
    SILENT,
    ExcludedCase,
    MethodCase,
    PointCase,
    SilentCase,
    TestbedCase,
)
from tests.samples.support import Run, readme_ids, run_all, text_of

# Ids that have a test function of their own below.
OWN_TESTS = {
    "conditional_definitions", "string_with_def", "no_definitions", "exact_duplicate", "near_across_repositories",
    "near_in_one_file", "overloads", "latin1_message", "decorated", "moved_across_files", "moved_and_modified",
    "old_method_copied", "revert", "overload_stubs",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repos")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_all(folder)


def case_name(case: object) -> str:
    return "-".join(str(getattr(case, name)) for name in ("id", "fun_name", "path", "testbed") if hasattr(case, name))


def rows_of(run: Run, repo: str, path: str, fun_name: str) -> list[Method]:
    return [row for row in run.mined[repo].methods if (row.path, row.fun_name) == (path, fun_name)]


def points_of(run: Run, repo: str, fun_name: str) -> list[DataPoint]:
    return [row for row in run.features.rows if (row.repo, row.fun_name) == (f"samples/{repo}", fun_name)]


def commit_id_of(run: Run, folder: Path, repo: str, subject: str) -> str:
    """Return the id of the one commit whose message begins so, by plain git."""
    lines = text_of(folder / "local" / "samples" / f"{repo}.git", "log", "--format=%H %s").splitlines()
    found = [line[:40] for line in lines if line[41:].startswith(subject)]
    assert len(found) == 1, f"{repo} has {len(found)} commits {subject!r}"
    return found[0]


def test_every_promise_of_the_readme_has_a_test() -> None:
    tested = {case.id for group in (METHODS, EXCLUDED, SILENT, POINTS, IN_TESTBEDS) for case in group} | OWN_TESTS
    tested |= set(REAL_CODE)
    assert sorted(tested) == sorted(readme_ids())
    assert len(set(readme_ids())) == len(readme_ids())


@pytest.mark.parametrize("case", METHODS, ids=case_name)
def test_method_has_the_promised_class(case: MethodCase, run: Run) -> None:
    rows = rows_of(run, case.repo, case.path, case.fun_name)
    assert tuple(row.novelty for row in rows) == case.novelty
    if rows:
        last = rows[-1]
        evidence = case.earlier or (None, None)
        assert (last.earlier_path, last.earlier_fun_name) == evidence
        assert {name: getattr(last, name) for name in case.columns} == dict(case.columns)


@pytest.mark.parametrize("case", EXCLUDED, ids=case_name)
def test_commit_or_file_is_excluded_with_the_promised_reason(case: ExcludedCase, run: Run, folder: Path) -> None:
    commit_id = commit_id_of(run, folder, case.repo, case.subject)
    row_id = f"samples/{case.repo}@{commit_id}" + (f":{case.path}" if case.path else "")
    stage = "files" if case.path else "commits"
    found = [(item.stage, item.reason) for item in run.mined[case.repo].excluded if item.row_id == row_id]
    # A file that stays unreadable may be met again as part of a later commit's parent tree (stage `index`).
    assert [item for item in found if item[0] != "index"] == [(stage, case.reason)]
    here = [row for row in run.mined[case.repo].methods if row.commit_id == commit_id]
    assert [row for row in here if case.path in (None, row.path)] == []


@pytest.mark.parametrize("case", SILENT, ids=case_name)
def test_commit_brings_nothing(case: SilentCase, run: Run, folder: Path) -> None:
    mined = run.mined[case.repo]
    commit_id = commit_id_of(run, folder, case.repo, case.subject)
    assert (commit_id in {commit.commit_id for commit in mined.commits}) is case.candidate
    assert [row.fun_name for row in mined.methods if row.commit_id == commit_id] == []
    about = [item for item in mined.excluded if commit_id in item.row_id and item.stage != "index"]
    assert about == []


@pytest.mark.parametrize("case", POINTS, ids=case_name)
def test_data_point_has_the_promised_columns(case: PointCase, run: Run) -> None:
    points = points_of(run, case.repo, case.fun_name)
    assert len(points) == 1
    assert {name: getattr(points[0], name) for name in case.columns} == dict(case.columns)


@pytest.mark.parametrize("case", IN_TESTBEDS, ids=case_name)
def test_testbed_treats_the_method_as_promised(case: TestbedCase, run: Run) -> None:
    ids = {point.row_id for point in points_of(run, case.repo, case.fun_name)}
    assert ids
    kept = run.testbeds[case.testbed]
    reasons = [item.reason for item in kept.excluded if item.row_id in ids]
    rows = [row for row in kept.rows if row.row_id in ids]
    assert (len(rows), reasons) == ((1, []) if case.reason is None else (0, [case.reason]))


def test_licence_that_is_not_in_the_list_is_left_out_and_named(run: Run) -> None:
    (method,) = rows_of(run, "gridtext", "gridtext/hyphenate.py", "break_points")
    found = [item for item in run.features.excluded if item.reason.startswith("license_")]
    assert found == [Exclusion(method.row_id, "features", "license_not_allowed", "GPL-2.0-or-later")]


def test_test_functions_are_in_raw_data(run: Run) -> None:
    names = sorted(row.fun_name for row in run.testbeds["raw_data"].rows if row.is_test)
    assert len(names) == 49
    assert {"WidthTest.setUp", "lengths", "sample_table"} < set(names)


def test_latin1_message_is_decoded(run: Run) -> None:
    (point,) = points_of(run, "quirks", "pluriel")
    assert point.commit_message.startswith("Read files in the encodings of the nineties, déjà vu included\n")


def test_moved_method_has_another_docstring_than_before(run: Run) -> None:
    (row,) = rows_of(run, "measures", "measures/parsing.py", "split_quantity")
    assert "(moved here from convert)" in row.code


def test_conditional_definitions_stand_in_their_branches(run: Run) -> None:
    rows = rows_of(run, "quirks", "quirks/definitions.py", "load_toml")
    assert ["raise RuntimeError" in row.code for row in rows] == [True, False]
    assert [row.code.startswith("def load_toml(text: str)") for row in rows] == [True, True]


def test_span_of_a_decorated_method_begins_at_its_first_decorator(run: Run) -> None:
    (row,) = rows_of(run, "quirks", "quirks/definitions.py", "decorated")
    assert row.code.startswith('@_traced(\n    "a tag with a : colon",\n    "def not_a_definition():",\n)\n@functools')
    assert row.code.endswith(r"for name, function in first.items()}")


def test_string_at_the_margin_keeps_its_text(run: Run) -> None:
    (row,) = rows_of(run, "quirks", "quirks/definitions.py", "Outer.Inner.query")
    assert row.code == (
        "def query(self, table: str, limit: int = 10) -> str:\n"
        '    """Return a statement whose text spans several lines."""\n'
        '    return f"""\nSELECT *\n  FROM {table}\n'
        " WHERE name <> 'def query():'\n LIMIT {limit}\n"
        '"""'
    )


def test_files_without_definitions_are_neither_rows_nor_exclusions(run: Run) -> None:
    paths = {"scripts/empty.py", "scripts/comments.py"}
    assert [row for row in run.mined["quirks"].methods if row.path in paths] == []
    assert [item for item in run.mined["quirks"].excluded if item.row_id.rpartition(":")[2] in paths] == []


def test_line_ends_are_kept(run: Run) -> None:
    codes = {name: points_of(run, "quirks", name)[0].code for name in ("count_endings", "guess_ending", "visible")}
    assert codes["count_endings"].count("\r\n") == codes["count_endings"].count("\n") == 6
    assert (codes["guess_ending"].count("\r"), codes["guess_ending"].count("\n")) == (6, 0)
    assert (codes["visible"].count("\r\n"), codes["visible"].count("\n")) == (2, 4)


@pytest.mark.parametrize("repo", ["almanac", "conveyor", "foyer", "gridtext", "measures", "planar", "quirks"])
def test_spans_are_byte_offsets_of_the_blob(repo: str, run: Run) -> None:
    for row in run.mined[repo].methods:
        raw = run.blobs[row.blob_id][row.start_byte : row.end_byte]
        encoding = "iso-8859-1" if row.path == "quirks/latin1_cookie.py" else "utf-8"
        lines = [line.strip() for line in raw.decode(encoding).splitlines()]
        assert [line.strip() for line in row.code.splitlines()] == lines, row.fun_name
        assert lines[0].startswith(("def ", "async def ", "@")), row.fun_name


def test_offsets_count_the_byte_order_mark(run: Run) -> None:
    (row,) = rows_of(run, "quirks", "quirks/bom.py", "detect_mark")
    assert row.start_byte == run.blobs[row.blob_id].index(b"def detect_mark")


def test_method_without_final_newline_ends_with_its_file(run: Run) -> None:
    (row,) = rows_of(run, "quirks", "quirks/no_newline.py", "ends_properly")
    assert row.end_byte == len(run.blobs[row.blob_id])


def excluded_by_dedup(run: Run, fun_name: str) -> list[tuple[str, Exclusion, str]]:
    """Return repository, exclusion and the keeper's repository of every removed method of that name."""
    points = {point.row_id: point for point in run.features.rows}
    found = []
    for item in run.dedup.excluded:
        if points[item.row_id].fun_name == fun_name:
            keeper = item.detail.split()[0].removeprefix("keeper=")
            found.append((points[item.row_id].repo, item, points[keeper].repo))
    return found


def test_code_in_old_clothes_is_told_with_the_method_that_it_resembles(run: Run) -> None:
    points = {point.row_id: point for point in run.features.rows}
    found = {
        points[copy.row_id].fun_name: (copy.repo, round(copy.jaccard, 3), copy.exact, copy.old_path, copy.old_fun_name)
        for copy in run.copies
    }
    assert found == {
        "split_by_quarters": ("samples/almanac", 0.793, False, "almanac/span.py", "split_by_months"),
        "nearest_prefix": ("samples/measures", 0.764, False, "measures/convert.py", "nearest_prefix"),
    }
    assert {points[item.row_id].fun_name for item in run.copied} == set(found)
    assert {(item.stage, item.reason) for item in run.copied} == {("dedup_old", "copied_old")}


def test_exact_duplicate_goes_and_the_earlier_one_stays(run: Run) -> None:
    ((repo, item, keeper_repo),) = excluded_by_dedup(run, "unique_name")
    assert (repo, item.reason, keeper_repo) == ("samples/almanac", "exact_duplicate", "samples/conveyor")


def test_near_duplicate_of_another_repository_goes(run: Run) -> None:
    ((repo, item, keeper_repo),) = excluded_by_dedup(run, "fair_shares")
    assert (repo, item.reason, keeper_repo) == ("samples/almanac", "near_duplicate", "samples/conveyor")


def test_one_of_two_near_duplicates_in_a_file_goes(run: Run) -> None:
    removed = [*excluded_by_dedup(run, "travel_cost"), *excluded_by_dedup(run, "walking_cost")]
    assert [(item.stage, item.reason) for _, item, _ in removed] == [(NEAR_STAGE, "near_duplicate")]


def test_overload_stubs_with_equal_token_sets_are_near_duplicates(run: Run) -> None:
    ((_, item, _),) = excluded_by_dedup(run, "Quantity.__truediv__")
    assert (item.reason, item.detail.split()[1]) == ("near_duplicate", "jaccard=1.0")


def test_of_two_overload_stubs_one_is_a_near_duplicate_and_the_other_trivial(run: Run) -> None:
    ((repo, item, keeper_repo),) = excluded_by_dedup(run, "SeatPlan.state")
    assert (repo, item.reason, keeper_repo) == ("samples/foyer", "near_duplicate", "samples/foyer")
    ids = {point.row_id for point in points_of(run, "foyer", "SeatPlan.state")}
    assert [item.reason for item in run.testbeds["random_cut"].excluded if item.row_id in ids] == ["trivial_body"]
    assert len([row for row in run.testbeds["random_cut"].rows if row.row_id in ids]) == 1


def test_every_new_function_of_foyer_has_one_promise_for_real_code(run: Run) -> None:
    promised = [name for group in REAL_CODE.values() for name in group]
    rows = [row for row in run.mined["foyer"].methods if row.novelty is Novelty.ADDED and not row.is_test]
    # Two of the three named so are stubs of overloads.
    assert sorted(promised) == sorted({row.fun_name for row in rows})
    assert len(rows) == len(promised) + 2


def test_nothing_else_is_a_duplicate(run: Run) -> None:
    assert Counter(item.reason for item in run.dedup.excluded) == {"exact_duplicate": 1, "near_duplicate": 4}


def test_every_row_is_accounted_for(run: Run) -> None:
    for mined in run.mined.values():
        accounts = {report.stage: report for report in mined.reports}
        assert accounts["commits"].rows_out == len(mined.commits)
        assert accounts["methods"].rows_out == len(mined.methods)
        left_out = Counter(item.stage for item in mined.excluded)
        assert {stage: report.rows_in - report.rows_out for stage, report in accounts.items()} == {
            stage: left_out[stage] for stage in accounts
        }
    n_methods = sum(len(mined.methods) for mined in run.mined.values())
    assert len(run.features.rows) + len(run.features.excluded) == n_methods
    n_kept = len(run.features.rows) - len(run.copied) - len(run.dedup.excluded)
    assert len(run.dedup.kept_ids) == n_kept
    assert {name: len(kept.rows) + len(kept.excluded) for name, kept in run.testbeds.items()} == dict.fromkeys(
        TESTBEDS, n_kept
    )


def test_funnel_of_the_samples(run: Run) -> None:
    classes = Counter(row.novelty for mined in run.mined.values() for row in mined.methods)
    assert classes == {
        Novelty.ADDED: 325,
        Novelty.RESTORED: 2,
        Novelty.MODIFIED: 7,
        Novelty.MOVED: 2,
        Novelty.RENAMED: 1,
        Novelty.REFORMATTED: 1,
        Novelty.VENDORED: 1,
        Novelty.GENERATED: 3,
    }


@pytest.mark.parametrize("name", TESTBEDS)
def test_no_testbed_is_small(name: str, run: Run) -> None:
    rows = run.testbeds[name].rows
    assert len(rows) >= 100
    assert len({row.repo for row in rows}) == 7


def test_task_columns_hold_together(run: Run) -> None:
    points = {point.row_id: point for point in run.features.rows}
    for name in ("with_docstring", "from_docstring", "random_cut", "summarization_gen"):
        for row in run.testbeds[name].rows:
            assert row.code == points[row.row_id].code
            match row:
                case WithDocString():
                    assert row.prefix + row.target == row.code
                case FromDocString():
                    assert row.prompt_code + row.target == row.code
                case RandomCut():
                    assert row.prefix + row.target == code_without_docstring(row.code)
                    assert row.cut_byte == len(row.prefix.encode())
                case SummarizationGen():
                    assert row.target == row.docstring


def test_code_of_rows_that_parse_is_one_definition(run: Run) -> None:
    for point in run.testbeds["raw_data"].rows:
        if point.parses:
            (definition,) = ast.parse(point.code).body
            assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
            assert definition.name == point.fun_name.rpartition(".")[2]
    failing = sorted(point.fun_name for point in run.testbeds["raw_data"].rows if not point.parses)
    # Type parameters are syntax from Python 3.12 on; only `closest` has them in the definition itself.
    newer = [] if sys.version_info >= (3, 12) else ["closest"]
    assert failing == sorted([*newer, "report", "unfinished"])


def test_every_column_has_a_value_somewhere(run: Run) -> None:
    rows = run.testbeds["raw_data"].rows
    always_null = {item.name for item in fields(DataPoint) if all(getattr(row, item.name) is None for row in rows)}
    # Samples have no host that could number them or show them.
    assert always_null == {"repo_id", "url"}
