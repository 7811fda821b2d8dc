"""The tokenizer of the duplicate search: a byte-level BPE trained by this project and shipped with it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from schemas.errors import ConfigError, DataError

TOKENIZER_FILE = Path(__file__).with_name("tokenizer.json")
_BATCH = 1_000  # texts encoded at once: bounds the memory of the library's intermediate encodings


@dataclass(frozen=True, slots=True)
class BpeTokenizer:
    """A lossless tokenizer: `decode(ids) == text` for every text, so equal token sequences are equal texts.

    There are no special tokens: `<|endoftext|>` in code is text like any other.
    """

    sha256: str
    """Digest of the tokenizer's file."""
    vocab_size: int
    """Number of token ids; ids run from 0 to vocab_size - 1."""
    model: Tokenizer
    """The loaded model."""

    def encode_batch(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Return the token ids of each text, int32 of shape (n_tokens,); no text gives no tokens.

        Raise DataError (`lone_surrogate`) for a text that is not valid Unicode.
        """
        encoded: list[npt.NDArray[np.int32]] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            for text in batch:
                if not is_unicode(text):
                    raise DataError("lone_surrogate", "the text holds a lone surrogate and has no UTF-8 form")
            results = self.model.encode_batch_fast(batch, add_special_tokens=False)
            encoded += [np.asarray(result.ids, dtype=np.int32) for result in results]
        return encoded

    def decode(self, ids: Sequence[int] | npt.NDArray[np.int32]) -> str:
        """Return the text of token ids."""
        return str(self.model.decode([int(token) for token in ids], skip_special_tokens=False))


def is_unicode(text: str) -> bool:
    """Return whether a text has a UTF-8 form, which lone surrogates have not."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=4)
def load_tokenizer(path: Path = TOKENIZER_FILE) -> BpeTokenizer:
    """Return the shipped tokenizer; raise ConfigError when its file is missing or was changed."""
    remedy = "reinstall postquem, or train it again with `make tokenizer`"
    try:
        content = path.read_bytes()
        meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read the tokenizer {error.filename}: {error.strerror}; {remedy}") from error
    except ValueError as error:
        raise ConfigError(f"{path.with_suffix('.meta.json')} is no valid JSON: {error}; {remedy}") from error
    digest = hashlib.sha256(content).hexdigest()
    expected = meta.get("sha256") if isinstance(meta, dict) else None
    if digest != expected:
        raise ConfigError(f"{path} was changed: its sha256 is {digest}, not {expected}; {remedy}")
    model = Tokenizer.from_buffer(content)
    return BpeTokenizer(digest, model.get_vocab_size(with_added_tokens=True), model)
