"""Topics that explain a sum of pairs of words, by a symmetric factorisation with nothing negative. It knows no privacy.

Even pairs are fitted by `T' T`, with T of topics x words, in least squares. No word was counted with itself, so these pairs are
left out.
Products are summed in a fixed order, so that topics are the same on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.models.moments.moments_kernels import improve
from securetm.models.moments.pair_sums import PairSums
from securetm.models.neural.fixed_order import add_product
from securetm.models.nmf.nmf_kernels import overlaps

_BACKGROUND, _UNSURE = 0.01, 0.5  # the share of the words' own frequencies in every topic: surely known, and pure noise
_FROM_PUBLIC, _FROM_FREQUENCIES = 5.0, 10.0  # how far a word's share of a topic may be from what is expected (squared)
_OF_PUBLIC = 0.6  # the share of public topics in what is expected; word frequencies are the rest
_LEAST = 1e-3  # of what is expected of a word in a topic
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class PairTopics:
    """Topics, how much of all words each takes, and how often two stand in one document."""

    topics: Array  # topics x words, rows sum to one
    prevalence: Array  # of each topic; they sum to one
    together: Array  # topics x topics: pairs of words of these two topics over what is expected by chance


def factorised(sums: PairSums, start: Array, passes: int, public: Array | None = None) -> PairTopics:
    """The topics that are nearest to the sums, from these shares of topics x words on.

    Each topic is expected to have the words of a public one, or the words' own frequencies, and may be so far from them that
    the noise decides how much of what is found is believed.
    """
    plain = np.tile(sums.frequencies, (len(start), 1))
    fit = _Fit(sums, plain if public is None else _OF_PUBLIC * public + (1.0 - _OF_PUBLIC) * plain, public is not None)
    one = fit.begun(start)
    other = one.copy()
    for _ in range(passes):
        one, other = fit.improved(one, other)
        other, one = fit.improved(other, one)
    found = (one + other) / sums.factors
    masses = np.maximum(found.sum(axis=1, keepdims=True), _TINY)
    background = background_of(sums.beyond_chance)
    topics = (1.0 - background) * found / masses + background * sums.frequencies
    topics /= topics.sum(axis=1, keepdims=True)
    prevalence = np.square(masses[:, 0]) / np.square(masses).sum()
    return PairTopics(topics, prevalence, _together(fit.even, topics * sums.factors, prevalence))


def background_of(beyond: int) -> float:
    """The share of word frequencies in every topic where so many directions stand beyond noise: never less than they say."""
    return float(_BACKGROUND + _UNSURE / (1.0 + beyond) ** 1.5)


class _Fit:
    """The even pairs, whose diagonal follows the topics, and what is expected of topics."""

    def __init__(self, sums: PairSums, expected: Array, public: bool) -> None:
        self.sums, self.even = sums, sums.even.copy()
        self._expected = np.ascontiguousarray(expected)
        self._spread = np.sqrt((_FROM_PUBLIC if public else _FROM_FREQUENCIES) * expected * sums.frequencies)

    def begun(self, start: Array) -> Array:
        """Topics whose products have the same sum as the pairs."""
        topics = start * self.sums.frequencies * self.sums.factors
        mine = np.square(topics.sum(axis=1)).sum()
        scaled: Array = topics * np.sqrt(max(float(self.even.sum()), _TINY) / max(float(mine), _TINY))
        return scaled

    def improved(self, topics: Array, beside: Array) -> tuple[Array, Array]:
        """One factor after a step of block coordinate descent beside the other; then both are scaled to the same lengths."""
        np.fill_diagonal(self.even, (topics * beside).sum(axis=0))
        words_of = np.zeros(topics.shape)
        add_product(beside, self.even, words_of)
        found, sums = topics.copy(), self.sums
        expected = self._expected, self._spread
        improve(found, overlaps(beside), words_of, sums.noise_beside(beside), sums.factors, *expected, _LEAST)
        mine, others = (np.sqrt(np.square(each).sum(axis=1, keepdims=True)) for each in (found, beside))
        scale = np.sqrt(np.maximum(others, _TINY) / np.maximum(mine, _TINY))
        return found * scale, beside / scale


def _together(even: Array, topics: Array, prevalence: Array) -> Array:
    """How much more often than by chance two topics stand in one document: least squares of pairs of topics.

    Rounded, as the last bits are those of a library.
    """
    inner = np.linalg.pinv(topics @ topics.T, hermitian=True)
    found = np.maximum(inner @ (topics @ even @ topics.T) @ inner, 0.0)
    found = (found + found.T) / max(float(found.sum()) * 2.0, _TINY)
    by_chance: Array = np.round(found / np.maximum(np.outer(prevalence, prevalence), _TINY), 3)
    return by_chance
