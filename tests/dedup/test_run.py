import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dedup.clusters
import dedup.near
import dedup.words
from dedup.tokens import load_tokenizer
from schemas.config import DedupConfig
from schemas.errors import ConfigError, PipelineError
from schemas.records import DuplicateCluster, DuplicatePair, Exclusion
from tests.dedup.by_rows import DedupResult, DedupRow, deduplicate
from tests.dedup.corpus import START, rows_of

CONFIG = DedupConfig()


def distinct_words(count: int) -> list[str]:
    """Return texts of one token each, so that the Jaccard similarity of texts can be planted exactly."""
    model = load_tokenizer().model
    words = sorted(token for token in model.get_vocab() if token.startswith("Ġ") and token[1:].isalpha())
    chosen = [" " + word[1:] for word in words if word[1:].isascii() and len(word) > 3][:count]
    assert len(chosen) == count
    return chosen


WORDS = distinct_words(1_500)


def text_of(ids: Sequence[int]) -> str:
    return "".join(WORDS[number] for number in ids)


def planted(*groups: Sequence[int]) -> list[DedupRow]:
    """Return rows `r0`, `r1` ... whose token sets are the given groups; all have the same date."""
    return [DedupRow(f"r{number}", START, text_of(group)) for number, group in enumerate(groups)]


def test_words_of_these_tests_are_one_token_each() -> None:
    (ids,) = load_tokenizer().encode_batch([text_of(range(len(WORDS)))])
    assert len(set(ids.tolist())) == len(WORDS) == len(ids)


def test_exact_and_near_duplicates_are_told_with_keeper_and_similarity() -> None:
    rows = [
        DedupRow("a", START, text_of(range(10))),
        DedupRow("b", START, text_of(range(10))),
        DedupRow("c", START, text_of(range(8))),
        DedupRow("d", START, text_of(range(100, 110))),
    ]
    result = deduplicate(rows, CONFIG)
    assert result.kept_ids == ["a", "d"]
    assert result.excluded == [
        Exclusion("b", "dedup_exact", "exact_duplicate", "keeper=a jaccard=1.0"),
        Exclusion("c", "dedup_near", "near_duplicate", "keeper=a jaccard=0.8"),
    ]
    assert result.pairs == [
        DuplicatePair("a", "b", 1.0, exact=True, cluster_id="a"),
        DuplicatePair("a", "c", 0.8, exact=False, cluster_id="a"),
    ]
    assert result.clusters == [DuplicateCluster("a", ("a", "b", "c"))]
    accounts = [(report.stage, report.partition, report.rows_in, report.rows_out) for report in result.reports]
    assert accounts == [("dedup_exact", "all", 4, 3), ("dedup_near", "all", 3, 2)]
    assert [report.excluded_by_reason for report in result.reports] == [{"exact_duplicate": 1}, {"near_duplicate": 1}]
    assert result.n_near_pairs == 1


@pytest.mark.parametrize(
    ("common", "size_a", "size_b", "removed"),
    [
        (7, 10, 7, True),  # 7/10
        (70, 85, 85, True),  # 70/100
        (69, 84, 85, False),  # 69/100
        (71, 85, 86, True),  # 71/100
        (699, 849, 850, False),  # 699/1000
        (700, 850, 850, True),  # 700/1000
        (9, 11, 11, False),  # 9/13 = 0.692
        (16, 19, 20, False),  # 16/23 = 0.6957
        (341, 400, 429, False),  # 341/488 = 0.69877
        (342, 400, 430, True),  # 342/488 = 0.7008
    ],
)
def test_threshold_is_inclusive_and_exact(common: int, size_a: int, size_b: int, removed: bool) -> None:
    rows = planted(range(size_a), range(size_a - common, size_a - common + size_b))
    result = deduplicate(rows, CONFIG)
    assert result.kept_ids == (["r0"] if removed else ["r0", "r1"])
    union = size_a + size_b - common
    assert [pair.jaccard for pair in result.pairs] == ([common / union] if removed else [])


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.57, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0])
def test_every_threshold_is_inclusive(threshold: float) -> None:
    common = round(threshold * 100)
    config = DedupConfig(threshold=threshold)
    at = planted([*range(100), 0], range(common))
    assert deduplicate(at, config).kept_ids == ["r0"]
    below = planted([*range(100), 0], range(common - 1))
    assert deduplicate(below, config).kept_ids == ["r0", "r1"]


def test_keeper_is_the_earliest_then_the_smallest_row_id() -> None:
    texts = [text_of(range(20)), text_of(range(19)), text_of(range(18))]
    rows = [
        DedupRow("a", START.replace(year=2025), texts[0]),
        DedupRow("c", START, texts[1]),
        DedupRow("b", START, texts[2]),
    ]
    assert deduplicate(rows, CONFIG).kept_ids == ["b"]


def test_removal_through_a_chain_names_the_partner_that_proves_it() -> None:
    rows = planted(range(10), range(2, 12), range(4, 14))
    config = DedupConfig(threshold=0.6)
    result = deduplicate(rows, config)
    assert result.kept_ids == ["r0"]
    assert result.excluded == [
        Exclusion("r1", "dedup_near", "near_duplicate", f"keeper=r0 jaccard={8 / 12}"),
        Exclusion("r2", "dedup_near", "near_duplicate", f"keeper=r0 jaccard={6 / 14} via=r1 jaccard={8 / 12}"),
    ]
    assert [(pair.row_id_a, pair.row_id_b) for pair in result.pairs] == [("r0", "r1"), ("r1", "r2")]
    assert result.clusters == [DuplicateCluster("r0", ("r0", "r1", "r2"))]


def test_exact_duplicate_of_a_removed_row_names_the_row_that_stays() -> None:
    near = text_of(range(9))
    rows = [*planted(range(10)), DedupRow("s1", START, near), DedupRow("s2", START, near)]
    result = deduplicate(rows, CONFIG)
    assert result.excluded == [
        Exclusion("s2", "dedup_exact", "exact_duplicate", "keeper=r0 jaccard=0.9 via=s1 jaccard=1.0"),
        Exclusion("s1", "dedup_near", "near_duplicate", "keeper=r0 jaccard=0.9"),
    ]
    assert result.pairs == [
        DuplicatePair("r0", "s1", 0.9, exact=False, cluster_id="r0"),
        DuplicatePair("s1", "s2", 1.0, exact=True, cluster_id="r0"),
    ]
    assert result.clusters == [DuplicateCluster("r0", ("r0", "s1", "s2"))]


def test_equal_sets_in_another_order_are_near_duplicates_at_one() -> None:
    result = deduplicate(planted([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0, 0]), CONFIG)
    assert result.excluded == [Exclusion("r1", "dedup_near", "near_duplicate", "keeper=r0 jaccard=1.0")]
    assert result.pairs == [DuplicatePair("r0", "r1", 1.0, exact=False, cluster_id="r0")]


def test_methods_with_few_distinct_tokens_are_compared_for_equality_only() -> None:
    short = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]
    result = deduplicate(planted(*short), CONFIG)
    assert result.kept_ids == ["r0", "r1", "r3"]
    assert [(item.row_id, item.reason) for item in result.excluded] == [
        ("r2", "exact_duplicate"),
        ("r4", "near_duplicate"),
    ]
    assert deduplicate(planted(*short), DedupConfig(min_distinct_tokens=6)).kept_ids == ["r0", "r1", "r3", "r4"]
    assert deduplicate(planted(*short), DedupConfig(min_distinct_tokens=0)).kept_ids == ["r0"]


def test_texts_without_tokens_or_with_one() -> None:
    rows = [DedupRow(f"r{number}", START, text) for number, text in enumerate(["", "x", "", "y", "x"])]
    for min_distinct in (0, 1, 5):
        result = deduplicate(rows, DedupConfig(min_distinct_tokens=min_distinct))
        assert result.kept_ids == ["r0", "r1", "r3"]
        assert [item.detail for item in result.excluded] == ["keeper=r0 jaccard=1.0", "keeper=r1 jaccard=1.0"]


def test_nothing_gives_nothing() -> None:
    result = deduplicate([], CONFIG)
    assert (result.kept_ids, result.excluded, result.pairs, result.clusters) == ([], [], [], [])
    assert [(report.rows_in, report.rows_out) for report in result.reports] == [(0, 0), (0, 0)]


def test_all_rows_equal_is_one_cluster_without_quadratic_pairs() -> None:
    rows = [DedupRow(f"{number:05}", START, "def f(x):\n    return x + 1\n") for number in range(20_000)]
    result = deduplicate(rows, CONFIG)
    assert result.kept_ids == ["00000"]
    assert len(result.pairs) == len(result.excluded) == 19_999
    assert len(result.clusters) == 1
    assert len(result.clusters[0].members) == 20_000


def test_long_texts_are_compared_like_others() -> None:
    names = [f"name{number}" for number in range(100_000)]
    long_text = " = 1\n".join(names)
    rows = [
        DedupRow("a", START, long_text),
        DedupRow("b", START, " = 1\n".join(reversed(names))),
        DedupRow("c", START, text_of(range(30))),
    ]
    assert len(long_text) > 1_000_000
    assert deduplicate(rows, CONFIG).kept_ids == ["a", "c"]


def test_large_cluster_lists_the_pairs_that_prove_its_removals() -> None:
    limit = dedup.clusters.MAX_LISTED_CLUSTER
    rows = planted(
        *([*range(40), 40 + number] for number in range(limit + 10)), range(1_000, 1_010), range(1_000, 1_009)
    )
    result = deduplicate(rows, CONFIG)
    assert result.kept_ids == ["r0", f"r{limit + 10}"]
    assert result.n_near_pairs == (limit + 10) * (limit + 9) // 2 + 1
    # All similarities are equal, so the earliest partner, the smallest row id, is the keeper.
    removed = sorted(f"r{number}" for number in range(1, limit + 10))
    assert [(pair.row_id_a, pair.row_id_b) for pair in result.pairs if pair.cluster_id == "r0"] == [
        ("r0", row_id) for row_id in removed
    ]
    assert [(pair.row_id_a, pair.row_id_b) for pair in result.pairs if pair.cluster_id != "r0"] == [
        (f"r{limit + 10}", f"r{limit + 11}")
    ]


def test_cluster_at_the_limit_lists_all_its_pairs() -> None:
    limit = dedup.clusters.MAX_LISTED_CLUSTER
    result = deduplicate(planted(*([*range(40), 40 + number] for number in range(limit))), CONFIG)
    assert len(result.pairs) == result.n_near_pairs == limit * (limit - 1) // 2


def test_unusable_threshold_and_repeated_row_are_errors() -> None:
    with pytest.raises(ConfigError, match=r"dedup\.threshold"):
        deduplicate([], DedupConfig(threshold=0.0))
    with pytest.raises(PipelineError, match="more than once"):
        deduplicate(planted([1]) + planted([2]), CONFIG)


@st.composite
def families(draw: st.DrawFn) -> list[DedupRow]:
    """Rows in a few families of similar token sets, with repeated texts and dates."""
    bases = draw(st.lists(st.lists(st.integers(0, 60), min_size=3, max_size=30), min_size=1, max_size=3))
    number = st.integers(0, 60)
    members = st.tuples(st.sampled_from(bases), st.lists(number, max_size=4), st.integers(0, 4), st.integers(1, 3))
    return [
        DedupRow(f"r{index:02}", START.replace(day=day), text_of(base[less:] + more))
        for index, (base, more, less, day) in enumerate(draw(st.lists(members, max_size=20)))
    ]


def distinct_ids(row: DedupRow) -> frozenset[int]:
    return frozenset(load_tokenizer().encode_batch([row.text])[0].tolist())


def is_duplicate(one: DedupRow, other: DedupRow) -> bool:
    """Decide a pair by the words of the data contract."""
    if one.text == other.text:
        return True
    a, b = distinct_ids(one), distinct_ids(other)
    return min(len(a), len(b)) >= 5 and len(a & b) * 10 >= 7 * len(a | b)


def check_result(rows: list[DedupRow], result: DedupResult) -> None:
    by_id = {row.row_id: row for row in rows}
    removed = [item.row_id for item in result.excluded]
    assert sorted(result.kept_ids + removed) == sorted(by_id)
    kept = [by_id[row_id] for row_id in result.kept_ids]
    assert not [
        (one.row_id, other.row_id) for one in kept for other in kept if one is not other and is_duplicate(one, other)
    ]
    paired = {row_id for pair in result.pairs for row_id in (pair.row_id_a, pair.row_id_b)}
    assert set(removed) <= paired
    for pair in result.pairs:
        assert pair.row_id_a < pair.row_id_b
        assert is_duplicate(by_id[pair.row_id_a], by_id[pair.row_id_b])
        assert pair.exact == (by_id[pair.row_id_a].text == by_id[pair.row_id_b].text)
    for cluster in result.clusters:
        assert cluster.cluster_id == min(cluster.members, key=lambda row_id: (by_id[row_id].committer_date, row_id))
    assert sorted(row_id for cluster in result.clusters for row_id in cluster.members) == sorted(
        removed + [cluster.cluster_id for cluster in result.clusters]
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(families())
def test_no_duplicates_are_left_and_each_removed_row_has_a_partner(rows: list[DedupRow]) -> None:
    check_result(rows, deduplicate(rows, CONFIG))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(families(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows: list[DedupRow], random: Random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert deduplicate(shuffled, CONFIG) == deduplicate(rows, CONFIG)


def test_hash_seed_does_not_change_the_result() -> None:
    texts = [f"def f{n % 5}(rows, k):\n    return [row[k] + {n % 7} for row in rows if row.{n} > k]" for n in range(40)]
    program = (
        "from tests.dedup.by_rows import deduplicate\nfrom tests.dedup.corpus import rows_of\n"
        f"from schemas.config import DedupConfig\nprint(deduplicate(rows_of({texts}), DedupConfig()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "4711")
    }
    expected = deduplicate(rows_of(texts), CONFIG)
    assert outputs == {f"{expected}\n"}
    assert len(expected.pairs) > 0


def test_texts_are_encoded_in_parts_without_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of([text_of(range(start, start + 10)) for start in range(40)])
    whole = deduplicate(rows, CONFIG)
    monkeypatch.setattr(dedup.words, "_BATCH_TEXTS", 7)
    assert deduplicate(rows, CONFIG) == whole
    assert len(whole.kept_ids) < 40
