"""NeuralLDA: ProdLDA's encoder before a mixture of topics, each a distribution over the words, as in LDA.

It is Srivastava and Sutton's (2017) second network. Their batch normalisation of the topics reads no document: it gives each
word one deviation over the topics, as the restoring of `word_spread` after each step does here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from securetm.contracts import State
from securetm.models.neural.decoders import Mixture
from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class NeuralLDA(NeuralTopicModel):
    """A mixture of multinomials with a neural encoder. Every word's logits have deviation `gain` over the topics."""

    theta_dropout: float = 0.0  # of a document's topic shares
    gain: float = 2.0  # deviation of every word's logits over the topics, beside the learned background
    name: ClassVar[str] = "neural-lda"

    def decoding(self, state: State) -> Mixture:  # noqa: ARG002
        """A mixture of topics."""
        return Mixture(self.gain / self.word_spread)
