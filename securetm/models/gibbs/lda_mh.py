"""LDA's draws by Metropolis and Hastings: a token's topic is proposed in constant time and accepted by the exact ratio.

Proposals take turns as in LightLDA (Yuan et al. 2015) and iFTM's Algorithm 1. What is drawn in the end has the law of Gibbs'
`resample`, but a topic moves less often; nothing here knows privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import uniform
from securetm.models.gibbs.alias_tables import draw


@njit(cache=True, nogil=True)
def resample_by_proposals(
    first: int,
    last: int,
    ends: Array,
    words: Array,
    counts: Array,
    draw_ends: Array,
    noise: Array,
    known: Array,
    counted: Array,
    shared: Array,
    totals: Array,
    alpha: Array,
    eta: float,
    of_words: Array,
    of_alpha: Array,
    sweeps: int,
    cycles: int,
    topics: Array,
) -> None:
    """As `resample`, with so many pairs of proposals per token and sweep, the document's and then the word's.

    `of_words` are alias tables of shared / (totals + words x eta), row by row; `of_alpha` is one of alpha. A document that is
    not `known` begins with topics of the words alone.
    """
    k, smoothing = shared.shape[1], eta * shared.shape[0]
    here, others, alone = np.empty(k), np.empty(k), 1.0 / (totals + smoothing)
    by_word, by_alpha = of_words.view(np.uint64), of_alpha.view(np.uint64)
    prior = alpha.sum()
    for d in range(first, last):
        now = topics[draw_ends[d] : draw_ends[d + 1]]
        old, drawn = now.copy(), 0
        for i in range(ends[d], ends[d] if known[d] else ends[d + 1]):
            drawn = _begin(counts[i], of_words[words[i]], by_word[words[i]], noise[d], drawn, now)
        _open(old, now, counted[d], totals, smoothing, here, others)
        for _ in range(sweeps):
            stop = 0
            for i in range(ends[d], ends[d + 1]):
                w, start, stop = words[i], stop, stop + counts[i]
                row, table, bits = shared[w], of_words[w], by_word[w]
                for t in range(start, stop):
                    z = _whole(now[t])
                    here[z] -= 1.0
                    for _ in range(cycles):
                        x = uniform(noise[d], drawn) * (len(now) + prior)
                        other = _by_document(x, now, of_alpha, by_alpha, prior)
                        more = _weight(row, other, t, start, stop, old, now, counted[d], eta) * (others[z] + here[z])
                        less = _weight(row, z, t, start, stop, old, now, counted[d], eta) * (others[other] + here[other])
                        z = _kept(z, other, less, more, uniform(noise[d], drawn + 1), t, now)
                        other = draw(table, bits, uniform(noise[d], drawn + 2))
                        if other != z:
                            more = _weight(row, other, t, start, stop, old, now, counted[d], eta) * (others[z] + here[z])
                            less = _weight(row, z, t, start, stop, old, now, counted[d], eta) * (others[other] + here[other])
                            more *= (here[other] + alpha[other]) * (row[z] * alone[z])
                            less *= (here[z] + alpha[z]) * (row[other] * alone[other])
                            z = _kept(z, other, less, more, uniform(noise[d], drawn + 3), t, now)
                        drawn += 4
                    here[z] += 1.0


@njit(cache=True, nogil=True)
def _begin(count: int, table: Array, bits: Array, noise: np.uint64, drawn: int, now: Array) -> int:
    """A word's first topics in a document, each by the word alone; how many the document has drawn then."""
    for t in range(drawn, drawn + count):
        now[t] = draw(table, bits, uniform(noise, t))
    return drawn + count


@njit(cache=True, nogil=True, inline="always")
def _whole(z: Any) -> int:
    """A topic as it was kept in two bytes, for reckoning: numba makes floats of what signed and unsigned numbers may be."""
    return np.int64(z)  # type: ignore[return-value]


@njit(cache=True, nogil=True, inline="always")
def _kept(z: int, other: int, less: float, more: float, chance: float, t: int, now: Array) -> int:
    """Which topic token `t` has after another was proposed: what it aims at there, divided by that here, is more / less."""
    kept = other if chance * less < more else z
    now[t] = kept
    return kept


@njit(cache=True, nogil=True, inline="always")
def _by_document(x: float, now: Array, of_alpha: Array, by_alpha: Array, prior: float) -> int:
    """The topic of one of the document's tokens, or one by alpha; `x` lies between 0 and their number and alpha together.

    A token's own topic is among them as it is at the moment: to draw that is to stay, so moves are proposed by the counts of
    the other tokens and alpha. These are a factor of what is aimed at: only the other one, the word's, is left to the ratio.
    """
    if x < len(now):
        return _whole(now[int(x)])
    return draw(of_alpha, by_alpha, (x - len(now)) / prior)


@njit(cache=True, nogil=True, inline="always")
def _open(old: Array, now: Array, counted: bool, totals: Array, smoothing: float, here: Array, others: Array) -> None:
    """A document's counts of topics, and everybody else's."""
    for z in range(len(here)):
        here[z] = 0.0
        others[z] = totals[z]
    for t in range(len(now)):
        here[now[t]] += 1.0
        if counted:
            others[old[t]] -= 1.0
    for z in range(len(here)):
        others[z] = max(others[z], 0.0) + smoothing


@njit(cache=True, nogil=True, inline="always")
def _weight(row: Array, z: int, t: int, start: int, stop: int, old: Array, now: Array, counted: bool, eta: float) -> float:
    """How much of one word a topic has without token `t`: the others' counts, never below none, and this document's."""
    weight: float = row[z]
    for s in range(start, stop):
        if counted and old[s] == z:
            weight = max(weight - 1.0, eta)
    for s in range(start, stop):
        if s != t and now[s] == z:
            weight += 1.0
    return weight
