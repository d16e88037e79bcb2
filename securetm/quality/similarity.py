"""How well two models agree, or a model with the truth that made its documents (gFedNTM), or runs of several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from securetm.contracts import Array
from securetm.quality.judged_topics import JudgedTopics


def affinity(left: Array, right: Array) -> Array:
    """One minus the squared Hellinger distance of every row of `left` to every row of `right`: 1 if equal, 0 if disjoint."""
    similar: Array = np.sqrt(left) @ np.sqrt(right).T
    return similar


def document_similarity_score(true: Array, inferred: Array, block: int = 512) -> float:
    """DSS, gFedNTM Eq. 5: the difference of two document-topic mixtures in the similarity of documents; 0 is best.

    The documents are compared `block` rows at a time: memory grows with documents, not with pairs of documents.
    """
    off = 0.0
    for start in range(0, len(true), block):
        rows = slice(start, start + block)
        difference = np.abs(affinity(true[rows], true) - affinity(inferred[rows], inferred))
        np.fill_diagonal(difference[:, rows], 0.0)  # a document is not compared with itself
        off += float(difference.sum())
    return off / len(true)


def topic_similarity_score(true: Array, inferred: Array) -> float:
    """TSS, gFedNTM Eq. 6: the sum over true topics of the affinity to the closest inferred one; at best their number."""
    return float(affinity(true, inferred).max(axis=1).sum())


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


def shared_words(one: JudgedTopics, other: JudgedTopics, words: int = 10) -> Array:
    """The Jaccard index of the top words of every topic of one with every topic of the other: 1 if they are the same words."""
    left, right = ([frozenset(row) for row in topics.first(words)] for topics in (one, other))
    return np.array([[len(mine & theirs) / len(mine | theirs) for theirs in right] for mine in left])


def shared_weight(one: JudgedTopics, other: JudgedTopics) -> Array:
    """The affinity of every topic of one with every topic of the other (one minus the squared Hellinger distance)."""
    return affinity(*on_common_words(one, other))


def on_common_words(one: JudgedTopics, other: JudgedTopics) -> tuple[Array, Array]:
    """The weights of both over the words of either; a word that a model does not have has no weight in it."""
    assert one.weights is not None
    assert other.weights is not None
    words = sorted({*one.vocabulary, *other.vocabulary})
    place = {word: number for number, word in enumerate(words)}
    wide = []
    for topics, weights in ((one, one.weights), (other, other.weights)):
        spread = np.zeros((len(topics), len(words)))
        spread[:, [place[word] for word in topics.vocabulary]] = weights
        wide.append(spread)
    return wide[0], wide[1]


def matched(similar: Array) -> Array:
    """The similarity of each pair when topics are matched one to one, so that the pairs are as similar as can be in total."""
    from scipy.optimize import linear_sum_assignment  # takes long to import

    found: Array = similar[linear_sum_assignment(-similar)]
    return found


def stability(runs: Sequence[JudgedTopics], words: int = 10) -> float:
    """The mean Jaccard index of matched topics' top words, over all pairs of runs: 1 where every seed finds the same topics."""
    return float(np.mean([matched(shared_words(*pair, words)).mean() for pair in combinations(runs, 2)]))


def weight_stability(runs: Sequence[JudgedTopics]) -> float:
    """The mean affinity of matched topics' weights, over all pairs of runs."""
    return float(np.mean([matched(shared_weight(*pair)).mean() for pair in combinations(runs, 2)]))
