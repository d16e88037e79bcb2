"""ProdLDA without batch normalisation, so that its gradient is a sum over documents: the federation's neural topic model.

It is Srivastava and Sutton's (2017) network: words go in, and a product of experts makes words of topic shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from securetm.models.neural.decoders import ProductOfExperts
from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class ProdLDA(NeuralTopicModel):
    """An additive ProdLDA.

    Each document's logits are layer-normalised to deviation `gain` and added to a learned background. A small `gain` keeps
    topics apart; a larger one fits held-out words better (`securetm reproduce additive-prodlda`).
    """

    name: ClassVar[str] = "prodlda"

    @property
    def decoder(self) -> ProductOfExperts:
        """A product of experts."""
        return ProductOfExperts(self.gain)
