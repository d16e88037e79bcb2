"""Words that occur once, followed from round to round: which of them move from topic to topic together. Pure arithmetic.

A table of counts shows of such a word in which topic it stands. Words of one document have the document's topics, words of one
sentence of SentenceLDA one and the same; of others it would be chance, and how great a chance the movements of all words show.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from securetm.contracts import Array

_SMOOTH = 2.0  # movements that are taken to have been seen as often as topics are large, so that none seems impossible
_MARGIN = float(np.log(100))  # of one way that two words share by chance, only one in a hundred gets through
BY_TOKEN, BY_SENTENCE = 0.3, 0.95  # how firmly two words of one document keep together where each is drawn alone, and where not
_SCARCE = 1e-9
_DEVIATIONS = 4.0  # from one that the noise may have carried the mean of a word's sums: further hardly one in ten thousand is
_BLOCK = 1000  # words whose likeness to all others is in memory at a time


def lone_words(tables: Array) -> Array:
    """Numbers of the words that occur once, and in every round so: of tables, rounds x topics x words."""
    whole = (tables == np.rint(tables)).all(axis=(0, 1)) & (tables >= 0).all(axis=(0, 1))
    return np.flatnonzero(whole & (tables.sum(axis=1) == 1).all(axis=0))


def ways(tables: Array, words: Array) -> Array:
    """In which topic each of these words stands: rounds x words."""
    return np.asarray(tables[:, :, words].argmax(axis=1))


def rarity(tables: Array, way: Array) -> Array:
    """How likely each step of each way was, for a word of which only the step before is known: rounds x words."""
    shares = np.maximum(tables.sum(axis=2), 0.0) / np.maximum(tables.sum(axis=(1, 2)), _SCARCE)[:, None]
    likely = np.empty(way.shape)
    likely[0] = shares[0, way[0]]
    for at in range(1, len(way)):
        seen = np.zeros((tables.shape[1], tables.shape[1]))
        np.add.at(seen, (way[at - 1], way[at]), 1.0)
        seen = (seen + _SMOOTH * shares[at]) / (seen.sum(axis=1, keepdims=True) + _SMOOTH)
        likely[at] = seen[way[at - 1], way[at]]
    return np.maximum(likely, _SCARCE)


def together(way: Array, likely: Array, firmly: float) -> Array:
    """For each pair of words, how much more likely their two ways are if they keep together than if not (a log-likelihood).

    Being in the same topic says the more, the less it was to be expected of a word that came from where this one came from;
    not being in the same says something against it, by how firmly words keep together. A word is no companion of itself.
    """
    n = way.shape[1]
    found = np.full((n, n), len(way) * np.log(1.0 - firmly), dtype=np.float32)
    for topics, chances in zip(way, likely, strict=True):
        says = np.log1p(firmly / (1.0 - firmly) / chances).astype(np.float32) / 2
        for topic in np.unique(topics):
            there = np.flatnonzero(topics == topic)
            found[np.ix_(there, there)] += says[there][:, None] + says[there]
    np.fill_diagonal(found, -np.inf)
    return found


def companions(likeness: Array) -> Array:
    """Of each word the one that most likely belongs to it."""
    return np.asarray(likeness.argmax(axis=1))


def maybe_lone_words(tables: Array, most: int) -> Array:
    """Words that may occur once, as far as noise lets tell: of those whose sums may be one, so many that are nearest to it.

    A word occurs as often in one round as in the next, so how its sums differ between rounds shows how large the noise is.
    """
    sums = tables.sum(axis=1)
    away = np.abs(sums.mean(axis=0) - 1)
    if len(sums) > 1:
        noise = float(np.median(sums.std(axis=0, ddof=1))) / np.sqrt(len(sums))
        away[away > _DEVIATIONS * noise] = np.inf
    mixed = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(away)))  # of equals, none comes first by its name
    return np.sort(mixed[np.argsort(away[mixed], kind="stable")[:most]])


def companions_behind_noise(tables: Array, words: Array) -> Array:
    """Of each word the one whose cells are most like its own over all rounds, each word's own mean taken off: of noised tables.

    Noise of different words has nothing in common, so what two words of one document share is added up over rounds and topics.
    Cells of every word are made equally large, or the most frequent words would be everybody's companions.
    """
    cells = tables[:, :, words].reshape(-1, len(words)).astype(np.float32)
    cells -= cells.mean(axis=0)
    cells /= np.maximum(np.linalg.norm(cells, axis=0), _SCARCE)
    found, best = np.zeros(len(words), dtype=np.int64), np.full(len(words), -np.inf, dtype=np.float32)
    for one in range(0, len(words), _BLOCK):
        for other in range(one, len(words), _BLOCK):
            likeness = cells[:, one : one + _BLOCK].T @ cells[:, other : other + _BLOCK]
            if one == other:
                np.fill_diagonal(likeness, -np.inf)  # no word is its own companion
            _take_likelier(found, best, one, other, likeness)
            _take_likelier(found, best, other, one, likeness.T)
    return found


def _take_likelier(found: Array, best: Array, at: int, begins: int, likeness: Array) -> None:
    """Words from `at` on take companions among those from `begins` on, where these are likelier than what they had."""
    nearest = companions(likeness)
    value = likeness[np.arange(len(nearest)), nearest]
    better = np.flatnonzero(value > best[at : at + len(nearest)])
    best[at + better], found[at + better] = value[better], begins + nearest[better]


def mutual(likeness: Array) -> Iterator[Array]:
    """Pairs of words each of which is the other's likeliest companion, and likelier so than not among that many words."""
    nearest = companions(likeness)
    for word in np.flatnonzero(nearest[nearest] == np.arange(len(nearest))):
        if word < nearest[word] and likeness[word, nearest[word]] > np.log(len(nearest)):
            yield np.array([word, nearest[word]])


def same_way(way: Array, likely: Array) -> Iterator[Array]:
    """Groups of words that went exactly the same way, where chance would hardly lead any other word along it."""
    surprise = -np.log(likely).sum(axis=0)
    _, group = np.unique(way, axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    for words in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(words) > 1 and surprise[words[0]] > np.log(way.shape[1]) + _MARGIN:
            yield words
