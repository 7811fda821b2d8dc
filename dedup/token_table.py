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
    kind = _SCHEMA.field("token_ids").type
    lists = pa.chunked_array([_lists(table.sets, start, stop) for start, stop in pairwise(bounds)], kind)
    return pa.table([table.row_id, table.digest, lists], _SCHEMA.with_metadata({**_SCHEMA.metadata, **_made_by(table)}))


def tokens_from_arrow(table: pa.Table, tokenizer: BpeTokenizer) -> TokenTable:
    """Return the token table that columns hold; raise PipelineError for other columns or another tokenizer's."""
    made_by = (table.schema.metadata or {}).get(_TOKENIZER)
    if not table.schema.equals(_SCHEMA) or made_by != tokenizer.sha256.encode():
        raise PipelineError("a table of tokens has other columns or another tokenizer; remove it and run again")
    parts = []
    for lists in table.column("token_ids").chunks:
        offsets = lists.offsets.to_numpy().astype(np.int64)
        flat = lists.values.to_numpy()[offsets[0] : offsets[-1]]
        parts.append(TokenSets(offsets - offsets[0], flat, tokenizer.vocab_size))
    sets = _narrow(join_sets(parts, tokenizer.vocab_size))
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


def _lists(sets: TokenSets, start: int, stop: int) -> pa.ListArray:
    """Return the sets in a range as a list array."""
    offsets = sets.offsets[start : stop + 1]
    values = pa.array(sets.ids[offsets[0] : offsets[-1]], pa.uint16())
    kind = _SCHEMA.field("token_ids").type
    return pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), values, type=kind)
