"""ProdLDA without batch normalisation, so that its gradient is a sum over documents: the federation's neural topic model.

It is not a federation and knows no privacy. It learns from documents through a query only (Srivastava and Sutton 2017).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, State, Terms, Unit
from securetm.errors import check_setting
from securetm.models.document_noise import normals, survival
from securetm.models.estimator import Estimator
from securetm.models.neural import optimisers
from securetm.models.neural.fused import FusedKernels
from securetm.models.neural.kernels import bags
from securetm.models.neural.prodlda_losses import DocumentNoise, Network, NetworkShape, Prior, ProdLDALosses, encode
from securetm.models.neural.torch_kernels import TorchKernels, arithmetic
from securetm.models.neural.word_spread import standardise
from securetm.models.server_optimisers import AVERAGE, ServerOptimiser

_HIDDEN, _NORMAL, _THETA = 0, 1, 2  # the streams of a document's noise
_CHUNK = 512  # documents at a time in `infer` and `log_likelihood`, so that memory does not grow with the corpus


@dataclass(frozen=True)
class ProdLDA(ServerOptimiser, Estimator):
    """An additive ProdLDA: its fields are public settings, all that it learns is in the state.

    Two steps replace batch normalisation. Each document's logits are layer-normalised to deviation `gain` and added to a
    learned background. After each step all words' weights are scaled to one deviation over topics. A small `gain` keeps
    topics apart; a larger one fits held-out words better (`securetm reproduce additive-prodlda`). With `local_epochs` a party
    trains so many epochs on its own documents and answers with the difference of its weights.
    """

    n_topics: int = 50  # of the shared model
    hidden: int = 100  # units of a hidden layer of the encoder
    batch: int = 64  # documents of each party in a step
    dropout: float = 0.2  # of the hidden layers
    theta_dropout: float = 0.1  # of a document's topic shares
    alpha: float = 1.0  # of the symmetric Dirichlet prior
    prior_weight: float = 1.0  # of the divergence from the prior in the loss
    gain: float = 0.6  # deviation of the topics' part of the logits, beside the learned background of every word
    word_spread: float = 0.05  # deviation of every word's weights over the topics, restored after each step
    relevance: float = 0.2  # how much of the background counts for a topic's words
    learning_rate: float = 2e-3  # of a step
    beta1: float = 0.9  # of Adam
    optimiser: str = optimisers.ADAM  # adam or sgd
    dtype: str = "float32"  # float32 or float64
    local_epochs: int = 0  # at each party in a round; 0: a gradient per batch
    device: str = "auto"  # cpu, cuda or auto
    name: ClassVar[str] = "prodlda"
    # A round's batch is all parties' batches together, so a federation steps further than one machine would.
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20, "learning_rate": 5e-3}
    federated_epochs: ClassVar[float] = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "n_topics", self.n_topics >= 2, "must be at least 2")
        check_setting(self, "hidden", self.hidden >= 1, "must be at least 1")
        check_setting(self, "batch", self.batch >= 1, "must be at least 1")
        check_setting(self, "dropout", 0 <= self.dropout < 1, "must be at least 0 and below 1")
        check_setting(self, "theta_dropout", 0 <= self.theta_dropout < 1, "must be at least 0 and below 1")
        check_setting(self, "alpha", self.alpha > 0, "must be positive")
        check_setting(self, "gain", self.gain > 0, "must be positive")
        check_setting(self, "word_spread", self.word_spread > 0, "must be positive")
        check_setting(self, "learning_rate", self.learning_rate > 0, "must be positive")
        check_setting(self, "beta1", 0 <= self.beta1 < 1, "must be at least 0 and below 1")
        check_setting(self, "optimiser", self.optimiser in optimisers.KNOWN, f"must be one of {optimisers.KNOWN}")
        check_setting(self, "dtype", self.dtype in ("float32", "float64"), "must be float32 or float64")
        check_setting(self, "local_epochs", self.local_epochs >= 0, "must not be negative")
        check_setting(self, "server", self.local_epochs > 0 or self.server == AVERAGE, "needs local_epochs of at least 1")

    # ---- contracts.TopicModel ----

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Fresh weights from the rng, and the seed of all later document noise."""
        shape = NetworkShape(len(vocabulary), self.hidden, self.n_topics)
        flat = np.zeros(shape.size, dtype=self.dtype)
        for part, values in shape.views(flat).items():
            if not part.endswith("_bias") and part != "background":
                bound = np.sqrt(6.0 / sum(values.shape))  # Glorot's, as ProdLDA's authors start
                values[...] = rng.uniform(-bound, bound, values.shape)
        self._restore(flat)
        return {
            "weights": flat,
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
            **optimisers.moments(self.optimiser, flat),
            **self.server_moments(flat),
        }

    def query(self, state: State) -> StepQuery | EpochsQuery:
        """The next question: a gradient over one batch, or the difference of each party's weights after local epochs."""
        return EpochsQuery(self, state) if self.local_epochs else StepQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one answer: a gradient step, or a federated average."""
        return self.advance(state, answer.total or {}, in_place=False)

    def advance(self, state: State, total: Mapping[str, Array], in_place: bool) -> State:
        """`update` on bare blocks; in place it reuses the state's arrays, which nobody else may hold."""
        count = float(total["documents"][0]) if "documents" in total else 0.0
        after = {**state, "step": state["step"] + 1}
        if count <= 0.0:  # no document was drawn, or noise made the count negative
            return after
        if self.local_epochs:
            after = {**after, **self.server_step(state, total["difference"] / count)}
            return {**after, "weights": self._restore(after["weights"])}
        memory: State = {name: state[name] for name in ("first", "second") if name in state}
        number = int(after["step"][0])
        weights, memory = self.stepped(state["weights"], total["gradient"], count, memory, number, in_place)
        return {**after, "weights": weights, **memory}

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The weights, step and seed, without the optimiser's moments."""
        return {name: state[name] for name in ("weights", "step", "seed")}

    def topics(self, state: State) -> Array:
        """Each topic's words: the decoder's output for a document of that topic alone, the background times `relevance`.

        At relevance 1 it is the decoder's own distribution; a lower value prefers words that are special to a topic.
        """
        layers = {name: torch.from_numpy(layer).double() for name, layer in self._layers(state).items()}
        scores = self.gain * FusedKernels().normalise(layers["topics"])[0] + self.relevance * layers["background"]
        shares: Array = torch.softmax(scores, dim=1).numpy()
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares at the posterior mean, without noise."""
        kernels, layers = self._kernels, self._on_device(self._layers(state))
        out = np.empty((len(documents), self.n_topics))
        with torch.inference_mode():
            for rows, chunk in _chunks(documents):
                mean = encode(layers, bags(chunk, self.dtype), kernels, None).mean
                out[rows] = torch.softmax(mean.double(), dim=1).cpu().numpy()
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given the topic shares of its seen words."""
        kernels, decoder = self._kernels, self._on_device(self._layers(state))
        shares = self.infer(state, seen).astype(self.dtype)
        out = np.empty(len(unseen))
        with torch.inference_mode():
            for rows, chunk in _chunks(unseen):
                logits = kernels.dense(torch.from_numpy(shares[rows]).to(kernels.device), decoder["topics"])
                found = kernels.reconstruct(bags(chunk, self.dtype), logits, decoder["background"], self.gain)
                out[rows] = -found.losses.double().cpu().numpy()
        return out

    # ---- for the queries ----

    def losses(self, state: State, counts: Any, keys: Array) -> ProdLDALosses:
        """The losses of a batch. Their noise depends on (seed, step, key) only, not on who computes them."""
        shape = NetworkShape.of(state["weights"], self.hidden, self.n_topics)
        network = Network(shape, Prior.laplace(self.alpha, self.n_topics, self.prior_weight), self.gain, self._kernels)
        return ProdLDALosses(state["weights"], network, bags(counts, self.dtype), self._noise(state, keys))

    def stepped(
        self, weights: Array, gradient: Array, count: float, memory: State, number: int, in_place: bool
    ) -> tuple[Array, State]:
        """Weights and moments after one step along the mean gradient, with every word's spread restored."""
        rate, beta1 = self.learning_rate, self.beta1
        weights, memory = optimisers.step(weights, gradient, count, memory, number, rate, beta1, in_place)
        return self._restore(weights), memory

    def _restore(self, weights: Array) -> Array:
        standardise(NetworkShape.of(weights, self.hidden, self.n_topics).views(weights)["topics"], self.word_spread)
        return weights

    @property
    def epochs_per_round(self) -> int:
        """The epochs of a party in a round."""
        return max(1, self.local_epochs)

    @property
    def in_fixed_order(self) -> bool:
        """Whether sums run in a fixed order: on a CPU they do, on a GPU they do not."""
        return isinstance(self._kernels, FusedKernels)

    @cached_property
    def _kernels(self) -> FusedKernels | TorchKernels:
        return arithmetic(self.device)

    def _noise(self, state: State, keys: Array) -> DocumentNoise:
        names = int(state["seed"][0]), int(state["step"][0]), keys
        k, dropout = self.n_topics, self.theta_dropout
        return DocumentNoise(
            hidden=survival(*names, _HIDDEN, self.hidden, self.dropout, self.dtype),
            normal=normals(*names, _NORMAL, k, self.dtype),
            theta=survival(*names, _THETA, k, dropout, self.dtype) if dropout else None,
        )

    def _layers(self, state: State) -> dict[str, Array]:
        return NetworkShape.of(state["weights"], self.hidden, self.n_topics).views(state["weights"])

    def _on_device(self, layers: dict[str, Array]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(layer).to(self._kernels.device) for name, layer in layers.items()}


@dataclass(frozen=True)
class StepQuery:
    """Asks for the sum of the documents' gradients at the current weights. The party has drawn the batch already."""

    model: ProdLDA
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: its gradient and a one."""
        layout = (Block("gradient", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, batch=self.model.batch, bits=_bits(self.model.dtype))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the gradient of each given document. Their noise is public, so neither memory nor rng is used."""
        count = len(documents)
        if count:
            losses = self.model.losses(self.state, documents.counts, documents.keys)
            clipped_sum.add_losses(losses, owners=np.arange(count), beside=np.ones((count, 1), dtype=self.model.dtype))


@dataclass(frozen=True)
class EpochsQuery:
    """Asks each party to train by itself and to answer with the difference of its weights, as one row (FedAvg)."""

    model: ProdLDA
    state: State

    @property
    def terms(self) -> Terms:
        """One row per party: its difference times its number of documents, and that number."""
        layout = (Block("difference", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, unit=Unit.PARTY, bits=_bits(self.model.dtype))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Batches are shuffled by the rng. The optimiser starts without moments, since these never travel."""
        count = len(documents)
        if count:
            difference = self._trained(documents, rng) - self.state["weights"]
            row = np.append(count * difference, self.state["weights"].dtype.type(count))
            clipped_sum.add(row[None, :], owners=np.zeros(1, dtype=np.int64))

    def _trained(self, documents: Any, rng: np.random.Generator) -> Array:
        model, weights = self.model, self.state["weights"].copy()
        memory: State = optimisers.moments(model.optimiser, weights)
        for number, rows in enumerate(self._batches(len(documents), rng), start=1):
            # The noise's step counts rounds in its high half and local steps in its low half, so none is used twice.
            step = (self.state["step"] << 32) + number
            inside = {"weights": weights, "step": step, "seed": self.state["seed"]}
            gradient = model.losses(inside, documents.counts[rows], documents.keys[rows]).gradient(
                np.ones(len(rows), weights.dtype)
            )
            weights, memory = model.stepped(weights, gradient, len(rows), memory, number, in_place=True)
        return weights

    def _batches(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        for _ in range(self.model.local_epochs):
            order = rng.permutation(count)
            yield from np.split(order, range(self.model.batch, count, self.model.batch))


def _bits(dtype: str) -> int:
    return 32 if dtype == "float32" else 64


def _chunks(documents: Any) -> Iterator[tuple[slice, Any]]:
    for first in range(0, len(documents), _CHUNK):
        rows = slice(first, min(first + _CHUNK, len(documents)))
        yield rows, documents.counts[rows]
