"""Novelty class `copied_old`: which rows, with which evidence, and what goes on."""

from collections.abc import Sequence

import pytest

from schemas.comparisons import OldCopy, OldMethod
from schemas.config import DedupConfig
from schemas.records import Exclusion, Novelty
from tests.dedup.by_rows import NewMethod, exclude_copies, find_copies
from tests.dedup.test_run import text_of

CONFIG = DedupConfig()
ADDED, MODIFIED, COPIED = Novelty.ADDED, Novelty.MODIFIED, Novelty.COPIED_OLD


def new(row_id: str, numbers: Sequence[int], novelty: Novelty = ADDED) -> NewMethod:
    return NewMethod(row_id, "o/n", novelty, text_of(numbers))


def old(path: str, numbers: Sequence[int], repo: str = "o/n") -> OldMethod:
    return OldMethod(repo, "c" * 40, path, "A.f", "b" * 40, 5, 50, 3, text_of(numbers))


def copy(row_id: str, jaccard: float, path: str, *, exact: bool = False, repo: str = "o/n") -> OldCopy:
    return OldCopy(row_id, "o/n", jaccard, exact, repo, "c" * 40, path, "A.f", 3)


def test_copies_are_found_with_the_most_similar_old_method() -> None:
    rows = [new("r2", range(10)), new("r1", range(20, 30)), new("r3", range(40, 50))]
    trees = [[old("a.py", range(8)), old("b.py", range(9)), old("c.py", range(20, 30))]]
    assert find_copies(rows, trees, CONFIG) == [
        copy("r1", 1.0, "c.py", exact=True),
        copy("r2", 0.9, "b.py"),
    ]


def test_of_equally_similar_ones_the_first_is_named_and_an_equal_text_comes_first() -> None:
    rows = [new("r", range(10))]
    first, second = old("z.py", range(9), "a/a"), old("a.py", range(1, 10), "b/b")
    assert find_copies(rows, [[first], [second]], CONFIG) == [copy("r", 0.9, "z.py", repo="a/a")]
    reverse, equal = old("r.py", range(9, -1, -1), "a/a"), old("e.py", range(10), "b/b")
    assert find_copies(rows, [[reverse], [equal]], CONFIG) == [copy("r", 1.0, "e.py", exact=True, repo="b/b")]


def test_only_added_methods_are_compared() -> None:
    rows = [new("r", range(10), MODIFIED)]
    assert find_copies(rows, [[old("a.py", range(10))]], CONFIG) == []


def test_the_limits_are_those_of_the_configuration() -> None:
    rows, trees = [new("r", range(10))], [[old("a.py", range(8))]]
    assert len(find_copies(rows, trees, DedupConfig(threshold=0.8))) == 1
    assert find_copies(rows, trees, DedupConfig(threshold=0.81)) == []
    assert find_copies(rows, trees, DedupConfig(min_distinct_tokens=9)) == []


def test_nothing_old_or_nothing_new_gives_no_copy() -> None:
    assert find_copies([new("r", range(9))], [], CONFIG) == find_copies([], [[old("a.py", range(9))]], CONFIG) == []
    assert find_copies([new("r", range(9))], [[]], CONFIG) == []


EVIDENCE = f"jaccard=0.9 old=o/n@{'c' * 40}:b.py:3 A.f"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((ADDED,), [Exclusion("r2", "dedup_old", "copied_old", EVIDENCE)]),
        ((ADDED, COPIED), []),
        ((COPIED,), [Exclusion("r1", "dedup_old", "novelty_added", "resembles no old method")]),
        ((MODIFIED, COPIED), [Exclusion("r1", "dedup_old", "novelty_added", "resembles no old method")]),
    ],
)
def test_what_goes_on_is_what_the_configuration_wants(wanted: tuple[Novelty, ...], expected: list[Exclusion]) -> None:
    rows = [new("r2", range(10)), new("r1", range(20, 30)), new("r3", range(10), MODIFIED)]
    copies = [copy("r2", 0.9, "b.py")]
    assert exclude_copies(rows, copies, wanted) == expected
