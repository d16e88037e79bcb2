"""The inputs and outputs of the network's kernels, of either kind (`fused.py`, `torch_kernels.py`).

They hold sparse rows, weights and logits, and know no topic models. Row i of every output depends on row i of the input only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numba import njit

from securetm.contracts import Array
from securetm.models.neural.elementary import log

EPSILON = 1e-5  # keeps layer normalisation finite where a row is constant


@dataclass(frozen=True)
class WordBatch:
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

    def only(self, rows: Array) -> WordBatch:
        """These documents, in this order."""
        sizes = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        cells = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], sizes)
        return WordBatch(ends, self.words[cells], self.counts[cells], self.inputs[cells], self.width)


def bags(counts: Any, dtype: Any) -> WordBatch:
    """A CSR matrix as the network reads it. Log and unit length limit long documents, each by itself."""
    values = np.ascontiguousarray(counts.data, dtype=dtype)
    ends = np.asarray(counts.indptr, dtype=np.int64)
    inputs = np.empty_like(values)
    _fill_inputs(ends, values, inputs)
    return WordBatch(ends, np.ascontiguousarray(counts.indices), values, inputs, counts.shape[1])


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
