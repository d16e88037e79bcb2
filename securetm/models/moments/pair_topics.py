"""Topics that explain a sum of pairs of words, by a symmetric factorisation with nothing negative. It knows no privacy.

Even pairs are fitted by `T' T`, with T of topics x words, in least squares. No word was counted with itself, so these pairs are
left out.
Products are summed in a fixed order, so that topics are the same on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.models.moments.pair_sums import PairSums
from securetm.models.neural.fixed_order import add_product
from securetm.models.nmf.nmf_kernels import improve, overlaps

_BACKGROUND = 0.01  # the share of the words' own frequencies in every topic: no word is impossible
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class PairTopics:
    """Topics, how much of all words each takes, and how often two stand in one document."""

    topics: Array  # topics x words, rows sum to one
    prevalence: Array  # of each topic; they sum to one
    together: Array  # topics x topics: pairs of words of these two topics over what is expected by chance


def factorised(sums: PairSums, start: Array, passes: int) -> PairTopics:
    """The topics that are nearest to the sums, from these shares of topics x words on."""
    even, factors = sums.even.copy(), sums.factors
    one = _begun(even, start * sums.frequencies * factors)
    other = one.copy()
    for _ in range(passes):
        one, other = _improved(one, other, even)
        other, one = _improved(other, one, even)
    found = (one + other) / factors
    masses = np.maximum(found.sum(axis=1, keepdims=True), _TINY)
    topics = (1.0 - _BACKGROUND) * found / masses + _BACKGROUND * sums.frequencies
    topics /= topics.sum(axis=1, keepdims=True)
    prevalence = np.square(masses[:, 0]) / np.square(masses).sum()
    return PairTopics(topics, prevalence, _together(even, topics * factors, prevalence))


def _begun(even: Array, topics: Array) -> Array:
    """Topics whose products have the same sum as the pairs."""
    mine = np.square(topics.sum(axis=1)).sum()
    scaled: Array = topics * np.sqrt(max(float(even.sum()), _TINY) / max(float(mine), _TINY))
    return scaled


def _improved(topics: Array, beside: Array, even: Array) -> tuple[Array, Array]:
    """One factor after a step of block coordinate descent beside the other one; then both are scaled to the same lengths."""
    np.fill_diagonal(even, (topics * beside).sum(axis=0))
    words_of = np.zeros(topics.shape)
    add_product(beside, even, words_of)
    found = topics.copy()
    improve(found, overlaps(beside), words_of, 1)
    mine, others = (np.sqrt(np.square(each).sum(axis=1, keepdims=True)) for each in (found, beside))
    scale = np.sqrt(np.maximum(others, _TINY) / np.maximum(mine, _TINY))
    return found * scale, beside / scale


def _together(even: Array, topics: Array, prevalence: Array) -> Array:
    """How much more often than by chance two topics stand in one document: least squares of pairs of topics."""
    inner = np.linalg.pinv(topics @ topics.T, hermitian=True)
    found = np.maximum(inner @ (topics @ even @ topics.T) @ inner, 0.0)
    found = (found + found.T) / max(float(found.sum()) * 2.0, _TINY)
    by_chance: Array = found / np.maximum(np.outer(prevalence, prevalence), _TINY)
    return by_chance
