"""SentenceLDA: all words of a sentence have one topic, and a document is a mixture of its sentences' topics.

It is not a federation and knows no privacy; what it asks of documents it asks through a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array, State
from securetm.models.counting import Counting
from securetm.models.draws import Held, on_ranges
from securetm.models.sentence_judging import fold_in_sentences, said_by_sentences
from securetm.models.sentences import Sentences

SAMPLERS = ("auto", "gibbs", "mh")
_PASSES = 100  # of folding in, where a document's topics do not settle earlier
_FEW_TOPICS = 100  # up to here a draw over all topics learns faster than proposals do


@dataclass(frozen=True)
class SentenceLDA(Counting):
    """SentenceLDA by Gibbs sampling or by Metropolis-Hastings; documents must say where their sentences end.

    `alpha` is the prior of a document's topics by sentence. Text without punctuation is one endless sentence, and a document of
    one sentence has one topic: `longest` cuts it.
    """

    name: ClassVar[str] = "sentence-lda"

    sampler: str = "auto"  # gibbs, or mh: both draw from the same law; auto: what learns faster for so many topics
    longest: int = 0  # words of a sentence: a longer one is cut; 0: however long it is

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("sampler", self.sampler in SAMPLERS, f"is none of {', '.join(SAMPLERS)}")
        self._check("longest", self.longest >= 0, "must be at least 1, or 0 for sentences of any length")

    def read(self, documents: Any, words: int) -> Held:
        """Each document's sentences; every sentence is a draw."""
        by_proposals = self.sampler == "mh" or (self.sampler == "auto" and self.n_topics > _FEW_TOPICS)
        return Sentences.of(documents, words, self.longest, by_proposals)

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
