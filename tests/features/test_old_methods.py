"""Old methods: each text once, docstring apart."""

from dataclasses import replace

from features.old_methods import OldMethods, distinct_old_methods, joined
from miners.cutoff import OldDefinition
from schemas.comparisons import OldMethod
from schemas.records import Exclusion

FIRST = OldDefinition("a.py", "b" * 40, "f", 10, 40, 2, 'def f():\n    """Say."""\n    return 1')


def test_the_first_of_equal_texts_stands_for_all() -> None:
    again = replace(FIRST, path="z.py", fun_name="A.f", code='def f():\n    """Say something else."""\n    return 1')
    other = replace(FIRST, path="y.py", fun_name="g", code="def g():\n    return 1")
    assert distinct_old_methods("o/n", "c" * 40, [FIRST, other, again]) == [
        OldMethod("o/n", "c" * 40, "a.py", "f", "b" * 40, 10, 40, 2, "def f():\n    return 1"),
        OldMethod("o/n", "c" * 40, "y.py", "g", "b" * 40, 10, 40, 2, "def g():\n    return 1"),
    ]


def test_a_definition_that_does_not_parse_alone_is_compared_as_it_stands() -> None:
    broken = replace(FIRST, code="def f(:\n  ) return")
    assert [item.text for item in distinct_old_methods("o/n", "c", [broken])] == ["def f(:\n  ) return"]


def test_joined_shares_have_each_text_once_and_all_counts() -> None:
    again = replace(FIRST, path="z.py", fun_name="A.f")
    other = replace(FIRST, path="z.py", fun_name="g", code="def g():\n    return 1")
    left, right = (distinct_old_methods("o/n", "c", found) for found in ([FIRST], [again, other]))
    bad = [Exclusion(f"o/n@c:{path}.py", "cutoff", "binary") for path in "by"]
    assert joined([OldMethods(left, bad[:1], 1, 1), OldMethods(right, bad[1:], 2, 3)]) == OldMethods(
        [left[0], right[1]], bad, 3, 4
    )
    assert joined([]) == OldMethods([], [], 0, 0)
