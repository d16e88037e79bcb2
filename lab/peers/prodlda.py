"""ProdLDA beside ours: with batch normalisation, as its authors describe it, and our own network in torch's layers.

None of them is a part of a federation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm, normalize, softplus

from securetm.contracts import Array, State
from securetm.models.neural.network import DocumentNoise, NetworkShape, Prior
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_module import TopicNetwork

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

    def shares(self, counts: Tensor, samples: int = 20) -> Array:
        """Documents' topic shares: means over so many draws, as its authors infer them."""
        self.eval()
        with torch.inference_mode():
            hidden = softplus(self.second(softplus(self.first(counts))))
            mean, spread = self.mean_norm(self.mean(hidden)), self.spread_norm(self.spread(hidden))
            drawn = [torch.softmax(mean + torch.exp(0.5 * spread) * torch.randn_like(mean), dim=1) for _ in range(samples)]
            found: Array = torch.stack(drawn).double().mean(dim=0).numpy()
        return found

    def top_words(self, n: int) -> Array:
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


class TorchProdLDA(nn.Module):
    """One loss per document. Every layer is one that Opacus knows: the background is the bias of the last normalisation."""

    def __init__(self, model: ProdLDA, state: State) -> None:
        super().__init__()
        self.shape = NetworkShape.from_weights(state["weights"], model.hidden, model.n_topics)
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
        return torch.softmax(self.network.topics.weight.T, dim=1)

    def infer(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:  # noqa: ARG002 - it reads none
        """The bench infers nothing: every document has every topic."""
        return torch.ones(len(counts), self.model.n_topics)
