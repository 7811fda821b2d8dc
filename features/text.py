"""Text features: words, distinct words, spaces."""

from typing import NamedTuple


class TextCounts(NamedTuple):
    """White-space features of a text (Galeras' n_words, vocab_size, n_whitespaces)."""

    n_words: int
    """Words, separated by any white space (`str.split`)."""
    vocab_size: int
    """Distinct words."""
    n_whitespaces: int
    """U+0020 characters; tabs and line ends are not counted."""


def count_words(text: str) -> TextCounts:
    """Return the word and space counts of a text."""
    words = text.split()
    return TextCounts(len(words), len(set(words)), text.count(" "))
