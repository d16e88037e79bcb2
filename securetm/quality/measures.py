"""How topics and topic weights are measured: by a classifier of labels, by windows and word vectors, and against other topics.

A window slides by one word and stays within a document; a shorter document is one window. Negative ids are words outside the
vocabulary: they take a place in the window and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.errors import SecuretmError
from securetm.models.quality import distinct_words, npmi_of_topics, pairs_within
from securetm.quality.judged_topics import JudgedTopics

# ---- labels from topic weights alone, as FedNMF judges its models -----------------------------------------------------


FOLDS = 5  # each document is tried once, by a classifier of the other 80 % (FedNMF: one split of 80 and 20 %)
_LEAST = 1e-4  # is added to each weight before its logarithm is taken


class TooFewLabels(SecuretmError):
    """classification needs two labels with two documents each, and finds {found} of them in {documents:document|documents}"""

    documents: int
    found: int
    hint = "name the column of the label: --label COLUMN (in Python label=)"


@dataclass(frozen=True, eq=False)
class Classified:
    """What a linear classifier says of each document that it was not trained on."""

    labels: Array
    said: Array

    @property
    def right(self) -> Array:
        return np.asarray(self.labels == self.said)

    @property
    def accuracy(self) -> float:
        """The share of documents that get their label."""
        return float(self.right.mean())

    @property
    def macro_f1(self) -> float:
        """The mean over labels of the harmonic mean of precision and recall: rare labels count as much as frequent ones."""
        from sklearn.metrics import f1_score  # takes long to import

        return float(f1_score(self.labels, self.said, average="macro", zero_division=0))


def classified(weights: Array, labels: Any, *, seed: int = 0) -> Classified:
    """Tries every document once: a linear SVM learns from the topic weights of four fifths and says the labels of the rest.

    `weights` are documents x topics. A document without a label ("") takes no part. The seed decides the five parts, in each of
    which a label has about the same share.
    """
    labels = np.asarray(labels, dtype=np.str_)
    there = np.flatnonzero(labels != "")
    weights, labels = np.asarray(weights)[there], labels[there]
    enough = int(np.count_nonzero(np.unique(labels, return_counts=True)[1] > 1))
    if enough < 2:
        raise TooFewLabels(len(labels), enough)
    order = np.lexsort((np.random.default_rng(seed).random(len(labels)), labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % FOLDS
    said = labels.copy()
    for number in range(FOLDS):
        tried = fold == number
        if tried.any():
            said[tried] = said_by_svm(weights[~tried], labels[~tried], weights[tried])
    return Classified(labels, said)


def said_by_svm(known: Array, labels: Array, tried: Array) -> Array:
    """The labels that a linear SVM gives documents, from the topic weights of documents with known labels.

    It reads logarithms of weights, each topic's scaled to unit variance: so a rare topic counts as much as a frequent one.
    """
    from sklearn.svm import LinearSVC  # takes long to import

    logs = np.log(known + _LEAST)
    middle, spread = logs.mean(axis=0), logs.std(axis=0) + 1e-9
    svm = LinearSVC(C=0.1, dual=False).fit((logs - middle) / spread, labels)
    found: Array = svm.predict((np.log(tried + _LEAST) - middle) / spread)
    return found


# ---- coherence: NPMI, and c_v of Röder, Both and Hinneburg 2015; by word vectors (FedNMF) -----------------------------


_SMALL = 1e-12  # the paper's epsilon, in place of a probability of zero


def window_npmi(top: Array, tokens: Array, token_ends: Array, window: int = 10) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the sliding windows that hold both words (the paper's C_NPMI)."""
    place, together, windows = _windows_with(top, tokens, token_ends, window)
    return npmi_of_topics(place, together, windows)


def c_v(top: Array, tokens: Array, token_ends: Array, window: int = 110) -> Array:
    """Each topic's c_v: how alike each top word is to all of them together, in the company that it keeps.

    A word's vector holds its NPMI with each of the topic's top words, itself included, by windows of 110 words. The topic's
    vector is their sum, and c_v the mean cosine of the words' vectors to it. A word that never occurs has a vector of zeros,
    and is similar to none.
    """
    place, together, windows = _windows_with(top, tokens, token_ends, window)
    return np.array([_one_against_all(together[np.ix_(row, row)], windows) for row in place])


def _one_against_all(together: Array, windows: int) -> float:
    """The mean cosine of each word's vector of NPMI to the sum of all (segmentation of one against the set)."""
    joint = together / max(windows, 1) + _SMALL
    alone = np.diagonal(together) / max(windows, 1)
    there = np.outer(alone, alone) > 0
    ratio = np.log(joint / np.where(there, np.outer(alone, alone), 1.0))
    vectors = np.where(there, ratio / -np.log(np.minimum(joint, 1 - _SMALL)), 0.0)
    whole = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    return float(np.mean(np.divide(vectors @ whole, lengths, out=np.zeros(len(vectors)), where=lengths > 0)))


# ---- counting windows ------------------------------------------------------------------------------------------------


def _windows_with(top: Array, tokens: Array, token_ends: Array, window: int) -> tuple[Array, Array, int]:
    """The place of each top word among the distinct ones; how many windows hold each pair of these; how many there are."""
    words, place = distinct_words(top)
    tokens = np.asarray(tokens, dtype=np.int32)
    column = np.full(max(int(words[-1]), int(tokens.max(initial=0))) + 1, -1, dtype=np.int32)
    column[words] = np.arange(len(words))
    relevant = np.where(tokens < 0, np.int32(-1), column[tokens])
    together, windows = _count_windows(relevant, np.asarray(token_ends, dtype=np.int64), len(words), window)
    return place, together + np.triu(together, 1).T, windows


@njit(cache=True)
def _count_windows(tokens: Array, ends: Array, words: int, window: int) -> tuple[Array, int]:
    """The number of windows with each pair (upper triangle) and with each word (diagonal); and the number of all windows.

    `inside` lists the relevant words of the current window, each once, and `since` the window at which each came in. Windows
    are counted when a word leaves: a step costs nothing as long as the same words stay.
    """
    together = np.zeros((words, words), dtype=np.int64)
    copies, since = np.zeros(words, dtype=np.int64), np.zeros(words, dtype=np.int64)
    inside = np.empty(min(window, words) + 1, dtype=np.int64)
    windows = 0
    start = 0
    for end in ends:
        held = 0
        for place in range(start, end):
            now = max(place - window + 1 - start, 0)
            if place - window >= start:
                held = _drop(tokens[place - window], now, copies, since, inside, held, together)
            held = _take_in(tokens[place], now, copies, since, inside, held)
        here = max(end - start - window + 1, 1) if end > start else 0
        while held > 0:
            copies[inside[held - 1]] = 1
            held = _drop(inside[held - 1], here, copies, since, inside, held, together)
        windows += here
        start = end
    return together, windows


@njit(cache=True, inline="always")
def _take_in(word: int, now: int, copies: Array, since: Array, inside: Array, held: int) -> int:
    if word < 0:
        return held
    copies[word] += 1
    if copies[word] > 1:
        return held
    since[word] = now
    inside[held] = word
    return held + 1


@njit(cache=True, inline="always")
def _drop(word: int, now: int, copies: Array, since: Array, inside: Array, held: int, together: Array) -> int:
    """Takes one occurrence out. Where it was the last one, the word's windows with every word beside it are counted."""
    if word < 0:
        return held
    copies[word] -= 1
    if copies[word] > 0:
        return held
    gone = 0
    for i in range(held):
        other = inside[i]
        together[min(word, other), max(word, other)] += now - max(since[word], since[other])
        if other == word:
            gone = i
    inside[gone] = inside[held - 1]
    return held - 1


def embedding_coherence(top: Array, vectors: Array) -> Array:
    """Each topic's mean cosine over pairs of its top words' vectors; a word whose vector is zero is similar to none.

    `top` holds row numbers of `vectors`, one row of them for each topic.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)[top]
    cosines = unit @ unit.transpose(0, 2, 1)
    first, second = pairs_within(top)
    found: Array = cosines[:, first, second].mean(axis=1)
    return found


# ---- agreement of two models, of a model with the truth (gFedNTM), or of runs of several seeds ------------------------


def affinity(left: Array, right: Array) -> Array:
    """One minus the squared Hellinger distance of every row of `left` to every row of `right`: 1 if equal, 0 if disjoint."""
    return np.sqrt(left) @ np.sqrt(right).T


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


def closest_distances(mine: Sequence[WeightedWords], others: Sequence[WeightedWords]) -> Array:
    """Each topic's distance to the closest of the other topics. gFedNTM's AMWMD (Eq. 7) is the sum of them.

    The others are tried in the order of their middles; none is tried that its middle shows to be farther than the best.
    """
    found = []
    middles = np.array([other.middle for other in others])
    for one in mine:
        at_least, best = np.linalg.norm(middles - one.middle, axis=1), np.inf
        for place in np.argsort(at_least, kind="stable"):
            if at_least[place] >= best:
                break
            best = min(best, mover_distance(one, others[place]))
        found.append(best)
    return np.array(found)


def shared_words(one: JudgedTopics, other: JudgedTopics, words: int = 10) -> Array:
    """The Jaccard index of the top words of every topic of one with every topic of the other: 1 if they are the same words."""
    left, right = ([frozenset(row) for row in topics.first(words)] for topics in (one, other))
    return np.array([[len(mine & theirs) / len(mine | theirs) for theirs in right] for mine in left])


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
    return float(np.mean([matched(affinity(*on_common_words(*pair))).mean() for pair in combinations(runs, 2)]))
