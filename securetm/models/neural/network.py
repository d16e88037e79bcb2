"""The network's layers in a flat vector, each document's loss, the length of its gradient, and weighted sums of gradients.

Inputs and output gradients of the linear layers are kept, a document's own gradient is not. On a CPU no document changes a bit
of another one's gradient: the code between the kernels consists of elementwise operations, whose rounding does not depend on a
number's place.
"""

from __future__ import annotations

import copy
import functools
import math

import numpy as np
import torch
from torch import Tensor

from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise
from securetm.models.gradients import FlatLayers
from securetm.models.neural.cpu_kernels import WordBatch
from securetm.models.neural.decoders import Decoder, Kernels, Layers, products


@dataclass(frozen=True)
class NetworkShape(FlatLayers):
    """The sizes of the network, from which the place of each layer in the flat vector of weights follows.

    The first layer adds what it makes of the words to what it makes of the embedding; `words_bias` is its bias.
    """

    vocabulary: int
    hidden: int
    topics: int
    embedding: int = 0  # numbers of a document's embedding that the encoder reads
    reads_words: bool = True  # whether the encoder reads words
    dimensions: int = 0  # of each topic, where these are not the words

    @functools.cached_property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        v, h, k = self.vocabulary, self.hidden, self.topics
        words = (("words", (v, h)),) if self.reads_words else ()
        embedding = (("embedding", (self.embedding, h)),) if self.embedding else ()
        return (
            *words, *embedding, ("words_bias", (h,)), ("inner", (h, h)), ("inner_bias", (h,)),
            ("head", (h, 2 * k)), ("head_bias", (2 * k,)), ("topics", (k, self.dimensions or v)), ("background", (v,)),
        )  # fmt: skip

    @classmethod
    def from_weights(
        cls, weights: Array, hidden: int, topics: int, embedding: int = 0, reads_words: bool = True, dimensions: int = 0
    ) -> NetworkShape:
        """The shape whose flat vector has this length; the vocabulary's size follows from it."""
        return _shape(len(weights), hidden, topics, embedding, reads_words, dimensions)


@functools.lru_cache(maxsize=16)  # asked at every step, and always the same
def _shape(length: int, hidden: int, topics: int, embedding: int, reads_words: bool, dimensions: int) -> NetworkShape:
    none, one = (NetworkShape(words, hidden, topics, embedding, reads_words, dimensions) for words in (0, 1))
    words, left = divmod(length - none.size, one.size - none.size)
    if left or words < 1:
        raise BrokenPromise("weight vector", length, replace(none, vocabulary=max(words, 1)).size)
    return replace(none, vocabulary=words)


@dataclass(frozen=True)
class DocumentNoise:
    """One batch's dropout masks and reparametrisation draws, row i for document i."""

    hidden: Array
    normal: Array
    theta: Array | None


@dataclass(frozen=True)
class Prior:
    """The Gaussian that approximates the symmetric Dirichlet in softmax space, and its weight in the loss."""

    variance: float
    weight: float = 1.0

    @classmethod
    def laplace(cls, alpha: float, topics: int, weight: float = 1.0) -> Prior:
        """Laplace's approximation of Dirichlet(alpha, ..., alpha) (Srivastava and Sutton 2017, section 3.2)."""
        return cls((1.0 - 2.0 / topics) / alpha + 1.0 / (topics * alpha), weight)


_TOO_LONG = 2.0**40  # a longer factor of a gradient counts as infinite, so that products and sums of the others stay finite


@dataclass(frozen=True)
class Encoding:
    """The encoder's outputs that its backward pass needs."""

    slopes: tuple[Tensor, Tensor]
    hidden: tuple[Tensor, Tensor]
    normal: Tensor  # means and log-variances side by side, each layer-normalised
    rates: Tensor  # for the gradient of layer normalisation; two for each row of `normal`

    @property
    def mean(self) -> Tensor:
        """The mean of each topic's share, in softmax space."""
        return self.normal[:, : self.normal.shape[1] // 2]


def encode(layers: Layers, batch: WordBatch, kernels: Kernels, mask: Tensor | None) -> Encoding:
    """Topic means and log-variances of a batch; without a mask nothing is dropped."""
    if "embedding" not in layers:
        entered = kernels.embed(batch, layers["words"], layers["words_bias"])
    else:
        entered = kernels.dense(_embeddings(batch, kernels), layers["embedding"], layers["words_bias"])
        if "words" in layers:
            entered.add_(kernels.embed(batch, layers["words"], torch.zeros_like(layers["words_bias"])))
    one, first = kernels.activate(entered)
    two, second = kernels.activate(kernels.dense(one, layers["inner"], layers["inner_bias"]))
    two = two if mask is None else two.mul_(mask)
    head = kernels.dense(two, layers["head"], layers["head_bias"])
    normal, rates = kernels.normalise(_halves(head))
    return Encoding((first, second), (one, two), normal.view(head.shape), rates)


def _embeddings(batch: WordBatch, kernels: Kernels) -> Tensor:
    assert batch.embeddings is not None
    return torch.from_numpy(batch.embeddings).to(kernels.device)


def _halves(rows: Tensor) -> Tensor:
    return rows.reshape(2 * len(rows), -1)


class NetworkLosses:
    """The negative evidence lower bound of each document of a batch (contracts.Losses)."""

    @torch.inference_mode()
    def __init__(
        self,
        weights: Array,
        shape: NetworkShape,
        prior: Prior,
        decoder: Decoder,
        kernels: Kernels,
        batch: WordBatch,
        noise: DocumentNoise,
    ) -> None:
        self._shape, self._kernels, self._batch, self._dtype = shape, kernels, batch, weights.dtype
        layers = shape.views(torch.from_numpy(weights).to(kernels.device))

        def on_device(values: Array) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values, dtype=weights.dtype)).to(kernels.device)

        mask, normal = on_device(noise.hidden), on_device(noise.normal)
        theta = None if noise.theta is None else on_device(noise.theta)
        encoded = encode(layers, batch, kernels, mask)
        drawn = kernels.latent(encoded.normal, normal, (prior.variance, prior.weight))
        decoded = decoder.decode(layers, drawn.shares if theta is None else drawn.shares * theta, batch, kernels)
        self.values: Array = (decoded.losses + drawn.divergence).cpu().numpy()
        back = decoded.back() if theta is None else decoded.back().mul_(theta)
        latent = kernels.latent_backward(back, encoded.normal, normal, (prior.variance, prior.weight), drawn)
        head = kernels.normalise_backward(_halves(latent), _halves(encoded.normal), encoded.rates).view(latent.shape)
        inner = kernels.back(head, layers["head"]).mul_(mask).mul_(encoded.slopes[1])
        words = kernels.back(inner, layers["inner"]).mul_(encoded.slopes[0])
        # What went into each dense layer of the encoder, and the gradient of what came out of it.
        self._dense = {"inner": (encoded.hidden[0], inner), "head": (encoded.hidden[1], head)}
        self._words, self._decoded = words, decoded

    def norms(self, owners: Array) -> Array:
        """The l2 norm of each owner's summed gradient, owners sorted: |a b^T|^2 = |a|^2 |b|^2 instead of whole rows.

        A clip relies on it: the sum of `gradient` for an owner in 64 bits, rounding included, is longer by at most a factor of
        1 + 2^-38. It is infinite where a gradient is not finite, or too large to be summed with others.
        """
        names, member = np.unique(owners, return_inverse=True)
        with torch.inference_mode():
            lengths = self._lengths()
            if len(names) < len(owners):
                groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
                return np.array([self._length_of_sum(rows, lengths[rows]) for rows in groups])
            return lengths[np.argsort(member)]

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight times gradient, as one flat vector, in 64 bits if the weights are.

        A document of weight 0 is left out and not multiplied, so it adds nothing even where its gradient is infinite or NaN.
        Each number is a sum over documents in their order.
        """
        chosen = np.flatnonzero(weights)
        if len(chosen) == 0:  # also where the model's weights are NaN
            return np.zeros(self._shape.size, np.result_type(weights.dtype, self._dtype))
        if len(chosen) < len(weights):
            return self._only(chosen).gradient(weights[chosen])
        with torch.inference_mode():
            wide = np.ascontiguousarray(weights, np.result_type(weights.dtype, self._dtype))
            scale = torch.from_numpy(wide).to(self._kernels.device)
            flat = torch.zeros(self._shape.size, dtype=scale.dtype, device=scale.device)
            parts = self._shape.views(flat)
            weighted = self._words * scale[:, None]
            if "words" in parts:
                self._kernels.embed_gradient(self._batch, weighted, parts["words"])
            if "embedding" in parts:
                rows = _embeddings(self._batch, self._kernels).to(scale.dtype)
                self._kernels.add_outer(rows, weighted, parts["embedding"])
            parts["words_bias"].copy_(self._kernels.dense(scale[None], self._words)[0])
            for name, (inward, outward) in self._dense.items():
                self._kernels.add_outer(inward * scale[:, None], outward, parts[name])
                parts[f"{name}_bias"].copy_(self._kernels.dense(scale[None], outward)[0])
            self._decoded.add_gradient(scale, parts)
            return flat.cpu().numpy()

    def _only(self, rows: Array) -> NetworkLosses:
        """The losses of these documents, as computed among all."""
        some, places = copy.copy(self), torch.from_numpy(rows).to(self._kernels.device)
        with torch.inference_mode():
            some.values, some._batch = self.values[rows], self._batch.only(rows)
            some._words, some._decoded = self._words[places], self._decoded.only(places)
            some._dense = {name: (inward[places], outward[places]) for name, (inward, outward) in self._dense.items()}
        return some

    def _lengths(self) -> Array:
        """The length of each document's gradient; infinite where any of its factors is."""
        batch, shape = self._batch, self._shape
        words, background = self._squares(self._words), self._decoded.background_squares()
        inputs: Array = np.zeros(len(words))
        if shape.reads_words:
            row = np.repeat(np.arange(len(words)), np.diff(batch.ends))
            inputs = np.bincount(row, weights=batch.inputs.astype(np.float64) ** 2, minlength=len(words))
        if shape.embedding:
            inputs = inputs + self._squares(_embeddings(batch, self._kernels))
        squares, largest = (inputs + 1.0) * words + background, words
        for inward, outward in self._dense.values():
            came, went = self._squares(inward), self._squares(outward)
            squares = squares + (came + 1.0) * went  # a bias is a weight whose input is 1
            largest = np.maximum(largest, np.maximum(came, went))
        topics, factor = self._decoded.topics_squares()
        squares, largest = squares + topics, np.maximum(largest, factor)
        with np.errstate(invalid="ignore"):
            fine = np.maximum(largest, background) <= _TOO_LONG**2  # false where it is no number
            return np.where(fine, np.sqrt(squares), np.inf)

    def _squares(self, rows: Tensor) -> Array:
        return self._kernels.squared_lengths(rows).cpu().numpy()

    def _length_of_sum(self, rows: Array, alone: Array) -> float:
        """The length of one owner's summed gradient; `alone` holds the lengths of its documents' own gradients.

        Where these cancel, the sum may consist of rounding errors alone, so it counts as at least a fraction of their total.
        """
        whole = math.fsum(alone)
        if len(rows) == 1 or not math.isfinite(whole):
            return whole
        square = self._only(rows)._square_of_sum()
        return max(math.sqrt(max(square, 0.0)), whole * max(2.0**-4, len(rows) * 2.0**-12))

    def _square_of_sum(self) -> float:
        """|sum a_i b_i^T|^2 = sum over pairs (a_i . a_j)(b_i . b_j), of all documents."""
        batch, shape, count = self._batch, self._shape, len(self._words)
        shared: Array = np.zeros((count, count))  # the products of what each two documents put into the first layer
        if shape.reads_words:
            names, places = np.unique(batch.words, return_inverse=True)
            dense = np.zeros((count, len(names)))
            dense[np.repeat(np.arange(count), np.diff(batch.ends)), places] = batch.inputs  # no word twice in a row
            shared = products(self._kernels, torch.from_numpy(dense).to(self._kernels.device))
        if shape.embedding:
            shared = shared + products(self._kernels, _embeddings(batch, self._kernels))
        pairs = (shared + 1.0) * products(self._kernels, self._words) + self._decoded.background_products()
        for inward, outward in self._dense.values():
            pairs += (products(self._kernels, inward) + 1.0) * products(self._kernels, outward)
        pairs += self._decoded.topics_products()
        return math.fsum(pairs.ravel())
