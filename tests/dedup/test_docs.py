"""The worked examples of docs/deduplication.md are what the search decides."""

from pathlib import Path

import pytest

from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig
from tests.dedup.by_rows import DedupRow, deduplicate
from tests.dedup.corpus import START

DOCUMENT = Path(__file__).parents[2] / "docs" / "deduplication.md"


def examples() -> list[list[str]]:
    section = DOCUMENT.read_text(encoding="utf-8").split("## The definition, by example", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


@pytest.mark.parametrize("row", examples(), ids=lambda row: f"{row[0]} {row[1]}")
def test_example_is_what_the_search_decides(row: list[str]) -> None:
    one, other = row[0].strip("`"), row[1].strip("`")
    a, b = (frozenset(ids.tolist()) for ids in load_tokenizer().encode_batch([one, other]))
    counts = [f"{len(a)}, {len(b)}", str(len(a & b)), str(len(a | b)), str(len(a & b) / len(a | b))]
    result = deduplicate([DedupRow("r0", START, one), DedupRow("r1", START, other)], DedupConfig())
    decision = result.excluded[0].reason if result.excluded else "both stay"
    assert row[2:] == [*counts, decision]


def test_there_are_examples_of_every_decision() -> None:
    assert {row[-1] for row in examples()} == {"exact_duplicate", "near_duplicate", "both stay"}


def test_example_of_the_tokens_is_right() -> None:
    tokenizer = load_tokenizer()
    (ids,) = tokenizer.encode_batch(["def area(w, h): return w * h"])
    tokens = ", ".join(f"`{tokenizer.decode([token])}`" for token in ids.tolist())
    assert tokens in " ".join(DOCUMENT.read_text(encoding="utf-8").split("\n"))
    assert (len(ids), len(set(ids.tolist()))) == (12, 11)
