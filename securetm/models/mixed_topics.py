"""What LDA, variational LDA, NMF and `moments` share: documents are bags of words that mix topics by shares.

Here are topic shares, likelihoods and predictions under fixed topics, and what a state keeps beside its model. No document's
numbers depend on another document.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array, State
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise, CountsNotWhole
from securetm.extras import sparse
from securetm.models.batches import on_ranges
from securetm.models.document_noise import mix
from securetm.models.estimator import Count, Estimator
from securetm.models.noisy_counts import AT_HOME, BY_WORD, NOISED, NoisedCounts, stand_above
from securetm.models.public_knowledge import public_fits, without_public

_SETTLED = 1e-4  # of a topic's words in a document: folding in ends where no topic moves further


class Bags(NamedTuple):
    """Documents as lists of words and counts."""

    ends: Array  # where each document begins in `words`, and where the last one ends
    words: Array
    counts: Array


@njit(cache=True, nogil=True)
def name_documents(bags: Bags, keys: Array) -> Array:
    """A 64-bit name of each document, made of its key and its words: no topic is recalled for other words."""
    ends, words, counts = bags
    names = np.empty(len(keys), dtype=np.uint64)
    for d in range(len(keys)):
        name = mix(keys[d] + np.uint64(1))
        for i in range(ends[d], ends[d + 1]):
            name = mix(name ^ (np.uint64(words[i]) | np.uint64(counts[i]) << np.uint64(32)))
        names[d] = name
    return names


@njit(cache=True, nogil=True)
def draws_of(ends: Array, counts: Array) -> tuple[Array, int]:
    """Where each document's tokens begin and the last one's end, and the least count of a word, or 1 where there is none."""
    borders, least = np.zeros(len(ends), dtype=np.int64), np.int64(1)
    for d in range(len(ends) - 1):
        size = np.int64(0)
        for i in range(ends[d], ends[d + 1]):
            size += counts[i]
            least = min(least, counts[i])
        borders[d + 1] = borders[d] + size
    return borders, least  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def fold_in(first: int, last: int, bags: Bags, phi: Array, alpha: Array, passes: int, out: Array) -> None:
    """Topic shares of documents under fixed topics (`phi`: vocabulary x topics) by CVB0: a word's own share is left out."""
    ends, words, counts = bags
    k = phi.shape[1]
    most = 0
    for d in range(first, last):
        most = max(most, ends[d + 1] - ends[d])
    shares, here, fresh = np.empty((most, k)), np.empty(k), np.empty(k)
    for d in range(first, last):
        fold_in_one(ends[d], ends[d + 1], words, counts, phi, alpha, passes, shares, here, fresh, out[d])


@njit(cache=True, nogil=True)
def fold_in_one(
    begin: int,
    end: int,
    words: Array,
    counts: Array,
    phi: Array,
    alpha: Array,
    passes: int,
    shares: Array,
    here: Array,
    fresh: Array,
    out: Array,
) -> None:
    """Topic shares of one document, in `out`; the three arrays before it have room for its words' shares and its topics'."""
    k, length = phi.shape[1], 0
    for i in range(begin, end):
        length += counts[i]
        for z in range(k):
            shares[i - begin, z] = 1.0 / k
    for z in range(k):
        here[z] = float(length) / k
    for _ in range(passes):
        moved = 0.0
        for i in range(begin, end):
            moved = max(moved, move(shares[i - begin], here, fresh, phi[words[i]], counts[i], alpha))
        if moved < _SETTLED:
            break
    for z in range(k):
        out[z] = max(here[z], 0.0) + alpha[z]
    _scale(out)


@njit(cache=True, nogil=True, inline="always")
def _scale(shares: Array) -> None:
    """Scales shares so that they sum to one, cell by cell: sums and quotients of whole arrays take a second to compile."""
    total = 0.0
    for z in range(len(shares)):
        total += shares[z]
    for z in range(len(shares)):
        shares[z] /= total


@njit(cache=True, nogil=True, inline="always")
def move(share: Array, here: Array, fresh: Array, chances: Array, count: int, alpha: Array) -> float:
    """Updates the topic shares of a word or sentence that occurs `count` times. Returns how far it moved the document."""
    total, moved = 0.0, 0.0
    for z in range(len(share)):
        fresh[z] = (max(here[z] - share[z], 0.0) + alpha[z]) * chances[z]
        total += fresh[z]
    for z in range(len(share)):
        step = fresh[z] / total - share[z]
        share[z] += step
        here[z] += count * step
        moved = max(moved, abs(count * step))
    return moved


@njit(cache=True, nogil=True)
def log_likelihoods(first: int, last: int, bags: Bags, phi: Array, shares: Array, out: Array) -> None:
    """The log-likelihood of each document's words under fixed topics and the documents' own shares of them."""
    ends, words, counts = bags
    for d in range(first, last):
        likelihood = 0.0
        for i in range(ends[d], ends[d + 1]):
            chance = 0.0
            for z in range(phi.shape[1]):
                chance += shares[d, z] * phi[words[i], z]
            likelihood += counts[i] * math.log(min(chance, 1.0))
        out[d] = likelihood


@dataclass(frozen=True)
class BagDocuments:
    """Documents as lists of words and counts, in the order of the vocabulary."""

    draw_ends: Array  # where each document's tokens begin, and where the last one's end
    bags: Bags

    def __len__(self) -> int:
        return len(self.draw_ends) - 1

    @classmethod
    def from_counts(cls, matrix: Any, vocabulary: int) -> Self:
        """The bags in a matrix of whole counts over that many words."""
        table = sparse.csr_array(matrix)
        if table.shape[1] != vocabulary:
            raise BrokenPromise("document", table.shape[1], vocabulary)
        whole, ends = table.data.astype(np.int64), table.indptr.astype(np.int64)
        if not np.issubdtype(table.dtype, np.integer) and (whole != table.data).any():
            raise CountsNotWhole()
        draw_ends, least = draws_of(ends, whole)
        if least < 0:
            raise CountsNotWhole()
        if least == 0 or not table.has_canonical_format:
            table = sparse.csr_array((whole, table.indices, table.indptr), table.shape).copy()  # the corpus stays as it is
            table.sum_duplicates()
            table.eliminate_zeros()
            whole, ends = table.data, table.indptr.astype(np.int64)
        return cls(draw_ends, Bags(ends, table.indices.astype(np.int64), whole))

    def limited(self, repeats: int) -> Self:
        """The same documents, in which no word counts more often than `repeats` times."""
        bags = self.bags._replace(counts=np.minimum(self.bags.counts, repeats))
        return replace(self, draw_ends=draws_of(bags.ends, bags.counts)[0], bags=bags)

    def names(self, keys: Array) -> Array:
        return name_documents(self.bags, np.ascontiguousarray(keys, dtype=np.uint64))

    def shares(self, by_word: Array, alpha: Array, passes: int, threads: int) -> Array:
        """Each document's topic shares under fixed topics, without random draws (CVB0), in at most so many passes over it."""
        out = np.empty((len(self), by_word.shape[1]))
        on_ranges(self.draw_ends, threads, fold_in, self.bags, by_word, alpha, passes, out)
        return out

    def log_likelihood(self, by_word: Array, shares: Array, threads: int) -> Array:
        """The log-likelihood of each document's words under fixed topics and its topic shares."""
        out = np.zeros(len(self))
        on_ranges(self.draw_ends, threads, log_likelihoods, self.bags, by_word, shares, out)
        return out


# Priors that are tried, each as likely as the others: a multiple of the weight, and whether few words are doubted. Chosen on
# titles, messages and docstrings.
_PRIORS = np.array([(1.0, 0), (0.5, 1), (1, 1), (2, 1)])
_DOUBT, _MOST_DOUBT = 1.2, 60.0
_PASSES = 100


@dataclass(frozen=True)
class Completion:
    """What is expected of a document's topics before any of its words is seen: a Dirichlet prior around the topics' prevalence.

    So a document without words has the mixture of all topics, which is the word frequencies that the model knows. How firm the
    prior is, each document says itself: shares are found under several, and averaged by how well each predicts the seen words
    one after the other. Documents of one or two words cannot say it. For them the prior weighs more, by `doubt` over the
    square of the number of words.
    """

    prevalence: Array  # of each topic, in words; they sum to one
    weight: float  # of the prior, in words
    doubt: float = 0.0  # in words

    @classmethod
    def around(cls, by_word: Array, totals: Array, weight: float) -> Completion:
        """A prior around topics of these sizes and words; where none has a size, around all alike.

        The doubt follows from the chance that two uses of a word have the same topic. It is near 1 where titles of a few words
        confirmed each word's topic over and over (mean-field updates do), and small where noise blurred the topics.
        """
        known = np.maximum(np.nan_to_num(totals, nan=0.0, posinf=0.0), 0.0) + 1e-9
        prevalence = known / known.sum()
        joint = by_word * prevalence
        words = joint.sum(axis=1)
        alike = min(float((np.square(joint).sum(axis=1) / words).sum() / words.sum()), 0.99)
        return cls(prevalence, weight, min(_DOUBT * (alike / (1.0 - alike)) ** 3, _MOST_DOUBT))

    def shares(self, by_word: Array, seen: BagDocuments, threads: int) -> Array:
        """Documents x topics: the expected share of each topic in the document's other words, under fixed topics."""
        out = np.empty((len(seen), by_word.shape[1]))
        facts = (seen.bags, by_word, self.prevalence, self.weight, self.doubt, _PRIORS, out)
        on_ranges(seen.draw_ends, threads, _complete, *facts)
        return out


@njit(cache=True, nogil=True)
def _complete(
    first: int, last: int, bags: Bags, phi: Array, prevalence: Array, weight: float, doubt: float, priors: Array, out: Array
) -> None:
    """Shares of documents, averaged over priors by their evidence: CVB0 under each, as in `fold_in`."""
    ends, words, counts = bags
    k = phi.shape[1]
    most = 0
    for d in range(first, last):
        most = max(most, ends[d + 1] - ends[d])
    shares, here, fresh, found = np.empty((most, k)), np.empty(k), np.empty(k), np.empty((len(priors), k))
    alpha, evidence = np.empty(k), np.empty(len(priors))  # written cell by cell: sums of whole arrays take seconds to compile
    for d in range(first, last):
        begin, end, length, likeliest = ends[d], ends[d + 1], 0, -math.inf
        for i in range(begin, end):
            length += counts[i]
        least = doubt / max(float(length), 1.0) ** 2
        for f in range(len(priors)):
            for z in range(k):
                alpha[z] = prevalence[z] * priors[f, 0] * (weight + priors[f, 1] * least)
            fold_in_one(begin, end, words, counts, phi, alpha, _PASSES, shares, here, fresh, found[f])
            evidence[f] = _predicted(begin, end, words, counts, phi, alpha, here)
            likeliest = max(likeliest, evidence[f])
        _average(evidence, likeliest, found, out[d])


@njit(cache=True, nogil=True, inline="always")
def _average(evidence: Array, likeliest: float, found: Array, out: Array) -> None:
    """The average of the shares found under each prior, by how likely the words were there."""
    total = 0.0
    for f in range(len(evidence)):
        evidence[f] = math.exp(evidence[f] - likeliest)
        total += evidence[f]
    for z in range(len(out)):
        out[z] = 0.0
        for f in range(len(evidence)):
            out[z] += evidence[f] / total * found[f, z]


@njit(cache=True, nogil=True, inline="always")
def _predicted(begin: int, end: int, words: Array, counts: Array, phi: Array, alpha: Array, so_far: Array) -> float:
    """The log-likelihood of a document's words, each predicted from those before it."""
    total, found = 0.0, 0.0
    for z in range(len(alpha)):
        so_far[z] = alpha[z]
        total += alpha[z]
    for i in range(begin, end):
        chance = 0.0
        for z in range(len(alpha)):
            chance += so_far[z] * phi[words[i], z]
        found += counts[i] * math.log(chance / total)
        for z in range(len(alpha)):
            so_far[z] += counts[i] * so_far[z] * phi[words[i], z] / chance
        total += counts[i]
    return found


EARLIER, WEIGHT = "earlier", "earlier_weight"  # arrays of a state: the counts of a model that it goes on from, and their weight
_KEPT = (EARLIER, WEIGHT, *NOISED, BY_WORD, AT_HOME)


@dataclass(frozen=True)
class MixedTopics(Estimator):
    """A model whose documents mix topics by shares; its fields are public settings."""

    n_topics: Count = 50  # of the shared model
    threads: Count = 1  # changes nothing but the time it takes

    @property
    def starts_public(self) -> bool:
        return True

    def for_party(self, state: State, party: str) -> State:
        """What a question is about: no noised sums, no earlier model's counts, no public knowledge."""
        return without_kept(state)

    def fits(self, state: State, words: int) -> bool:
        """Also of a state that keeps noised sums for the end, goes on from an earlier model, or began with public topics."""
        return kept_fit(state, self.most_shown_topics, words) and super().fits(without_kept(state), words)

    def above_noise(self, state: State) -> Array | None:
        """Which numbers of the last noised sum of words in topics stand above its noise; None where no sum had any."""
        noised = NoisedCounts.kept_in(state)
        return None if noised is None else stand_above(noised.counts, np.sqrt(noised.variance))

    def by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.topics(state).T)

    def folding(self, state: State) -> tuple[Array, int]:
        """The prior of each topic in a document, and the most passes over a document, for `infer`."""
        raise NotImplementedError

    @abstractmethod
    def completing(self, state: State) -> tuple[Array, Completion]:
        """Words x topics by which a document's other words are predicted, and what is expected of it before any is seen."""

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, without random draws (CVB0 with fixed topics)."""
        by_word = self.by_word(state)
        return BagDocuments.from_counts(documents.counts, len(by_word)).shares(by_word, *self.folding(state), self.threads)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        by_word, prior = self.completing(state)
        shares = prior.shares(by_word, BagDocuments.from_counts(seen.counts, len(by_word)), self.threads)
        return BagDocuments.from_counts(unseen.counts, len(by_word)).log_likelihood(by_word, shares, self.threads)


def without_kept(state: State) -> State:
    """The state without what it keeps beside the model."""
    return without_public({name: array for name, array in state.items() if name not in _KEPT})


def kept_fit(state: State, topics: int, words: int) -> bool:
    """Whether what a state, which may come from a file, keeps beside its model has the forms that it can have."""
    shapes = ((topics, words), (1,), (topics, words), (words,), (4,), (words,), (1,))
    like = {name: shape for name, shape in zip(_KEPT, shapes, strict=True) if name in state}
    whole = all(len({name in like for name in group}) == 1 for group in ((EARLIER, WEIGHT), NOISED))
    formed = all(state[name].shape == shape and state[name].dtype == np.float64 for name, shape in like.items())
    return whole and formed and (BY_WORD not in like or NOISED[0] in like) and public_fits(state, topics, words)
