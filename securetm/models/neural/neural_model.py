"""What the neural topic models have in common: settings, state, steps, and how topics and shares are read from the weights.

Each is a variational autoencoder without batch normalisation, so that its gradient is a sum over documents. A model of the
family says what its encoder reads and what its decoder is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from securetm.compiled import njit
from securetm.contracts import Array, State
from securetm.data_classes import dataclass
from securetm.models.batches import slices
from securetm.models.document_noise import normals, survival
from securetm.models.estimator import Count, Finite, Fraction, Positive
from securetm.models.given_documents import check_embeddings
from securetm.models.gradients import GradientModel, optimiser_moments, optimiser_step
from securetm.models.neural.cpu_kernels import FusedKernels, WordBatch, bags
from securetm.models.neural.decoders import Decoder, ProductOfExperts
from securetm.models.neural.network import DocumentNoise, NetworkLosses, NetworkShape, Prior, encode
from securetm.models.neural.torch_kernels import TorchKernels, arithmetic
from securetm.settings import one_of

# All but "no NaN" and "no infinity": diverging training has to show.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def standardise(topics: Array, spread: Any, equal: bool) -> None:
    """Gives every word mean 0 and deviation `spread` over the topics, in place; at most `spread`, unless `equal`.

    Batch normalisation gives each word's logit one deviation over documents. One that is at most `spread` keeps a rare word,
    of which little is known, small.
    """
    real = topics.dtype.type
    count, width = real(topics.shape[0]), topics.shape[1]
    means, squares = np.zeros(width, topics.dtype), np.zeros(width, topics.dtype)
    for k in range(topics.shape[0]):
        _add_row(means, topics[k])
    means /= count
    for k in range(topics.shape[0]):
        _add_squares(squares, topics[k], means)
    rates = real(spread) / np.sqrt(squares / count + real(1e-12))
    if not equal:
        rates = np.minimum(rates, real(1.0))
    for k in range(topics.shape[0]):
        row = topics[k]
        for v in range(width):
            row[v] = (row[v] - means[v]) * rates[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_row(total: Array, row: Array) -> None:
    for v in range(len(row)):
        total[v] += row[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_squares(total: Array, row: Array, means: Array) -> None:
    for v in range(len(row)):
        total[v] += (row[v] - means[v]) * (row[v] - means[v])


Device = Annotated[str, one_of("auto", "cpu", "cuda")]
_HIDDEN, _NORMAL, _THETA = 0, 1, 2  # the streams of a document's noise
_CHUNK = 512  # documents at a time in `infer` and `log_likelihood`, so that memory does not grow with the corpus


@dataclass(frozen=True)
class NeuralTopicModel(GradientModel):
    """A variational autoencoder.

    After each step all words' weights are scaled to one deviation over topics, or to at most that one: with the decoder's own
    scaling by `gain`, this replaces batch normalisation.
    """

    hidden: Count = 100  # units of a hidden layer of the encoder
    dropout: Fraction = 0.2  # of the hidden layers
    theta_dropout: Fraction = 0.1  # of a document's topic shares
    alpha: Positive = 1.0  # of the symmetric Dirichlet prior
    prior_weight: float = 1.0  # of the divergence from the prior in the loss
    gain: Positive = 0.6  # deviation of the topics' part of the logits, beside the learned background of every word
    word_spread: Positive = 0.05  # deviation of every word's weights over the topics, restored after each step
    relevance: float = 0.2  # how much of the background counts for a topic's words
    background_rate: Finite = 1.0  # length of a step of the background, in steps of other weights
    device: Device = "auto"  # cpu, cuda, or auto: a GPU where there is one, and the CPU under a budget
    equal_words: ClassVar[bool] = True  # whether every word has the deviation `word_spread`; else at most that
    # A round's batch is all parties' batches together, so a federation steps further than one machine would.
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20, "learning_rate": 5e-3}

    @property
    def embedding_length(self) -> float:
        """To which embeddings are scaled, where the encoder reads such."""
        return 1.0

    def decoding(self, state: State) -> Decoder:
        """How topic shares become probabilities of words."""
        return ProductOfExperts(self.gain)

    def sizes(self) -> tuple[int, int, int, bool, int]:
        """Hidden units, topics, numbers of an embedding, whether words are read, and numbers of a topic if not one a word."""
        return self.hidden, self.n_topics, self.embedding_size, self.reads_words, 0

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Fresh weights from the rng, and the seed of all later document noise."""
        shape = NetworkShape(len(vocabulary), *self.sizes())
        flat = np.zeros(shape.size, dtype=self.dtype)
        for part, values in shape.views(flat).items():
            if not part.endswith("_bias") and part != "background":
                bound = float(np.sqrt(6.0 / sum(values.shape)))  # Glorot's, as ProdLDA's authors start
                if not self.equal_words:
                    # Documents start apart and topics nearly alike, as nothing is known of them. A document has length 1
                    # whatever the vocabulary, so words have deviation 1.
                    bound = {"words": math.sqrt(3.0), "topics": bound / 10}.get(part, bound)
                values[...] = rng.uniform(-bound, bound, values.shape)
        self.restored(flat)
        return {
            "weights": flat,
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
            **optimiser_moments(self.optimiser, flat),
            **self.server_moments(flat),
        }

    def topics(self, state: State) -> Array:
        """Each topic's words: the decoder's output for a document of that topic alone, the background times `relevance`.

        At relevance 1 it is the decoder's own distribution; a lower value prefers words that are special to a topic.
        """
        layers = {name: torch.from_numpy(layer).double() for name, layer in self._layers(state).items()}
        return torch.softmax(self.decoding(state).alone(layers, self.relevance), dim=1).numpy()

    def infer(self, state: State, documents: Any) -> Array:
        kernels, layers = self._kernels, self._on_device(self._layers(state))
        out = np.empty((len(documents), self.n_topics))
        with torch.inference_mode():
            for rows in slices(len(documents), _CHUNK):
                embeddings = None if documents.embeddings is None else documents.embeddings[rows]
                mean = encode(layers, self.read(state, documents.counts[rows], embeddings), kernels, None).mean
                out[rows] = torch.softmax(mean.double(), dim=1).cpu().numpy()
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        return self.encoded_likelihood(state, seen, unseen)

    def encoded_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given the shares that the encoder infers from its seen ones.

        Membership attacks read it: an encoder may remember documents beyond what topics do.
        """
        kernels, layers = self._kernels, self._on_device(self._layers(state))
        shares, decoder = self.infer(state, seen).astype(self.dtype), self.decoding(state)
        out = np.empty(len(unseen))
        with torch.inference_mode():
            for rows in slices(len(unseen), _CHUNK):
                given, batch = torch.from_numpy(shares[rows]).to(kernels.device), bags(unseen.counts[rows], self.dtype)
                out[rows] = -decoder.decode(layers, given, batch, kernels).losses.double().cpu().numpy()
        return out

    def losses(self, state: State, counts: Any, keys: Array, embeddings: Array | None = None) -> NetworkLosses:
        """The losses of a batch. Their noise depends on (seed, step, key) only, not on who computes them."""
        prior = Prior.laplace(self.alpha, self.n_topics, self.prior_weight)
        network = self._shape(state["weights"]), prior, self.decoding(state), self._kernels
        return NetworkLosses(state["weights"], *network, self.read(state, counts, embeddings), self._noise(state, keys))

    def losses_of(self, state: State, documents: Any) -> NetworkLosses:
        return self.losses(state, documents.counts, documents.keys, documents.embeddings)

    def local_gradient(self, state: State, documents: Any, rows: Array, number: int) -> Array:
        # The noise's step counts rounds in its high half and local steps in its low half, so none is used twice.
        inside = {**state, "step": (state["step"] << 32) + number}
        embeddings = None if documents.embeddings is None else documents.embeddings[rows]
        losses = self.losses(inside, documents.counts[rows], documents.keys[rows], embeddings)
        return losses.gradient(np.ones(len(rows), state["weights"].dtype))

    def stepped(
        self, weights: Array, gradient: Array, count: float, memory: State, number: int, in_place: bool
    ) -> tuple[Array, State]:
        """Weights and moments after one step along the mean gradient; the background's is longer."""
        before = self._background(weights).copy()
        rates = self.learning_rate, self.beta1
        weights, memory = optimiser_step(weights, gradient, count, memory, number, *rates, in_place)
        if self.background_rate != 1.0:
            background = self._background(weights)
            background += weights.dtype.type(self.background_rate - 1.0) * (background - before)
        return self.restored(weights), memory

    def _background(self, weights: Array) -> Array:
        found: Array = self._shape(weights).views(weights)["background"]
        return found

    def restored(self, weights: Array) -> Array:
        """With every word's spread restored, in place."""
        standardise(self._shape(weights).views(weights)["topics"], self.word_spread, self.equal_words)
        return weights

    def _shape(self, weights: Array) -> NetworkShape:
        return NetworkShape.from_weights(weights, *self.sizes())

    def read(self, state: State, counts: Any, embeddings: Array | None) -> WordBatch:
        """Counts as the network reads them, with embeddings where the encoder reads such."""
        if not self.embedding_size:
            return bags(counts, self.dtype)
        return bags(counts, self.dtype, check_embeddings(embeddings, self.embedding_size), self.embedding_length)

    @property
    def in_fixed_order(self) -> bool:
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
        return self._shape(state["weights"]).views(state["weights"])

    def _on_device(self, layers: dict[str, Array]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(layer).to(self._kernels.device) for name, layer in layers.items()}
