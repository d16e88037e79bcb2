"""Learns priors from counts: how evenly documents share their topics (alpha), and topics their words (eta).

Minka's fixed point (2000; for LDA Wallach 2008) divides the expected number of tables in a Chinese restaurant by a sum over
documents. Here each document draws its number of tables by public noise. The mean is the same, and the sum is one of small
whole numbers, so a federation's sum equals the count of one machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from scipy.special import digamma

from securetm.contracts import Array
from securetm.models.document_noise import starts_of, uniform

LEAST, MOST = 1e-5, 1e2  # of any prior that is learned
_WAIT = 10  # rounds until topics are worth learning from
_BELIEF = 1.0  # the weight of the value that was set, in documents: without any document, it stays
_STEPS = 5  # of the fixed point, for eta, each round
_TABLES = 1  # the stream of a document's noise; topics are drawn from stream 0

BLOCK = "tables"  # the block beside the counts: the tables of each topic, and those of whole documents


def settled(step: int) -> bool:
    """Whether priors are learned from the topics of that round."""
    return step >= _WAIT


def learned_alpha(tables: Array, alpha: Array, first: float, symmetric: bool) -> Array:
    """Alpha after one step of the fixed point, from sums of tables that were drawn by `alpha`; `first` is the setting."""
    topics, whole = np.maximum(tables[:-1], 0.0), max(float(tables[-1]), 0.0)
    lengths = whole / alpha.sum() + _BELIEF
    found: Array = (topics + _BELIEF * first) / lengths
    return np.clip(np.full(len(found), found.mean()) if symmetric else found, LEAST, MOST)


def learned_eta(counts: Array, eta: float, first: float) -> float:
    """Eta after some steps of the fixed point. It is a function of the opened table, so no question is asked for it."""
    values, times = np.unique(np.rint(counts[counts > 0.5]), return_counts=True)
    totals, words = counts.sum(axis=1), counts.shape[1]
    for _ in range(_STEPS):
        tables = eta * (times @ (digamma(values + eta) - digamma(eta)))
        lengths = words * float(np.sum(digamma(totals + words * eta) - digamma(words * eta)))
        eta = float(np.clip((tables + _BELIEF * first) / (lengths + _BELIEF), LEAST, MOST))
    return eta


def tables_of_documents(topics: Array, draw_ends: Array, names: Array, alpha: Array, seed: int, step: int) -> Any:
    """Each document's tables as a sparse row: one number per topic, and last the whole document's."""
    noise, k = starts_of(seed, step, names, _TABLES), len(alpha)
    found = _draw_tables(topics, draw_ends, noise, alpha)
    return sparse.csr_array(found, shape=(len(names), k + 1))


@njit(cache=True, nogil=True)
def _draw_tables(topics: Array, draw_ends: Array, noise: Array, alpha: Array) -> tuple[Array, Array, Array]:
    """Every draw of a topic begins a table with probability alpha / (alpha + earlier draws of the topic)."""
    k, documents, whole = len(alpha), len(draw_ends) - 1, alpha.sum()
    room = draw_ends[-1] + documents
    values, places = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    borders, used = np.zeros(documents + 1, dtype=np.int64), 0
    before, tables = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    for d in range(documents):
        begun = 0
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z, earlier = topics[t], t - draw_ends[d]
            if uniform(noise[d], 2 * earlier) * (alpha[z] + before[z]) < alpha[z]:
                tables[z] += 1
            if uniform(noise[d], 2 * earlier + 1) * (whole + earlier) < whole:
                begun += 1
            before[z] += 1
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z = topics[t]
            if before[z]:  # a topic's first draw always begins a table
                values[used], places[used] = tables[z], z
                before[z], tables[z] = 0, 0
                used += 1
        if begun:
            values[used], places[used] = begun, k
            used += 1
        borders[d + 1] = used
    return values[:used], places[:used], borders
