"""NeuralLDA: ProdLDA's encoder before a mixture of topics, each a distribution over the words, as in LDA.

It is Srivastava and Sutton's (2017) second network. Their batch normalisation of the topics reads no document: it gives each
word one deviation over the topics; here the bound `word_spread`, after each step, gives it at most that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from securetm.contracts import Array, State
from securetm.models.given_documents import as_documents
from securetm.models.neural.decoders import Mixture
from securetm.models.neural.mixed_prediction import MixedPrediction
from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class NeuralLDA(NeuralTopicModel):
    """A mixture of multinomials with a neural encoder. A word's logits have at most deviation `gain` over the topics.

    Topics start nearly alike and words of which little is known stay so: else few documents are predicted by topics drawn at
    random. Logits of topics are `gain / word_spread` times their weights, so the background steps further than other weights.
    """

    theta_dropout: float = 0.0  # of a document's topic shares
    gain: float = 2.0  # largest deviation of a word's logits over the topics, beside the learned background
    background_rate: float = 10.0  # length of a step of the background, in steps of other weights
    relevance: float = 0.6  # how much of the background counts for a topic's words
    name: ClassVar[str] = "neural-lda"
    equal_words: ClassVar[bool] = False
    # Under a budget a step is mostly noise: shorter ones wander less, in topics above all.
    budget_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3, "background_rate": 5.0}

    def start_bound(self, part: str, shape: tuple[int, ...]) -> float:
        """As in ProdLDA, documents start apart and topics nearly alike."""
        usual = super().start_bound(part, shape)
        return {"words": math.sqrt(3.0), "topics": usual / 10}.get(part, usual)

    def decoding(self, state: State) -> Mixture:  # noqa: ARG002
        """A mixture of topics."""
        return Mixture(self.gain / self.word_spread)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, by the topics themselves: they know how little few words tell."""
        words = self._shape(state["weights"]).vocabulary
        alone = as_documents(sparse.eye_array(words, dtype=np.int32, format="csr"), tuple(map(str, range(words))))
        likely = replace(self, relevance=1.0).topics(state)
        return MixedPrediction.of(likely, self.infer(state, alone), self.alpha).log_likelihood(seen.counts, unseen.counts)
