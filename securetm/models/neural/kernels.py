"""The inputs and outputs of the network's kernels, of either kind (`fused.py`, `torch_kernels.py`).

They hold sparse rows, weights and logits, and know no topic models. Row i of every output depends on row i of the input only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numba import njit

from securetm.contracts import Array
from securetm.models.neural.elementary import log

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

    @property
    def lengths(self) -> Array:
        """Words of each document."""
        sums = np.concatenate([[0.0], np.cumsum(self.counts, dtype=np.float64)])
        lengths: Array = (sums[self.ends[1:]] - sums[self.ends[:-1]]).astype(self.counts.dtype)
        return lengths

    def only(self, rows: Array) -> WordBatch:
        """These documents, in this order."""
        ends, cells = np.concatenate([[0], np.cumsum(np.diff(self.ends)[rows])]), self.cells(rows)
        embeddings = None if self.embeddings is None else self.embeddings[rows]
        return WordBatch(ends, self.words[cells], self.counts[cells], self.inputs[cells], self.width, embeddings)

    def cells(self, rows: Array) -> Array:
        """The places of these documents' entries, one document after the other."""
        sizes = np.diff(self.ends)[rows]
        ends = np.cumsum(sizes)
        places: Array = np.arange(sizes.sum()) + np.repeat(self.ends[rows] - ends + sizes, sizes)
        return places


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
        """The entries of these documents."""
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
