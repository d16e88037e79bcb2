"""Matches the topics of several parties: iFTM's similarity, its Algorithms 3 and 4, and a merge down to a requested number.

They are functions of tables of topics, and nothing is random. The merge is not in the paper, whose model keeps every topic that
Algorithm 3 finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from securetm.contracts import Array
from securetm.errors import BadSetting, Mistake

NOWHERE = -1  # where an empty topic goes
_MOST = 1e280  # of an entry: rows are summed


@dataclass(frozen=True)
class IntegratedTopics:
    """The matched topics of all parties."""

    topics: Array  # global topics x words; rows sum to one
    weights: Array  # the amount of data of each
    went: Mapping[str, Array]  # of each party's topics: which global topic it became part of, or NOWHERE


@dataclass(frozen=True)
class ComposedTopics:
    """A party's topics after matching with the global ones: as many as before, in the same places."""

    topics: Array  # rows sum to one, or are empty
    taken: Array  # the global topic in each place, or NOWHERE where the party's own stayed


# ---- similarity (Eq. 29) ---------------------------------------------------------------------------------------------


def similarities(ones: Array, others: Array, words: int) -> Array:
    """The similarity of topics by their heaviest words: a weighted Jaccard index.

    Only a topic's `words` heaviest words count. Two topics without any weight have 0. A topic and itself have exactly 1. The
    order of the two does not matter.
    """
    _check_settings(0.0, words)
    _check_topics("one side", ones)
    _check_topics("the other side", others)
    if ones.shape[1] != others.shape[1]:
        raise _no_topics("the other side", f"they have {others.shape[1]} words, not {ones.shape[1]}")
    return _compared(*_heaviest(ones, words), *_by_word(*_heaviest(others, words), ones.shape[1]), len(others))


def _heaviest(topics: Array, words: int) -> tuple[Array, Array, Array]:
    """Each topic's heaviest words in the order of the vocabulary, as CSR; of equally heavy ones the first, of none nothing."""
    kept = [_heaviest_of(row, words) for row in topics]
    ends = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    columns = np.concatenate([*kept, np.zeros(0, np.int64)]).astype(np.int64)
    return ends, columns, np.asarray(topics[np.repeat(np.arange(len(kept)), np.diff(ends)), columns], dtype=np.float64)


def _heaviest_of(row: Array, words: int) -> Array:
    some = np.flatnonzero(row > 0)
    if len(some) <= words:
        return some
    weights = row[some]
    least = np.partition(weights, len(some) - words)[len(some) - words]
    above = weights > least
    level = np.flatnonzero(weights == least)[: words - int(above.sum())]
    above[level] = True
    kept: Array = some[above]
    return kept


def _by_word(ends: Array, columns: Array, weights: Array, vocabulary: int) -> tuple[Array, Array, Array, Array]:
    """The transposed lists: the topics with each word and its weights; and each topic's total weight."""
    turned = sparse.csr_array((weights, columns, ends), shape=(len(ends) - 1, vocabulary)).tocsc()
    return turned.indptr.astype(np.int64), turned.indices.astype(np.int64), turned.data, _masses(ends, weights)


@njit(cache=True, nogil=True)
def _masses(ends: Array, weights: Array) -> Array:
    """Total weights, added in the order of `_compared`: in another order, a topic's similarity with itself would be below 1."""
    masses = np.zeros(len(ends) - 1)
    for z in range(len(masses)):
        for i in range(ends[z], ends[z + 1]):
            masses[z] += weights[i]
    return masses


@njit(cache=True, nogil=True)
def _compared(
    ends: Array, columns: Array, weights: Array, borders: Array, topics: Array, theirs: Array, masses: Array, others: int
) -> Array:
    mine = _masses(ends, weights)
    out = np.zeros((len(mine), others))
    for z in range(len(mine)):
        common = out[z]
        for i in range(ends[z], ends[z + 1]):
            for j in range(borders[columns[i]], borders[columns[i] + 1]):
                common[topics[j]] += min(weights[i], theirs[j])
        for y in range(others):
            if common[y] > 0.0:
                common[y] /= mine[z] + masses[y] - common[y]
    return out


# ---- Algorithm 3 -----------------------------------------------------------------------------------------------------


def integrated(topics: Mapping[str, Array], amounts: Mapping[str, float], xi: float, words: int) -> IntegratedTopics:
    """Algorithm 3: all parties' topics together, those that are alike merged into one in proportion to their parties' data.

    All parties' topics are merged at once, and not one party after the other into a growing model. So only local topics are
    compared, and none with a half-merged one; the order of the parties, by name, decides the order of the topics alone.
    As in the paper every pair is compared, so two topics of one party may become one. Similarity is transitive here: two topics
    that differ become one if a third is like both. A topic without weight, or of a party without data, goes to NOWHERE.
    """
    _check_settings(xi, words)
    names = sorted(topics)
    vocabulary = _vocabulary({name: topics[name] for name in names})
    for name in names:
        if not 0 <= amounts[name] < np.inf:
            raise _no_topics(name, f"its amount of data is {amounts[name]}")
    whole = np.concatenate([shares(topics[name]) for name in names] or [np.zeros((0, vocabulary))])
    weights = np.concatenate([np.full(len(topics[name]), float(amounts[name])) for name in names] or [np.zeros(0)])
    filled = np.flatnonzero((weights > 0) & (whole.sum(axis=1) > 0))
    went = np.full(len(whole), NOWHERE, dtype=np.int64)
    went[filled] = _sets(whole[filled], xi, words)
    count = int(went.max(initial=NOWHERE)) + 1
    member = sparse.csr_array((weights[filled], (went[filled], filled)), shape=(count, len(whole)))
    ends = np.cumsum([0, *(len(topics[name]) for name in names)])
    places = {name: went[first:last] for name, (first, last) in zip(names, pairwise(ends), strict=True)}
    return IntegratedTopics(shares(member @ whole), member.sum(axis=1), places)


def _sets(topics: Array, xi: float, words: int) -> Array:
    """Union-find over all pairs that are alike: the number of each topic's set, numbered by their first topics."""
    if not len(topics):
        return np.zeros(0, dtype=np.int64)
    _, found = connected_components(sparse.csr_array(similarities(topics, topics, words) >= xi), directed=False)
    _, first, member = np.unique(found, return_index=True, return_inverse=True)
    numbers: Array = np.argsort(np.argsort(first))[member]
    return numbers


# ---- Algorithm 4 -----------------------------------------------------------------------------------------------------


def composed(global_topics: Array, local_topics: Array, xi: float, words: int) -> ComposedTopics:
    """Algorithm 4: replaces each local topic by the most similar global one, if their similarity is at least xi.

    The printed pseudo-code leaves some choices open and can lose topics. Here a global topic is used once, and leaves the list
    only when it is used; as printed it also leaves where nothing was replaced. The most similar pair is taken first, since the
    numbers of topics mean nothing; of equally similar pairs the first local topic's, then the first global topic's. A topic
    without a similar one left stays. An empty topic has similarity 0 to all, so it is replaced only if xi is 0.
    """
    _vocabulary({"the global model": global_topics, "a local model": local_topics})
    _check_settings(xi, words)
    topics, wider = shares(local_topics), shares(global_topics)
    alike = similarities(topics, wider, words)
    own, theirs = np.nonzero(alike >= xi)
    order = np.argsort(-alike[own, theirs], kind="stable")  # stable: pairs are ordered by local topic, then by global
    taken = _dealt(own[order], theirs[order], *alike.shape)
    topics[taken != NOWHERE] = wider[taken[taken != NOWHERE]]
    return ComposedTopics(topics, taken)


@njit(cache=True, nogil=True)
def _dealt(own: Array, theirs: Array, places: int, topics: int) -> Array:
    """Takes pairs in order: each place is filled once, and each topic is used once."""
    taken, given = np.full(places, NOWHERE), np.zeros(topics, dtype=np.bool_)
    for pair in range(len(own)):
        if taken[own[pair]] == NOWHERE and not given[theirs[pair]]:
            taken[own[pair]], given[theirs[pair]] = theirs[pair], True
    return taken


# ---- checks of the inputs --------------------------------------------------------------------------------------------


def shares(topics: Array) -> Array:
    """Rows that sum to one (iFTM's topic-wise normalisation); an empty row stays empty."""
    table = np.asarray(topics, dtype=np.float64)
    sums = table.sum(axis=1, keepdims=True)
    normal: Array = np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)
    return normal


def _vocabulary(topics: Mapping[str, Array]) -> int:
    """The size of the vocabulary that all parties' topics have."""
    sizes = set()
    for name, table in topics.items():
        _check_topics(name, table)
        sizes.add(table.shape[1])
        if len(sizes) > 1:
            raise _no_topics(name, f"they have {table.shape[1]} words where others have {min(sizes - {table.shape[1]})}")
    return sizes.pop() if sizes else 0


def _check_topics(whose: str, topics: Array) -> None:
    if topics.ndim != 2:
        raise _no_topics(whose, "they are no table of topics x words")
    if not (float(topics.max(initial=0)) < _MOST and float(topics.min(initial=0)) >= 0):  # NaN is neither
        raise _no_topics(whose, "some entries are negative, too large or no numbers")


def _check_settings(xi: float, words: int) -> None:
    if not 0 <= xi <= 1:
        raise BadSetting("matching", "xi", str(xi), "must be a similarity, 0 to 1")
    if words < 1:
        raise BadSetting("matching", "top", str(words), "must be at least 1")


def merged(counts: Array, most: int) -> Array:
    """The merged topic that each topic became part of, numbered by their first topics; an empty topic has NOWHERE.

    Each step merges the pair with the least loss until `most` topics are left: the squared Hellinger distance times
    m1 m2 / (m1 + m2), where m are their counts (Ward's method). So similar pairs are merged first, and of equally similar pairs
    the one with less data. Of equal losses the first pair is merged first.
    """
    table = np.asarray(counts, dtype=np.float64)
    filled = np.flatnonzero(table.sum(axis=1) > 0)
    member = _merged(np.ascontiguousarray(table[filled]), most)
    _, first, group = np.unique(member, return_index=True, return_inverse=True)
    found = np.full(len(table), NOWHERE, dtype=np.int64)
    found[filled] = np.argsort(np.argsort(first))[group]
    return found


def summed(rows: Array, member: Array) -> Array:
    """The sum of the rows of each merged topic."""
    total = np.zeros((int(member.max(initial=NOWHERE)) + 1, *rows.shape[1:]))
    np.add.at(total, member[member != NOWHERE], rows[member != NOWHERE])
    return total


@njit(cache=True, nogil=True)
def _merged(counts: Array, most: int) -> Array:
    """The first topic of each topic's set. Sums run in a fixed order, so every processor merges alike."""
    member, masses, roots = np.arange(len(counts)), np.zeros(len(counts)), np.zeros_like(counts)
    for z in range(len(counts)):
        masses[z] = _refreshed(counts[z], roots[z])
    losses = _all_losses(masses, roots)
    nearest = np.array([np.argmin(losses[z]) for z in range(len(counts))])
    for _ in range(len(counts) - most):
        best = _best(losses, nearest, member)
        one, other = min(best, nearest[best]), max(best, nearest[best])
        for w in range(counts.shape[1]):
            counts[one, w] += counts[other, w]
        for z in range(len(member)):
            if member[z] == other:
                member[z] = one
        masses[one] = _refreshed(counts[one], roots[one])
        for z in range(len(member)):
            losses[other, z] = losses[z, other] = np.inf
        _update_nearest(losses, nearest, member, masses, roots, one, other)
    return member


@njit(cache=True, nogil=True)
def _all_losses(masses: Array, roots: Array) -> Array:
    """The loss of merging every pair of different topics."""
    losses = np.full((len(masses), len(masses)), np.inf)
    for z in range(len(masses)):
        for y in range(z):
            losses[z, y] = losses[y, z] = _loss(masses, roots, z, y)
    return losses


@njit(cache=True, nogil=True)
def _refreshed(row: Array, roots: Array) -> float:
    """The total weight of a topic. Writes the square roots of its shares to `roots`."""
    mass = 0.0
    for w in range(len(row)):
        mass += row[w]
    for w in range(len(row)):
        roots[w] = np.sqrt(row[w] / mass)
    return mass


@njit(cache=True, nogil=True)
def _loss(masses: Array, roots: Array, one: int, other: int) -> float:
    """The loss of merging these two topics, never below 0."""
    alike = 0.0
    for w in range(roots.shape[1]):
        alike += roots[one, w] * roots[other, w]
    loss: float = max(1.0 - alike, 0.0) * (masses[one] * masses[other] / (masses[one] + masses[other]))
    return loss


@njit(cache=True, nogil=True)
def _best(losses: Array, nearest: Array, member: Array) -> int:
    """The first topic with the least loss of merging with its nearest one."""
    best = -1
    for z in range(len(nearest)):
        if member[z] == z and (best < 0 or losses[z, nearest[z]] < losses[best, nearest[best]]):
            best = z
    return best


@njit(cache=True, nogil=True)
def _update_nearest(losses: Array, nearest: Array, member: Array, masses: Array, roots: Array, one: int, other: int) -> None:
    """Updates losses and nearest topics after `other` became part of `one`. All pairs are searched only where the nearest topic
    was one of the two."""
    for z in range(len(member)):
        if z != one and member[z] == z:
            losses[one, z] = losses[z, one] = _loss(masses, roots, one, z)
    for z in range(len(member)):
        now = losses[z, nearest[z]]
        if z == one or nearest[z] == one or nearest[z] == other:
            nearest[z] = np.argmin(losses[z])
        elif losses[z, one] < now or (losses[z, one] == now and one < nearest[z]):
            nearest[z] = one


def _no_topics(whose: str, problem: str) -> Mistake:
    return Mistake(
        "the topics of {whose} cannot be matched: {problem}",
        hint="give a table of topics x words of the same vocabulary, whose entries are finite and not negative",
        whose=whose,
        problem=problem,
    )
