"""LDA's draws by Metropolis-Hastings: a token's topic is proposed in constant time and accepted by the exact ratio.

The document and the word propose in turn, as in LightLDA (Yuan et al. 2015) and iFTM's Algorithm 1. The draws have the same
distribution as those of `resample`, but a topic moves less often. Nothing here knows privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import uniform
from securetm.models.gibbs.alias_tables import Proposals, draw
from securetm.models.gibbs.draws import RoundFacts
from securetm.models.gibbs.lda_kernels import Bags


@njit(cache=True, nogil=True)
def resample_by_proposals(
    first: int,
    last: int,
    bags: Bags,
    draw_ends: Array,
    given: RoundFacts,
    proposals: Proposals,
    sweeps: int,
    cycles: int,
    topics: Array,
) -> None:
    """As `resample`, with so many pairs of proposals per token and sweep: the document's and then the word's.

    `given.shared` holds counts with eta added. A document that is not `known` begins with topics of the words alone.
    """
    ends, words, counts = bags
    noise, known, counted, shared, totals, alpha, eta, smoothing = given
    of_words, by_word, of_alpha, by_alpha, alone = proposals
    here, others = np.empty(len(alpha)), np.empty(len(alpha))
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
    """Draws a word's first topics in a document, each by the word alone. Returns how many the document has drawn then."""
    for t in range(drawn, drawn + count):
        now[t] = draw(table, bits, uniform(noise, t))
    return drawn + count


@njit(cache=True, nogil=True, inline="always")
def _whole(z: Any) -> int:
    """A topic as a signed number: numba turns a mixture of signed and unsigned numbers into floats."""
    return np.int64(z)  # type: ignore[return-value]


@njit(cache=True, nogil=True, inline="always")
def _kept(z: int, other: int, less: float, more: float, chance: float, t: int, now: Array) -> int:
    """The topic of token `t` after another was proposed: the ratio of their target probabilities is more / less."""
    kept = other if chance * less < more else z
    now[t] = kept
    return kept


@njit(cache=True, nogil=True, inline="always")
def _by_document(x: float, now: Array, of_alpha: Array, by_alpha: Array, prior: float) -> int:
    """The topic of one of the document's tokens, or one by alpha; `x` lies between 0 and their number and alpha together.

    A token's own current topic is among them. To draw it is to stay, so moves are proposed by the counts of the other tokens
    and alpha. These are one factor of the target probability, so the ratio holds the other factor only: the word's.
    """
    if x < len(now):
        return _whole(now[int(x)])
    return draw(of_alpha, by_alpha, (x - len(now)) / prior)


@njit(cache=True, nogil=True, inline="always")
def _open(old: Array, now: Array, counted: bool, totals: Array, smoothing: float, here: Array, others: Array) -> None:
    """Sets a document's counts of topics, and everybody else's."""
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
    """A topic's count of one word without token `t`: the others' count, never below eta, and this document's."""
    weight: float = row[z]
    for s in range(start, stop):
        if counted and old[s] == z:
            weight = max(weight - 1.0, eta)
    for s in range(start, stop):
        if s != t and now[s] == z:
            weight += 1.0
    return weight
