"""Topic shares that predict a document's other words from those that were seen, for all models that mix topics by shares.

The shares that describe a document best (`infer`) are too sure of themselves where it has few words: they predict titles worse
than word frequencies do. It learns nothing, and no document's shares depend on another document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.gibbs.draws import on_ranges
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.gibbs.lda_kernels import Bags, fold_in_one

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

    def shares(self, by_word: Array, seen: LdaDocuments, threads: int) -> Array:
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
