"""Token sets by words are those of the tokenizer itself."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dedup.words
from dedup.jaccard import TokenSets, token_sets
from dedup.tokens import load_tokenizer
from dedup.words import WordCache
from schemas.errors import DataError
from tests.dedup.corpus import real_functions

AWKWARD = " \t\r\n\f\x0b\x00\x1c\x1f\x7f\u00a0\u2028ab_01'\"\\.(é漢😀²ª"


def by_words(texts: Sequence[str]) -> TokenSets:
    return WordCache(load_tokenizer()).encode_sets(texts)


def check(texts: Sequence[str]) -> None:
    tokenizer = load_tokenizer()
    expected, found = token_sets(tokenizer.encode_batch(texts), tokenizer.vocab_size), by_words(texts)
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.ids.tolist() == expected.ids.tolist()
    assert (found.ids.dtype, found.offsets.dtype) == (expected.ids.dtype, expected.offsets.dtype)


def test_real_functions_have_the_tokenizers_sets() -> None:
    check(real_functions(4_000, seed=31))


@given(st.lists(st.text(), max_size=6))
def test_any_texts_have_the_tokenizers_sets(texts: list[str]) -> None:
    check(texts)


@given(st.lists(st.text(alphabet=AWKWARD, max_size=30), max_size=6))
def test_awkward_characters_have_the_tokenizers_sets(texts: list[str]) -> None:
    check(texts)


@given(st.lists(st.text(alphabet="'sdmtrevl x\n\t 1(", max_size=20), max_size=6))
def test_contractions_and_white_space_have_the_tokenizers_sets(texts: list[str]) -> None:
    check(texts)


def test_every_pair_of_ascii_characters_is_split_like_the_tokenizer_does() -> None:
    characters = [chr(code) for code in range(128)]
    check([f"a{one}{other}b {other}{one}1" for one, other in product(characters, repeat=2)])


def test_special_strings_are_plain_text() -> None:
    check(["x = '<|endoftext|>'", "<s> [CLS] </s>", "<|endoftext|>"])


def test_no_texts_and_empty_texts() -> None:
    assert by_words([]).offsets.tolist() == [0]
    assert by_words(["", "", ""]).offsets.tolist() == [0, 0, 0, 0]


def test_batches_and_a_full_cache_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = real_functions(300, seed=32)
    monkeypatch.setattr(dedup.words, "_BATCH_TEXTS", 7)
    check(texts)
    monkeypatch.setattr(dedup.words, "_MAX_WORDS", 50)
    check(texts)
    monkeypatch.setattr(dedup.words, "_MAX_WORDS", 10**9)
    monkeypatch.setattr(dedup.words, "_MAX_CHARACTERS", 100)
    check(texts)


def test_one_cache_serves_many_calls() -> None:
    cache = WordCache(load_tokenizer())
    texts = real_functions(60, seed=33)
    parts = [cache.encode_sets(texts[:30]), cache.encode_sets(texts[30:])]
    whole = by_words(texts)
    assert [ids for part in parts for ids in part.ids.tolist()] == whole.ids.tolist()


def test_lone_surrogate_is_refused_by_name() -> None:
    with pytest.raises(DataError) as caught:
        by_words(["fine", "x = '\ud800'"])
    assert caught.value.reason == "lone_surrogate"
