"""ProdLDA's loss of each document with its gradient's length and weighted sum, by hand-written passes over one batch.

It is no autograd graph: inputs and output gradients of the linear layers are kept, a document's own gradient never is.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from securetm.contracts import Array
from securetm.errors import BrokenPromise
from securetm.models.neural.kernels import Bags, Fused, Spelled, normalise, normalise_backward, squared_lengths

_TOO_LONG = 2.0**40  # a factor of a gradient beyond it counts as infinite: products and sums of what is left stay ordinary
_LANES = 64  # a multiple of the numbers that any vector instruction takes at once
_AT_ONCE = 64  # owners whose backgrounds are summed side by side


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
    one = _each(softplus, first)
    second = torch.addmm(layers["inner_bias"], one, layers["inner"])
    two = _each(softplus, second) if mask is None else _each(softplus, second).mul_(mask)
    head = torch.addmm(layers["head_bias"], two, layers["head"]).view(len(two), 2, -1).transpose(0, 1).contiguous()
    normal, *scales = normalise(head)
    slopes = _each(torch.sigmoid, first), _each(torch.sigmoid, second)
    return Encoded(slopes, (one, two), head, normal, (scales[0], scales[1]))


def _each(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of each number, computed alike wherever it stands.

    The last numbers of an array that fill no whole vector register go through other code and come out otherwise in their last
    bit. Then a document's gradient would depend on how many documents stand beside it, and weights can be made so that such a
    bit decides it all.
    """
    return function(pad(x.reshape(-1), (0, -x.numel() % _LANES)))[: x.numel()].view(x.shape)


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
        """The l2 norm of each owner's summed gradient, owners sorted: |a b^T|^2 = |a|^2 |b|^2 instead of whole rows.

        A clip believes it: what `gradient` adds up for an owner, rounding included, is longer by at most a part in 2^11 in
        32 bits and in 2^38 in 64. It is infinite where a gradient is not finite, or too large to be summed beside others.
        """
        names, member = np.unique(owners, return_inverse=True)
        with torch.inference_mode():
            alone, rounding = self._lengths(), self._rounding().cpu().numpy()
            if len(names) < len(owners):
                groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
                alone, rounding = self._lengths_of_sums(groups, alone), np.array([rounding[rows].sum() for rows in groups])
                member = np.arange(len(names))
            whole: Array = (alone + rounding)[np.argsort(member)]
            return whole

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight times gradient, as one flat vector; a document of weight 0 adds nothing.

        That holds where its own gradient is infinite or not a number, so it is left out and not multiplied.
        """
        chosen = np.flatnonzero(weights)
        if len(chosen) == 0:  # even where the model's own weights are no numbers
            return np.zeros(self._net.shape.size, self._dtype)
        if len(chosen) < len(weights):
            return self._only(chosen).gradient(weights[chosen])
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

    def _only(self, rows: Array) -> ProdLDALosses:
        """The losses of these documents, as they came out among all."""
        some, places = copy.copy(self), torch.from_numpy(rows).to(self._kernels.device)
        with torch.inference_mode():
            some.values, some._batch = self.values[rows], self._batch.only(rows)
            some._words, some._said = self._words[places], self._said.only(places)
            some._dense = {name: (inward[places], outward[places]) for name, (inward, outward) in self._dense.items()}
        return some

    def _background(self, scale: Tensor) -> Tensor:
        """The weighted sum of the gradients after layer normalisation, undone from those before it without keeping both.

        With a matrix of weights there is one sum for each of its rows.
        """
        said, kept = self._said, self._dense["topics"][0]
        level = scale * said.pulls * said.rates / self._net.gain
        undone = (scale / (said.rates * self._net.gain)) @ said.back
        return undone + (level @ kept) @ self._layers["topics"] - (level * said.means).sum(dim=-1, keepdim=True)

    def _lengths(self) -> Array:
        """The length of each document's gradient; infinite where any of its factors is."""
        words, one = squared_lengths(self._words), 1.0  # a bias is a weight whose input is 1
        inputs = torch.from_numpy(self._input_squares()).to(words.device)
        squares, largest = (inputs + one) * words + self._said.squares, words
        for name, (inward, outward) in self._dense.items():
            came, went = squared_lengths(inward), self._said.back_squares if name == "topics" else squared_lengths(outward)
            squares = squares + (came if name == "topics" else came + one) * went
            largest = torch.maximum(largest, torch.maximum(came, went))
        fine = torch.maximum(largest, self._said.squares) <= _TOO_LONG**2  # false where it is not a number
        return squares.sqrt().where(fine, torch.inf).cpu().numpy()

    def _rounding(self) -> Tensor:
        """How much longer a document's part of `_background` may be than the gradient it stands for.

        Logits are not kept, so `_background` finds them again; where weights are extreme, rounding makes them others.
        """
        said, kept, topics = self._said, self._dense["topics"][0], self._layers["topics"]
        level = (said.pulls * said.rates / self._net.gain).abs().double()
        each = torch.linalg.vector_norm(topics, dim=1)
        logits = ((kept.abs() * each).sum(dim=1) + math.sqrt(topics.shape[1]) * said.means.abs()).double()
        undoing = (said.rates * self._net.gain).reciprocal()
        off: Tensor = (len(topics) + 16) * torch.finfo(topics.dtype).eps * level * logits
        fine = (logits <= _TOO_LONG) & (said.rates.reciprocal() <= _TOO_LONG) & (undoing <= _TOO_LONG)
        return torch.where(fine & off.isfinite(), off, torch.inf)

    def _input_squares(self) -> Array:
        batch = self._batch
        row = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return np.bincount(row, weights=batch.inputs.astype(np.float64) ** 2, minlength=len(batch.ends) - 1)

    def _lengths_of_sums(self, groups: list[Array], alone: Array) -> Array:
        """The length of each owner's summed gradient, its documents' own lengths being in `alone`.

        Where these cancel, the sum is as long as what rounding leaves of its terms, so it counts as a part of them at least.
        """
        lengths = np.array([alone[rows].sum() for rows in groups])
        several = [i for i, rows in enumerate(groups) if len(rows) > 1 and np.isfinite(lengths[i])]
        for i, square in zip(several, self._squares_of_sums([groups[i] for i in several]), strict=True):
            lengths[i] = max(math.sqrt(max(square, 0.0)), lengths[i] * max(2.0**-4, len(groups[i]) * 2.0**-12))
        return lengths

    def _squares_of_sums(self, groups: list[Array]) -> list[float]:
        """|sum a_i b_i^T|^2 = sum over pairs (a_i . a_j)(b_i . b_j), within each group of documents."""
        (kept, outward), device = self._dense["topics"], self._kernels.device
        wide = [x.double() for name in ("inner", "head") for x in self._dense[name]]  # small; the decoder's are not
        words, backgrounds = self._words.double(), self._squares_of_backgrounds(groups)
        squares = []
        for rows, background in zip(groups, backgrounds, strict=True):
            places = torch.from_numpy(rows).to(device)
            one, two, three, four = (_gram(x[places]) for x in wide)  # a bias is a weight whose input is 1: + 1
            total = (self._shared_words(rows).to(device) + 1.0) * _gram(words[places]) + (one + 1.0) * two
            total += (three + 1.0) * four + _gram(kept[places].double()) * _gram(outward[places].double())
            squares.append(float(total.sum()) + background)
        return squares

    def _squares_of_backgrounds(self, groups: list[Array]) -> Iterator[float]:
        for first in range(0, len(groups), _AT_ONCE):
            some = groups[first : first + _AT_ONCE]
            which = torch.from_numpy(np.repeat(np.arange(len(some)), [len(rows) for rows in some]))
            chosen = torch.nn.functional.one_hot(which, len(some)).T.to(self._words)
            yield from squared_lengths(self._only(np.concatenate(some))._background(chosen)).tolist()

    def _shared_words(self, rows: Array) -> Tensor:
        batch = self._batch.only(rows)
        names, places = np.unique(batch.words, return_inverse=True)
        dense = np.zeros((len(rows), len(names)))
        dense[np.repeat(np.arange(len(rows)), np.diff(batch.ends)), places] = batch.inputs  # no word twice in a row
        return _gram(torch.from_numpy(dense))

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


def _gram(x: Tensor) -> Tensor:
    return x @ x.T
