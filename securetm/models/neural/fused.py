"""The network's passes over a batch on a CPU: loops over one document after the other, with sums in a fixed order.

A clip bounds a sum only if no document changes a bit of another one's row. So no library sums or multiplies on the way from a
document to its row, no sum is reassociated, and functions are those of `elementary`. It runs on one thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import njit

from securetm.contracts import Array
from securetm.models.neural import mixture_loops
from securetm.models.neural.elementary import exp, log1p_of_share
from securetm.models.neural.fixed_order import add_product, add_product_transposed, fma
from securetm.models.neural.kernels import EPSILON, DecoderLosses, Latent, MixtureLosses, WordBatch
from securetm.models.neural.row_sums import LANES, highest, row_sum, sum_of_products, sum_of_squares

Three = tuple[Array, Array, Array]


@njit(cache=True, error_model="numpy")
def _squared_lengths(rows: Array, out: Array) -> None:
    """The squared lengths in 64 bits, whatever type the rows have: a clip relies on them."""
    lanes = np.empty(LANES, np.float64)
    for i in range(len(rows)):
        out[i] = sum_of_squares(rows[i], 0.0, lanes)


# ---- the encoder ---------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _embed(cells: Three, weights: Array, out: Array) -> None:
    ends, words, inputs = cells
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(ends[i], ends[i + 1]):
            _add(inputs[j], weights[words[j]], row)


@njit(cache=True, error_model="numpy")
def _scatter(cells: Three, back: Array, out: Array) -> None:
    ends, words, inputs = cells
    for i in range(back.shape[0]):
        row = back[i]
        for j in range(ends[i], ends[i + 1]):
            _add(inputs[j], row, out[words[j]])


@njit(cache=True, error_model="numpy")
def _add(factor: Any, row: Array, out: Array) -> None:
    for k in range(len(out)):
        out[k] = fma(factor, row[k], out[k])  # type: ignore[call-arg]


@njit(cache=True, error_model="numpy")
def _add_four(factors: Array, rows: Array, out: Array) -> None:
    a, b, c, d = factors[0], factors[1], factors[2], factors[3]
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for k in range(len(out)):
        first_two: Any = fma(b, second[k], fma(a, first[k], out[k]))  # type: ignore[call-arg]
        out[k] = fma(d, fourth[k], fma(c, third[k], first_two))


@njit(cache=True, error_model="numpy")
def _combine(factors: Array, rows: Array, out: Array) -> None:
    """The rows times their factors, added one after the other."""
    whole = len(rows) - len(rows) % 4
    for i in range(0, whole, 4):
        _add_four(factors[i : i + 4], rows[i : i + 4], out)
    for i in range(whole, len(rows)):
        _add(factors[i], rows[i], out)


@njit(cache=True, error_model="numpy")
def _activate(x: Array, value: Array, slope: Array) -> None:
    """softplus and its slope, from one exponential."""
    for i in range(x.shape[0]):
        row, values, slopes = x[i], value[i], slope[i]
        for k in range(len(row)):
            number = float(row[k])
            small = exp(-abs(number))
            values[k] = max(number, 0.0) + log1p_of_share(small)
            slopes[k] = (1.0 if number >= 0.0 else small) / (1.0 + small)


@njit(cache=True, error_model="numpy")
def _normalise(x: Array, normal: Array, rates: Array) -> None:
    for i in range(x.shape[0]):
        mean, square = 0.0, 0.0
        for k in range(x.shape[1]):
            mean += x[i, k]
        mean /= x.shape[1]
        for k in range(x.shape[1]):
            square += (x[i, k] - mean) * (x[i, k] - mean)
        rate = 1.0 / math.sqrt(square / x.shape[1] + EPSILON)
        for k in range(x.shape[1]):
            normal[i, k] = (x[i, k] - mean) * rate
        rates[i] = rate


@njit(cache=True, error_model="numpy")
def _normalise_backward(back: Array, normal: Array, rates: Array, out: Array) -> None:
    for i in range(back.shape[0]):
        level, along = 0.0, 0.0
        for k in range(back.shape[1]):
            level += back[i, k]
            along += float(back[i, k]) * normal[i, k]
        level, along = level / back.shape[1], along / back.shape[1]
        for k in range(back.shape[1]):
            out[i, k] = rates[i] * (back[i, k] - level - normal[i, k] * along)


@njit(cache=True, error_model="numpy")
def _latent(normal: Array, noise: Array, prior: tuple[float, float], out: tuple[Array, Array, Array]) -> None:
    """Deviations, softmax of a draw, and the divergence from the prior (variance, weight)."""
    (variance, weight), (deviation, shares, divergence) = prior, out
    topics = noise.shape[1]
    scores = np.empty(topics)
    for i in range(noise.shape[0]):
        apart = topics * (math.log(variance) - 1.0)
        for k in range(topics):
            mean, spread = float(normal[i, k]), float(normal[i, topics + k])
            wide = exp(0.5 * spread)
            deviation[i, k] = wide
            scores[k] = mean + wide * noise[i, k]
            apart += (wide * wide + mean * mean) / variance - spread
        divergence[i] = 0.5 * weight * apart
        highest, whole = scores.max(), 0.0
        for k in range(topics):
            scores[k] = exp(scores[k] - highest)
        for k in range(topics):
            whole += scores[k]
        for k in range(topics):
            shares[i, k] = scores[k] / whole


@njit(cache=True, error_model="numpy")
def _latent_backward(
    back: Array, normal: Array, noise: Array, prior: tuple[float, float], drawn: tuple[Array, Array], out: Array
) -> None:
    (variance, weight), (deviation, shares) = prior, drawn
    topics, pull = noise.shape[1], weight / variance
    for i in range(noise.shape[0]):
        along = 0.0
        for k in range(topics):
            along += float(shares[i, k]) * back[i, k]
        for k in range(topics):
            before = shares[i, k] * (back[i, k] - along)
            wide = float(deviation[i, k])
            out[i, k] = before + pull * normal[i, k]
            out[i, topics + k] = 0.5 * (wide * wide * pull - weight + before * noise[i, k] * wide)


# ---- the decoder ---------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _counted(words: Array, counts: Array, row: Array, background: Array) -> tuple[Any, ...]:
    """Sums over one document's words: counts, and counts times logits and background."""
    length, raw, known = 0.0, 0.0, 0.0
    for j in range(len(words)):
        v, count = words[j], float(counts[j])
        length += count
        raw += count * row[v]
        known += count * background[v]
    return length, raw, known


@njit(cache=True, error_model="numpy")
def _exponentials(row: Array, mean: Any, slope: Any, background: Array, out: Array, lanes: Array) -> Any:
    """exp(slope * (row - mean) + background - peak), and the peak."""
    for v in range(len(row)):
        out[v] = (row[v] - mean) * slope + background[v]
    peak = highest(out, lanes)
    for v in range(len(row)):
        out[v] = exp(out[v] - peak)
    return peak


@njit(cache=True, error_model="numpy")
def _undo_normalisation(row: Array, after: Array, mean: Any, scale: Any, slope: Any) -> None:
    """Replaces `row` by its gradient, from the gradient `after` layer normalisation."""
    for v in range(len(row)):
        row[v] = scale * after[v] - (row[v] - mean) * slope


@njit(cache=True, error_model="numpy")
def _reconstruct(cells: Three, logits: Array, background: Array, gain: Any, out: tuple[Array, ...]) -> None:
    """The fused loss: computes a row's loss and gradients while its logits are in cache."""
    (ends, words, counts), (losses, after, squares) = cells, out
    real, lanes, wide = logits.dtype.type, np.empty(LANES, logits.dtype), np.empty(LANES, np.float64)
    width = real(logits.shape[1])
    for i in range(logits.shape[0]):
        row, mine, gradient = logits[i], slice(ends[i], ends[i + 1]), after[i]
        mean = row_sum(row, lanes) / width
        rate = real(1) / np.sqrt(sum_of_squares(row, mean, lanes) / width + real(EPSILON))
        peak = _exponentials(row, mean, gain * rate, background, gradient, lanes)
        whole, cross = row_sum(gradient, lanes), sum_of_products(gradient, row, mean, lanes)
        length, raw, known = _counted(words[mine], counts[mine], row, background)
        normal, weight = (raw - length * mean) * rate, real(length / whole)
        losses[i] = length * (peak + math.log(whole)) - known - gain * normal
        for v in range(len(row)):
            gradient[v] *= weight
        for j in range(ends[i], ends[i + 1]):
            gradient[words[j]] -= counts[j]
        # Softmax minus counts sums to zero, so one term of the gradient of layer normalisation vanishes.
        pull = real(gain * (weight * rate * cross - normal) / width)
        _undo_normalisation(row, gradient, mean, rate * gain, pull * rate * rate)
        squares[0, i], squares[1, i] = sum_of_squares(row, 0.0, wide), sum_of_squares(gradient, 0.0, wide)


@njit(cache=True, error_model="numpy")
def _topic_words(topics: Array, background: Array, slope: Any, out: Array) -> None:
    lanes = np.empty(LANES, topics.dtype)
    for k in range(len(topics)):
        row = out[k]
        _exponentials(topics[k], topics.dtype.type(0), slope, background, row, lanes)
        whole = row_sum(row, lanes)
        for v in range(len(row)):
            row[v] /= whole


class FusedKernels:
    """The operations on a CPU: numba loops over rows that stay in cache."""

    device = torch.device("cpu")

    def embed(self, batch: WordBatch, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """inputs @ weights + bias."""
        out = _filled(len(batch.ends) - 1, bias)
        _embed((batch.ends, batch.words, batch.inputs), weights.numpy(), out)
        return torch.from_numpy(out)

    def embed_gradient(self, batch: WordBatch, back: torch.Tensor, out: torch.Tensor) -> None:
        """Adds inputs^T @ back to `out`; only the rows of words that occur are touched."""
        _scatter((batch.ends, batch.words, batch.inputs), back.numpy(), out.numpy())

    def dense(self, rows: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """rows @ weights + bias."""
        out = np.zeros((len(rows), weights.shape[1]), rows.numpy().dtype) if bias is None else _filled(len(rows), bias)
        add_product(rows.numpy(), weights.numpy(), out)
        return torch.from_numpy(out)

    def add_outer(self, left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> None:
        """Adds left.T @ right to `out`, in the left one's precision."""
        add_product(left.T.numpy(), right.numpy(), out.numpy())

    def back(self, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """rows @ weights.T."""
        out = np.zeros((len(rows), len(weights)), rows.numpy().dtype)
        add_product_transposed(rows.numpy(), weights.numpy(), out)
        return torch.from_numpy(out)

    def combined(self, factors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """factors @ rows, in the precision of the factors."""
        out = np.zeros(rows.shape[1], factors.numpy().dtype)
        _combine(factors.numpy(), rows.numpy(), out)
        return torch.from_numpy(out)

    def activate(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """softplus(x), and its slope."""
        value, slope = np.empty_like(x.numpy()), np.empty_like(x.numpy())
        _activate(x.numpy(), value, slope)
        return torch.from_numpy(value), torch.from_numpy(slope)

    def normalise(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Layer normalisation of each row without affine, and the reciprocals of the deviations, for the gradient."""
        normal, rates = np.empty_like(x.numpy()), np.empty(len(x), x.numpy().dtype)
        _normalise(x.numpy(), normal, rates)
        return torch.from_numpy(normal), torch.from_numpy(rates)

    def normalise_backward(self, back: torch.Tensor, normal: torch.Tensor, rates: torch.Tensor) -> torch.Tensor:
        """The gradient before layer normalisation from the gradient after it."""
        out = np.empty_like(back.numpy())
        _normalise_backward(back.numpy(), normal.numpy(), rates.numpy(), out)
        return torch.from_numpy(out)

    def latent(self, normal: torch.Tensor, noise: torch.Tensor, prior: tuple[float, float]) -> Latent:
        """A draw from each row's posterior, its means and log-variances side by side; the prior by variance and weight."""
        deviation, shares = np.empty_like(noise.numpy()), np.empty_like(noise.numpy())
        divergence = np.empty(len(noise), shares.dtype)
        _latent(normal.numpy(), noise.numpy(), prior, (deviation, shares, divergence))
        return Latent(torch.from_numpy(deviation), torch.from_numpy(shares), torch.from_numpy(divergence))

    def latent_backward(
        self, back: torch.Tensor, normal: torch.Tensor, noise: torch.Tensor, prior: tuple[float, float], drawn: Latent
    ) -> torch.Tensor:
        """The gradient at means and log-variances, from the gradient at the shares."""
        out, deviation, shares = np.empty_like(normal.numpy()), drawn.deviation.numpy(), drawn.shares.numpy()
        _latent_backward(back.numpy(), normal.numpy(), noise.numpy(), prior, (deviation, shares), out)
        return torch.from_numpy(out)

    def reconstruct(self, batch: WordBatch, logits: torch.Tensor, background: torch.Tensor, gain: float) -> DecoderLosses:
        """-sum(counts * log softmax(gain * layer norm(logits) + background)) of each row; `logits` become its gradient."""
        dtype = batch.counts.dtype
        losses, after, squares = np.empty(len(logits), dtype), np.empty(logits.shape, dtype), np.empty((2, len(logits)))
        cells = (batch.ends, batch.words, batch.counts)
        _reconstruct(cells, logits.numpy(), background.numpy(), dtype.type(gain), (losses, after, squares))
        return DecoderLosses(torch.from_numpy(losses), logits, torch.from_numpy(after), *torch.from_numpy(squares))

    def topic_words(self, topics: torch.Tensor, background: torch.Tensor, slope: float) -> torch.Tensor:
        """softmax(slope * topics + background) of each row."""
        out = np.empty_like(topics.numpy())
        _topic_words(topics.numpy(), background.numpy(), out.dtype.type(slope), out)
        return torch.from_numpy(out)

    def mix(self, batch: WordBatch, shares: torch.Tensor, likely: torch.Tensor) -> MixtureLosses:
        """-sum(counts * log(shares @ likely)) of each row, and the factors of its gradients."""
        losses, pulls = np.empty(len(shares), batch.counts.dtype), np.empty(shares.shape)
        out = losses, np.empty(len(batch.words)), pulls
        mixture_loops.mix((batch.ends, batch.words, batch.counts), shares.numpy(), likely.numpy(), out)
        return MixtureLosses(*(torch.from_numpy(part) for part in out))

    def add_mixture_gradient(
        self,
        batch: WordBatch,
        likely: torch.Tensor,
        factors: torch.Tensor,
        passed: MixtureLosses,
        slope: float,
        out: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        """Adds the gradients of topics and background, each document's times its factor, to zeros."""
        given = factors.numpy(), passed.quotients.numpy(), passed.pulls.numpy()
        mixture_loops.add_gradient((batch.ends, batch.words), given, likely.numpy(), slope, (out[0].numpy(), out[1].numpy()))

    def mixture_squares(
        self, batch: WordBatch, likely: torch.Tensor, shares: torch.Tensor, passed: MixtureLosses, slope: float
    ) -> torch.Tensor:
        """The squared lengths of each document's gradients: those of the topics, then those of the background."""
        topics, background = np.empty(len(shares)), np.empty(len(shares))
        factors = shares.numpy(), passed.quotients.numpy(), passed.pulls.numpy()
        cells = batch.ends, batch.words, batch.counts
        mixture_loops.squares(cells, factors, likely.numpy(), float(slope), (topics, background))
        return torch.from_numpy(np.stack([topics, background]))

    def squared_lengths(self, rows: torch.Tensor) -> torch.Tensor:
        """The squared l2 length of each row, summed in 64 bits whatever the row is in."""
        out = np.empty(len(rows))
        _squared_lengths(rows.numpy(), out)
        return torch.from_numpy(out)


def _filled(rows: int, bias: torch.Tensor) -> Array:
    return np.tile(bias.numpy(), (rows, 1))
