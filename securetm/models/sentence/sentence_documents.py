"""A party's documents in the form that SentenceLDA reads: words and counts of each sentence, one draw per sentence.

It stays at the party. The kernels draw the topics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, Rows
from securetm.errors import BrokenPromise
from securetm.models.gibbs.alias_tables import proposals_of
from securetm.models.gibbs.draws import Assignments, CountTable, SampledDocuments, on_ranges, with_zero
from securetm.models.gibbs.slots import Slots
from securetm.models.model_errors import NoSentences
from securetm.models.sentence.sentence_gibbs_kernels import (
    SentenceWords,
    counts_of_sentences,
    gather,
    name_sentences,
    resample_sentences,
    rows_of_sentences,
)
from securetm.models.sentence.sentence_mh_kernels import resample_by_proposals


@dataclass(frozen=True)
class SentenceDocuments(SampledDocuments):
    """Documents as sentences in reading order."""

    sentences: SentenceWords
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
        sentences = gather(np.ascontiguousarray(tokens), token_ends, sentence_ends, vocabulary)
        return cls(sentences.draw_ends, sentences)

    @cached_property
    def lengths(self) -> Array:
        """Running sums of words by document: the cost of drawing topics and of adding rows."""
        return with_zero(np.cumsum(self.sentences.counts))[self.sentences.word_ends[self.draw_ends]]

    def names(self, keys: Array) -> Array:
        """The name under which each document's topics are remembered, made of its key and its sentences."""
        return name_sentences(self.sentences, np.ascontiguousarray(keys, dtype=np.uint64))

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """The topic of every sentence after so many sweeps, by collapsed Gibbs sampling or by proposals."""
        topics, given = old.topics.copy(), table.facts(old, np.ascontiguousarray(table.counts.T))
        if self.cycles:
            rest = (proposals_of(table, threads), float(table.alpha.sum()), sweeps, self.cycles, topics)
            on_ranges(self.lengths, threads, resample_by_proposals, self.sentences, given, *rest)
        else:
            on_ranges(self.lengths, threads, resample_sentences, self.sentences, given, sweeps, topics)
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""
        by_word = np.zeros((table.words, table.topics))
        counts_of_sentences(self.sentences, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        """The topic-word counts of some documents, one sparse row each."""
        parts = rows_of_sentences(documents, self.sentences, topics, table.words, table.topics)
        return sparse.csr_array(parts, shape=(len(documents), table.topics * table.words))


def slots_of(documents: Any, vocabulary: int, longest: int = 0) -> Slots:
    """The sentences of documents with noise in place of words. Their ends are public, and so is where they are cut."""
    token_ends, sentence_ends = _ends(documents, longest)
    held = Slots.of(documents, vocabulary, by_sentence=True)
    return replace(held, draw_ends=np.searchsorted(sentence_ends, token_ends), slot_ends=sentence_ends)


def _ends(documents: Any, longest: int) -> tuple[Array, Array]:
    """Where documents end, and where their sentences do, none of which is empty; both begin with 0."""
    if documents.sentence_ends is None:
        raise NoSentences()
    token_ends = with_zero(documents.token_ends)
    sentence_ends = np.unique(np.concatenate([token_ends, documents.sentence_ends]).astype(np.int64))
    return token_ends, _cut(sentence_ends, longest) if longest else sentence_ends


def _cut(ends: Array, longest: int) -> Array:
    lengths = np.diff(ends)
    parts = -(-lengths // longest)
    part = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    first = np.repeat(ends[:-1], parts) + part * np.repeat(lengths, parts) // np.repeat(parts, parts)
    return np.append(first, ends[-1])
