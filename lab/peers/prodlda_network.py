"""Our additive ProdLDA as a stranger would bring it: a topic network in torch's own layers. Only `bench dp` runs it.

It draws its own noise from torch, so it trains the same model with other draws.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lab.peers.torch_prodlda import TorchProdLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_module import TopicNetwork


class ProdLDANetwork(TopicNetwork):
    """The network of `TorchProdLDA` behind the contract of a network of one's own."""

    def __init__(self, words: int, topics: int, embedding: int) -> None:
        super().__init__()
        assert not embedding
        self.model = ProdLDA(n_topics=topics, device="cpu")
        vocabulary = tuple(f"word {v}" for v in range(words))
        self.network = TorchProdLDA(self.model, self.model.start(vocabulary, np.random.default_rng(0)))
        self.network.said.weight.requires_grad_(True)  # our flat vector holds every parameter

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:  # noqa: ARG002 - it reads none
        """The negative evidence bound of each row of counts."""
        rows, topics = len(counts), self.model.n_topics
        hidden = torch.bernoulli(torch.full((rows, self.model.hidden), 0.8)) / 0.8
        theta = torch.bernoulli(torch.full((rows, topics), 0.9)) / 0.9
        losses: Tensor = self.network(counts, hidden, torch.randn(rows, topics), theta)
        return losses

    def topics(self) -> Tensor:
        """The words of each topic."""
        return torch.softmax(self.network.topics.weight.T, dim=1)

    def infer(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:  # noqa: ARG002 - it reads none
        """The bench infers nothing: every document has every topic."""
        return torch.ones(len(counts), self.model.n_topics)
