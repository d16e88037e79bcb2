"""Priors learned from counts: how evenly documents share their topics (alpha), and topics their words (eta). It draws no topic.

Minka's fixed point (2000; for LDA Wallach 2008) divides how many tables a Chinese restaurant needs on average by a sum over
documents. Here each document draws how many it needs, by public noise: the mean is the same, and what is summed is small whole
numbers, of which a federation's sum is what one machine would count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from scipy.special import digamma

from securetm.contracts import Array, Block, ClippedSum, Losses, Rows
from securetm.models.document_noise import starts_of, uniform

LEAST, MOST = 1e-5, 1e2  # of any prior that is learned
_WAIT = 10  # rounds until topics are worth learning from
_BELIEF = 1.0  # how many steps of a document's length what was set at first counts for, so that nothing is learned of nothing
_STEPS = 5  # of the fixed point, for eta, each round
_TABLES = 1  # the stream of a document's noise; topics are drawn from another

BLOCK = "tables"


def block_of(topics: int) -> Block:
    """What is asked beside the counts: the tables of each topic, and those of whole documents."""
    return Block(BLOCK, (topics + 1,))


def settled(step: int) -> bool:
    """Whether topics of that round are worth learning from."""
    return step >= _WAIT


def learned_alpha(tables: Array, alpha: Array, first: float, symmetric: bool) -> Array:
    """Alpha after one step of the fixed point, from sums of tables that were drawn by `alpha`; `first` is what was set."""
    topics, whole = np.maximum(tables[:-1], 0.0), max(float(tables[-1]), 0.0)
    lengths = whole / alpha.sum() + _BELIEF
    found: Array = (topics + _BELIEF * first) / lengths
    return np.clip(np.full(len(found), found.mean()) if symmetric else found, LEAST, MOST)


def learned_eta(counts: Array, eta: float, first: float) -> float:
    """Eta after some steps of the fixed point. The table has been opened already, so nothing more is asked for it."""
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
    found = _seat(topics, draw_ends, noise, alpha)
    return sparse.csr_array(found, shape=(len(names), k + 1))


@njit(cache=True, nogil=True)
def _seat(topics: Array, draw_ends: Array, noise: Array, alpha: Array) -> tuple[Array, Array, Array]:
    """Every draw begins a table by chance: alpha against how many sit there already."""
    k, documents, whole = len(alpha), len(draw_ends) - 1, alpha.sum()
    room = draw_ends[-1] + documents
    values, places = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    borders, used = np.zeros(documents + 1, dtype=np.int64), 0
    seated, tables = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    for d in range(documents):
        begun = 0
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z, sitting = topics[t], t - draw_ends[d]
            if uniform(noise[d], 2 * sitting) * (alpha[z] + seated[z]) < alpha[z]:
                tables[z] += 1
            if uniform(noise[d], 2 * sitting + 1) * (whole + sitting) < whole:
                begun += 1
            seated[z] += 1
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z = topics[t]
            if seated[z]:  # a topic's first draw always begins a table
                values[used], places[used] = tables[z], z
                seated[z], tables[z] = 0, 0
                used += 1
        if begun:
            values[used], places[used] = begun, k
            used += 1
        borders[d + 1] = used
    return values[:used], places[:used], borders


@dataclass(frozen=True)
class WithPriorTables:
    """A clipped sum that finds every row of counts beside the same document's tables."""

    clipped_sum: ClippedSum
    tables: Any

    def add(self, rows: Rows, owners: Array) -> None:
        """Pours in both as one row: whoever bounds it bounds them together."""
        self.clipped_sum.add(sparse.hstack([sparse.csr_array(rows), self.tables[owners]], format="csr"), owners)

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:
        """Passed on: counts have none."""
        self.clipped_sum.add_losses(losses, owners, beside)

    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array:
        """Passed on."""
        return self.clipped_sum.named(rows, owners, numbers)
