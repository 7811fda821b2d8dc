"""Words and spaces of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.text import TextCounts, count_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", TextCounts(0, 0, 0)),
        ("   ", TextCounts(0, 0, 3)),
        ("one", TextCounts(1, 1, 0)),
        ("a b a", TextCounts(3, 2, 2)),
        ("a\tb\r\nc\x0cd", TextCounts(4, 4, 0)),
        ("A a", TextCounts(2, 2, 1)),
        ("日本 語", TextCounts(2, 2, 1)),
        ("no-break\u00a0space wide\u3000space", TextCounts(4, 3, 1)),
    ],
)
def test_words_are_split_at_any_white_space_and_spaces_counted_alone(text: str, expected: TextCounts) -> None:
    assert count_words(text) == expected


@given(st.text())
def test_the_vocabulary_is_no_larger_than_the_words(text: str) -> None:
    counts = count_words(text)
    assert counts.vocab_size <= counts.n_words <= len(text)
    assert counts.n_whitespaces == len(text) - len(text.replace(" ", ""))


@given(st.lists(st.from_regex(r"\A[a-z]+\Z"), max_size=20))
def test_joined_words_are_counted_back(words: list[str]) -> None:
    assert count_words(" ".join(words)) == TextCounts(len(words), len(set(words)), max(len(words) - 1, 0))
