"""Languages of docstrings: short texts written for this test, and what is taken out before judging."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.language import LANGUAGES, DocLanguage, identify_language, prose_of
from tests.features.docstring_languages import ENGLISH, OTHERS


def code_of(text: str) -> str | None:
    language = identify_language(text)
    return None if language is None else language.code


def test_short_english_docstrings_are_english() -> None:
    wrong = [text for text in ENGLISH if code_of(text) != "en"]
    assert len(ENGLISH) == 96
    assert len(wrong) <= 2, wrong


def test_short_docstrings_of_other_languages_are_known() -> None:
    texts = [(code, text) for code, group in OTHERS.items() for text in group]
    wrong = [(code, text, code_of(text)) for code, text in texts if code_of(text) != code]
    assert len(texts) == 73
    assert len(wrong) <= 5, wrong
    # What is missed is missed for English: nothing turns one foreign language into another.
    assert [found for _, _, found in wrong] == ["en"] * len(wrong)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Возвращает `user_name` из self.cache (dict[str, int]).", "ru"),
        ("返回 JSON 格式的 user_list", "zh"),
        ("Gibt den Wert zurück.\n\n:param x: der Wert\n:return: eine Zahl", "de"),
        ("Return the user.\n\nArgs:\n    name (str): the name\n\nReturns:\n    User: the user", "en"),
        (">>> f(1)\n2\n\nAdd one to a number.", "en"),
    ],
)
def test_code_words_do_not_hide_the_language(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.parametrize("text", ["", "   ", "42", "1 + 1 = 2", "---", "?!"])
def test_a_text_without_letters_has_no_language(text: str) -> None:
    assert identify_language(text) is None


@pytest.mark.parametrize(
    ("docstring", "prose"),
    [
        ("Return the ``a.b`` of `c`.", "Return the of ."),
        ("See https://example.org/x?y=1 and me@example.org now", "See and now"),
        (":param x: the value\n:return: a number", "the value a number"),
        ("Args:\n    x (int): the value\n\nReturns:\n    the sum", "x (int): the value the sum"),
        ("Title\n=====\nText", "Title Text"),
        ("Call foo_bar, fooBar, os.path and f() twice", "Call and twice"),
        ("Do it:\n\n>>> do(1)\n... 2\nDone", "Do it: Done"),
        ("Use\n```\nx = 1\n```\nso", "Use so"),
        ("Use 3 of 4", "Use of"),
        ("Plain words stay.", "Plain words stay."),
        ("`x`", "`x`"),
        # A minute and more where each line of the gap is read up to its end.
        ("Before" + "\n" * 30_000 + "after:\n\r\n \t>>> do(1)\n\x85 @param x: so", "Before after: so"),
    ],
)
def test_code_markup_and_addresses_are_taken_out(docstring: str, prose: str) -> None:
    assert prose_of(docstring) == prose


def test_the_same_text_gives_the_same_answer() -> None:
    text = "Return the absolute path."
    assert identify_language(text) == identify_language(text) == DocLanguage("en", identify_language(text).confidence)  # type: ignore[union-attr]  # letters are there


def test_languages_are_iso_639_1_in_order() -> None:
    assert list(LANGUAGES) == sorted(set(LANGUAGES))
    assert {len(code) for code in LANGUAGES} == {2}


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_any_text_gives_a_known_language_and_a_probability_or_nothing(text: str) -> None:
    language = identify_language(text)
    if language is None:
        assert not any(char.isalpha() for char in prose_of(text))
    else:
        assert language.code in LANGUAGES
        assert 0.0 < language.confidence <= 1.0


def test_a_long_text_is_judged_by_its_beginning() -> None:
    start = "Return the list of users that are logged in. " * 40
    assert identify_language(start) == identify_language(start + "Возвращает путь. " * 1_000)
