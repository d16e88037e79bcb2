"""ProdLDA's loss of each document with its gradient's length and weighted sum, by hand-written passes over one batch.

It is no autograd graph: inputs and output gradients of the linear layers are kept, a document's own gradient never is.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from securetm.contracts import Array
from securetm.errors import BrokenPromise
from securetm.models.kernels import Bags, Fused, Spelled, normalise, normalise_backward


@dataclass(frozen=True)
class Shape:
    """The sizes that say where each layer lies in the flat vector of weights."""

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
    def of(cls, weights: Array, hidden: int, topics: int) -> Shape:
        """The shape whose flat vector has this length; the vocabulary's size follows from it."""
        return _shape(len(weights), hidden, topics)


@functools.lru_cache(maxsize=16)  # asked at every step, and always the same
def _shape(length: int, hidden: int, topics: int) -> Shape:
    words, left = divmod(length - Shape(0, hidden, topics).size, hidden + topics + 1)
    if left or words < 1:
        raise BrokenPromise("weight vector", length, Shape(max(words, 1), hidden, topics).size)
    return Shape(words, hidden, topics)


@dataclass(frozen=True)
class Noise:
    """One batch's dropout masks and reparametrisation draws, row i for document i."""

    hidden: Array
    normal: Array
    theta: Array | None


@dataclass(frozen=True)
class Prior:
    """The Gaussian about zero that stands for the symmetric Dirichlet in softmax space, and how much the loss heeds it."""

    variance: float
    weight: float = 1.0

    @classmethod
    def laplace(cls, alpha: float, topics: int, weight: float = 1.0) -> Prior:
        """Laplace's approximation of Dirichlet(alpha, ..., alpha) (Srivastava and Sutton 2017, section 3.2)."""
        return cls((1.0 - 2.0 / topics) / alpha + 1.0 / (topics * alpha), weight)


@dataclass(frozen=True)
class Encoded:
    """What the encoder leaves behind for its own backward pass."""

    slopes: tuple[Tensor, Tensor]
    hidden: tuple[Tensor, Tensor]
    head: Tensor  # 2 x documents x topics: means and log-variances before layer normalisation
    normal: Tensor  # and after it
    scales: tuple[Tensor, Tensor]  # what layer normalisation needs for its way back

    @property
    def mean(self) -> Tensor:
        """The mean of each topic's share, in softmax space."""
        return self.normal[0]

    @property
    def log_variance(self) -> Tensor:
        """The logarithm of its variance."""
        return self.normal[1]


def encode(layers: dict[str, Tensor], batch: Bags, kernels: Fused | Spelled, mask: Tensor | None) -> Encoded:
    """Topic means and log-variances of a batch; without a mask nothing is dropped."""
    first = kernels.embed(batch, layers["words"]).add_(layers["words_bias"])
    one = softplus(first)
    second = torch.addmm(layers["inner_bias"], one, layers["inner"])
    two = softplus(second) if mask is None else softplus(second).mul_(mask)
    head = torch.addmm(layers["head_bias"], two, layers["head"]).view(len(two), 2, -1).transpose(0, 1).contiguous()
    normal, *scales = normalise(head)
    return Encoded((first.sigmoid_(), second.sigmoid_()), (one, two), head, normal, (scales[0], scales[1]))


@dataclass(frozen=True)
class Network:
    """All that is fixed about the network while its weights change."""

    shape: Shape
    prior: Prior
    gain: float  # deviation of the topics' part of the logits
    kernels: Fused | Spelled


class ProdLDALosses:
    """The negative evidence bound of each document of a batch (contracts.Losses), forward and backward run once."""

    def __init__(self, weights: Array, net: Network, batch: Bags, noise: Noise) -> None:
        self._net, self._batch, self._kernels = net, batch, net.kernels
        self._dtype = weights.dtype
        with torch.inference_mode():
            self._layers: dict[str, Tensor] = net.shape.views(torch.from_numpy(weights).to(net.kernels.device))
            self._run(self._layers, noise, net.prior)

    def _run(self, layers: dict[str, Tensor], noise: Noise, prior: Prior) -> None:
        mask, normal = self._tensor(noise.hidden), self._tensor(noise.normal)
        encoded = encode(layers, self._batch, self._kernels, mask)
        deviation = torch.exp(0.5 * encoded.log_variance)
        theta = torch.softmax(torch.addcmul(encoded.mean, deviation, normal), dim=1)
        kept = theta if noise.theta is None else theta * self._tensor(noise.theta)
        said = self._kernels.reconstruct(self._batch, kept @ layers["topics"], layers["background"], self._net.gain)
        outward = said.back
        variance = deviation.square()
        self.values: Array = (said.losses + _divergence(encoded, variance, prior)).cpu().numpy()
        back = outward @ layers["topics"].T
        back = back if noise.theta is None else back.mul_(self._tensor(noise.theta))
        before = theta * (back - (theta * back).sum(dim=1, keepdim=True))
        head = _head_gradient(encoded, before, normal.mul_(deviation), variance, prior)
        inner = (head @ layers["head"].T).mul_(mask).mul_(encoded.slopes[1])
        words = (inner @ layers["inner"].T).mul_(encoded.slopes[0])
        # What went into each dense layer, and the gradient of what came out of it.
        self._dense = {"inner": (encoded.hidden[0], inner), "head": (encoded.hidden[1], head), "topics": (kept, outward)}
        self._words, self._said = words, said

    def norms(self, owners: Array) -> Array:
        """The l2 norm of each owner's summed gradient, owners sorted: |a b^T|^2 = |a|^2 |b|^2 instead of whole rows."""
        names, member = np.unique(owners, return_inverse=True)
        with torch.inference_mode():
            if len(names) == len(owners):
                return np.sqrt(self._squares())[np.argsort(member)]
            groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
            return np.sqrt(np.array([self._square_of_sum(rows) for rows in groups], dtype=np.float64))

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight times gradient, as one flat vector."""
        with torch.inference_mode():
            flat = torch.zeros(self._net.shape.size, dtype=self._words.dtype, device=self._kernels.device)
            parts = self._net.shape.views(flat)
            scale = None if bool(np.all(weights == 1)) else self._tensor(np.asarray(weights))[:, None]
            words = self._words if scale is None else self._words * scale
            self._kernels.embed_gradient(self._batch, words, parts["words"])
            torch.sum(words, dim=0, out=parts["words_bias"])
            for name, (inward, outward) in self._dense.items():
                torch.mm((inward if scale is None else inward * scale).T, outward, out=parts[name])
                if name != "topics":  # the decoder has no bias
                    torch.sum(outward if scale is None else outward * scale, dim=0, out=parts[f"{name}_bias"])
            parts["background"].copy_(self._background(torch.ones_like(self._said.rates) if scale is None else scale[:, 0]))
            return flat.cpu().numpy()

    def _background(self, scale: Tensor) -> Tensor:
        """The weighted sum of the gradients after layer normalisation, undone from those before it without keeping both."""
        said, kept = self._said, self._dense["topics"][0]
        level = scale * said.pulls * said.rates / self._net.gain
        undone = (scale / (said.rates * self._net.gain)) @ said.back
        return undone + (level @ kept) @ self._layers["topics"] - (level * said.means).sum()

    def _squares(self) -> Array:
        total: Array = (self._input_squares() + 1.0) * _square(self._words)
        for name, (inward, outward) in self._dense.items():
            total += (_square(inward) + (name != "topics")) * _square(outward)
        return np.asarray(total + self._said.squares.double().cpu().numpy())

    def _input_squares(self) -> Array:
        batch = self._batch
        row = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return np.bincount(row, weights=batch.inputs.astype(np.float64) ** 2, minlength=len(batch.ends) - 1)

    def _square_of_sum(self, rows: Array) -> float:
        """|sum a_i b_i^T|^2 = sum over pairs (a_i . a_j)(b_i . b_j), for the documents of one owner."""
        total = ((self._shared_words(rows) + 1.0) * _gram(self._words[rows])).sum()
        for name, (inward, outward) in self._dense.items():
            total += ((_gram(inward[rows]) + (name != "topics")) * _gram(outward[rows])).sum()
        chosen = torch.zeros_like(self._said.rates)
        chosen[torch.from_numpy(rows)] = 1.0
        total += self._background(chosen).double().square().sum().item()
        return float(max(total, 0.0))

    def _shared_words(self, rows: Array) -> Array:
        batch = self._batch
        cells = (batch.inputs.astype(np.float64), batch.words, batch.ends)
        chosen = sparse.csr_array(cells, (len(batch.ends) - 1, batch.width))[rows]
        return np.asarray((chosen @ chosen.T).toarray())

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=self._dtype)).to(self._kernels.device)


def _divergence(encoded: Encoded, variance: Tensor, prior: Prior) -> Tensor:
    """Kullback and Leibler's divergence of the topics' posterior from their prior, per document."""
    apart = torch.addcmul(variance, encoded.mean, encoded.mean).div_(prior.variance).sub_(encoded.log_variance).sum(dim=1)
    constant = variance.shape[1] * (math.log(prior.variance) - 1.0)
    return apart.add_(constant).mul_(0.5 * prior.weight)


def _head_gradient(encoded: Encoded, before: Tensor, drawn: Tensor, variance: Tensor, prior: Prior) -> Tensor:
    """The gradient at the encoder's output, means and log-variances side by side."""
    pull = prior.weight / prior.variance
    both = torch.empty_like(encoded.head)
    torch.add(before, encoded.mean, alpha=pull, out=both[0])
    torch.addcmul(variance * pull - prior.weight, before, drawn, out=both[1]).mul_(0.5)
    return normalise_backward(both, encoded.head, *encoded.scales).transpose(0, 1).reshape(len(before), -1)


def _square(x: Tensor) -> Array:
    return x.double().square().sum(dim=1).cpu().numpy()


def _gram(x: Tensor) -> Array:
    wide = x.double()
    return (wide @ wide.T).cpu().numpy()
