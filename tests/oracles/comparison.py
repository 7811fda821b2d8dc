"""The miner's rows beside the oracle's: precision, recall, a confusion table of all classes, every difference."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from schemas.records import Exclusion, Method, Novelty
from tests.oracles.ast_oracle import Key, Truth

MARKS = (Novelty.VENDORED, Novelty.GENERATED)
# Classes in the order of the tables; the others are marks and `copied_old`, which needs a cutoff.
CLASSES = (
    Novelty.ADDED,
    Novelty.MOVED,
    Novelty.RENAMED,
    Novelty.MODIFIED,
    Novelty.REFORMATTED,
    Novelty.RESTORED,
    Novelty.REPEATED,
)
_NONE = "no row"


class Mined(Protocol):
    """What the miner returns, as far as the comparison needs it."""

    @property
    def methods(self) -> list[Method]: ...

    @property
    def excluded(self) -> list[Exclusion]: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on the set of methods of one class."""

    n_mined: int
    n_oracle: int
    n_both: int

    @property
    def precision(self) -> float:
        return self.n_both / self.n_mined if self.n_mined else 1.0

    @property
    def recall(self) -> float:
        return self.n_both / self.n_oracle if self.n_oracle else 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Agreement over files that both sides can judge."""

    confusion: Mapping[tuple[Novelty | None, Novelty | None], int]
    """Number of methods by the miner's and the oracle's class; null where a side has no such method."""
    n_marked: int
    """Methods left out because the miner marks their file as vendored or generated."""
    n_unjudged: int
    """Methods left out because a version of their file does not parse here or the miner excluded it with a reason."""
    differences: list[str]
    """One line for each method to which the sides give different classes."""

    @property
    def n_judged(self) -> int:
        return sum(self.confusion.values())

    def agreement(self, novelty: Novelty) -> Agreement:
        mined = sum(count for (ours, _), count in self.confusion.items() if ours is novelty)
        oracle = sum(count for (_, theirs), count in self.confusion.items() if theirs is novelty)
        return Agreement(mined, oracle, self.confusion.get((novelty, novelty), 0))

    def lines(self) -> list[str]:
        """Return the agreement by class and the confusion table as text."""
        found = [f"{'class':<12} {'miner':>8} {'oracle':>8} {'both':>8} precision   recall"]
        for novelty in CLASSES:
            agreed = self.agreement(novelty)
            counts = f"{agreed.n_mined:>8} {agreed.n_oracle:>8} {agreed.n_both:>8}"
            found.append(f"{novelty:<12} {counts}   {agreed.precision:.5f}  {agreed.recall:.5f}")
        sides = (*CLASSES, None)
        found += ["", "miner \\ oracle" + "".join(f"{side or _NONE:>12}" for side in sides)]
        for ours in sides:
            counts = "".join(f"{self.confusion.get((ours, theirs), 0):>12}" for theirs in sides)
            found.append(f"{ours or _NONE:<14}{counts}")
        return found


def key_of(row: Method) -> Key:
    """Return what identifies a method on both sides."""
    return (row.commit_id, row.path, row.fun_name, row.start_byte, row.end_byte)


def compare(mined: Mined, truth: Truth) -> Comparison:
    """Compare the miner's rows with the oracle's."""
    ours = {key_of(row): row.novelty for row in mined.methods}
    left_out = {item.row_id.split("@", 1)[1] for item in mined.excluded if "@" in item.row_id}
    marked = {key for key, novelty in ours.items() if novelty in MARKS}
    unjudged = {
        key
        for key in ours.keys() | truth.novelty.keys()
        if key[:2] in truth.unreadable or key[0] in left_out or f"{key[0]}:{key[1]}" in left_out
    }
    judged = sorted((ours.keys() | truth.novelty.keys()) - marked - unjudged)
    return Comparison(
        confusion=Counter((ours.get(key), truth.novelty.get(key)) for key in judged),
        n_marked=len(marked),
        n_unjudged=len(unjudged - marked),
        differences=[
            f"{key}: miner {ours.get(key) or _NONE}, oracle {truth.novelty.get(key) or _NONE}"
            for key in judged
            if ours.get(key) != truth.novelty.get(key)
        ],
    )
