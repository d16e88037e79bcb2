"""The three places where a vocabulary-wide array meets sparse counts, fused for the CPU and spelled in torch for a GPU.

They know sparse rows, weights and logits, not topic models. Row i of every output depends on row i of the input only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

# Products of matrices must not depend on where in memory the matrices happen to lie: a resumed run ends at the same weights.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

import numpy as np
import torch
from numba import njit, types
from numba.extending import overload

from securetm.contracts import Array

Cells = tuple[Array, Array, Array]  # CSR row pointers, columns, values
EPSILON = 1e-5  # keeps layer normalisation finite where a row is constant
_SHORT = 1024  # numbers summed in their own precision before the sum goes on in 64 bits

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

    def only(self, rows: Array) -> Bags:
        """These documents, in this order."""
        sizes = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        cells = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], sizes)
        return Bags(ends, self.words[cells], self.counts[cells], self.inputs[cells], self.width)


def bags(counts: Any, dtype: Any) -> Bags:
    """A CSR matrix as the network reads it. Log and length tame long documents without looking at any other."""
    values = np.ascontiguousarray(counts.data, dtype=dtype)
    ends = np.asarray(counts.indptr, dtype=np.int64)
    inputs = np.log1p(values)
    _to_unit_length(ends, inputs)
    return Bags(ends, np.ascontiguousarray(counts.indices), values, inputs, counts.shape[1])


# ---- CPU: fused loops ----------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _to_unit_length(ends: Array, values: Array) -> None:
    for i in range(len(ends) - 1):
        square = 0.0
        for j in range(ends[i], ends[i + 1]):
            square += values[j] * values[j]
        if square > 0.0:
            for j in range(ends[i], ends[i + 1]):
                values[j] /= np.sqrt(square)


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _embed(ends: Array, words: Array, inputs: Array, weights: Array, out: Array) -> None:
    for i in range(out.shape[0]):
        for j in range(ends[i], ends[i + 1]):
            row, value = weights[words[j]], inputs[j]
            for k in range(out.shape[1]):
                out[i, k] += value * row[k]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _scatter(ends: Array, words: Array, inputs: Array, back: Array, out: Array) -> None:
    for i in range(back.shape[0]):
        for j in range(ends[i], ends[i + 1]):
            row, value = out[words[j]], inputs[j]
            for k in range(back.shape[1]):
                row[k] += value * back[i, k]


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


def _exp64(x: Any) -> Any:
    return np.exp(x)


def _exp(x: Any) -> Any:
    raise NotImplementedError  # compiled code takes the overload for its precision


@overload(_exp, inline="always", jit_options={"fastmath": _FAST, "error_model": "numpy"})
def _exp_of(x: Any) -> Any:
    return _exp32 if x == types.float32 else _exp64


@njit(cache=True, fastmath=True, error_model="numpy")
def _highest(row: Array, lanes: Array) -> Any:
    """The largest value, by many running maxima side by side: one alone is a chain that no compiler vectorises.

    Where a row holds a NaN this is anything, but then the row's mean is NaN and shows it.
    """
    width = min(len(lanes), len(row))
    for j in range(width):
        lanes[j] = row[j]
    for first in range(0, len(row) - width + 1, width):
        part = row[first : first + width]
        for j in range(width):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    highest = row[-width:].max()
    for j in range(width):
        highest = max(highest, lanes[j])
    return highest


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _moments(row: Array) -> tuple[Any, Any]:
    """A row's mean and the reciprocal of its deviation."""
    real = row.dtype.type
    mean, square = row.sum() / real(len(row)), real(0)
    for v in range(len(row)):
        square += (row[v] - mean) * (row[v] - mean)
    return mean, real(1) / np.sqrt(square / real(len(row)) + real(EPSILON))


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _counted(words: Array, counts: Array, row: Array, background: Array) -> tuple[Any, ...]:
    """Sums over one document's words: counts, and counts times logits and background."""
    real = row.dtype.type
    length, raw, known = real(0), real(0), real(0)
    for j in range(len(words)):
        v, count = words[j], counts[j]
        length += count
        raw += count * row[v]
        known += count * background[v]
    return length, raw, known


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _exponentials(row: Array, mean: Any, slope: Any, background: Array, out: Array, lanes: Array) -> tuple[Any, ...]:
    """exp(slope * (row - mean) + background - peak), with the peak and two sums."""
    for v in range(len(row)):
        out[v] = (row[v] - mean) * slope + background[v]
    peak = _highest(out, lanes)
    for v in range(len(row)):
        out[v] = _exp(out[v] - peak)
    whole, cross = row.dtype.type(0), row.dtype.type(0)
    for v in range(len(row)):
        whole += out[v]
        cross += out[v] * (row[v] - mean)
    return peak, whole, cross


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _undo_normalisation(row: Array, after: Array, mean: Any, scale: Any, slope: Any) -> tuple[float, float]:
    """`row` becomes its own gradient, from the gradient `after` layer normalisation; the squared lengths of both.

    The squares are those of the numbers that are kept, and wide: a clip believes them. Short sums keep the lanes narrow.
    """
    real = row.dtype.type
    square_after, square_before = 0.0, 0.0
    for first in range(0, len(row), _SHORT):
        part, gradient = row[first : first + _SHORT], after[first : first + _SHORT]
        one, two = real(0), real(0)
        for v in range(len(part)):
            before = scale * gradient[v] - (part[v] - mean) * slope
            part[v] = before
            one += gradient[v] * gradient[v]
            two += before * before
        square_after += one
        square_before += two
    return square_after, square_before


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _reconstruct(cells: Cells, logits: Array, background: Array, gain: Any, out: tuple[Array, ...], squares: Array) -> None:
    """The fused loss: while a row of logits is in cache, its loss and its gradient are found."""
    ends, words, counts = cells
    losses, means, rates, pulls = out
    width = logits.dtype.type(logits.shape[1])
    after, lanes = np.empty(logits.shape[1], logits.dtype), np.empty(64, logits.dtype)
    for i in range(logits.shape[0]):
        row, mine = logits[i], slice(ends[i], ends[i + 1])
        mean, rate = _moments(row)
        peak, whole, cross = _exponentials(row, mean, gain * rate, background, after, lanes)
        length, raw, known = _counted(words[mine], counts[mine], row, background)
        normal = (raw - length * mean) * rate
        weight = length / whole
        losses[i] = length * (peak + np.log(whole)) - known - gain * normal
        for v in range(len(row)):
            after[v] *= weight
        for j in range(ends[i], ends[i + 1]):
            after[words[j]] -= counts[j]
        # Softmax minus counts sums to zero, so one term of the way back through layer normalisation is gone.
        pull = gain * (weight * rate * cross - normal) / width
        squares[0, i], squares[1, i] = _undo_normalisation(row, after, mean, rate * gain, pull * rate * rate)
        means[i], rates[i], pulls[i] = mean, rate, pull


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def standardise(topics: Array, spread: Any) -> None:
    """Gives every word the same mean (0) and deviation (`spread`) over the topics, in place.

    It looks at parameters only. Batch normalisation does as much to each word's logit, but over documents.
    """
    real = topics.dtype.type
    count, width = real(topics.shape[0]), topics.shape[1]
    means, squares = np.zeros(width, topics.dtype), np.zeros(width, topics.dtype)
    for k in range(topics.shape[0]):
        _add(means, topics[k])
    means /= count
    for k in range(topics.shape[0]):
        _add_squares(squares, topics[k], means)
    rates = real(spread) / np.sqrt(squares / count + real(1e-12))
    for k in range(topics.shape[0]):
        row = topics[k]
        for v in range(width):
            row[v] = (row[v] - means[v]) * rates[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add(total: Array, row: Array) -> None:
    for v in range(len(row)):
        total[v] += row[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_squares(total: Array, row: Array, means: Array) -> None:
    for v in range(len(row)):
        total[v] += (row[v] - means[v]) * (row[v] - means[v])


@dataclass(frozen=True)
class Reconstruction:
    """What the decoder's loss leaves behind: per document its value, the layer norm's facts, and the gradients.

    `back` is the gradient at the logits before layer normalisation and `back_squares` its squared lengths; `squares` are
    those of the gradient after it, which is the background's own.
    """

    losses: torch.Tensor
    back: torch.Tensor
    means: torch.Tensor
    rates: torch.Tensor
    pulls: torch.Tensor
    squares: torch.Tensor
    back_squares: torch.Tensor

    def only(self, rows: torch.Tensor) -> Reconstruction:
        """What these documents left behind."""
        return Reconstruction(*(getattr(self, part.name)[rows] for part in fields(self)))


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

    def reconstruct(self, batch: Bags, logits: torch.Tensor, background: torch.Tensor, gain: float) -> Reconstruction:
        """-sum(counts * log softmax(gain * layer norm(logits) + background)) of each row; `logits` become its gradient."""
        out, squares = np.empty((4, len(logits)), dtype=batch.counts.dtype), np.empty((2, len(logits)))
        cells = (batch.ends, batch.words, batch.counts)
        strength = batch.counts.dtype.type(gain)
        _reconstruct(cells, logits.numpy(), background.numpy(), strength, tuple(out), squares)
        losses, means, rates, pulls = torch.from_numpy(out)
        return Reconstruction(losses, logits, means, rates, pulls, *torch.from_numpy(squares))


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

    def reconstruct(self, batch: Bags, logits: torch.Tensor, background: torch.Tensor, gain: float) -> Reconstruction:
        """-sum(counts * log softmax(gain * layer norm(logits) + background)) of each row, and its gradient."""
        rows, words, counts = self._cells(batch, batch.counts)
        normal, means, rate = normalise(logits)
        scores = torch.log_softmax(gain * normal + background, dim=1)
        zeros = torch.zeros(len(logits), dtype=logits.dtype, device=self.device)
        losses = zeros.index_add(0, rows, -counts * scores[rows, words])
        length = zeros.index_add(0, rows, counts)
        after = scores.exp_().mul_(length[:, None])
        after.index_put_((rows, words), -counts, accumulate=True)
        pull = gain * (after * normal).mean(dim=1, keepdim=True)
        back = rate * (gain * after - normal * pull)
        return Reconstruction(losses, back, means[:, 0], rate[:, 0], pull[:, 0], squared_lengths(after), squared_lengths(back))

    def _cells(self, batch: Bags, values: Array) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = np.repeat(np.arange(len(batch.ends) - 1), np.diff(batch.ends))
        return tuple(torch.from_numpy(x).to(self.device) for x in (rows, batch.words.astype(np.int64), values))  # type: ignore[return-value]


def squared_lengths(x: torch.Tensor) -> torch.Tensor:
    """The squared l2 length of each row, summed in 64 bits whatever the row is in."""
    lengths: torch.Tensor = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
    return lengths.square()


def normalise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Layer normalisation without affine over the last dimension; mean and reciprocal deviation are for the way back."""
    done: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = torch.native_layer_norm(x, [x.shape[-1]], None, None, EPSILON)
    return done


def normalise_backward(back: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
    """The gradient before layer normalisation from the gradient after it."""
    shape, only_input = [x.shape[-1]], [True, False, False]
    whole = torch.ops.aten.native_layer_norm_backward(back, x, shape, mean, rate, None, None, only_input)
    before: torch.Tensor = whole[0]
    return before


def arithmetic(device: str) -> Fused | Spelled:
    """The operations for a device; "auto" takes a GPU where there is one."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    return Fused() if chosen == "cpu" else Spelled(torch.device(chosen))
