"""A party's documents in the form that SentenceLDA reads: words and counts of each sentence, one draw per sentence.

It stays with whoever holds the documents. How sentences draw is in the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, ClippedSum
from securetm.errors import BrokenPromise
from securetm.models.gibbs.draws import Assignments, CountTable, chunks, on_ranges
from securetm.models.gibbs.slots import Slots
from securetm.models.model_errors import NoSentences
from securetm.models.sentence.sentence_gibbs_kernels import (
    RoundFacts,
    SentenceWords,
    counts_of_sentences,
    gather,
    name_sentences,
    resample_sentences,
    rows_of_sentences,
)
from securetm.models.sentence.sentence_mh_kernels import proposals_of, resample_by_proposals

_CHUNK = 1 << 20  # words added at a time, so that memory does not grow with the corpus


@dataclass(frozen=True)
class Sentences:
    """Documents as sentences in reading order."""

    spoken: SentenceWords
    cycles: int = 0  # of proposals for each sentence in a sweep; 0: it is drawn by Gibbs

    @classmethod
    def of(cls, documents: Any, vocabulary: int, longest: int = 0) -> Self:
        """The sentences of documents in reading order, over that many words; those without a word are passed over.

        Where `longest` is not 0, longer sentences are cut into parts of about equal length that are not.
        """
        token_ends, sentence_ends = _ends(documents, longest)
        tokens = documents.tokens
        words = max(documents.counts.shape[1], int(tokens.max(initial=0)) + 1)
        if words != vocabulary:
            raise BrokenPromise("document", words, vocabulary)
        return cls(gather(np.ascontiguousarray(tokens), token_ends, sentence_ends, vocabulary))

    def __len__(self) -> int:
        return len(self.draw_ends) - 1

    @property
    def draw_ends(self) -> Array:
        """Where each document's sentences begin, and where the last one's end."""
        return self.spoken.draw_ends

    @cached_property
    def lengths(self) -> Array:
        """Running sums of words by document: what drawing and pouring cost."""
        words = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.spoken.counts)])
        return words[self.spoken.word_ends[self.draw_ends]]

    def names(self, keys: Array) -> Array:
        """What each document's topics are remembered under: its key and what its sentences hold."""
        return name_sentences(self.spoken, np.ascontiguousarray(keys, dtype=np.uint64))

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """Sentence by sentence, by collapsed Gibbs sampling or by proposals: both draw from one law."""
        topics, counts = old.topics.copy(), np.ascontiguousarray(table.counts.T)
        of_documents = (table.noise(old.names), old.known(), old.counted(table.step))
        given = RoundFacts(*of_documents, counts, table.totals, table.alpha, table.eta, table.eta * table.words)
        if self.cycles:
            facts = (self.spoken, given, proposals_of(table, threads), sweeps, self.cycles, topics)
            on_ranges(self.lengths, threads, lambda first, last: resample_by_proposals(first, last, *facts))
        else:
            rest = (self.spoken, given, sweeps, topics)
            on_ranges(self.lengths, threads, lambda first, last: resample_sentences(first, last, *rest))
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""
        by_word = np.zeros((table.words, table.topics))
        counts_of_sentences(self.spoken, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def add_rows(self, topics: Array, table: CountTable, clipped_sum: ClippedSum, persons: Array | None) -> None:
        """Each document's counts, as one sparse row."""
        k, words = table.topics, table.words
        for rows in chunks(self.lengths, persons, _CHUNK):
            found = rows_of_sentences(rows, self.spoken, topics, words, k)
            clipped_sum.add(sparse.csr_array(found, shape=(len(rows), k * words)), rows)


def slots_of(documents: Any, vocabulary: int, longest: int = 0) -> Slots:
    """The sentences of documents with noise in place of words. Their ends are public, and so is where they are cut."""
    token_ends, sentence_ends = _ends(documents, longest)
    held = Slots.of(documents, vocabulary, by_sentence=True)
    return replace(held, draw_ends=np.searchsorted(sentence_ends, token_ends), slot_ends=sentence_ends)


def _ends(documents: Any, longest: int) -> tuple[Array, Array]:
    """Where documents end, and where their sentences do, none of which is empty; both begin with 0."""
    if documents.sentence_ends is None:
        raise NoSentences()
    token_ends = np.concatenate([np.zeros(1, np.int64), documents.token_ends]).astype(np.int64)
    sentence_ends = np.unique(np.concatenate([token_ends, documents.sentence_ends]).astype(np.int64))
    return token_ends, _cut(sentence_ends, longest) if longest else sentence_ends


def _cut(ends: Array, longest: int) -> Array:
    lengths = np.diff(ends)
    parts = -(-lengths // longest)
    part = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    first = np.repeat(ends[:-1], parts) + part * np.repeat(lengths, parts) // np.repeat(parts, parts)
    return np.append(first, ends[-1])
