"""The network's passes over a batch by torch operations: for GPUs, and as a reference for the fused kernels.

Libraries choose the order of these sums, so rows may depend on other documents: no budget admits them.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch.nn.functional import softplus

from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.errors import Failed
from securetm.models.neural.cpu_kernels import EPSILON, LEAST, DecoderLosses, FusedKernels, Latent, MixtureLosses, WordBatch


@dataclass(frozen=True)
class TorchKernels:
    """The same operations as `FusedKernels`, on any device."""

    device: torch.device

    def embed(self, batch: WordBatch, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        rows, words, inputs = self._cells(batch, batch.inputs)
        out: torch.Tensor = bias.repeat(len(batch.ends) - 1, 1)
        return out.index_add_(0, rows, inputs[:, None] * weights[words])

    def embed_gradient(self, batch: WordBatch, back: torch.Tensor, out: torch.Tensor) -> None:
        rows, words, inputs = self._cells(batch, batch.inputs)
        out.index_add_(0, words, inputs[:, None] * back[rows])

    def dense(self, rows: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product = rows @ weights.to(rows.dtype)
        return product if bias is None else product + bias

    def add_outer(self, left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> None:
        out.addmm_(left.T, right.to(left.dtype))

    def back(self, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return rows @ weights.to(rows.dtype).T

    def activate(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return softplus(x), torch.sigmoid(x)

    def normalise(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        normal, _, rates = torch.native_layer_norm(x, [x.shape[-1]], None, None, EPSILON)
        return normal, rates[..., 0]

    def normalise_backward(self, back: torch.Tensor, normal: torch.Tensor, rates: torch.Tensor) -> torch.Tensor:
        level, along = back.mean(dim=1, keepdim=True), (back * normal).mean(dim=1, keepdim=True)
        return rates[:, None] * (back - level - normal * along)

    def latent(self, normal: torch.Tensor, noise: torch.Tensor, prior: tuple[float, float]) -> Latent:
        (mean, spread), (variance, weight) = normal.chunk(2, dim=1), prior
        deviation = torch.exp(0.5 * spread)
        apart = ((deviation.square() + mean.square()) / variance - spread).sum(dim=1)
        divergence = 0.5 * weight * (apart + noise.shape[1] * (math.log(variance) - 1.0))
        return Latent(deviation, torch.softmax(mean + deviation * noise, dim=1), divergence)

    def latent_backward(
        self, back: torch.Tensor, normal: torch.Tensor, noise: torch.Tensor, prior: tuple[float, float], drawn: Latent
    ) -> torch.Tensor:
        (mean, _), (variance, weight) = normal.chunk(2, dim=1), prior
        before = drawn.shares * (back - (drawn.shares * back).sum(dim=1, keepdim=True))
        pull = weight / variance
        spread = 0.5 * (drawn.deviation.square() * pull - weight + before * noise * drawn.deviation)
        return torch.cat([before + pull * mean, spread], dim=1)

    def reconstruct(self, batch: WordBatch, logits: torch.Tensor, background: torch.Tensor, gain: float) -> DecoderLosses:
        rows, words, counts = self._cells(batch, batch.counts)
        normal, rates = self.normalise(logits)
        scores = torch.log_softmax(gain * normal + background, dim=1)
        zeros = torch.zeros(len(logits), dtype=logits.dtype, device=self.device)
        losses = zeros.index_add(0, rows, -counts * scores[rows, words])
        length = zeros.index_add(0, rows, counts)
        after = scores.exp_().mul_(length[:, None])
        after.index_put_((rows, words), -counts, accumulate=True)
        pull = gain * (after * normal).mean(dim=1, keepdim=True)
        back = rates[:, None] * (gain * after - normal * pull)
        return DecoderLosses(losses, back, after, self.squared_lengths(back), self.squared_lengths(after))

    def topic_words(self, topics: torch.Tensor, background: torch.Tensor, slope: float) -> torch.Tensor:
        return torch.softmax(slope * topics + background, dim=1)

    def mix(self, batch: WordBatch, shares: torch.Tensor, likely: torch.Tensor) -> MixtureLosses:
        rows, words, counts = self._cells(batch, batch.counts)
        probabilities = (shares[rows].double() * likely.T[words]).sum(dim=1).clamp(min=LEAST)
        quotients, zeros = counts / probabilities, torch.zeros(len(shares), dtype=torch.float64, device=self.device)
        losses = zeros.index_add(0, rows, -counts * probabilities.log()).to(counts.dtype)
        pulls = torch.zeros(shares.shape, dtype=torch.float64, device=self.device)
        return MixtureLosses(losses, quotients, pulls.index_add_(0, rows, quotients[:, None] * likely.T[words]))

    def add_mixture_gradient(
        self,
        batch: WordBatch,
        likely: torch.Tensor,
        factors: torch.Tensor,
        passed: MixtureLosses,
        slope: float,
        out: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        rows, words, _ = self._cells(batch, batch.counts)
        found = torch.zeros(likely.T.shape, dtype=torch.float64, device=self.device)
        found.index_add_(0, words, factors[rows] * passed.quotients[:, None])
        gradient = likely * ((factors * passed.pulls).sum(dim=0)[:, None] - found.T)
        out[0].add_(slope * gradient)
        out[1].add_(gradient.sum(dim=0))

    def mixture_squares(
        self, batch: WordBatch, likely: torch.Tensor, shares: torch.Tensor, passed: MixtureLosses, slope: float
    ) -> torch.Tensor:
        found = []
        for i, (first, end) in enumerate(itertools.pairwise(batch.ends)):
            quotients = torch.zeros(likely.shape[1], dtype=torch.float64, device=self.device)
            quotients[torch.from_numpy(batch.words[first:end].astype(np.int64)).to(self.device)] = passed.quotients[first:end]
            gradient = shares[i][:, None] * likely * (passed.pulls[i][:, None] - quotients)
            found.append(torch.stack([slope**2 * gradient.square().sum(), gradient.sum(dim=0).square().sum()]))
        return torch.stack(found, dim=1) if found else torch.zeros((2, 0), dtype=torch.float64, device=self.device)

    def squared_lengths(self, rows: torch.Tensor) -> torch.Tensor:
        lengths: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
        return lengths.square()

    def _cells(self, batch: WordBatch, values: Array) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return tuple(torch.from_numpy(x).to(self.device) for x in (rows, batch.words.astype(np.int64), values))  # type: ignore[return-value]


def arithmetic(device: str) -> FusedKernels | TorchKernels:
    """The operations for a device; "auto" takes a GPU where there is one, and the CPU elsewhere."""
    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise Failed(
            "the model is to be trained on device = {device}, and torch finds none here",
            hint='leave device = "auto", which takes a GPU where there is one and the CPU elsewhere, or say "cpu"',
            device=device,
        )
    return TorchKernels(torch.device("cuda")) if there and device != "cpu" else FusedKernels()
