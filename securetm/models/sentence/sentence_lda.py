"""SentenceLDA: all words of a sentence have one topic, and a document is a mixture of its sentences' topics.

It is not a federation and knows no privacy; what it asks of documents it asks through a query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array, Reads, State
from securetm.errors import check_setting
from securetm.models.gibbs.draws import SampledDocuments, on_ranges
from securetm.models.gibbs.lda import LDA
from securetm.models.sentence.sentence_documents import Sentences, slots_of
from securetm.models.sentence.sentence_likelihood import fold_in_sentences, said_by_sentences

_PASSES = 100  # of folding in, where a document's topics do not settle earlier
_FEW_TOPICS = 2000  # up to here a draw over all topics learns more in a second than proposals do


@dataclass(frozen=True)
class SentenceLDA(LDA):
    """LDA whose draws are sentences, by Gibbs or by Metropolis-Hastings; documents must say where their sentences end.

    A document has few sentences, so `alpha` is smaller than LDA's; and one word that a topic has never had decides over a whole
    sentence, so `eta` is larger. Text without punctuation is one endless sentence, and a document of one sentence has one
    topic: `longest` cuts it.
    """

    name: ClassVar[str] = "sentence-lda"
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.SENTENCES})

    alpha: float = 0.02  # of the symmetric Dirichlet prior of a document's topics, sentence by sentence
    eta: float = 0.1
    longest: int = 0  # words of a sentence: a longer one is cut; 0: however long it is

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "longest", self.longest >= 0, "must be at least 1, or 0 for sentences of any length")

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's sentences; every sentence is a draw. Behind noise, a sentence is its slots."""
        if documents.perturbed is not None:
            return slots_of(documents, words, self.longest)
        by_proposals = self.sampler == "mh" or (self.sampler == "auto" and self.n_topics > _FEW_TOPICS)
        return replace(Sentences.of(documents, words, self.longest), cycles=self.cycles if by_proposals else 0)

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares, by sentence, under the shared topics, without chance.

        It is CVB0 with the topics held fixed, as for LDA, where it is the sentence that belongs to a topic, whole.
        """
        held, logs = Sentences.of(documents, self._words(state), self.longest), np.log(self._by_word(state))
        out = np.empty((len(held), logs.shape[1]))
        facts = (held.spoken, logs, self.table(state).alpha, _PASSES)
        on_ranges(held.lengths, self.threads, lambda first, last: fold_in_sentences(first, last, *facts, out))
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """Of each document's unseen words, given the topic shares of its seen ones: a sentence's words have one topic together.

        Like LDA's it is the logarithm of a probability of the same words, so the two may be compared; but this model is told
        where the unseen sentences end, as LDA is told where documents do, and words of one sentence help to predict each other.
        """
        shares, held = self.infer(state, seen), Sentences.of(unseen, self._words(state), self.longest)
        out, logs = np.zeros(len(held)), np.log(self._by_word(state))
        facts = (held.spoken, logs, shares)
        on_ranges(held.lengths, self.threads, lambda first, last: said_by_sentences(first, last, *facts, out))
        return out
