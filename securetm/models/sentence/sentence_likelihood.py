"""The loops of SentenceLDA that judge: topic shares of documents under fixed topics, and the likelihood of their sentences.

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
def fold_in_sentences(first: int, last: int, spoken: SentenceWords, logs: Array, alpha: Array, passes: int, out: Array) -> None:
    """Topic shares of documents under fixed topics (`logs`: vocabulary x topics) by CVB0: a sentence leaves its own out."""
    k, here, fresh = logs.shape[1], np.empty(logs.shape[1]), np.empty(logs.shape[1])
    for d in range(first, last):
        begin, length = spoken.draw_ends[d], spoken.draw_ends[d + 1] - spoken.draw_ends[d]
        chances, shares = np.empty((length, k)), np.empty((length, k))
        for s in range(length):
            _judge(begin + s, d, spoken, logs, chances[s])
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
def _judge(s: int, d: int, spoken: SentenceWords, logs: Array, chances: Array) -> float:
    """How likely each topic makes a sentence, beside the likeliest, of which the logarithm is returned."""
    chances[:] = 0.0
    for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
        row, count = logs[spoken.kinds[spoken.kind_ends[d] + spoken.places[e]]], spoken.counts[e]
        for z in range(len(chances)):
            chances[z] += count * row[z]
    best: float = chances.max()
    for z in range(len(chances)):
        chances[z] = math.exp(chances[z] - best)
    return best


@njit(cache=True, nogil=True)
def said_by_sentences(first: int, last: int, spoken: SentenceWords, logs: Array, shares: Array, out: Array) -> None:
    """Log-likelihood of documents' sentences under fixed topics and the documents' own shares of them."""
    chances = np.empty(logs.shape[1])
    for d in range(first, last):
        likelihood = 0.0
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            best = _judge(s, d, spoken, logs, chances)
            mixed = 0.0
            for z in range(len(chances)):
                mixed += chances[z] * shares[d, z]
            likelihood += min(best + math.log(mixed), 0.0)
        out[d] = likelihood
