"""The decoders of the network: a product of experts (ProdLDA), the same through word vectors, a mixture of topics (NeuralLDA).

A decoder turns a batch's topic shares into each document's loss, the gradient at the shares, and a document's gradient of the
decoder's own weights as factors from which its length follows. Its weights are two layers: `topics`, and each word's
`background`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.models.neural.cpu_kernels import DecoderLosses, FusedKernels, MixtureLosses, WordBatch
from securetm.models.neural.torch_kernels import TorchKernels

Kernels = FusedKernels | TorchKernels
Layers = dict[str, Tensor]


@dataclass(frozen=True)
class ProductOfExperts:
    """softmax(gain * layer norm(shares @ topics) + background)."""

    gain: float  # deviation of the topics' part of the logits

    def alone(self, layers: Layers, relevance: float) -> Tensor:
        return self.gain * FusedKernels().normalise(layers["topics"])[0] + relevance * layers["background"]

    def decode(self, layers: Layers, shares: Tensor, batch: WordBatch, kernels: Kernels) -> ProductDecoded:
        logits = kernels.dense(shares, layers["topics"])
        return ProductDecoded(
            kernels, layers["topics"], shares, kernels.reconstruct(batch, logits, layers["background"], self.gain)
        )


@dataclass(frozen=True)
class ProductDecoded:
    """A document's gradient of the topics is its shares times its gradient at the logits: |a b^T|^2 = |a|^2 |b|^2."""

    kernels: Kernels
    topics: Tensor
    shares: Tensor
    passed: DecoderLosses

    @property
    def losses(self) -> Tensor:
        return self.passed.losses

    def back(self) -> Tensor:
        """The gradient at the shares."""
        return self.kernels.back(self.passed.back, self.topics)

    def only(self, rows: Tensor) -> Self:
        return replace(self, shares=self.shares[rows], passed=self.passed.only(rows))

    def add_gradient(self, scale: Tensor, parts: dict[str, Any]) -> None:
        self.kernels.add_outer(self.shares * scale[:, None], self.passed.back, parts["topics"])
        parts["background"].copy_(self.kernels.dense(scale[None], self.passed.after)[0])

    def background_squares(self) -> Array:
        """The squared lengths of the gradients after layer normalisation, which are the background's own."""
        return self.passed.after_squares.cpu().numpy()

    def topics_squares(self) -> tuple[Array, Array]:
        """Products of squared lengths, and the larger of the two."""
        came, went = self.kernels.squared_lengths(self.shares).cpu().numpy(), self.passed.back_squares.cpu().numpy()
        return came * went, np.maximum(came, went)

    def background_products(self) -> Array:
        """The products of each row with each."""
        return products(self.kernels, self.passed.after)

    def topics_products(self) -> Array:
        """(a_i . a_j)(b_i . b_j) of each two documents."""
        return products(self.kernels, self.shares) * products(self.kernels, self.passed.back)


@dataclass(frozen=True)
class EmbeddedExperts:
    """A product of experts whose topics are in the space of frozen word vectors: topics @ vectors.T.

    A document's gradient of these weights is its gradient at the words times the vectors. The background has a weight a word.
    """

    gain: float
    vectors: Tensor  # words x dimensions
    logs: Tensor  # of the words' public frequencies, which the background begins with

    def alone(self, layers: Layers, relevance: float) -> Tensor:
        return ProductOfExperts(self.gain).alone(self._over_words(layers, FusedKernels()), relevance)

    def decode(self, layers: Layers, shares: Tensor, batch: WordBatch, kernels: Kernels) -> ProductDecoded:
        """The losses over all words, and the topics' gradients in the vectors' space."""
        whole = ProductOfExperts(self.gain).decode(self._over_words(layers, kernels), shares, batch, kernels).passed
        back = kernels.dense(whole.back, self.vectors)
        passed = replace(whole, back=back, back_squares=kernels.squared_lengths(back))
        return ProductDecoded(kernels, layers["topics"], shares, passed)

    def _over_words(self, layers: Layers, kernels: Kernels) -> Layers:
        vectors = self.vectors.to(layers["topics"].dtype)
        background = layers["background"] + self.logs.to(vectors.dtype)
        return {"topics": kernels.back(layers["topics"], vectors), "background": background}


@dataclass(frozen=True)
class Mixture:
    """shares @ softmax(slope * topics + background), with one softmax over the words for each topic."""

    slope: float

    def alone(self, layers: Layers, relevance: float) -> Tensor:
        return self.slope * layers["topics"] + relevance * layers["background"]

    def decode(self, layers: Layers, shares: Tensor, batch: WordBatch, kernels: Kernels) -> MixtureDecoded:
        """Losses and gradients from a document's own words; no row over the whole vocabulary is made."""
        likely = kernels.topic_words(layers["topics"], layers["background"], self.slope)
        return MixtureDecoded(kernels, self.slope, likely, shares, batch, kernels.mix(batch, shares, likely))


@dataclass(frozen=True)
class MixtureDecoded:
    """A document's gradient at topic k's logit of word v is share_k likely_kv (pull_k - quotient_v)."""

    kernels: Kernels
    slope: float
    likely: Tensor
    shares: Tensor
    batch: WordBatch
    passed: MixtureLosses

    @property
    def losses(self) -> Tensor:
        return self.passed.losses

    def back(self) -> Tensor:
        return self.passed.pulls.neg().to(self.shares.dtype)

    def only(self, rows: Tensor) -> Self:
        places = rows.cpu().numpy()
        passed = self.passed.only(rows, self.batch.cells(places))
        return replace(self, shares=self.shares[rows], batch=self.batch.only(places), passed=passed)

    def add_gradient(self, scale: Tensor, parts: dict[str, Any]) -> None:
        into = parts["topics"], parts["background"]
        self.kernels.add_mixture_gradient(self.batch, self.likely, self.shares * scale[:, None], self.passed, self.slope, into)

    def background_squares(self) -> Array:
        """Squared lengths of expected minus found counts."""
        found: Array = self._squares[1]
        return found

    def topics_squares(self) -> tuple[Array, Array]:
        """Squared lengths, and the largest of the factors."""
        pulls = self.kernels.squared_lengths(self.passed.pulls).cpu().numpy()
        return self._squares[0], np.maximum(pulls, self.kernels.squared_lengths(self.shares).cpu().numpy())

    def background_products(self) -> Array:
        """The squared length of the summed gradient, as one number."""
        return self._summed("background")

    def topics_products(self) -> Array:
        """The squared length of the summed gradient, as one number: it is shorter work than the products of each two."""
        return self._summed("topics")

    @cached_property
    def _squares(self) -> Array:
        lengths = self.kernels.mixture_squares(self.batch, self.likely, self.shares, self.passed, self.slope)
        return lengths.cpu().numpy()

    def _summed(self, part: str) -> Array:
        gradient: Array = self._whole[part].cpu().numpy()
        whole = np.zeros((len(self.shares), len(self.shares)))
        whole[0, 0] = np.square(gradient).sum()
        return whole

    @cached_property
    def _whole(self) -> dict[str, Tensor]:
        """The sum of the documents' gradients in 64 bits."""
        ones = torch.ones(len(self.shares), dtype=torch.float64, device=self.shares.device)
        topics = torch.zeros(self.likely.shape, dtype=torch.float64, device=self.shares.device)
        parts = {"topics": topics, "background": torch.zeros_like(topics[0])}
        self.add_gradient(ones, parts)
        return parts


Decoder = ProductOfExperts | EmbeddedExperts | Mixture


def products(kernels: Kernels, rows: Tensor) -> Array:
    """The products of each row with each, in 64 bits."""
    return kernels.back(rows.double(), rows).cpu().numpy()
