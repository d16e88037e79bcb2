"""The compiled loops of SentenceLDA under fixed topics: topic shares of documents, and log-likelihoods of their sentences.

They draw nothing and keep nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.gibbs.lda_kernels import move
from securetm.models.sentence.sentence_gibbs_kernels import SentenceWords

_SETTLED = 1e-4  # of a topic's sentences in a document: folding in ends where no topic moves further


@njit(cache=True, nogil=True)
def fold_in_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, alpha: Array, passes: int, out: Array
) -> None:
    """Topic shares of documents under fixed topics (`logs`: vocabulary x topics) by CVB0 without a sentence's own share."""
    k, here, fresh = logs.shape[1], np.empty(logs.shape[1]), np.empty(logs.shape[1])
    for d in range(first, last):
        begin, length = sentences.draw_ends[d], sentences.draw_ends[d + 1] - sentences.draw_ends[d]
        chances, shares = np.empty((length, k)), np.empty((length, k))
        for s in range(length):
            _weigh(begin + s, d, sentences, logs, chances[s])
        shares[:] = 1.0 / k
        here[:] = length / k
        for _ in range(passes):
            moved = 0.0
            for s in range(length):
                moved = max(moved, move(shares[s], here, fresh, chances[s], 1, alpha))
            if moved < _SETTLED:
                break
        for z in range(k):
            out[d, z] = max(here[z], 0.0) + alpha[z]
        out[d] /= out[d].sum()


@njit(cache=True, nogil=True)
def _weigh(s: int, d: int, sentences: SentenceWords, logs: Array, chances: Array) -> float:
    """Sets each topic's likelihood of a sentence, relative to the largest. Returns the logarithm of the largest."""
    chances[:] = 0.0
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        row, count = logs[sentences.kinds[sentences.kind_ends[d] + sentences.places[e]]], sentences.counts[e]
        for z in range(len(chances)):
            chances[z] += count * row[z]
    best: float = chances.max()
    for z in range(len(chances)):
        chances[z] = math.exp(chances[z] - best)
    return best


@njit(cache=True, nogil=True)
def log_likelihoods_of_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, shares: Array, out: Array
) -> None:
    """The log-likelihood of each document's sentences under fixed topics and the documents' own shares of them."""
    chances = np.empty(logs.shape[1])
    for d in range(first, last):
        likelihood = 0.0
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            best = _weigh(s, d, sentences, logs, chances)
            mixed = 0.0
            for z in range(len(chances)):
                mixed += chances[z] * shares[d, z]
            likelihood += min(best + math.log(mixed), 0.0)
        out[d] = likelihood
