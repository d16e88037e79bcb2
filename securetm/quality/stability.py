"""How much of the topics comes back under another seed: topics of several runs, matched one to one by optimal assignment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from securetm.contracts import Array
from securetm.quality.judged_topics import JudgedTopics
from securetm.quality.similarity_scores import affinity


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
