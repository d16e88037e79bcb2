"""SentenceLDA: all words of a sentence have one topic, and a document is a mixture of its sentences' topics."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array, Reads, Rows, State
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise
from securetm.extras import sparse
from securetm.models.batches import on_ranges, with_zero
from securetm.models.estimator import OrNone, Smoothing
from securetm.models.given_documents import no_sentences
from securetm.models.lda.counting import Assignments, CountTable, SampledDocuments
from securetm.models.lda.lda import LDA
from securetm.models.lda.samplers import proposals_of
from securetm.models.lda.sentence_kernels import (
    SentenceWords,
    counts_of_sentences,
    gather,
    name_sentences,
    resample_by_proposals,
    resample_sentences,
    rows_of_sentences,
)
from securetm.models.lda.slots import Slots
from securetm.models.mixed_topics import move

_SETTLED = 1e-4  # of a topic's sentences in a document: folding in ends where no topic moves further


@njit(cache=True, nogil=True)
def fold_in_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, alpha: Array, passes: int, out: Array
) -> None:
    """Topic shares of documents under fixed topics (`logs`: vocabulary x topics) by CVB0 without a sentence's own share."""
    k, here, fresh = logs.shape[1], np.empty(logs.shape[1]), np.empty(logs.shape[1])
    for d in range(first, last):
        begin, length = sentences.draw_ends[d], sentences.draw_ends[d + 1] - sentences.draw_ends[d]
        chances, shares = np.empty((length, k)), np.empty((length, k))
        for s in range(length):
            _weigh(begin + s, d, sentences, logs, chances[s])
        shares[:] = 1.0 / k
        here[:] = length / k
        for _ in range(passes):
            moved = 0.0
            for s in range(length):
                moved = max(moved, move(shares[s], here, fresh, chances[s], 1, alpha))
            if moved < _SETTLED:
                break
        for z in range(k):
            out[d, z] = max(here[z], 0.0) + alpha[z]
        whole = out[d].sum()
        for z in range(k):  # cell by cell: to divide a row in place takes seconds to compile
            out[d, z] /= whole


@njit(cache=True, nogil=True)
def _weigh(s: int, d: int, sentences: SentenceWords, logs: Array, chances: Array) -> float:
    """Sets each topic's likelihood of a sentence, relative to the largest. Returns the logarithm of the largest."""
    chances[:] = 0.0
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        row, count = logs[sentences.kinds[sentences.kind_ends[d] + sentences.places[e]]], sentences.counts[e]
        for z in range(len(chances)):
            chances[z] += count * row[z]
    best: float = chances.max()
    for z in range(len(chances)):
        chances[z] = math.exp(chances[z] - best)
    return best


@njit(cache=True, nogil=True)
def log_likelihoods_of_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, shares: Array, out: Array
) -> None:
    """The log-likelihood of each document's sentences under fixed topics and the documents' own shares of them."""
    chances = np.empty(logs.shape[1])
    for d in range(first, last):
        likelihood = 0.0
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            best = _weigh(s, d, sentences, logs, chances)
            mixed = 0.0
            for z in range(len(chances)):
                mixed += chances[z] * shares[d, z]
            likelihood += min(best + math.log(mixed), 0.0)
        out[d] = likelihood


@dataclass(frozen=True)
class SentenceDocuments(SampledDocuments):
    """Documents as sentences in reading order."""

    sentences: SentenceWords
    cycles: int = 0  # of proposals for each sentence in a sweep; 0: it is drawn by Gibbs

    @classmethod
    def from_documents(cls, documents: Any, vocabulary: int, longest: int = 0) -> Self:
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
        return with_zero(np.cumsum(self.sentences.counts))[self.sentences.word_ends[self.draw_ends]]

    def names(self, keys: Array) -> Array:
        return name_sentences(self.sentences, np.ascontiguousarray(keys, dtype=np.uint64))

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        topics, given = old.topics.copy(), table.facts(old, np.ascontiguousarray(table.counts.T))
        if self.cycles:
            rest = (proposals_of(table, threads), float(table.alpha.sum()), sweeps, self.cycles, topics)
            on_ranges(self.lengths, threads, resample_by_proposals, self.sentences, given, *rest)
        else:
            on_ranges(self.lengths, threads, resample_sentences, self.sentences, given, sweeps, topics)
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        by_word = np.zeros((table.words, table.topics))
        counts_of_sentences(self.sentences, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        parts = rows_of_sentences(documents, self.sentences, topics, table.words, table.topics)
        return sparse.csr_array(parts, shape=(len(documents), table.topics * table.words))


def _ends(documents: Any, longest: int) -> tuple[Array, Array]:
    """Where documents end, and where their sentences do, none of which is empty; both begin with 0."""
    if documents.sentence_ends is None:
        raise no_sentences()
    token_ends = with_zero(documents.token_ends)
    sentence_ends = np.unique(np.concatenate([token_ends, documents.sentence_ends]).astype(np.int64))
    return token_ends, _cut(sentence_ends, longest) if longest else sentence_ends


def _cut(ends: Array, longest: int) -> Array:
    lengths = np.diff(ends)
    parts = -(-lengths // longest)
    part = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    first = np.repeat(ends[:-1], parts) + part * np.repeat(lengths, parts) // np.repeat(parts, parts)
    return np.append(first, ends[-1])


_FEW_TOPICS = 2000  # up to here a draw over all topics learns more in a second than proposals do


@dataclass(frozen=True)
class SentenceLDA(LDA):
    """LDA whose draws are sentences, by Gibbs or by Metropolis-Hastings; documents must say where their sentences end.

    A document has few sentences, so `alpha` is smaller than LDA's. One word that a topic never had would decide for a whole
    sentence, so `eta` is larger. Text without punctuation is one sentence, and so has one topic: `longest` cuts it.
    """

    name: ClassVar[str] = "sentence-lda"
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.SENTENCES})

    alpha: Smoothing = 0.02  # of the symmetric Dirichlet prior of a document's topics, sentence by sentence
    eta: Smoothing = 0.1
    longest: OrNone = 0  # words of a sentence: a longer one is cut; 0: however long it is

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's sentences; every sentence is a draw. Behind noise it is its slots, whose ends are public."""
        if documents.perturbed is not None:
            return Slots.from_documents(documents, words, _ends(documents, self.longest)[1])
        return replace(SentenceDocuments.from_documents(documents, words, self.longest), cycles=self.cycles_from(_FEW_TOPICS))

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares, by sentence, under the shared topics, without random draws.

        It is CVB0 with the topics fixed, as for LDA, but a sentence as a whole belongs to a topic.
        """
        logs = np.log(self.by_word(state))
        held = SentenceDocuments.from_documents(documents, len(logs), self.longest)
        out = np.empty((len(held), logs.shape[1]))
        on_ranges(held.lengths, self.threads, fold_in_sentences, held.sentences, logs, *self.folding(state), out)
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen sentences, given the topic shares of its seen ones.

        Like LDA's it is the logarithm of a probability of the same words, so the two may be compared. But this model knows
        where the unseen sentences end, and words of one sentence help to predict each other.
        """
        shares, logs = self.infer(state, seen), np.log(self.by_word(state))
        held = SentenceDocuments.from_documents(unseen, len(logs), self.longest)
        out = np.zeros(len(held))
        on_ranges(held.lengths, self.threads, log_likelihoods_of_sentences, held.sentences, logs, shares, out)
        return out
