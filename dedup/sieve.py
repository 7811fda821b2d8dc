"""Pairs that change nothing, told apart by compiled code: nearly all pairs of a very large cluster."""

import numpy as np
import numpy.typing as npt

from dedup.compiled import compiled
from dedup.jaccard import Ints, Pairs

Bools = npt.NDArray[np.bool_]
Best = tuple[npt.NDArray[np.float64], Ints]


def has_news(pairs: Pairs, sizes: Ints, clusters: tuple[Ints, Bools], best: Best) -> Bools:
    """Return whether each pair is to be listed, joins two clusters or gives one of its sets a better partner.

    `clusters` are each set's label and whether its cluster is too large to be listed; `best` are each set's highest
    similarity and smallest partner so far.
    """
    news = np.empty(len(pairs.left), np.bool_)
    _mark(
        pairs.left,
        pairs.right,
        pairs.common / (sizes[pairs.left] + sizes[pairs.right] - pairs.common),
        clusters,
        best,
        news,
    )
    return news


@compiled
def _mark(
    left: Ints, right: Ints, similarity: npt.NDArray[np.float64], clusters: tuple[Ints, Bools], best: Best, news: Bools
) -> None:
    label, large = clusters
    highest, partner = best
    for number in range(len(left)):
        a, b, value = left[number], right[number], similarity[number]
        settled = large[a] and label[a] == label[b]
        better_a = value > highest[a] or (value == highest[a] and b < partner[a])
        better_b = value > highest[b] or (value == highest[b] and a < partner[b])
        news[number] = not settled or better_a or better_b
