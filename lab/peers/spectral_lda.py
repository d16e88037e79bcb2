"""Private spectral LDA (DeCarolis et al., ICML 2020, arXiv 1805.10341) as a baseline. One curator holds all documents.

The second moment of the words is whitened, the whitened third moment (topics x topics x topics) is decomposed by tensor power
iterations (Anandkumar et al. 2014), and topics come out by un-whitening. The paper names places for noise, and calls a set of
places that protects a document a configuration. This is its second one: noise in the whitened third moment (e6) and in the
un-whitening (e8). Unlike the first one's, its noise does not grow with the cube of the words. Sensitivities are the formulas of
the authors' program (umd-huang-lab/private-topic-model-tensor-methods, `configurations.py`), of e6 the dominating term alone.
They rest on the eigenvalue of the last topic, which is estimated with noise, as they say. In the baseline's favour the noise is
calibrated by our accountants, as that of three Gaussians, and half of delta covers the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting import GaussianDpEvent
from scipy import sparse
from scipy.special import ndtri

from lab.documents import JudgedDocuments
from securetm.accounting.calibration import noise_for
from securetm.accounting.spends import Spend
from securetm.contracts import Array

FEWEST_WORDS = 3  # of a document: a third moment needs three words
SHARES = (0.1, 0.45, 0.45)  # of the budget: the last topic's eigenvalue, the third moment, the un-whitening
ALPHA = 0.1  # of each topic, as the other models have
_RESTARTS, _TURNS = 30, 60  # of a tensor power iteration
_LEAST = 1e-12
_BACKGROUND = 0.01  # the share of word frequencies in every topic, as `moments` has: without it a topic lacks words


@dataclass(frozen=True)
class PrivateSpectralLDA:
    """Topics by spectral LDA, with Gaussian noise for this epsilon and delta of each document; without epsilon, no noise."""

    topics: int
    epsilon: float | None
    delta: float
    seed: int = 0

    def fit(self, counts: sparse.csr_array) -> Array:
        rng = np.random.default_rng(self.seed)
        held = sparse.csr_array(
            counts[np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() >= FEWEST_WORDS)], dtype=np.float64
        )
        second = _SecondMoment.of(held, self.topics, ALPHA * self.topics)
        third = _whitened_third(held, second)
        unwhitening = second.unwhitening.copy()
        if self.epsilon is not None:
            for_third, for_unwhitening = self._deviations(second, held.shape[0], rng)
            third = third + _symmetric(rng.normal(0.0, for_third, third.shape))
            unwhitening = unwhitening + rng.normal(0.0, for_unwhitening, unwhitening.shape)
        return _topics_of(_decomposed(third, rng), unwhitening, second.words)

    def _deviations(self, second: _SecondMoment, documents: int, rng: np.random.Generator) -> tuple[float, float]:
        """The deviations of the noise in the third moment and in the un-whitening."""
        whole, a = self._multiplier(), second.concentration
        each = [whole / math.sqrt(share) for share in SHARES]
        by_two = (2 + 4 * a / (a + 1)) / documents * a * (a + 1)
        by_three = (2 + 4 * a / (a + 2) + 12 * a**2 / ((a + 1) * (a + 2))) / documents * a * (a + 1) * (a + 2) / 2
        noise = each[0] * by_two  # no eigenvalue moves further than the matrix
        surely = second.values[-1] + rng.normal(0.0, noise) + ndtri(self.delta / 2) * noise
        last = max(surely - by_two, 1e-3)  # the least that their program assumes is 0.1
        return each[1] * by_three * self.topics**1.5 / last**1.5, each[2] * by_two

    def _multiplier(self) -> float:
        """The noise multiplier of one Gaussian with the whole budget; half of delta is for the eigenvalue's estimate."""
        assert self.epsilon is not None
        return noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], self.epsilon, self.delta / 2, 0.05, 1000.0)


def by_spectral_lda(documents: JudgedDocuments, topics: int, judging: float, epsilon: float | None, delta: float) -> Array:
    """Topics x words, learned from the documents that parties would train on."""
    known = documents.held_back(1 - judging, 0)[0]
    return PrivateSpectralLDA(topics, epsilon, delta).fit(sparse.csr_array(known.counts))


@dataclass(frozen=True, eq=False)
class _SecondMoment:
    """The first two moments of the words, and the whitening that follows from them."""

    concentration: float  # the sum of alpha
    words: Array  # the first moment
    values: Array  # the largest eigenvalues of the second moment, scaled as the paper does
    directions: Array  # words x topics

    @classmethod
    def of(cls, counts: sparse.csr_array, topics: int, a: float) -> _SecondMoment:
        """Of documents with at least three words."""
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        first = np.asarray((_scaled(counts, 1.0 / lengths)).sum(axis=0)).ravel() / len(lengths)
        weighed = _scaled(counts, 1.0 / (lengths * (lengths - 1.0)))
        pairs = (counts.T @ weighed).toarray() - np.diag(np.asarray(weighed.sum(axis=0)).ravel())
        whole = a * (a + 1.0) * (pairs / len(lengths) - a / (a + 1.0) * np.outer(first, first))
        values, directions = np.linalg.eigh((whole + whole.T) / 2.0)
        return cls(a, first, np.maximum(values[::-1][:topics], _LEAST), directions[:, ::-1][:, :topics])

    @property
    def whitening(self) -> Array:
        """Words x topics."""
        found: Array = self.directions / np.sqrt(self.values)
        return found

    @property
    def unwhitening(self) -> Array:
        """Words x topics."""
        found: Array = self.directions * np.sqrt(self.values)
        return found


def _scaled(counts: sparse.csr_array, weights: Array) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array(weights) @ counts)


def _whitened_third(counts: sparse.csr_array, second: _SecondMoment) -> Array:
    """The third moment times the whitening in each of its three directions; the raw one, words^3, is never made."""
    a, w = second.concentration, second.whitening
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    three, two = 1.0 / (lengths * (lengths - 1.0) * (lengths - 2.0)), 1.0 / (lengths * (lengths - 1.0))
    y, m = counts @ w, w.T @ second.words
    by_word = _scaled(counts, three).T @ y  # words x topics
    raw = np.einsum("di,dj,dk->ijk", y * three[:, None], y, y, optimize=True)
    raw -= 3.0 * _symmetric(np.einsum("vi,vj,vk->ijk", w, w, by_word, optimize=True))
    raw += 2.0 * np.einsum("vi,vj,vk->ijk", w * (counts.T @ three)[:, None], w, w, optimize=True)
    pairs = (y * two[:, None]).T @ y - (w * (counts.T @ two)[:, None]).T @ w
    beside = 3.0 * _symmetric(np.einsum("ij,k->ijk", pairs, m)) / len(lengths)
    alone = np.einsum("i,j,k->ijk", m, m, m)
    whole = raw / len(lengths) - a / (a + 2.0) * beside + 2.0 * a**2 / ((a + 1.0) * (a + 2.0)) * alone
    found: Array = a * (a + 1.0) * (a + 2.0) / 2.0 * whole
    return found


def _symmetric(tensor: Array) -> Array:
    """The mean over all orders of the three directions. Noise that was added in full is smaller afterwards, at no cost."""
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    found: Array = sum((tensor.transpose(order) for order in orders), np.zeros(tensor.shape)) / len(orders)
    return found


def _decomposed(tensor: Array, rng: np.random.Generator) -> list[tuple[float, Array]]:
    """Eigenvalues and eigenvectors, one after the other: the best of several starts, then deflation."""
    found, left = [], tensor.copy()
    for _ in range(len(tensor)):
        tried = [_powered(left, rng.normal(size=len(tensor))) for _ in range(_RESTARTS)]
        value, vector = max(tried, key=lambda one: one[0])
        found.append((value, vector))
        left -= value * np.einsum("i,j,k->ijk", vector, vector, vector)
    return found


def _powered(tensor: Array, start: Array) -> tuple[float, Array]:
    vector = start / np.linalg.norm(start)
    for _ in range(_TURNS):
        vector = np.tensordot(np.tensordot(tensor, vector, 1), vector, 1)
        vector /= max(float(np.linalg.norm(vector)), _LEAST)
    return float(np.tensordot(np.tensordot(tensor, vector, 1), vector, 1) @ vector), vector


def _topics_of(found: list[tuple[float, Array]], unwhitening: Array, words: Array) -> Array:
    """Each eigenvector as a distribution over the words: un-whitened, and the nearest point where nothing is negative."""
    rows = []
    for value, vector in found:
        raw = value * (unwhitening @ vector)
        rows.append(_on_simplex(raw if raw.sum() >= 0 else -raw))
    topics: Array = (1.0 - _BACKGROUND) * np.array(rows) + _BACKGROUND * words
    return topics


def _on_simplex(row: Array) -> Array:
    """The nearest distribution (Duchi et al. 2008)."""
    falling = np.sort(row)[::-1]
    over = (np.cumsum(falling) - 1.0) / np.arange(1, len(row) + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    found: Array = np.maximum(row - over[last], 0.0)
    return found
