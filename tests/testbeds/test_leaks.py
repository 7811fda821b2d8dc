import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds.leaks import MIN_ANSWER_CHARACTERS, contains_answer


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        ("Same as first(second, third).", "return first ( second , third )", True),
        ("Same as first(second,\n    third).", "return first(second, third)", True),
        (">>> total = 0\n... total += 1\n", "total = 0\n    total += 1\n", True),
        ("Calls first(second).", "return first(second, third)", False),
        ("Return None.", "return None", False),  # shorter than the minimum: prose says such things by chance
        ("anything", "", False),
    ],
)
def test_contains_answer(prompt: str, answer: str, expected: bool) -> None:
    assert contains_answer(prompt, answer) is expected


@given(before=st.text(), answer=st.text(min_size=MIN_ANSWER_CHARACTERS), after=st.text())
def test_a_quoted_answer_is_found_unless_it_is_short(before: str, answer: str, after: str) -> None:
    long_enough = len("".join(answer.removeprefix("return ").split())) >= MIN_ANSWER_CHARACTERS
    assert contains_answer(before + answer + after, answer) is long_enough
