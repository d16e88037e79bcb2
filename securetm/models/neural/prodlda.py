"""ProdLDA without batch normalisation, so that its gradient is a sum over documents: the federation's neural topic model.

It is Srivastava and Sutton's (2017) network: words go in, and a product of experts makes words of topic shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from securetm.models.neural.decoders import ProductOfExperts
from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class ProdLDA(NeuralTopicModel):
    """An additive ProdLDA.

    Each document's logits are layer-normalised to deviation `gain` and added to a learned background. A small `gain` keeps
    topics apart; a larger one fits held-out words better. Settings were chosen on long posts and short titles, and judged on
    other corpora (`securetm reproduce additive-prodlda`).
    """

    batch: int = 32  # documents of each party in a step
    word_spread: float = 0.2  # largest deviation of a word's weights over the topics, restored after each step
    relevance: float = 0.5  # how much of the background counts for a topic's words
    learning_rate: float = 5e-3  # of a step
    name: ClassVar[str] = "prodlda"
    equal_words: ClassVar[bool] = False
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20, "batch": 64}

    @property
    def decoder(self) -> ProductOfExperts:
        """A product of experts."""
        return ProductOfExperts(self.gain)

    def start_bound(self, part: str, shape: tuple[int, ...]) -> float:
        """A document has length 1 whatever the vocabulary, so words have deviation 1; topics start small, as unknown."""
        usual = super().start_bound(part, shape)
        return {"words": math.sqrt(3.0), "topics": usual / 10}.get(part, usual)
