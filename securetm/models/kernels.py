"""The three places where a vocabulary-wide array meets sparse counts, fused for the CPU and spelled in torch for a GPU.

They know sparse rows, weights and logits, not topic models. Row i of every output depends on row i of the input only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit

from securetm.contracts import Array

EPSILON = 1e-5  # keeps layer normalisation finite where a row is constant

# Everything but "no NaN" and "no infinity": training that diverges must be seen to diverge.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


@dataclass(frozen=True)
class Bags:
    """Sparse counts of a batch, ready for both ends of the network: inputs for the encoder, counts for the loss."""

    ends: Array  # CSR row pointers, int64
    words: Array  # CSR columns
    counts: Array
    inputs: Array  # log1p of the counts, each row of unit length
    width: int

    @property
    def lengths(self) -> Array:
        """Words of each document."""
        sums = np.concatenate([[0.0], np.cumsum(self.counts, dtype=np.float64)])
        lengths: Array = (sums[self.ends[1:]] - sums[self.ends[:-1]]).astype(self.counts.dtype)
        return lengths


def bags(counts: Any, dtype: Any) -> Bags:
    """A CSR matrix as the network reads it. Log and length tame long documents without looking at any other."""
    values = np.ascontiguousarray(counts.data, dtype=dtype)
    ends = np.asarray(counts.indptr, dtype=np.int64)
    inputs = np.log1p(values)
    _to_unit_length(ends, inputs)
    return Bags(ends, np.ascontiguousarray(counts.indices), values, inputs, counts.shape[1])


# ---- CPU: fused loops ----------------------------------------------------------------------------------------------


@njit(cache=True)
def _to_unit_length(ends: Array, values: Array) -> None:
    for i in range(len(ends) - 1):
        square = 0.0
        for j in range(ends[i], ends[i + 1]):
            square += values[j] * values[j]
        if square > 0.0:
            for j in range(ends[i], ends[i + 1]):
                values[j] /= np.sqrt(square)


@njit(cache=True, fastmath=_FAST)
def _embed(ends: Array, words: Array, inputs: Array, weights: Array, out: Array) -> None:
    for i in range(out.shape[0]):
        for j in range(ends[i], ends[i + 1]):
            row, value = weights[words[j]], inputs[j]
            for k in range(out.shape[1]):
                out[i, k] += value * row[k]


@njit(cache=True, fastmath=_FAST)
def _scatter(ends: Array, words: Array, inputs: Array, back: Array, out: Array) -> None:
    for i in range(back.shape[0]):
        for j in range(ends[i], ends[i + 1]):
            row, value = out[words[j]], inputs[j]
            for k in range(back.shape[1]):
                row[k] += value * back[i, k]


@njit(inline="always", fastmath=_FAST)
def _exp32(x: Any) -> Any:
    """exp of a float32 <= 0 to one unit in the last place, in a form that compilers vectorise (Cephes' polynomial)."""
    x = max(x, np.float32(-87.0))
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    y = p * r * r + r + np.float32(1)
    return y * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


def _reconstruction(exp: Any) -> Callable[..., None]:
    """The fused loss for one precision: while a row of logits is in cache, its loss and gradient are found."""

    @njit(fastmath=_FAST)
    def reconstruct(ends: Array, words: Array, counts: Array, logits: Array, losses: Array) -> None:
        width = logits.shape[1]
        one = logits.dtype.type(1)
        scratch = np.empty(width, logits.dtype)
        for i in range(logits.shape[0]):
            row = logits[i]
            mean = row.sum() / logits.dtype.type(width)
            square, highest = logits.dtype.type(0), row[0]
            for v in range(width):
                square += (row[v] - mean) * (row[v] - mean)
                highest = max(highest, row[v])
            rate = one / np.sqrt(square / logits.dtype.type(width) + logits.dtype.type(EPSILON))
            peak = (highest - mean) * rate
            whole, cross = logits.dtype.type(0), logits.dtype.type(0)
            for v in range(width):
                x = (row[v] - mean) * rate
                scratch[v] = exp(x - peak)
                whole += scratch[v]
                cross += scratch[v] * x
            length, seen = logits.dtype.type(0), logits.dtype.type(0)
            for j in range(ends[i], ends[i + 1]):
                length += counts[j]
                seen += counts[j] * (row[words[j]] - mean) * rate
            losses[i] = length * (peak + np.log(whole)) - seen
            # The backward pass of layer normalisation; the mean of softmax minus counts is zero, so one term is gone.
            pull = (length * cross / whole - seen) / logits.dtype.type(width) * rate * rate
            share = length / whole * rate
            for v in range(width):
                row[v] = share * scratch[v] - (row[v] - mean) * pull
            for j in range(ends[i], ends[i + 1]):
                row[words[j]] -= counts[j] * rate

    return reconstruct


_RECONSTRUCT = {np.dtype(np.float32): _reconstruction(_exp32), np.dtype(np.float64): _reconstruction(np.exp)}


class Fused:
    """The CPU's way: numba loops over rows that stay in cache."""

    device = torch.device("cpu")

    def embed(self, batch: Bags, weights: torch.Tensor) -> torch.Tensor:
        """inputs @ weights."""
        out = np.zeros((len(batch.ends) - 1, weights.shape[1]), dtype=batch.inputs.dtype)
        _embed(batch.ends, batch.words, batch.inputs, weights.numpy(), out)
        return torch.from_numpy(out)

    def embed_gradient(self, batch: Bags, back: torch.Tensor, out: torch.Tensor) -> None:
        """Adds inputs^T @ back to `out`; only the rows of words that occur are touched."""
        _scatter(batch.ends, batch.words, batch.inputs, back.numpy(), out.numpy())

    def reconstruct(self, batch: Bags, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Each row's -sum(counts * log softmax(layer norm(logits))), and its gradient, written over `logits`."""
        losses = np.empty(len(logits), dtype=batch.counts.dtype)
        _RECONSTRUCT[batch.counts.dtype](batch.ends, batch.words, batch.counts, logits.numpy(), losses)
        return torch.from_numpy(losses), logits


# ---- any device: torch ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spelled:
    """The same three operations in torch's own words: for GPUs, and what the fused ones are tested against."""

    device: torch.device

    def embed(self, batch: Bags, weights: torch.Tensor) -> torch.Tensor:
        """inputs @ weights."""
        out: torch.Tensor = torch.zeros((len(batch.ends) - 1, weights.shape[1]), dtype=weights.dtype, device=self.device)
        rows, words, inputs = self._cells(batch, batch.inputs)
        return out.index_add_(0, rows, inputs[:, None] * weights[words])

    def embed_gradient(self, batch: Bags, back: torch.Tensor, out: torch.Tensor) -> None:
        """Adds inputs^T @ back to `out`."""
        rows, words, inputs = self._cells(batch, batch.inputs)
        out.index_add_(0, words, inputs[:, None] * back[rows])

    def reconstruct(self, batch: Bags, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Each row's -sum(counts * log softmax(layer norm(logits))), and its gradient."""
        rows, words, counts = self._cells(batch, batch.counts)
        normal, rate = normalise(logits)
        scores = torch.log_softmax(normal, dim=1)
        zeros = torch.zeros(len(logits), dtype=logits.dtype, device=self.device)
        losses = zeros.index_add(0, rows, -counts * scores[rows, words])
        length = zeros.index_add(0, rows, counts)
        back = scores.exp_().mul_(length[:, None])
        back.index_put_((rows, words), -counts, accumulate=True)
        return losses, normalise_backward(back, normal, rate)

    def _cells(self, batch: Bags, values: Array) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return tuple(torch.from_numpy(x).to(self.device) for x in (rows, batch.words.astype(np.int64), values))  # type: ignore[return-value]


def normalise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Layer normalisation without affine, and the reciprocal deviation that its backward pass needs."""
    centred = x - x.mean(dim=1, keepdim=True)
    rate = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + EPSILON)
    return centred * rate, rate


def normalise_backward(back: torch.Tensor, normal: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
    """The gradient before layer normalisation from the gradient after it."""
    pull = (back * normal).mean(dim=1, keepdim=True)
    return rate * (back - back.mean(dim=1, keepdim=True) - normal * pull)


def arithmetic(device: str) -> Fused | Spelled:
    """The operations for a device; "auto" takes a GPU where there is one."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    return Fused() if chosen == "cpu" else Spelled(torch.device(chosen))
