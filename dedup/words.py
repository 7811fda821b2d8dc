"""Token sets of many texts by words: each different word goes through the tokenizer once.

A byte-level BPE first splits a text into words by a fixed pattern and encodes each word by itself, so the set of a
text's token ids is the union of its words' sets. Code repeats its words: nearly all are in the cache.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dedup.jaccard import TokenSets, join_sets
from dedup.tokens import BpeTokenizer

# The pattern of the byte-level pre-tokenizer (GPT-2, Radford et al. 2019) for texts of ASCII characters.
_WORD = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
    re.ASCII,
)
# Characters that Python's \s and the tokenizer's may take differently: such a text is encoded as a whole.
_UNUSUAL = re.compile(r"[\x0b\x1c-\x1f]")
_BATCH_TEXTS = 4_000  # texts whose words are in memory at once
_MAX_WORDS = 500_000  # words in the cache before it starts anew: about 100 MB
_MAX_CHARACTERS = 50_000_000  # of all words in the cache


class WordCache:
    """Words seen so far, each with the set of its token ids."""

    def __init__(self, tokenizer: BpeTokenizer) -> None:
        self._tokenizer = tokenizer
        self._clear()

    def encode_sets(self, texts: Sequence[str]) -> TokenSets:
        """Return the set of token ids of each text.

        The same sets as of `BpeTokenizer.encode_batch`, several times faster. Raise DataError (`lone_surrogate`) for a
        text that is not valid Unicode.
        """
        starts = range(0, len(texts), _BATCH_TEXTS)
        parts = (self._encode_batch(texts[start : start + _BATCH_TEXTS]) for start in starts)
        return join_sets(parts, self._tokenizer.vocab_size)

    def _clear(self) -> None:
        self._number = _Numbers()
        self._characters = 0
        self._offsets = np.zeros(1, np.int64)
        self._ids = np.zeros(0, np.int32)

    def _encode_batch(self, texts: Sequence[str]) -> TokenSets:
        if len(self._number) > _MAX_WORDS or self._characters > _MAX_CHARACTERS:
            self._clear()
        whole = [place for place, text in enumerate(texts) if not text.isascii() or _UNUSUAL.search(text)]
        others = set(whole)
        words = [
            [] if place in others else list(map(self._number.__getitem__, set(_WORD.findall(text))))
            for place, text in enumerate(texts)
        ]
        self._learn()
        counts = np.array([len(numbers) for numbers in words], np.int64)
        numbers = np.fromiter((number for listed in words for number in listed), np.int64, int(counts.sum()))
        rows = np.repeat(np.arange(len(texts)), counts)
        lengths = self._offsets[numbers + 1] - self._offsets[numbers]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self._offsets[numbers] - (ends - lengths), lengths)
        keys = [np.repeat(rows, lengths) * self._tokenizer.vocab_size + self._ids[places]]
        encoded = self._tokenizer.encode_batch([texts[place] for place in whole])
        keys += [place * self._tokenizer.vocab_size + ids for place, ids in zip(whole, encoded, strict=True)]
        return self._as_sets(np.concatenate(keys), len(texts))

    def _learn(self) -> None:
        """Encode the words that came up for the first time."""
        news = self._number.take_news()
        encoded = self._tokenizer.encode_batch(news)
        self._characters += sum(map(len, news))
        lengths = np.array([len(ids) for ids in encoded], np.int64)
        self._offsets = np.concatenate([self._offsets, self._offsets[-1] + np.cumsum(lengths)])
        self._ids = np.concatenate([self._ids, *encoded])

    def _as_sets(self, keys: npt.NDArray[np.int64], n_texts: int) -> TokenSets:
        """Return the sets that keys `row * vocab_size + id` stand for."""
        keys.sort()  # np.unique hashes integers, which takes many times longer than sorting them
        new = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        keys = keys[new]
        offsets = np.searchsorted(keys, np.arange(n_texts + 1) * self._tokenizer.vocab_size)
        return TokenSets(offsets, (keys % self._tokenizer.vocab_size).astype(np.int32), self._tokenizer.vocab_size)


class _Numbers(dict[str, int]):
    """Words numbered in the order in which they come up."""

    def __init__(self) -> None:
        super().__init__()
        self._news: list[str] = []

    def __missing__(self, word: str) -> int:
        number = len(self)
        self[word] = number
        self._news.append(word)
        return number

    def take_news(self) -> list[str]:
        """Return the words that came up since the last call, in order of their numbers."""
        news, self._news = self._news, []
        return news
