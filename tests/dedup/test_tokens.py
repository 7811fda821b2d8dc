import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.tokens import TOKENIZER_FILE, load_tokenizer
from schemas.errors import ConfigError, DataError
from tests.dedup.corpus import real_functions

META_FILE = TOKENIZER_FILE.with_suffix(".meta.json")


def test_shipped_tokenizer_is_the_one_its_metadata_describes() -> None:
    tokenizer = load_tokenizer()
    meta = json.loads(META_FILE.read_text())
    assert tokenizer.sha256 == meta["sha256"] == hashlib.sha256(TOKENIZER_FILE.read_bytes()).hexdigest()
    assert tokenizer.vocab_size == meta["vocab_size"] == 8_192
    assert TOKENIZER_FILE.stat().st_size < 1_500_000


def test_metadata_names_every_package_of_the_corpus_with_version_and_hash() -> None:
    corpus = json.loads(META_FILE.read_text())["corpus"]
    listed = Path(__file__).parents[2].joinpath("tools", "tokenizer-corpus.txt").read_text().splitlines()
    assert corpus == [line for line in listed if not line.startswith("#")]
    assert len(corpus) >= 10
    assert all("==" in line and "--hash=sha256:" in line for line in corpus)


def test_tokenizer_has_the_full_byte_alphabet_and_nothing_special() -> None:
    content = json.loads(TOKENIZER_FILE.read_text())
    assert content["added_tokens"] == []
    assert content["normalizer"] is None
    assert content["post_processor"] is None
    assert content["pre_tokenizer"]["add_prefix_space"] is False
    assert content["model"]["unk_token"] is None
    assert sum(len(token) == 1 for token in content["model"]["vocab"]) == 256


def test_batch_gives_one_int32_array_for_each_text_in_order() -> None:
    texts = ["def f(x):\n    return x\n", "", "x"]
    encoded = load_tokenizer().encode_batch(texts)
    assert [ids.dtype for ids in encoded] == [np.dtype(np.int32)] * 3
    assert [load_tokenizer().decode(ids) for ids in encoded] == texts
    assert encoded[1].shape == (0,)
    assert encoded[2].shape == (1,)


def test_no_texts_give_no_arrays() -> None:
    assert load_tokenizer().encode_batch([]) == []


def test_batch_equals_texts_encoded_one_by_one_across_internal_batches() -> None:
    texts = real_functions(1_200)
    together = load_tokenizer().encode_batch(texts)
    alone = [load_tokenizer().encode_batch([text])[0] for text in texts]
    assert [ids.tolist() for ids in together] == [ids.tolist() for ids in alone]


@pytest.mark.parametrize("special", ["<|endoftext|>", "[UNK]", "<s>", "</s>", "<pad>", "<mask>", "[CLS]"])
def test_special_strings_in_code_are_plain_text(special: str) -> None:
    tokenizer = load_tokenizer()
    code = f"SEPARATOR = '{special}'\n"
    (ids,) = tokenizer.encode_batch([code])
    assert tokenizer.decode(ids) == code
    (alone,) = tokenizer.encode_batch([special])
    assert len(alone) > 1


@given(st.text())
def test_decoding_gives_every_text_back(text: str) -> None:
    tokenizer = load_tokenizer()
    assert tokenizer.decode(tokenizer.encode_batch([text])[0]) == text


@given(st.text(alphabet=" \t\r\n\f\x00\u00a0\u2028ab_'\"\\é漢😀", max_size=60))
def test_decoding_keeps_awkward_white_space_and_characters(text: str) -> None:
    tokenizer = load_tokenizer()
    assert tokenizer.decode(tokenizer.encode_batch([text])[0]) == text


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["x", "x ", " x", "x\n", "x\r\n", "\tx", "x = 1", "x=1"]), min_size=2, max_size=2))
def test_texts_have_equal_token_sequences_only_when_they_are_equal(texts: list[str]) -> None:
    one, other = load_tokenizer().encode_batch(texts)
    assert np.array_equal(one, other) == (texts[0] == texts[1])


def test_real_functions_survive_the_round_trip() -> None:
    tokenizer = load_tokenizer()
    functions = real_functions(300)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(functions)] == functions


def test_one_megabyte_without_a_break_is_encoded() -> None:
    tokenizer = load_tokenizer()
    text = "a" * 1_000_000
    assert tokenizer.decode(tokenizer.encode_batch([text])[0]) == text


def test_lone_surrogate_is_refused_by_name() -> None:
    with pytest.raises(DataError) as caught:
        load_tokenizer().encode_batch(["fine", "x = '\ud800'"])
    assert caught.value.reason == "lone_surrogate"


def test_changed_tokenizer_file_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "tokenizer.json"
    shutil.copy(META_FILE, tmp_path / "tokenizer.meta.json")
    copy.write_bytes(TOKENIZER_FILE.read_bytes() + b"\n")
    with pytest.raises(ConfigError, match=r"was changed: its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}.*make tokenizer"):
        load_tokenizer(copy)


@pytest.mark.parametrize(
    ("meta", "message"),
    [(None, "cannot read the tokenizer"), ("{", "no valid JSON"), ("[]", "was changed"), ("{}", "was changed")],
)
def test_unusable_metadata_is_refused(tmp_path: Path, meta: str | None, message: str) -> None:
    copy = tmp_path / "tokenizer.json"
    shutil.copy(TOKENIZER_FILE, copy)
    if meta is not None:
        (tmp_path / "tokenizer.meta.json").write_text(meta)
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(copy)
