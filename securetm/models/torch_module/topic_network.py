"""What a network of your own must bring to be trained by a federation. It is a torch module and knows nothing of securetm.

A network is trained one document at a time: `forward` sees one row wherever documents are protected one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TopicNetwork(nn.Module):
    """An encoder and a decoder of your own.

    Its constructor takes `words`, `topics` and `embedding` (numbers of a document's embedding, 0 for none), and your options.
    Draw random numbers from torch alone: each document's are seeded by its key.
    """

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        """One loss per document, to be made small. `counts` is documents x words."""
        raise NotImplementedError

    def topics(self) -> Tensor:
        """How much each word belongs to each topic: topics x words, not negative."""
        raise NotImplementedError

    def infer(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        """Each document's topic shares without noise: documents x topics, not negative."""
        raise NotImplementedError

    def decode(self, shares: Tensor) -> Tensor:
        """The probability of each word, given topic shares. Override it where words are not drawn from a mixture of topics."""
        topics = self.topics()
        return shares @ (topics / topics.sum(dim=1, keepdim=True))


def divided(rows: Tensor) -> Tensor:
    """Each row divided by its sum; what is negative or not finite counts as nothing, and a row of nothing is uniform."""
    known = torch.where(torch.isfinite(rows), rows, torch.zeros_like(rows)).clamp(min=0).double()
    known = known / known.amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    known = torch.where(known.sum(dim=1, keepdim=True) > 0, known, torch.ones_like(known))
    return known / known.sum(dim=1, keepdim=True)
