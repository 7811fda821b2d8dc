from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dedup.token_table
from dedup.jaccard import TokenSets
from dedup.token_table import TokenTable, join_tables, tokenise, tokens_from_arrow, tokens_to_arrow
from dedup.tokens import BpeTokenizer, load_tokenizer
from dedup.words import WordCache
from schemas.errors import ConfigError, PipelineError
from tests.dedup.corpus import real_functions, sets_of
from warehouse.tables import read_table, write_table

TEXTS = [*real_functions(60, seed=41), "", "é = 'ü'\n"]


def batches(texts: Sequence[str], size: int = 25) -> list[tuple[pa.Array, pa.Array]]:
    """Return batches of rows `r0`, `r1` ..."""
    ids = [f"r{number}" for number in range(len(texts))]
    return [
        (pa.array(ids[start : start + size]), pa.array(texts[start : start + size], pa.large_string()))
        for start in range(0, len(texts), size)
    ]


def plain(table: TokenTable) -> tuple[list[str], list[bytes], list[list[int]], str]:
    sets = [ids.tolist() for ids in np.split(table.sets.ids, table.sets.offsets[1:-1])] if len(table.row_id) else []
    return table.row_id.to_pylist(), table.digest.to_pylist(), sets, table.tokenizer


def test_rows_have_their_texts_digest_and_token_set() -> None:
    table = tokenise(batches(TEXTS), load_tokenizer())
    expected = sets_of(TEXTS)
    assert plain(table) == (
        [f"r{number}" for number in range(len(TEXTS))],
        [sha256(text.encode()).digest() for text in TEXTS],
        [ids.tolist() for ids in np.split(expected.ids, expected.offsets[1:-1])],
        load_tokenizer().sha256,
    )
    assert table.sets.ids.dtype == np.uint16


@pytest.mark.parametrize("batch_rows", [7, 50_000])
def test_table_is_read_back_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int) -> None:
    monkeypatch.setattr(dedup.token_table, "_BATCH_ROWS", batch_rows)
    for texts in (TEXTS, []):
        table = tokenise(batches(texts), load_tokenizer())
        write_table(tmp_path / "tokens.parquet", tokens_to_arrow(table))
        assert plain(tokens_from_arrow(read_table(tmp_path / "tokens.parquet"), load_tokenizer())) == plain(table)


def test_tables_are_joined_and_rows_are_taken() -> None:
    parts = [tokenise(batches(texts), load_tokenizer()) for texts in (TEXTS[:5], [], TEXTS[5:9])]
    names, digests, sets, tokenizer = plain(join_tables(parts, load_tokenizer()))
    whole = plain(tokenise(batches(TEXTS[:9]), load_tokenizer()))
    assert names == ["r0", "r1", "r2", "r3", "r4", "r0", "r1", "r2", "r3"]
    assert (digests, sets, tokenizer) == whole[1:]
    taken = plain(join_tables(parts, load_tokenizer()).take(np.array([7, 0])))
    assert taken == (["r2", "r0"], [digests[7], digests[0]], [sets[7], sets[0]], tokenizer)
    assert plain(join_tables([], load_tokenizer()))[:3] == ([], [], [])


def test_known_texts_are_not_tokenised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = tokenise(batches(TEXTS[:40]), load_tokenizer())
    expected = plain(tokenise(batches(TEXTS[::-1]), load_tokenizer()))
    seen: list[str] = []
    encode = WordCache.encode_sets

    def watched(self: WordCache, texts: Sequence[str]) -> TokenSets:
        seen.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(WordCache, "encode_sets", watched)
    assert plain(tokenise(batches(TEXTS[::-1]), load_tokenizer(), known)) == expected
    assert seen == TEXTS[:39:-1]


def test_tokens_of_another_tokenizer_are_refused() -> None:
    tokenizer = load_tokenizer()
    known = replace(tokenise(batches(TEXTS), tokenizer), tokenizer="0" * 64)
    with pytest.raises(ConfigError, match="another tokenizer; tokenise all rows again"):
        tokenise(batches(TEXTS), tokenizer, known)
    with pytest.raises(ConfigError, match="another tokenizer; tokenise all rows again"):
        join_tables([known], tokenizer)
    with pytest.raises(PipelineError, match="another tokenizer"):
        tokens_from_arrow(tokens_to_arrow(known), tokenizer)


def test_vocabulary_that_needs_more_than_two_bytes_is_refused() -> None:
    tokenizer = load_tokenizer()
    with pytest.raises(ConfigError, match="65537 token ids"):
        tokenise([], BpeTokenizer(tokenizer.sha256, 2**16 + 1, tokenizer.model))


def test_other_tables_are_refused() -> None:
    with pytest.raises(PipelineError, match="has other columns"):
        tokens_from_arrow(pa.table({"row_id": ["r0"]}), load_tokenizer())
