"""The peer of our ProdLDA: the plain network over dense batches, with batch normalisation and torch's Adam.

It is written as public code writes it, to be measured beside; it is not additive and no part of a federation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, softplus

from securetm.contracts import Array

_DENSE_AT_MOST = 2**28  # cells of a matrix held dense as a whole (1 GiB); a larger one is made dense batch by batch


class DenseProdLDA(nn.Module):
    """ProdLDA with batch normalisation without affine, as its authors describe it."""

    def __init__(self, words: int, topics: int = 50, hidden: int = 100, keep: float = 0.8, theta_dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(words, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.mean, self.spread = nn.Linear(hidden, topics), nn.Linear(hidden, topics)
        self.topics = nn.Linear(topics, words, bias=False)
        nn.init.xavier_uniform_(self.topics.weight)
        self.mean_norm, self.spread_norm = (nn.BatchNorm1d(topics, affine=False) for _ in range(2))
        self.word_norm = nn.BatchNorm1d(words, affine=False)
        self.drop, self.theta_dropout = nn.Dropout(1.0 - keep), theta_dropout
        self.variance = 1.0 - 1.0 / topics  # Laplace's approximation of Dirichlet(1, ..., 1)

    def forward(self, counts: Tensor) -> Tensor:
        """The mean negative evidence bound of a dense batch."""
        hidden = self.drop(softplus(self.second(softplus(self.first(counts)))))
        mean, spread = self.mean_norm(self.mean(hidden)), self.spread_norm(self.spread(hidden))
        share = torch.softmax(mean + torch.exp(0.5 * spread) * torch.randn_like(mean), dim=1)
        scores = torch.log_softmax(self.word_norm(self.topics(dropout(share, self.theta_dropout, self.training))), dim=1)
        apart = ((spread.exp() + mean.square()) / self.variance - 1.0 + float(np.log(self.variance)) - spread).sum(dim=1)
        bound: Tensor = (0.5 * apart - (counts * scores).sum(dim=1)).mean()
        return bound

    def top_words(self, n: int) -> Array:
        """The n heaviest words of each topic as word ids."""
        order: Array = np.argsort(-self.topics.weight.detach().numpy().T, axis=1, kind="stable")[:, :n]
        return order


class DenseTraining:
    """One dense network and its optimiser on one corpus, an epoch at a time."""

    def __init__(
        self, counts: Any, seed: int, *, batch: int = 64, rate: float = 1e-3, beta1: float = 0.99, **shape: Any
    ) -> None:
        torch.manual_seed(seed)
        self.network = DenseProdLDA(counts.shape[1], **shape)
        self._documents, self._batch = counts.shape[0], batch
        self._gather = _gatherer(counts)
        self._optimiser = torch.optim.Adam(self.network.parameters(), lr=rate, betas=(beta1, 0.999))

    def epoch(self, at_most: int | None = None) -> float:
        """One shuffled pass over the corpus, or its first batches; the mean loss."""
        self.network.train()
        total = 0.0
        for rows in torch.split(torch.randperm(self._documents), self._batch)[:at_most]:
            if len(rows) == 1:  # batch normalisation cannot normalise a single document
                continue
            loss = self.network(self._gather(rows))
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            total += float(loss.item()) * len(rows)
        return float(total / self._documents)


def _gatherer(counts: Any) -> Callable[[Tensor], Tensor]:
    if counts.shape[0] * counts.shape[1] <= _DENSE_AT_MOST:
        whole = torch.from_numpy(counts.toarray().astype(np.float32))
        return lambda rows: whole[rows]
    sparse_rows = counts.astype(np.float32)
    return lambda rows: torch.from_numpy(sparse_rows[rows.numpy()].toarray())
