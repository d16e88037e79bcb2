"""Figures over all documents of several corpora, read a part at a time: a corpus on disk is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import PartyCorpus
from securetm.models.quality import distinct_words, npmi_of_topics


def npmi_everywhere(top: Array, corpora: Iterable[PartyCorpus]) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the documents of all these corpora that hold both words."""
    words, place = distinct_words(top)
    together, total = np.zeros((len(words), len(words)), dtype=np.int64), 0
    for corpus in corpora:
        for _, documents in corpus.parts():
            present = documents.counts[:, words].astype(bool).astype(np.int64)
            together += (present.T @ present).toarray()
            total += len(documents)
    return npmi_of_topics(place, together, total)


def frequencies(corpora: Sequence[PartyCorpus]) -> Array:
    """The share of each word in all these documents. Each count is raised by one, so that no word is impossible."""
    totals = np.ones(len(corpora[0].vocabulary))
    for corpus in corpora:
        for _, documents in corpus.parts():
            totals += np.asarray(documents.counts.sum(axis=0)).ravel()
    shares: Array = totals / totals.sum()
    return shares
