"""Words that occur once, followed from round to round: which of them change their topics together? Pure arithmetic.

A table of counts shows the topic of such a word. Words of one document have the document's topics; words of one sentence of
SentenceLDA have the same topic. Other words agree only by chance, and the changes of all words show how likely that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from securetm.contracts import Array

_SMOOTH = 2.0  # pseudo-counts of changes, in proportion to the topics' sizes, so none has probability 0
_MARGIN = float(np.log(100))  # only one in a hundred chance agreements passes
BY_TOKEN, BY_SENTENCE = 0.3, 0.95  # how often two words of one document agree: words drawn one by one, and whole sentences
_SCARCE = 1e-9
_DEVIATIONS = 4.0  # of noise: a word's mean count may differ so much from one; chance of more: below 1 in 10,000
_BLOCK = 1000  # words whose similarities are in memory at a time


def lone_words(tables: Array) -> Array:
    """The words that occur exactly once in every round. `tables`: rounds x topics x words."""
    whole = (tables == np.rint(tables)).all(axis=(0, 1)) & (tables >= 0).all(axis=(0, 1))
    return np.flatnonzero(whole & (tables.sum(axis=1) == 1).all(axis=0))


def topics_of(tables: Array, words: Array) -> Array:
    """The topic of each of these words: rounds x words."""
    return np.asarray(tables[:, :, words].argmax(axis=1))


def topic_probabilities(tables: Array, topics: Array) -> Array:
    """The probability of each topic given the previous one: rounds x words."""
    shares = np.maximum(tables.sum(axis=2), 0.0) / np.maximum(tables.sum(axis=(1, 2)), _SCARCE)[:, None]
    probabilities = np.empty(topics.shape)
    probabilities[0] = shares[0, topics[0]]
    for at in range(1, len(topics)):
        seen = np.zeros((tables.shape[1], tables.shape[1]))
        np.add.at(seen, (topics[at - 1], topics[at]), 1.0)
        seen = (seen + _SMOOTH * shares[at]) / (seen.sum(axis=1, keepdims=True) + _SMOOTH)
        probabilities[at] = seen[topics[at - 1], topics[at]]
    return np.maximum(probabilities, _SCARCE)


def link_scores(topics: Array, probabilities: Array, agreement: float) -> Array:
    """The log-likelihood ratio of each pair of words: that their topics are linked, against that they are independent.

    `agreement` is how often linked words have the same topic. A common topic counts more if it was less likely; different
    topics count against the link. No word is linked to itself.
    """
    n = topics.shape[1]
    found = np.full((n, n), len(topics) * np.log(1.0 - agreement), dtype=np.float32)
    for in_round, each in zip(topics, probabilities, strict=True):
        gain = np.log1p(agreement / (1.0 - agreement) / each).astype(np.float32) / 2
        for one in np.unique(in_round):
            there = np.flatnonzero(in_round == one)
            found[np.ix_(there, there)] += gain[there][:, None] + gain[there]
    np.fill_diagonal(found, -np.inf)
    return found


def companions(scores: Array) -> Array:
    """The likeliest companion of each word."""
    return np.asarray(scores.argmax(axis=1))


def maybe_lone_words(tables: Array, most: int) -> Array:
    """The words with noised sums nearest to one, of those that may occur once.

    A word occurs equally often in all rounds, so the differences between rounds show the size of the noise.
    """
    sums = tables.sum(axis=1)
    away = np.abs(sums.mean(axis=0) - 1)
    if len(sums) > 1:
        noise = float(np.median(sums.std(axis=0, ddof=1))) / np.sqrt(len(sums))
        away[away > _DEVIATIONS * noise] = np.inf
    mixed = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(away)))  # ties are broken at random
    return np.sort(mixed[np.argsort(away[mixed], kind="stable")[:most]])


def companions_behind_noise(tables: Array, words: Array) -> Array:
    """The likeliest companion of each word in noised tables, by the correlation of their cells over all rounds and topics.

    Noise of different words is independent, so only what two words of one document share adds up. Cells are normalised, or the
    most frequent words would be the companions of all.
    """
    cells = tables[:, :, words].reshape(tables.shape[0] * tables.shape[1], len(words)).astype(np.float32)
    cells -= cells.mean(axis=0)
    cells /= np.maximum(np.linalg.norm(cells, axis=0), _SCARCE)
    found, best = np.zeros(len(words), dtype=np.int64), np.full(len(words), -np.inf, dtype=np.float32)
    for one in range(0, len(words), _BLOCK):
        for other in range(one, len(words), _BLOCK):
            scores = cells[:, one : one + _BLOCK].T @ cells[:, other : other + _BLOCK]
            if one == other:
                np.fill_diagonal(scores, -np.inf)  # no word is its own companion
            _take_likelier(found, best, one, other, scores)
            _take_likelier(found, best, other, one, scores.T)
    return found


def _take_likelier(found: Array, best: Array, at: int, begins: int, scores: Array) -> None:
    """Updates the companions of the words from `at` on with likelier ones among those from `begins` on."""
    nearest = companions(scores)
    value = scores[np.arange(len(nearest)), nearest]
    better = np.flatnonzero(value > best[at : at + len(nearest)])
    best[at + better], found[at + better] = value[better], begins + nearest[better]


def mutual_companions(scores: Array) -> Iterator[Array]:
    """Pairs of words that are each other's likeliest companions, and likelier linked than not among so many words."""
    nearest = companions(scores)
    for word in np.flatnonzero(nearest[nearest] == np.arange(len(nearest))):
        if word < nearest[word] and scores[word, nearest[word]] > np.log(len(nearest)):
            yield np.array([word, nearest[word]])


def same_topics(topics: Array, probabilities: Array) -> Iterator[Array]:
    """Groups of words with the same topics in all rounds, if chance would hardly give another word the same."""
    surprise = -np.log(probabilities).sum(axis=0)
    _, group = np.unique(topics, axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    for words in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(words) > 1 and surprise[words[0]] > np.log(topics.shape[1]) + _MARGIN:
            yield words
