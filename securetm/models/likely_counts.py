"""Likely counts behind noise of a known size: totals of words, then how topics share them. It adds no noise and keeps nothing.

Both are posterior means whose priors are fitted to the noised numbers themselves (empirical Bayes). All is a function of opened
answers and of what is public, so it costs no privacy. Every sum has a fixed order.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.models.low_rank_posterior import common_means, log_evidence
from securetm.models.mixture_of_sizes import sizes_behind
from securetm.models.mixture_of_spreads import means_around

_LEAST = 1e-3  # of a count's expectation: no word is impossible in a topic
_LEAST_CENTRE = 0.02  # of a count's expectation, around which it may lie
_SMALLEST = 1e-9
_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of public frequencies, around which totals may lie
_TRIED_WORDS, _TRIED_TOPICS = 500, 10  # weights are chosen on so many
_WEIGHTS = (0.1, 0.1, 0.3)  # where the search begins: of what all words of a topic share, of similar words, of each word alone
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-6, 1e3
_STEPS = (4.0, 2.0, 2.0**0.5)  # by which a weight is multiplied or divided, coarse to fine
_MOST_MOVES = 12  # of the search, with each step
_SURE = 4.5  # of log evidence, as much as three deviations: with less, no difference from the expectation is believed


def likely_totals(found: Array, deviation: Array | float, public: Array | None = None) -> Array:
    """The likely total of each word behind noise of that deviation, which may differ by word. All are above 0.

    Totals have a prior of any form, fitted to all words together (Kiefer and Wolfowitz 1956; Jiang and Zhang 2009): in common,
    or around a power of their public frequencies, whichever makes the noised totals most probable. Without noise totals are as
    found; where there is nothing but noise, all words are alike.
    """
    deviations = np.broadcast_to(np.asarray(deviation, dtype=np.float64), found.shape)
    if not deviations.any():
        return np.maximum(found, _SMALLEST)
    deviations = np.maximum(deviations, _SMALLEST)
    best, most = _all_alike(found, deviations)
    for power in (0.0,) if public is None else _POWERS:
        base = np.ones(len(found)) if public is None else np.maximum(public / public.mean(), _SMALLEST) ** power
        sizes, evidence = sizes_behind(found / base, deviations / base)
        evidence -= float(np.log(base).sum()) + (2 * _SURE if power else _SURE)
        if evidence > most:
            best, most = base * sizes, evidence
    totals: Array = np.maximum(best, _SMALLEST)
    return totals


def _all_alike(found: Array, deviations: Array) -> tuple[Array, float]:
    """The same total for every word, and the log density of the noised totals if it is true."""
    sure = 1.0 / np.square(deviations)
    mean = max(float((found * sure).sum() / sure.sum()), _LEAST * float(deviations.min()))
    evidence = -0.5 * np.square((found - mean) / deviations) - np.log(deviations)
    return np.full(found.shape, mean), float(evidence.sum())


def likely_counts(found: Array, deviation: Array | float, asked: Array, totals: Array, vectors: Array | None = None) -> Array:
    """The likely counts, topics x words, behind noise of that deviation, which may differ by word.

    A count's expectation is the share of its word that the topic had when the question was asked, times the word's likely
    total, moved by what all words of the topic have in common and by what similar words have (by `vectors`). How much it is
    moved, and how far true counts lie around it, is what makes the noised counts most probable. So without noise the counts
    come out; where noise explains all differences, the expectation does. No count is negative, and each word's counts sum to
    its likely total.
    """
    deviations = np.broadcast_to(np.asarray(deviation, dtype=np.float64), found.shape[1:])
    if not deviations.any():
        return np.maximum(found, 0.0)
    expected = shares_of_words(asked) * totals
    scale = np.sqrt(expected * (totals / len(found)))
    apart, noise = found - expected, np.square(np.maximum(deviations, _SMALLEST))
    features = _features(len(totals), vectors)
    weights = _weights(apart, scale, noise, features)
    if not any(weights):
        return expected
    common = common_means(apart, scale, noise, features * np.sqrt(_by_feature(weights, features)), weights[2])
    centres = np.maximum(expected + common, _LEAST_CENTRE * expected)
    spread = np.sqrt(centres * (totals / len(found)))
    counts = means_around(found, centres, spread, np.broadcast_to(noise, found.shape))
    counts = np.maximum(counts, _LEAST * expected)
    scaled: Array = counts * (totals / counts.sum(axis=0))
    return scaled


def shares_of_words(counts: Array) -> Array:
    """The share of each topic in each word's counts; equal shares of a word without any."""
    known = np.maximum(counts, 0.0) + _SMALLEST
    shares: Array = known / known.sum(axis=0)
    return shares


def _features(words: int, vectors: Array | None) -> Array:
    """One number that is the same for all words, and the words' vectors."""
    ones = np.ones((words, 1))
    return ones if vectors is None else np.concatenate([ones, vectors.astype(np.float64)], axis=1)


def _by_feature(weights: tuple[float, float, float], features: Array) -> Array:
    return np.array([weights[0]] + [weights[1]] * (features.shape[1] - 1))


def _weights(apart: Array, scale: Array, noise: Array, features: Array) -> tuple[float, float, float]:
    """The weights that make the table most probable: a search by coordinates, on some words and topics where there are many.

    They are powers of one number, so that a last bit that differs elsewhere chooses no other weights.
    """
    topics, words = slice(None, None, -(-len(apart) // _TRIED_TOPICS)), slice(None, None, -(-len(noise) // _TRIED_WORDS))
    facts = apart[topics, words], scale[topics, words], noise[words]

    def evidence(weights: tuple[float, float, float]) -> float:
        return log_evidence(*facts, features[words] * np.sqrt(_by_feature(weights, features)), weights[2])

    none = evidence((0.0, 0.0, 0.0))
    best, known = _WEIGHTS, evidence(_WEIGHTS)
    for step in _STEPS:
        for _ in range(_MOST_MOVES):
            moves = [_moved(best, n, by) for n in range(3) if n != 1 or features.shape[1] > 1 for by in (step, 1.0 / step)]
            tried = [(evidence(move), move) for move in moves]
            found, move = max(tried)
            if found <= known:
                break
            best, known = move, found
    return best if known > none + _SURE else (0.0, 0.0, 0.0)


def _moved(weights: tuple[float, float, float], which: int, factor: float) -> tuple[float, float, float]:
    moved = [min(max(w * factor if n == which else w, _LEAST_WEIGHT), _MOST_WEIGHT) for n, w in enumerate(weights)]
    return moved[0], moved[1], moved[2]
