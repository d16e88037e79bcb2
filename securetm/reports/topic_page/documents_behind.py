"""The documents that take most of each topic, at the one party that has them. It reads no file.

Texts are dropped after tokenising, so a document is shown by its number, its label and its first agreed words.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.federation.finished import FinishedRun
from securetm.reports.topic_page.shown_topics import DocumentsBehind, TopicDocument

MOST = 5  # documents of a topic
_WORDS = 30  # of a document
_LEAST_SHARE = 0.1  # of a document: below, a topic is not what it is about


def documents_behind(finished: FinishedRun, corpus: Corpus, whose: str) -> DocumentsBehind:
    """The strongest documents of each topic. Of two with the same share, the longer one comes first."""
    documents = corpus.project(finished.vocabulary)
    lengths = documents.lengths()
    known = np.flatnonzero(lengths > 0)
    shares = np.zeros((len(documents), len(finished.components_)))
    shares[known] = finished.model.infer(finished.state, documents.select(known))
    topics = tuple(_strongest(documents, lengths, column) for column in shares.T)
    return DocumentsBehind(whose, shares.sum(axis=0) / max(len(known), 1), documents.tokens is not None, topics)


def _strongest(documents: Corpus, lengths: Array, shares: Array) -> tuple[TopicDocument, ...]:
    order = np.lexsort((-lengths, -shares.round(3)))[:MOST]
    return tuple(_shown(documents, int(row), float(shares[row])) for row in order if shares[row] >= _LEAST_SHARE)


def _shown(documents: Corpus, row: int, share: float) -> TopicDocument:
    label, date = ("" if column is None else str(column[row]) for column in (documents.labels, documents.dates))
    return TopicDocument(row + 1, share, _words(documents, row), label, date)


def _words(documents: Corpus, row: int) -> str:
    """The document's first words in reading order; where that is not known, its commonest ones."""
    if documents.tokens is not None and documents.token_ends is not None:
        begin = documents.token_ends[row - 1] if row else 0
        words = documents.tokens[begin : documents.token_ends[row]]
    else:
        counts = documents.counts[[row]]
        words = counts.indices[np.argsort(-counts.data, kind="stable")]
    more = " …" if len(words) > _WORDS else ""
    return " ".join(documents.vocabulary[word] for word in words[:_WORDS]) + more
