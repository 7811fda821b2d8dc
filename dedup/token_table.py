"""Token sets of rows as columns, kept in Parquet tables (`tokens`) so that no text is tokenised twice.

A text is known by its SHA-256 and the tokenizer by the digest of its file: a new release takes the sets of all texts
that an earlier one has seen from its table. No row is a Python object for longer than its batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dedup.jaccard import Ints, TokenSets, join_sets
from dedup.tokens import BpeTokenizer
from dedup.words import WordCache
from schemas.arrow import schema_of
from schemas.comparisons import TextTokens
from schemas.errors import ConfigError, PipelineError

_BATCH_ROWS = 50_000  # rows of a table that are decoded at once
_TOKENIZER = b"postquem.tokenizer_sha256"
_SCHEMA = schema_of(TextTokens)
_PACKED = np.dtype("<u2")


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Rows with the token sets of their texts."""

    row_id: pa.ChunkedArray
    """Row ids."""
    digest: pa.ChunkedArray
    """SHA-256 of each text's UTF-8 form: equal digests are equal texts."""
    sets: TokenSets
    """Token sets, ids of two bytes."""
    tokenizer: str
    """SHA-256 of the tokenizer's file."""

    def take(self, rows: Ints) -> "TokenTable":
        """Return the rows at the given places, in their order."""
        places = pa.array(rows)
        return TokenTable(self.row_id.take(places), self.digest.take(places), self.sets.take(rows), self.tokenizer)


def join_tables(parts: Sequence[TokenTable], tokenizer: BpeTokenizer) -> TokenTable:
    """Return the rows of all tables, one table behind the other; raise ConfigError when one has other tokens."""
    if any(part.tokenizer != tokenizer.sha256 for part in parts):
        raise ConfigError("a token table was made by another tokenizer; tokenise all rows again")
    return TokenTable(
        pa.chunked_array([chunk for part in parts for chunk in part.row_id.chunks], pa.string()),
        pa.chunked_array([chunk for part in parts for chunk in part.digest.chunks], pa.binary(32)),
        _narrow(join_sets([part.sets for part in parts], tokenizer.vocab_size)),
        tokenizer.sha256,
    )


def tokenise(
    batches: Iterable[tuple[pa.Array, pa.Array]], tokenizer: BpeTokenizer, known: TokenTable | None = None
) -> TokenTable:
    """Return the token table of batches of (row ids, texts), in their order; texts in `known` are not tokenised.

    Raise ConfigError when the tokenizer's ids have no two-byte form or `known` comes from another tokenizer.
    """
    if tokenizer.vocab_size > 2**16:
        raise ConfigError(f"the tokenizer has {tokenizer.vocab_size} token ids; table `tokens` holds at most 65,536")
    if known is not None and known.tokenizer != tokenizer.sha256:
        raise ConfigError("the token table was made by another tokenizer; tokenise all rows again")
    words = WordCache(tokenizer)
    ids, digests, parts = [], [], []
    for row_ids, texts in batches:
        digest = pa.array([sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
        ids.append(row_ids.cast(pa.string()))
        digests.append(digest)
        parts.append(_encode(texts, digest, words, known))
    sets = join_sets(parts, tokenizer.vocab_size)
    return TokenTable(
        pa.chunked_array(ids, pa.string()), pa.chunked_array(digests, pa.binary(32)), _narrow(sets), tokenizer.sha256
    )


def tokens_to_arrow(table: TokenTable) -> pa.Table:
    """Return a token table in the columns of table `tokens`."""
    bounds = [*range(0, len(table.sets.sizes), _BATCH_ROWS), len(table.sets.sizes)]
    ids = pa.chunked_array([_packed(table.sets, start, stop) for start, stop in pairwise(bounds)], pa.binary())
    return pa.table([table.row_id, table.digest, ids], _SCHEMA.with_metadata({**_SCHEMA.metadata, **_made_by(table)}))


def tokens_from_arrow(table: pa.Table, tokenizer: BpeTokenizer) -> TokenTable:
    """Return the token table that columns hold; raise PipelineError for other columns or another tokenizer's."""
    made_by = (table.schema.metadata or {}).get(_TOKENIZER)
    if not table.schema.equals(_SCHEMA) or made_by != tokenizer.sha256.encode():
        raise PipelineError("a table of tokens has other columns or another tokenizer; remove it and run again")
    parts = [_unpacked(packed, tokenizer.vocab_size) for packed in table.column("token_ids").chunks]
    sets = parts[0] if len(parts) == 1 else _narrow(join_sets(parts, tokenizer.vocab_size))
    return TokenTable(table.column("row_id"), table.column("text_sha256"), sets, tokenizer.sha256)


def _made_by(table: TokenTable) -> dict[bytes, bytes]:
    return {_TOKENIZER: table.tokenizer.encode()}


def _encode(texts: pa.Array, digest: pa.Array, words: WordCache, known: TokenTable | None) -> TokenSets:
    """Return the token sets of one batch."""
    if known is None:
        return _narrow(words.encode_sets(texts.to_pylist()))
    place = pc.index_in(digest, known.digest.combine_chunks()).to_numpy(zero_copy_only=False)
    found = ~np.isnan(place)
    fresh = _narrow(words.encode_sets(texts.filter(pa.array(~found)).to_pylist()))
    both = join_sets([known.sets.take(place[found].astype(np.int64)), fresh], fresh.vocab_size)
    # Known sets come first in `both`, the fresh ones behind them; each row looks its own up.
    return both.take(np.where(found, np.cumsum(found) - 1, found.sum() + np.cumsum(~found) - 1))


def _narrow(sets: TokenSets) -> TokenSets:
    return TokenSets(sets.offsets, sets.ids.astype(np.uint16, copy=False), sets.vocab_size)


def _packed(sets: TokenSets, start: int, stop: int) -> pa.Array:
    """Return the ids of the sets in a range as texts of bytes, which are written and read twice as fast as lists."""
    offsets = sets.offsets[start : stop + 1]
    ids = np.ascontiguousarray(sets.ids[offsets[0] : offsets[-1]], _PACKED)
    bounds = ((offsets - offsets[0]) * _PACKED.itemsize).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), stop - start, [None, pa.py_buffer(bounds), pa.py_buffer(ids)])


def _unpacked(packed: pa.Array, vocab_size: int) -> TokenSets:
    """Return the sets whose ids the texts of bytes are."""
    _, bounds, content = packed.buffers()
    if not len(packed):
        return TokenSets(np.zeros(1, np.int64), np.zeros(0, np.uint16), vocab_size)
    places = np.frombuffer(bounds, np.int32)[packed.offset : packed.offset + len(packed) + 1].astype(np.int64)
    ids = np.frombuffer(content or b"", np.uint8)[places[0] : places[-1]].view(_PACKED)
    return TokenSets((places - places[0]) // _PACKED.itemsize, ids.astype(np.uint16, copy=False), vocab_size)
