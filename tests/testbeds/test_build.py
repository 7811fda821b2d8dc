from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.arrow import from_table, to_table
from schemas.config import TESTBEDS, TestbedsConfig
from schemas.errors import ConfigError, PipelineError
from schemas.records import DataPoint, Exclusion, Kept
from schemas.tasks import CommitGen, FromDocString, RandomCut, SummarizationGen, WithDocString
from testbeds.build import REGISTRY, ROW_TYPES, build_testbed
from testbeds.order import total_order
from tests.builders import make_point

CONFIG = TestbedsConfig(seed=7)
SEED_OF_LAST_CUT = 1  # draws the last of the three boundaries in the body of `point_of()`
GENERATION = [name for name in TESTBEDS if not name.startswith("raw_data")]
DOCUMENTED = ["with_docstring", "from_docstring", "summarization_gen"]
DOCSTRING = "Return the area of a rectangle that has these two sides."
CODE = f'def area(width, height):\n    """{DOCSTRING}"""\n    # both in metres\n    return width * height\n'
WITHOUT = "def area(width, height):\n    # both in metres\n    return width * height\n"
MESSAGE = "Add the area of a rectangle, which the floor plan needs for its cost estimate"
DIFF = "--- a/shapes/rectangle.py\n+++ b/shapes/rectangle.py\n@@ -0,0 +1 @@\n+def area(width, height):\n"


def point_of(**overrides: Any) -> DataPoint:  # noqa: ANN401 - each value has its field's type
    values = {"docstring": DOCSTRING, "commit_message": MESSAGE, "token_count": 20} | overrides
    code = values.pop("code", CODE)
    return replace(make_point(**values), code=code)  # the builder cannot encode lone surrogates


def diffs_of(*points: DataPoint) -> dict[tuple[str, str, str], str]:
    return {(point.repo, point.commit_id, point.path): DIFF for point in points}


def build(name: str, *points: DataPoint, config: TestbedsConfig = CONFIG) -> Kept[DataPoint]:
    return build_testbed(name, points, diffs_of(*points), config)


def reason(name: str, point: DataPoint, diffs: Mapping[tuple[str, str, str], str] | None = None) -> str:
    """Return the only exclusion's reason, `kept` when the point has a row."""
    kept = build_testbed(name, [point], diffs_of(point) if diffs is None else diffs, CONFIG)
    if kept.rows:
        return "kept"
    (excluded,) = kept.excluded
    assert (excluded.row_id, excluded.stage) == (point.row_id, f"testbed_{name}")
    return excluded.reason


def own_columns(row: DataPoint, row_type: type) -> dict[str, object]:
    shared = {item.name for item in fields(DataPoint)}
    return {item.name: getattr(row, item.name) for item in fields(row_type) if item.name not in shared}


def test_registry_has_the_configurations_testbeds_in_order() -> None:
    assert tuple(REGISTRY) == tuple(ROW_TYPES) == TESTBEDS
    assert {
        "raw_data": DataPoint,
        "raw_data_docstring": DataPoint,
        "random_cut": RandomCut,
        "with_docstring": WithDocString,
        "from_docstring": FromDocString,
        "commit_gen": CommitGen,
        "summarization_gen": SummarizationGen,
    } == ROW_TYPES


def test_unknown_testbed_is_a_configuration_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown testbed 'randomcut'; known testbeds: raw_data, raw_data_docstring"):
        build_testbed("randomcut", [], {}, CONFIG)


def test_repeated_row_ids_are_refused() -> None:
    with pytest.raises(PipelineError, match="occurs more than once"):
        build("raw_data", point_of(), point_of())


@pytest.mark.parametrize("name", TESTBEDS)
def test_no_points_give_no_rows(name: str) -> None:
    assert build(name) == Kept([], [])


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("raw_data", {}),
        ("raw_data_docstring", {}),
        (
            "random_cut",
            {"prefix": WITHOUT[:-8], "target": " height\n", "cut_byte": len(WITHOUT) - 8},
        ),
        (
            "with_docstring",
            {"prefix": CODE[:-8], "target": " height\n", "cut_byte": len(CODE) - 8},
        ),
        (
            "from_docstring",
            {
                "prompt_code": f'def area(width, height):\n    """{DOCSTRING}"""\n',
                "target": "    # both in metres\n    return width * height\n",
            },
        ),
        ("commit_gen", {"diff": DIFF}),
        ("summarization_gen", {"code_without_docstring": WITHOUT, "target": DOCSTRING}),
    ],
)
def test_row_has_the_points_columns_and_its_own(name: str, columns: dict[str, object]) -> None:
    point = point_of()
    kept = build(name, point, config=TestbedsConfig(seed=SEED_OF_LAST_CUT))
    (row,) = kept.rows
    assert kept.excluded == []
    assert type(row) is ROW_TYPES[name]
    assert [getattr(row, item.name) for item in fields(DataPoint)] == [
        getattr(point, item.name) for item in fields(DataPoint)
    ]
    assert own_columns(row, ROW_TYPES[name]) == columns


@pytest.mark.parametrize("name", TESTBEDS)
def test_rows_survive_the_trip_through_arrow(name: str) -> None:
    rows = build(name, point_of(), point_of(start_byte=500, commit_id="e" * 40)).rows
    assert len(rows) == 2
    assert list(from_table(to_table(rows, ROW_TYPES[name]), ROW_TYPES[name])) == rows


@pytest.mark.parametrize("name", GENERATION)
@pytest.mark.parametrize(
    ("expected", "overrides"),
    [
        ("is_test", {"is_test": True}),
        ("syntax_errors", {"n_ast_errors": 1}),
        ("syntax_errors", {"n_ast_missing": 1}),
        ("trivial_body", {"code": f'def area():\n    """{DOCSTRING}"""\n'}),
        ("trivial_body", {"code": f'def area():\n    """{DOCSTRING}"""\n    pass\n'}),
        ("trivial_body", {"code": f'def area():\n    """{DOCSTRING}"""\n    ...  # later\n'}),
        ("trivial_body", {"code": f'def area():\n    """{DOCSTRING}"""\n    raise NotImplementedError("later")\n'}),
        ("code_not_utf8", {"code": "def area():\n    return '\udcff'\n"}),
        ("no_definition", {"code": "area = width * height\n"}),
    ],
)
def test_generation_testbeds_leave_out(name: str, expected: str, overrides: dict[str, Any]) -> None:
    assert reason(name, point_of(**overrides)) == expected
    assert reason("raw_data", point_of(**overrides)) == "kept"


@pytest.mark.parametrize("name", ["raw_data_docstring", *DOCUMENTED])
def test_docstring_of_three_words_is_not_valid(name: str) -> None:
    code = CODE.replace(DOCSTRING, "{}")
    assert reason(name, point_of(docstring=None, code=WITHOUT)) == "no_docstring"
    assert reason(name, point_of(docstring="Return the area.", code=code.format("Return the area."))) == (
        "docstring_too_short"
    )


@pytest.mark.parametrize("name", ["raw_data_docstring", "with_docstring", "from_docstring"])
def test_docstring_of_four_words_is_valid(name: str) -> None:
    text = "Return the whole area."
    assert reason(name, point_of(docstring=text, code=CODE.replace(DOCSTRING, text))) == "kept"


@pytest.mark.parametrize(
    ("token_count", "n_characters", "expected"),
    [(10, 100, "too_short"), (11, 100, "kept"), (10, 101, "kept")],
)
def test_random_cut_takes_more_than_10_tokens_or_more_than_100_characters(
    token_count: int, n_characters: int, expected: str
) -> None:
    start = "def f():\n    return a."
    without = start + "b" * (n_characters - len(start))
    code = without.replace("\n", '\n    """A docstring does not count, however long it is."""\n')
    assert reason("random_cut", point_of(code=code, token_count=token_count)) == expected


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("a b c d e f g h i j", "too_short"),
        ("a b c d e f g h i j k", "kept"),
        ("four words of length " + "x" * 29, "too_short"),
        ("four words of length " + "x" * 30, "kept"),
    ],
)
def test_summarization_takes_more_than_10_words_or_more_than_50_characters(docstring: str, expected: str) -> None:
    point = point_of(docstring=docstring, code=CODE.replace(DOCSTRING, docstring))
    assert reason("summarization_gen", point) == expected


@pytest.mark.parametrize("name", ["random_cut", "with_docstring"])
def test_body_of_one_token_has_no_cut_point(name: str) -> None:
    point = point_of(code=f'def area():\n    """{DOCSTRING}"""\n    yield  # a comment is no token to ask for\n')
    assert reason(name, point) == "no_cut_point"


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("message_merge", "Merge pull request #1 from ada/area\n\nAdd the area of a rectangle for the floor plan"),
        ("message_revert", 'Revert "Add the area of a rectangle, which the floor plan needs"'),
        ("message_version_bump", "Bump version from 1.2.3 to 1.3.0 for the release with the area of a rectangle"),
        ("message_issue_only", "Fixes #123, see https://example.org/owner/name/issues/123 and owner/name#123"),
        ("message_automatic", "[pre-commit.ci] auto fixes from pre-commit.com hooks for more information see there"),
        ("message_too_short", "Add the area of a rectangle"),
        ("kept", MESSAGE),
    ],
)
def test_commit_gen_takes_meaningful_messages(expected: str, message: str) -> None:
    assert reason("commit_gen", point_of(commit_message=message)) == expected


def test_commit_gen_leaves_out_bots_and_points_without_diff() -> None:
    assert reason("commit_gen", point_of(author_is_bot=True)) == "message_bot"
    assert reason("commit_gen", point_of(), {}) == "diff_missing"
    assert reason("commit_gen", point_of(), {("example/shapes", "a" * 40, "shapes/rectangle.py"): ""}) == "diff_missing"
    assert reason("commit_gen", point_of(), {("example/shapes", "a" * 40, "shapes/circle.py"): DIFF}) == "diff_missing"


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        (
            "from_docstring",
            {"code": 'def f(a):\n    """Same as compute(a, 1)[0]."""\n    return compute(a, 1)[0]\n'},
        ),
        ("commit_gen", {"commit_message": f"{MESSAGE}:\n\n    {CODE}"}),
        ("commit_gen", {"code": f"def area(width, height):\n    # {MESSAGE}\n    return width * height\n"}),
        ("summarization_gen", {"code": CODE.replace("both in metres", DOCSTRING)}),
    ],
)
def test_answer_in_the_prompt_is_left_out(name: str, overrides: dict[str, Any]) -> None:
    assert reason(name, point_of(**overrides)) == "answer_in_prompt"


def test_target_that_the_docstring_quotes_is_left_out_unless_it_is_short() -> None:
    docstring = "Same as compute(first, b, c, d), for short."
    point = point_of(code=f'def f():\n    """{docstring}"""\n    compute(first, b, c, d)', docstring=docstring)
    results = [build("with_docstring", point, config=TestbedsConfig(seed=seed)) for seed in range(40)]
    targets = {row.target for kept in results for row in kept.rows if isinstance(row, WithDocString)}
    assert targets == {" b, c, d)", ", b, c, d)"}
    assert {item.reason for kept in results for item in kept.excluded} == {"answer_in_prompt"}


def test_python_2_is_left_out_only_where_cpython_refuses_it() -> None:
    code = 'def f(stream, text):\n    print >>stream, "so much text", text\n    return text'
    assert reason("random_cut", point_of(code=code, parses=False)) == "python2_syntax"
    assert reason("raw_data", point_of(code=code, parses=False)) == "kept"
    newer = "def f[T](item: T) -> T:\n    return item if item else make(item)"
    assert reason("random_cut", point_of(code=newer, parses=False)) == "kept"


def test_message_in_the_diff_is_left_out() -> None:
    point = point_of()
    assert reason("commit_gen", point, dict.fromkeys(diffs_of(point), DIFF + f"+# {MESSAGE}\n")) == "answer_in_prompt"


MIXED: list[Callable[[int], dict[str, Any]]] = [
    lambda index: {"repo": f"owner/{index % 3}"},
    lambda index: {"is_test": True},
    lambda index: {"docstring": None, "code": WITHOUT},
    lambda index: {"commit_message": "Fix typo"},
    lambda index: {"code": "def f(): yield", "token_count": 5},
    lambda index: {"n_ast_errors": 2, "commit_id": "e" * 40},
    lambda index: {"committer_date": datetime(2024, 1, 1 + index, tzinfo=UTC), "path": f"shapes/{index}.py"},
]


def mixed_points(kinds: list[int]) -> list[DataPoint]:
    return [point_of(start_byte=index, **MIXED[kind](index)) for index, kind in enumerate(kinds)]


@pytest.mark.parametrize("name", TESTBEDS)
@given(kinds=st.lists(st.integers(0, len(MIXED) - 1), max_size=14), size=st.integers(1, 5), shuffle=st.randoms())
def test_every_point_is_accounted_for_in_total_order_whatever_the_input_order(
    name: str,
    kinds: list[int],
    size: int,
    shuffle: Any,  # noqa: ANN401 - hypothesis' random.Random
) -> None:
    points = mixed_points(kinds)
    config = TestbedsConfig(size=size, max_per_repo=2, seed=5)
    kept = build(name, *points, config=config)
    order = {point.row_id: total_order(point) for point in points}
    ids = [row.row_id for row in kept.rows] + [item.row_id for item in kept.excluded]
    assert sorted(ids) == sorted(order)
    assert [row.row_id for row in kept.rows] == sorted((row.row_id for row in kept.rows), key=order.__getitem__)
    excluded_ids = [item.row_id for item in kept.excluded]
    assert excluded_ids == sorted(excluded_ids, key=order.__getitem__)
    shuffle.shuffle(points)
    assert build(name, *points, config=config) == kept


@pytest.mark.parametrize("name", GENERATION)
def test_generation_testbeds_are_sampled_to_their_size_with_a_cap(name: str) -> None:
    points = [
        point_of(repo=f"owner/{index % 4}", start_byte=index, commit_id=f"{index:040x}") for index in range(40)
    ]  # fmt: skip
    kept = build(name, *points, config=TestbedsConfig(size=10, max_per_repo=3, seed=1))
    assert (len(kept.rows), max(Counter(row.repo for row in kept.rows).values())) == (10, 3)
    assert {item.reason for item in kept.excluded} <= {"not_sampled", "repo_cap"}
    assert len(build(name, *points, config=TestbedsConfig(size=100, max_per_repo=3, seed=1)).rows) == 12


def test_one_commit_has_one_row_in_commit_gen_and_any_number_elsewhere() -> None:
    points = [point_of(start_byte=index) for index in range(5)]
    kept = build("commit_gen", *points)
    assert len(kept.rows) == 1
    assert Counter(item.reason for item in kept.excluded) == {"commit_cap": 4}
    assert len(build("commit_gen", *points, config=TestbedsConfig(max_per_commit=3)).rows) == 3
    assert len(build("random_cut", *points).rows) == 5


@pytest.mark.parametrize("name", ["raw_data", "raw_data_docstring"])
def test_raw_testbeds_are_not_sampled(name: str) -> None:
    points = [point_of(start_byte=index) for index in range(5)]
    kept = build(name, *points, config=TestbedsConfig(size=1, max_per_repo=1))
    assert kept == Kept(sorted(points, key=total_order), [])


def test_exclusion_says_what_was_measured() -> None:
    point = point_of(docstring="Return the area.")
    assert build("raw_data_docstring", point).excluded == [
        Exclusion(
            point.row_id,
            "testbed_raw_data_docstring",
            "docstring_too_short",
            "3 words, more than 3 are needed",
        )
    ]


@pytest.mark.parametrize("name", GENERATION)
def test_a_test_is_excluded_with_the_path_and_name_that_say_so(name: str) -> None:
    point = point_of(is_test=True, path="tests/test_area.py", fun_name="TestArea.test_square")
    assert build(name, point).excluded == [
        Exclusion(point.row_id, f"testbed_{name}", "is_test", "tests/test_area.py TestArea.test_square")
    ]


def test_another_seed_cuts_elsewhere_and_keeps_the_rest() -> None:
    point = point_of(code=CODE.replace("height\n", "height + width - height * (width - 1)\n"))
    cuts = {build("random_cut", point, config=TestbedsConfig(seed=seed)).rows[0] for seed in range(30)}
    assert len({row.cut_byte for row in cuts if isinstance(row, RandomCut)}) > 5
    assert {(row.prefix + row.target, row.row_id) for row in cuts if isinstance(row, RandomCut)} == {
        (WITHOUT.replace("height\n", "height + width - height * (width - 1)\n"), point.row_id)
    }
