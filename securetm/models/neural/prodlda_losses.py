"""ProdLDA's loss of each document, the length of its gradient and weighted sums of gradients, by hand-written passes.

It is no autograd graph: inputs and output gradients of the linear layers are kept, a document's own gradient is not. On a CPU
no document changes a bit of another one's gradient: the code between the kernels consists of elementwise operations, whose
rounding does not depend on a number's place.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from securetm.contracts import Array
from securetm.errors import BrokenPromise
from securetm.models.neural.fused import FusedKernels
from securetm.models.neural.kernels import WordBatch
from securetm.models.neural.torch_kernels import TorchKernels

_TOO_LONG = 2.0**40  # a longer factor of a gradient counts as infinite, so that products and sums of the others stay finite


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of the network, from which the place of each layer in the flat vector of weights follows."""

    vocabulary: int
    hidden: int
    topics: int

    @functools.cached_property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of the layers, in the order of the flat vector."""
        v, h, k = self.vocabulary, self.hidden, self.topics
        return (
            ("words", (v, h)), ("words_bias", (h,)), ("inner", (h, h)), ("inner_bias", (h,)),
            ("head", (h, 2 * k)), ("head_bias", (2 * k,)), ("topics", (k, v)), ("background", (v,)),
        )  # fmt: skip

    @functools.cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate((math.prod(shape) for _, shape in self.parts), initial=0))

    @property
    def size(self) -> int:
        """Weights in all."""
        return self._ends[-1]

    def views(self, flat: Any) -> dict[str, Any]:
        """Each layer as a view into the flat vector (numpy or torch)."""
        cuts = zip(self.parts, self._ends, self._ends[1:], strict=False)
        return {name: flat[first:end].reshape(shape) for (name, shape), first, end in cuts}

    @classmethod
    def of(cls, weights: Array, hidden: int, topics: int) -> NetworkShape:
        """The shape whose flat vector has this length; the vocabulary's size follows from it."""
        return _shape(len(weights), hidden, topics)


@functools.lru_cache(maxsize=16)  # asked at every step, and always the same
def _shape(length: int, hidden: int, topics: int) -> NetworkShape:
    words, left = divmod(length - NetworkShape(0, hidden, topics).size, hidden + topics + 1)
    if left or words < 1:
        raise BrokenPromise("weight vector", length, NetworkShape(max(words, 1), hidden, topics).size)
    return NetworkShape(words, hidden, topics)


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


def encode(layers: dict[str, Tensor], batch: WordBatch, kernels: FusedKernels | TorchKernels, mask: Tensor | None) -> Encoding:
    """Topic means and log-variances of a batch; without a mask nothing is dropped."""
    one, first = kernels.activate(kernels.embed(batch, layers["words"], layers["words_bias"]))
    two, second = kernels.activate(kernels.dense(one, layers["inner"], layers["inner_bias"]))
    two = two if mask is None else two.mul_(mask)
    head = kernels.dense(two, layers["head"], layers["head_bias"])
    normal, rates = kernels.normalise(_halves(head))
    return Encoding((first, second), (one, two), normal.view(head.shape), rates)


def _halves(rows: Tensor) -> Tensor:
    return rows.reshape(2 * len(rows), -1)


@dataclass(frozen=True)
class Network:
    """The constants of the network."""

    shape: NetworkShape
    prior: Prior
    gain: float  # deviation of the topics' part of the logits
    kernels: FusedKernels | TorchKernels


class ProdLDALosses:
    """The negative evidence lower bound of each document of a batch (contracts.Losses)."""

    def __init__(self, weights: Array, net: Network, batch: WordBatch, noise: DocumentNoise) -> None:
        self._net, self._batch, self._kernels = net, batch, net.kernels
        self._dtype = weights.dtype
        with torch.inference_mode():
            self._run(net.shape.views(torch.from_numpy(weights).to(net.kernels.device)), noise)

    def _run(self, layers: dict[str, Tensor], noise: DocumentNoise) -> None:
        kernels, prior = self._kernels, (self._net.prior.variance, self._net.prior.weight)
        mask, normal = self._tensor(noise.hidden), self._tensor(noise.normal)
        encoded = encode(layers, self._batch, kernels, mask)
        drawn = kernels.latent(encoded.normal, normal, prior)
        kept = drawn.shares if noise.theta is None else drawn.shares * self._tensor(noise.theta)
        decoded = kernels.reconstruct(self._batch, kernels.dense(kept, layers["topics"]), layers["background"], self._net.gain)
        self.values: Array = (decoded.losses + drawn.divergence).cpu().numpy()
        back = kernels.back(decoded.back, layers["topics"])
        back = back if noise.theta is None else back.mul_(self._tensor(noise.theta))
        latent = kernels.latent_backward(back, encoded.normal, normal, prior, drawn)
        head = kernels.normalise_backward(_halves(latent), _halves(encoded.normal), encoded.rates).view(latent.shape)
        inner = kernels.back(head, layers["head"]).mul_(mask).mul_(encoded.slopes[1])
        words = kernels.back(inner, layers["inner"]).mul_(encoded.slopes[0])
        # What went into each dense layer, and the gradient of what came out of it.
        self._dense = {"inner": (encoded.hidden[0], inner), "head": (encoded.hidden[1], head), "topics": (kept, decoded.back)}
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
            whole: Array = lengths[np.argsort(member)]
            return whole

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight times gradient, as one flat vector, in 64 bits if the weights are.

        A document of weight 0 is left out and not multiplied, so it adds nothing even where its gradient is infinite or NaN.
        Each number is a sum over documents in their order.
        """
        chosen = np.flatnonzero(weights)
        if len(chosen) == 0:  # also where the model's weights are NaN
            return np.zeros(self._net.shape.size, np.result_type(weights.dtype, self._dtype))
        if len(chosen) < len(weights):
            return self._only(chosen).gradient(weights[chosen])
        with torch.inference_mode():
            wide = np.ascontiguousarray(weights, np.result_type(weights.dtype, self._dtype))
            scale = torch.from_numpy(wide).to(self._kernels.device)
            flat = torch.zeros(self._net.shape.size, dtype=scale.dtype, device=scale.device)
            parts = self._net.shape.views(flat)
            self._kernels.embed_gradient(self._batch, self._words * scale[:, None], parts["words"])
            parts["words_bias"].copy_(self._kernels.combined(scale, self._words))
            for name, (inward, outward) in self._dense.items():
                self._kernels.add_outer(inward * scale[:, None], outward, parts[name])
                if name != "topics":  # the decoder's bias is the background
                    parts[f"{name}_bias"].copy_(self._kernels.combined(scale, outward))
            parts["background"].copy_(self._kernels.combined(scale, self._decoded.after))
            return flat.cpu().numpy()

    def _only(self, rows: Array) -> ProdLDALosses:
        """The losses of these documents, as computed among all."""
        some, places = copy.copy(self), torch.from_numpy(rows).to(self._kernels.device)
        with torch.inference_mode():
            some.values, some._batch = self.values[rows], self._batch.only(rows)
            some._words, some._decoded = self._words[places], self._decoded.only(places)
            some._dense = {name: (inward[places], outward[places]) for name, (inward, outward) in self._dense.items()}
        return some

    def _lengths(self) -> Array:
        """The length of each document's gradient; infinite where any of its factors is."""
        words, inputs = self._squares(self._words), self._input_squares()
        squares, largest = (inputs + 1.0) * words + self._decoded.after_squares.cpu().numpy(), words
        for name, (inward, outward) in self._dense.items():
            bias = 0.0 if name == "topics" else 1.0  # a bias is a weight whose input is 1
            came = self._squares(inward)
            went = self._decoded.back_squares.cpu().numpy() if name == "topics" else self._squares(outward)
            squares = squares + (came + bias) * went
            largest = np.maximum(largest, np.maximum(came, went))
        with np.errstate(invalid="ignore"):
            fine = np.maximum(largest, self._decoded.after_squares.cpu().numpy()) <= _TOO_LONG**2  # false where it is no number
            return np.where(fine, np.sqrt(squares), np.inf)

    def _squares(self, rows: Tensor) -> Array:
        squares: Array = self._kernels.squared_lengths(rows).cpu().numpy()
        return squares

    def _input_squares(self) -> Array:
        batch = self._batch
        row = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return np.bincount(row, weights=batch.inputs.astype(np.float64) ** 2, minlength=len(batch.ends) - 1)

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
        pairs = (self._shared_words() + 1.0) * self._pairs(self._words) + self._pairs(self._decoded.after)
        for name, (inward, outward) in self._dense.items():
            bias = 0.0 if name == "topics" else 1.0
            pairs += (self._pairs(inward) + bias) * self._pairs(outward)
        return math.fsum(pairs.ravel())

    def _pairs(self, rows: Tensor) -> Array:
        """The products of each row with each."""
        products: Array = self._kernels.back(rows.double(), rows).cpu().numpy()
        return products

    def _shared_words(self) -> Array:
        batch = self._batch
        names, places = np.unique(batch.words, return_inverse=True)
        dense = np.zeros((len(batch.ends) - 1, len(names)))
        dense[np.repeat(np.arange(len(dense)), np.diff(batch.ends)), places] = batch.inputs  # no word twice in a row
        return self._pairs(torch.from_numpy(dense).to(self._kernels.device))

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=self._dtype)).to(self._kernels.device)
