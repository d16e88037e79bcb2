"""Topics that `moments` finds in one noised sum, for another model to begin with. It asks nobody and trains no other model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from securetm.contracts import Answer, ClippedSum, Documents, Memory, Public, Terms
from securetm.models.model_errors import TooManyPairs
from securetm.models.moments.moments import MOST_WORDS, Moments, PairsQuery
from securetm.models.moments.pair_sums import PairSums
from securetm.models.public_knowledge import PublicKnowledge
from securetm.models.queries import total_of


@dataclass(frozen=True)
class NoisedPairs:
    """The question of `moments` with noise of its own, which is another than that of the training."""

    query: PairsQuery
    multiplier: float  # 0: that of the mechanism that adds the noise

    @property
    def terms(self) -> Terms:
        """Those of the question, with its noise."""
        return replace(self.query.terms, multiplier=self.multiplier)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """The same rows."""
        self.query.answer(documents, clipped_sum, memory, rng)


@dataclass(frozen=True)
class TopicsBefore:
    """The first question of a training that begins at topics of `moments`, and what its answer says."""

    topics: int

    def question(self, words: int, multiplier: float) -> NoisedPairs:
        """How often each two of so many words stand in one document."""
        if words > MOST_WORDS:
            raise TooManyPairs(words, MOST_WORDS)
        return NoisedPairs(PairsQuery(Moments(n_topics=self.topics), words), multiplier)

    def found(self, vocabulary: Sequence[str], answer: Answer, public: Public | None) -> PublicKnowledge:
        """The topics in an opened sum, and the words' frequencies; beside what is public of words, where anything is.

        All follows from the sum and from public numbers. The same sum gives the same topics.
        """
        model, rng = Moments(n_topics=self.topics), np.random.default_rng(0)
        begun = model.start(vocabulary, rng) if public is None else model.started(vocabulary, public, rng)
        sums = PairSums.of(total_of(answer)["pairs"], len(vocabulary), answer.deviation, model.alone)
        vectors = np.zeros((len(vocabulary), 1), np.float32) if public is None else public.vectors
        return PublicKnowledge(model.topics(model.learned_from(sums, begun)), vectors, sums.frequencies)
