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
    _mark((pairs.left, pairs.right, pairs.common), sizes, clusters, best, news)
    return news


@compiled
def _mark(pairs: tuple[Ints, Ints, Ints], sizes: Ints, clusters: tuple[Ints, Bools], best: Best, news: Bools) -> None:
    left, right, common = pairs
    label, large = clusters
    similarity, partner = best
    for number in range(len(left)):
        a, b, shared = left[number], right[number], common[number]
        value = shared / (sizes[a] + sizes[b] - shared)
        settled = large[a] and label[a] == label[b]
        better_a = value > similarity[a] or (value == similarity[a] and b < partner[a])
        better_b = value > similarity[b] or (value == similarity[b] and a < partner[b])
        news[number] = not settled or better_a or better_b
