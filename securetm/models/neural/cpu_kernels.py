"""The network's passes over a batch on a CPU: loops over one document after the other, with sums in a fixed order.

A clip bounds a sum only if no document changes a bit of another one's row: row i of every output depends on row i of the input
alone. So no library sums or multiplies on the way from a document to its row, no sum is reassociated, and functions are those
of `fixed_order`. It runs on one thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from securetm.compiled import njit
from securetm.contracts import Array
from securetm.data_classes import dataclass, fields, replace
from securetm.models.fixed_order import (
    LANES,
    add_product,
    add_product_transposed,
    exp,
    fma,
    folded,
    highest,
    log,
    log1p_of_share,
    row_sum,
    sum_of_products,
    sum_of_squares,
)

EPSILON = 1e-5  # keeps layer normalisation finite where a row is constant


@dataclass(frozen=True)
class WordBatch:
    """A batch, ready for both ends of the network: inputs and embeddings for the encoder, counts for the loss."""

    ends: Array  # CSR row pointers, int64
    words: Array  # CSR columns
    counts: Array
    inputs: Array  # log1p of the counts, each row of unit length
    width: int
    embeddings: Array | None = None  # each of the same length

    def only(self, rows: Array) -> WordBatch:
        ends, cells = np.concatenate([[0], np.cumsum(np.diff(self.ends)[rows])]), self.cells(rows)
        embeddings = None if self.embeddings is None else self.embeddings[rows]
        return WordBatch(ends, self.words[cells], self.counts[cells], self.inputs[cells], self.width, embeddings)

    def cells(self, rows: Array) -> Array:
        """The places of these documents' entries, one document after the other."""
        sizes = np.diff(self.ends)[rows]
        ends = np.cumsum(sizes)
        found: Array = np.arange(sizes.sum()) + np.repeat(self.ends[rows] - ends + sizes, sizes)
        return found


def bags(counts: Any, dtype: Any, embeddings: Array | None = None, length: float = 1.0) -> WordBatch:
    """A CSR matrix, and perhaps embeddings, as the network reads them.

    Log and unit length limit long documents, each by itself. Embeddings get the given length; one of zeros stays as it is.
    """
    values = np.ascontiguousarray(counts.data, dtype=dtype)
    ends = np.asarray(counts.indptr, dtype=np.int64)
    inputs = np.empty_like(values)
    _fill_inputs(ends, values, inputs)
    batch = WordBatch(ends, np.ascontiguousarray(counts.indices), values, inputs, counts.shape[1])
    return batch if embeddings is None else with_embeddings(batch, embeddings, length)


def with_embeddings(batch: WordBatch, rows: Array, length: float) -> WordBatch:
    """The batch with an embedding of each document, at the given length."""
    units = np.empty(rows.shape, batch.counts.dtype)
    _fill_units(np.ascontiguousarray(rows), float(length), units)
    return replace(batch, embeddings=units)


@njit(cache=True, error_model="numpy")
def _fill_inputs(ends: Array, counts: Array, inputs: Array) -> None:
    for i in range(len(ends) - 1):
        square = 0.0
        for j in range(ends[i], ends[i + 1]):
            inputs[j] = log(1.0 + counts[j])
            square += inputs[j] * inputs[j]
        if square > 0.0:
            for j in range(ends[i], ends[i + 1]):
                inputs[j] /= np.sqrt(square)


@njit(cache=True, error_model="numpy")
def _fill_units(rows: Array, length: float, out: Array) -> None:
    """Each row at that length, from sums in 64 bits."""
    for i in range(len(rows)):
        square = 0.0
        for j in range(rows.shape[1]):
            square += float(rows[i, j]) * rows[i, j]
        rate = length / np.sqrt(square) if square > 0.0 else 1.0
        for j in range(rows.shape[1]):
            out[i, j] = rate * rows[i, j]


@dataclass(frozen=True)
class Latent:
    """Each document's posterior over topics: deviations, the shares of a draw, and the divergence from the prior."""

    deviation: torch.Tensor
    shares: torch.Tensor
    divergence: torch.Tensor


@dataclass(frozen=True)
class DecoderLosses:
    """The decoder's loss of each document, its gradients, and their squared norms.

    `back` is the gradient at the logits before layer normalisation; `after` is the one after it, which is the background's own.
    """

    losses: torch.Tensor
    back: torch.Tensor
    after: torch.Tensor
    back_squares: torch.Tensor
    after_squares: torch.Tensor

    def only(self, rows: torch.Tensor) -> DecoderLosses:
        return DecoderLosses(*(getattr(self, part.name)[rows] for part in fields(self)))


@dataclass(frozen=True)
class MixtureLosses:
    """The losses of documents whose words are drawn from a mixture, and the factors of their gradients, in 64 bits."""

    losses: torch.Tensor
    quotients: torch.Tensor  # count over probability, of each document's own words
    pulls: torch.Tensor  # of each topic: the sum of its words' quotients, each times the topic's probability of the word

    def only(self, rows: torch.Tensor, cells: Array) -> MixtureLosses:
        """The entries of these documents, and of their words."""
        places = torch.from_numpy(cells).to(self.quotients.device)
        return MixtureLosses(self.losses[rows], self.quotients[places], self.pulls[rows])


Cells = tuple[Array, Array, Array]
LEAST = 1e-30  # a word's probability counts as this much at least, so that its quotient stays finite
_ROUNDED = 2.0**-40  # of the terms of a gradient: more than rounding takes from their sum


@njit(cache=True, error_model="numpy")
def _mix(cells: Cells, shares: Array, likely: Array, out: Cells) -> None:
    """Each document's loss, its words' quotients, and its topics' pulls."""
    (ends, words, counts), (losses, quotients, pulls) = cells, out
    for i in range(len(losses)):
        mine = slice(ends[i], ends[i + 1])
        ours, found, among = words[mine], quotients[mine], counts[mine]
        found[:] = 0.0
        for k in range(shares.shape[1]):
            share, row = np.float64(shares[i, k]), likely[k]
            for j in range(len(ours)):
                found[j] += share * row[ours[j]]
        loss = 0.0
        for j in range(len(ours)):
            probability = max(found[j], LEAST) if found[j] == found[j] else found[j]
            loss -= among[j] * log(probability)
            found[j] = among[j] / probability
        losses[i] = loss
        _pull(ours, found, likely, pulls[i])


@njit(cache=True, error_model="numpy")
def _pull(words: Array, quotients: Array, likely: Array, out: Array) -> None:
    for k in range(len(out)):
        row, pull = likely[k], 0.0
        for j in range(len(words)):
            pull += quotients[j] * row[words[j]]
        out[k] = pull


@njit(cache=True, error_model="numpy")
def _add_mixture_gradient(
    cells: tuple[Array, Array], given: Cells, likely: Array, slope: Any, out: tuple[Array, Array]
) -> None:
    """The sum over documents of factor times gradient; `out` holds zeros before."""
    (ends, words), (factors, quotients, pulls), (topics, background) = cells, given, out
    levels = np.zeros(len(likely), topics.dtype)
    for i in range(len(factors)):
        for k in range(len(likely)):
            factor, row = factors[i, k], topics[k]
            levels[k] += factor * pulls[i, k]
            for j in range(ends[i], ends[i + 1]):
                row[words[j]] += factor * quotients[j]
    for k in range(len(likely)):
        row, probabilities, level = topics[k], likely[k], levels[k]
        for v in range(len(row)):
            row[v] = probabilities[v] * (level - row[v])
            background[v] += row[v]
            row[v] *= slope


@njit(cache=True, error_model="numpy")
def _mixture_squares(
    cells: Cells, factors: tuple[Array, Array, Array], likely: Array, slope: float, out: tuple[Array, Array]
) -> None:
    """The squared lengths of each document's gradients of topics and background, with what rounding of a sum may add."""
    (ends, words, counts), (shares, quotients, pulls), (topics, background) = cells, factors, out
    width = likely.shape[1]
    found, behind = np.zeros(width), np.empty(width)
    lanes, whole = np.empty(LANES), np.empty(len(likely))
    for k in range(len(likely)):
        whole[k] = sum_of_squares(likely[k], 0.0, lanes)
    for i in range(len(shares)):
        mine = slice(ends[i], ends[i + 1])
        ours = words[mine]
        for j in range(len(ours)):
            found[ours[j]] = quotients[mine][j]
        behind[:] = 0.0
        square, terms, expected = 0.0, 0.0, 0.0
        for k in range(len(likely)):
            share, pull = np.float64(shares[i, k]), pulls[i, k]  # numba's float() leaves 32 bits
            square += share * share * _add_row(likely[k], pull, share, found, behind, lanes)
            terms += share * share * (pull * pull * whole[k] + _squared(likely[k], ours, quotients[mine]))
            expected += share * pull * math.sqrt(whole[k])
        for j in range(len(ours)):
            found[ours[j]] = 0.0
        rounded = _ROUNDED * math.sqrt(2.0 * terms)
        topics[i] = (slope * (math.sqrt(square) + rounded)) ** 2
        length = math.sqrt(sum_of_squares(behind, 0.0, lanes))
        known = math.sqrt(sum_of_squares(counts[mine], 0.0, lanes))
        background[i] = (length + _ROUNDED * (expected + known)) ** 2


@njit(cache=True, error_model="numpy")
def _add_row(row: Array, pull: float, share: float, found: Array, behind: Array, lanes: Array) -> float:
    """The squared length of one topic's gradient but for its share, which is added to the background's."""
    lanes[:] = 0.0
    for first in range(0, len(row), LANES):
        probabilities, quotients = row[first : first + LANES], found[first : first + LANES]
        out = behind[first : first + LANES]
        for v in range(len(out)):
            one = probabilities[v] * (pull - quotients[v])
            lanes[v] += one * one
            out[v] += share * one
    return np.float64(folded(lanes))


@njit(cache=True, error_model="numpy")
def _squared(row: Array, words: Array, quotients: Array) -> float:
    square = 0.0
    for j in range(len(words)):
        square += (row[words[j]] * quotients[j]) ** 2
    return square


@njit(cache=True, error_model="numpy")
def _squared_lengths(rows: Array, out: Array) -> None:
    """The squared lengths in 64 bits, whatever type the rows have: a clip relies on them."""
    lanes = np.empty(LANES, np.float64)
    for i in range(len(rows)):
        out[i] = sum_of_squares(rows[i], 0.0, lanes)


# ---- the encoder ---------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _embed(cells: Cells, weights: Array, out: Array) -> None:
    ends, words, inputs = cells
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(ends[i], ends[i + 1]):
            _add(inputs[j], weights[words[j]], row)


@njit(cache=True, error_model="numpy")
def _scatter(cells: Cells, back: Array, out: Array) -> None:
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
def _reconstruct(cells: Cells, logits: Array, background: Array, gain: Any, out: tuple[Array, ...]) -> None:
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
        """rows @ weights + bias, in the precision of the rows."""
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
        _mix((batch.ends, batch.words, batch.counts), shares.numpy(), likely.numpy(), out)
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
        _add_mixture_gradient((batch.ends, batch.words), given, likely.numpy(), slope, (out[0].numpy(), out[1].numpy()))

    def mixture_squares(
        self, batch: WordBatch, likely: torch.Tensor, shares: torch.Tensor, passed: MixtureLosses, slope: float
    ) -> torch.Tensor:
        """The squared lengths of each document's gradients: those of the topics, then those of the background."""
        topics, background = np.empty(len(shares)), np.empty(len(shares))
        factors = shares.numpy(), passed.quotients.numpy(), passed.pulls.numpy()
        cells = batch.ends, batch.words, batch.counts
        _mixture_squares(cells, factors, likely.numpy(), float(slope), (topics, background))
        return torch.from_numpy(np.stack([topics, background]))

    def squared_lengths(self, rows: torch.Tensor) -> torch.Tensor:
        """The squared l2 length of each row, summed in 64 bits whatever the row is in."""
        out = np.empty(len(rows))
        _squared_lengths(rows.numpy(), out)
        return torch.from_numpy(out)


def _filled(rows: int, bias: torch.Tensor) -> Array:
    return np.tile(bias.numpy(), (rows, 1))
