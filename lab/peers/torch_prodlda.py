"""Our additive ProdLDA as a plain torch module over dense counts: what Opacus is given, and what ours is held against.

It is the same function with the same public noise, spelled in torch's own layers; no federation runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, normalize, softplus

from securetm.contracts import Array, State
from securetm.models.neural.network import DocumentNoise, NetworkShape, Prior
from securetm.models.neural.prodlda import ProdLDA


class TorchProdLDA(nn.Module):
    """One loss per document. Every layer is one that Opacus knows: the background is the bias of the last normalisation."""

    def __init__(self, model: ProdLDA, state: State) -> None:
        super().__init__()
        self.shape = NetworkShape.of(state["weights"], model.hidden, model.n_topics)
        words, hidden, topics = self.shape.vocabulary, self.shape.hidden, self.shape.topics
        self.words, self.inner = nn.Linear(words, hidden), nn.Linear(hidden, hidden)
        self.head, self.topics = nn.Linear(hidden, 2 * topics), nn.Linear(topics, words, bias=False)
        self.said = nn.LayerNorm(words)
        self.prior = Prior.laplace(model.alpha, model.n_topics, model.prior_weight)
        self.to(torch.from_numpy(state["weights"]).dtype)
        self.said.weight.requires_grad_(False).fill_(model.gain)
        for mine, theirs in self._places(self.shape.views(torch.from_numpy(state["weights"]))):
            mine.data.copy_(theirs)

    def _places(self, parts: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Each parameter beside its place in the flat vector of ours."""
        layers = {"words": self.words, "inner": self.inner, "head": self.head, "topics": self.topics}
        places = [(layer.weight, parts[name].T) for name, layer in layers.items()]
        places += [(layers[name].bias, parts[f"{name}_bias"]) for name in ("words", "inner", "head")]
        return [*places, (self.said.bias, parts["background"])]

    def flat(self, read: Any) -> Array:
        """What `read` says of each parameter, in the order of our flat vector."""
        out = torch.zeros(self.shape.size, dtype=self.said.bias.dtype)
        for parameter, place in self._places(self.shape.views(out)):
            place.copy_(read(parameter))
        flat: Array = out.numpy()
        return flat

    def forward(self, counts: Tensor, hidden: Tensor, normal: Tensor, theta: Tensor) -> Tensor:
        """The negative evidence bound of each row of counts."""
        rest = softplus(self.words(normalize(torch.log1p(counts), dim=1)))
        head = self.head(softplus(self.inner(rest)) * hidden)
        k = self.shape.topics
        mean, spread = layer_norm(head[:, :k], (k,)), layer_norm(head[:, k:], (k,))
        share = torch.softmax(mean + torch.exp(0.5 * spread) * normal, dim=1) * theta
        scores = torch.log_softmax(self.said(self.topics(share)), dim=1)
        constant = k * (torch.log(torch.tensor(self.prior.variance)).item() - 1.0)
        apart = ((spread.exp() + mean.square()) / self.prior.variance - spread).sum(dim=1) + constant
        bound: Tensor = 0.5 * self.prior.weight * apart - (counts * scores).sum(dim=1)
        return bound


def drawn(noise: DocumentNoise) -> tuple[Tensor, Tensor, Tensor]:
    """The public noise of a batch, as the module takes it."""
    theta = torch.ones(noise.normal.shape, dtype=torch.from_numpy(noise.normal).dtype)
    kept = theta if noise.theta is None else torch.from_numpy(noise.theta)
    return torch.from_numpy(noise.hidden), torch.from_numpy(noise.normal), kept


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch works on one thread meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
