"""The features step: golden values for every column, reasons, order."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.compute import compute_features, features_of
from schemas.arrow import to_table
from schemas.config import FeaturesConfig, MiningConfig
from schemas.errors import DataError
from schemas.records import DataPoint, Exclusion, Method, Novelty
from tests.builders import make_method, make_point
from tests.features.golden import GOLDEN
from tests.features.shape import Expected, observed

CONFIG = FeaturesConfig()


def only_point(code: str) -> DataPoint:
    kept = compute_features([make_method(code=code)], CONFIG)
    assert kept.excluded == []
    return kept.rows[0]


@pytest.mark.parametrize(("code", "expected"), GOLDEN.values(), ids=GOLDEN.keys())
def test_every_column_of_a_method_has_its_hand_checked_value(code: str, expected: Expected) -> None:
    assert observed(only_point(code)) == expected


def test_the_golden_examples_check_every_computed_column() -> None:
    carried = {item.name for item in fields(Method)}
    computed = [item.name for item in fields(DataPoint) if item.name not in carried]
    packed = {
        "doc_words": ["doc_n_words", "doc_vocab_size", "doc_n_whitespaces"],
        "words": ["n_words", "vocab_size", "n_whitespaces"],
    }
    checked = [name for item in fields(Expected) for name in packed.get(item.name, [item.name])]
    assert sorted([*checked, "doc_language_confidence"]) == sorted(computed)


def test_identification_is_carried_over_unchanged() -> None:
    method = make_method(
        repo_id=7,
        url="https://example.org/x#L1-L3",
        is_test=True,
        author_is_bot=True,
        fun_name="Shape.area",
        start_byte=11,
        end_byte=99,
        start_line=3,
        end_line=5,
        parent_id=None,
        license=None,
    )
    point = compute_features([method], CONFIG).rows[0]
    carried = [item.name for item in fields(DataPoint) if item.name in Method.__slots__]
    assert {name: getattr(point, name) for name in carried} == {name: getattr(method, name) for name in carried}


def test_the_point_of_the_builders_has_the_columns_that_the_step_computes() -> None:
    point = compute_features([make_method()], CONFIG).rows[0]
    assert observed(point) == observed(make_point())
    assert point.row_id == make_point().row_id


def test_confidence_is_a_probability_with_four_digits() -> None:
    confidence = only_point(GOLDEN["annotated"][0]).doc_language_confidence
    assert confidence is not None
    assert 0.9 < confidence <= 1.0
    assert round(confidence, 4) == confidence


MARKED = (Novelty.VENDORED, Novelty.GENERATED)


@pytest.mark.parametrize("novelty", [item for item in Novelty if item not in (Novelty.ADDED, *MARKED)])
def test_a_method_that_is_not_new_is_excluded_with_the_earlier_place(novelty: Novelty) -> None:
    method = make_method(novelty=novelty, earlier_path="old/place.py", earlier_fun_name="Old.name")
    kept = compute_features([method], CONFIG)
    assert kept.rows == []
    assert kept.excluded == [
        Exclusion(method.row_id, "features", f"novelty_{novelty.value}", "old/place.py Old.name"),
    ]


@pytest.mark.parametrize("novelty", MARKED)
def test_a_marked_method_is_excluded_with_its_path(novelty: Novelty) -> None:
    method = make_method(novelty=novelty, path="lib/vendor/a_pb2.py")
    assert compute_features([method], CONFIG).excluded == [
        Exclusion(method.row_id, "features", f"novelty_{novelty.value}", "lib/vendor/a_pb2.py"),
    ]


@pytest.mark.parametrize(
    ("novelty", "path", "detail"),
    [
        (Novelty.VENDORED, "lib/Ours/vendor/a.py", "lib/Ours/vendor/a.py (folder Ours)"),
        (Novelty.GENERATED, "lib/a.gen.py", "lib/a.gen.py (file name *.gen.py)"),
        (Novelty.GENERATED, "lib/a_pb2.py", "lib/a_pb2.py (mark in the head or line lengths)"),
        # The configuration has no folder of this name: none is made up.
        (Novelty.VENDORED, "vendor/a.py", "vendor/a.py"),
    ],
)
def test_the_rule_that_marked_a_method_is_named_where_the_mining_configuration_tells_it(
    novelty: Novelty, path: str, detail: str
) -> None:
    mining = MiningConfig(vendored_paths=("ours",), generated_names=("*.gen.py",))
    method = make_method(novelty=novelty, path=path)
    assert [item.detail for item in compute_features([method], CONFIG, mining).excluded] == [detail]


def test_the_configuration_lets_other_classes_through() -> None:
    methods = [make_method(novelty=item, start_byte=index) for index, item in enumerate(Novelty)]
    kept = compute_features(methods, FeaturesConfig(novelty=(Novelty.ADDED, Novelty.MODIFIED)))
    assert [row.novelty for row in kept.rows] == [Novelty.ADDED, Novelty.MODIFIED]
    assert len(kept.excluded) == len(Novelty) - 2


def test_a_long_method_is_excluded_by_its_bytes() -> None:
    code = "def f():\n    return 'ß'"
    size = len(code.encode())
    assert size == len(code) + 1
    assert len(compute_features([make_method(code=code)], FeaturesConfig(max_code_bytes=size)).rows) == 1
    method = make_method(code=code)
    assert compute_features([method], FeaturesConfig(max_code_bytes=size - 1)).excluded == [
        Exclusion(method.row_id, "features", "code_too_long", f"{size} bytes, at most {size - 1}"),
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("", "nothing"),
        ("# only a comment", "nothing"),
        ("x = 1", "expression_statement"),
        ("class C:\n    pass", "class_definition"),
        ("def f():\n    pass\n\ndef g():\n    pass", "function_definition, function_definition"),
        ("def f():\n    pass\nx = 1", "function_definition, expression_statement"),
        ("@d\nclass C:\n    pass", "decorated_definition"),
    ],
)
def test_code_that_is_no_single_definition_is_excluded(code: str, found: str) -> None:
    method = make_method(code=code)
    assert compute_features([method], CONFIG).excluded == [
        Exclusion(method.row_id, "features", "no_definition", f"one function definition expected, found: {found}"),
    ]


def test_a_lone_surrogate_excludes_one_method_and_not_its_neighbours() -> None:
    methods = [make_method(start_byte=index) for index in range(3)]
    methods[1] = replace(methods[1], code="def f():\n    return '\ud83d'")
    kept = compute_features(methods, CONFIG)
    assert [row.row_id for row in kept.rows] == [methods[0].row_id, methods[2].row_id]
    assert [(item.row_id, item.reason) for item in kept.excluded] == [(methods[1].row_id, "code_not_utf8")]


def test_surrogate_escapes_in_a_docstring_stay_writable() -> None:
    point = only_point("def f():\n    'Half a pair: \\ud83d, a whole one: \\U0001f600'")
    assert point.docstring == "Half a pair: \\ud83d, a whole one: 😀"
    assert to_table([point], DataPoint).column("docstring").to_pylist() == [point.docstring]


def test_a_docstring_without_letters_has_no_language() -> None:
    point = only_point("def f():\n    '1 + 1'")
    assert (point.docstring, point.doc_language, point.doc_language_confidence) == ("1 + 1", None, None)


def test_an_empty_docstring_is_one() -> None:
    point = only_point("def f():\n    ''")
    assert (point.docstring, point.doc_n_words, point.doc_language) == ("", 0, None)


def test_methods_may_come_from_an_iterator_that_is_read_once() -> None:
    kept = compute_features((make_method(start_byte=index) for index in range(3)), CONFIG)
    assert [row.start_byte for row in kept.rows] == [0, 1, 2]


SOME_CODE = st.one_of(
    st.sampled_from([code for code, _ in GOLDEN.values()]),
    st.text(alphabet="def f():\n  '\"#{}[]\\x=1,\r\t\x00é", max_size=40),
)


@given(st.lists(st.tuples(SOME_CODE, st.sampled_from(list(Novelty))), max_size=8))
def test_every_method_becomes_a_row_or_an_exclusion_in_order(inputs: list[tuple[str, Novelty]]) -> None:
    methods = [
        make_method(code=code, novelty=novelty, start_byte=index) for index, (code, novelty) in enumerate(inputs)
    ]
    kept = compute_features(methods, CONFIG)
    order = {method.row_id: index for index, method in enumerate(methods)}
    rows = [order[row.row_id] for row in kept.rows]
    excluded = [order[item.row_id] for item in kept.excluded]
    assert rows == sorted(rows)
    assert excluded == sorted(excluded)
    assert sorted(rows + excluded) == list(range(len(methods)))
    assert to_table(kept.rows, DataPoint).num_rows == len(rows)


def test_what_follows_from_the_code_alone_is_every_column_that_is_not_carried_over() -> None:
    code = 'def f(a):\n    """Give it back."""\n    return a\n'
    carried = {item.name for item in fields(Method)}
    point = only_point(code)
    assert features_of(code) == {
        item.name: getattr(point, item.name) for item in fields(DataPoint) if item.name not in carried
    }
    with pytest.raises(DataError) as caught:
        features_of("x = 1")
    assert caught.value.reason == "no_definition"
