"""Networks as a user would write them: one that does its part, and some that do not."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

from securetm import TopicNetwork


class SmallNetwork(TopicNetwork):
    """An autoencoder with dropout and Gaussian noise."""

    def __init__(self, words: int, topics: int, embedding: int, hidden: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(words + embedding, hidden), nn.Softplus(), nn.Dropout(0.2))
        self.mean, self.deviation = nn.Linear(hidden, topics), nn.Linear(hidden, topics)
        self.words = nn.Parameter(0.1 * torch.randn(topics, words))

    def encoded(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        read = torch.log1p(counts)
        return self.encoder(read if embeddings is None else torch.cat([read, embeddings], dim=1))

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        hidden = self.encoded(counts, embeddings)
        mean, spread = self.mean(hidden), self.deviation(hidden)
        shares = torch.softmax(mean + torch.exp(spread / 2) * torch.randn_like(mean), dim=1)
        divergence = 0.5 * (spread.exp() + mean**2 - 1 - spread).sum(dim=1)
        return divergence - (counts * torch.log_softmax(shares @ self.words, dim=1)).sum(dim=1)

    def topics(self) -> Tensor:
        return torch.softmax(self.words, dim=1)

    def infer(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        return torch.softmax(self.mean(self.encoded(counts, embeddings)), dim=1)

    def decode(self, shares: Tensor) -> Tensor:
        return torch.softmax(shares @ self.words, dim=1)


class Remembers(SmallNetwork):
    """Keeps a running mean of the documents, in a buffer and in an attribute."""

    def __init__(self, words: int, topics: int, embedding: int) -> None:
        super().__init__(words, topics, embedding)
        self.register_buffer("running", torch.zeros(words))
        self.seen = 0

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        self.running += counts.mean(dim=0)
        self.seen += 1
        return super().forward(counts + self.running + self.seen, embeddings)


class BatchNormalised(SmallNetwork):
    """Normalises over the batch, without weights of its own."""

    def __init__(self, words: int, topics: int, embedding: int) -> None:
        super().__init__(words, topics, embedding)
        self.encoder = nn.Sequential(nn.Linear(words, 8), nn.BatchNorm1d(8, affine=False), nn.Softplus())


SEEN: list[Tensor] = []


class RemembersEverywhere(SmallNetwork):
    """Keeps what it saw outside of itself, where no copy helps."""

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        SEEN.append(counts)
        return super().forward(counts + len(SEEN), embeddings)


class GrowsLouder(SmallNetwork):
    """Gives a far longer gradient when it is asked a second time."""

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        SEEN.append(counts)
        return super().forward(counts, embeddings) * 1000.0 ** len(SEEN)


class MovesItsWeights(SmallNetwork):
    """Changes its weights in the forward pass."""

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        with torch.no_grad():
            self.words.add_(counts.mean())
        return super().forward(counts, embeddings)


class RollsDice(SmallNetwork):
    """Draws from Python's own generator."""

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        return super().forward(counts * random.random(), embeddings)


class Fails(SmallNetwork):
    """Fails on documents with the first word three times."""

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        if counts[0, 0] == 3:
            raise ValueError("three")
        return super().forward(counts, embeddings)


class WrongTopics(SmallNetwork):
    def topics(self) -> Tensor:
        return torch.ones(2, 2)


class OneLoss(SmallNetwork):
    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        return super().forward(counts, embeddings).sum()


class NoTopicNetwork(nn.Linear):
    pass
