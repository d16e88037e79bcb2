"""Word mover's distance of topics: the earth mover's distance between their words, exact, with the words' weights (AMWMD)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array


@dataclass(frozen=True, eq=False)
class WeightedWords:
    """The words of one topic that have a vector, and their weights, which sum to one."""

    vectors: Array  # words x size, of unit length
    weights: Array

    @property
    def middle(self) -> Array:
        """The mean vector. The distance of two middles is never larger than the mover's distance (Kusner et al. 2015)."""
        return np.asarray(self.weights @ self.vectors)


def mover_distance(one: WeightedWords, other: WeightedWords) -> float:
    """The least work to move the weight of one topic's words to the other's, by the distance of their vectors: 0 to 2."""
    import ot  # takes long to import

    apart = np.linalg.norm(one.vectors[:, None] - other.vectors[None], axis=2)
    return float(ot.emd2(one.weights, other.weights, apart))


def closest_distances(
    mine: Sequence[WeightedWords], others: Sequence[WeightedWords], on_step: Callable[[int], None] = lambda _: None
) -> Array:
    """Each topic's distance to the closest of the other topics. gFedNTM's AMWMD (Eq. 7) is the sum of them.

    The others are tried in the order of their middles; none is tried that its middle shows to be farther than the best.
    """
    found = []
    middles = np.array([other.middle for other in others])
    for number, one in enumerate(mine, start=1):
        at_least, best = np.linalg.norm(middles - one.middle, axis=1), np.inf
        for place in np.argsort(at_least, kind="stable"):
            if at_least[place] >= best:
                break
            best = min(best, mover_distance(one, others[place]))
        found.append(best)
        on_step(number)
    return np.array(found)
