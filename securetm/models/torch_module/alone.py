"""The losses and gradients of a network that others wrote, one document at a time. It is no fast path.

A library's products round rows by their number, and a stranger's module may mix rows: so each document is computed in a batch
of one, by a fresh copy of the module, with random numbers that depend on the document's key alone. Its row then depends on no
other document by construction.
"""

from __future__ import annotations

import copy
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from securetm.contracts import INF, Array
from securetm.models.torch_module.topic_network import TopicNetwork

_ROOM = 1 << 26  # numbers of gradients that are kept between computing lengths and adding up
_ROUNDED = 1 + 1e-12  # two computations of the same length may differ by so much


@dataclass(frozen=True, eq=False)
class Inputs:
    """Documents as a network reads them. Row i of everything is document i."""

    counts: Any  # CSR
    embeddings: Array | None
    keys: Array
    dtype: torch.dtype

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, rows: Any) -> tuple[Tensor, Tensor | None]:
        """Counts and embeddings of these rows."""
        counts = torch.from_numpy(self.counts[rows].toarray()).to(self.dtype)
        return counts, None if self.embeddings is None else torch.from_numpy(self.embeddings[rows]).to(self.dtype)


class LossesAlone:
    """The losses of some documents (contracts.Losses). Gradients are computed when they are asked for, each by itself."""

    def __init__(self, network: TopicNetwork, inputs: Inputs, seed: tuple[int, int]) -> None:
        self._network, self._inputs, self._seed = network, inputs, seed
        self._size = sum(parameter.numel() for parameter in network.parameters())
        self.values: Array = np.full(len(inputs), INF)
        self._member: Array = np.arange(len(inputs))  # the owner of each document
        self._lengths: Array | None = None  # of the owners' rows, once they were asked for
        self._kept: dict[int, Array] = {}  # gradients that were computed, as far as there is room

    def norms(self, owners: Array) -> Array:
        """The length of each owner's summed gradient, owners in sorted order."""
        _, self._member = np.unique(owners, return_inverse=True)
        self._lengths = np.array([_length(part) for part in self._parts(np.ones(len(owners)))])
        return self._lengths

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight x gradient. An owner whose row is longer than it was when measured counts as none.

        Such a network computes something else each time, and a clip by the earlier length would not bound its row.
        """
        total = np.zeros(self._size)
        for owner, part in enumerate(self._parts(weights)):
            if self._lengths is None or _length(part) <= self._lengths[owner] * weights[self._member == owner].max() * _ROUNDED:
                total += part
        return total.astype(weights.dtype)

    def _parts(self, weights: Array) -> Iterator[Array]:
        """Each owner's weighted sum of gradients, in 64 bits: a clip aims closer to its radius than 32 bits can tell."""
        for owner in range(int(self._member.max(initial=-1)) + 1):
            part = np.zeros(self._size)
            for document in np.flatnonzero((self._member == owner) & (weights != 0)).tolist():
                part += float(weights[document]) * self._gradient(document).astype(np.float64)
            yield part

    def _gradient(self, document: int) -> Array:
        if document in self._kept:
            return self._kept[document]
        with torch.random.fork_rng(devices=[]):
            reseed(*self._seed, int(self._inputs.keys[document]))
            row = self._row(copy.deepcopy(self._network), document)
        if (len(self._kept) + 1) * self._size <= _ROOM:
            self._kept[document] = row
        return row

    def _row(self, fresh: TopicNetwork, document: int) -> Array:
        """The gradient of one document. Where the network fails it is not finite, and the clip counts the document as none."""
        parameters = list(fresh.parameters())
        try:
            (loss,) = fresh(*self._inputs.of([document]))
            found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        except Exception:  # noqa: BLE001 - whether a stranger's code fails may depend on the document, so nobody else may see it
            return np.full(self._size, np.nan)
        self.values[document] = float(loss.detach())
        row: Array = torch.cat([part.reshape(-1) for part in found]).numpy()
        return row


def _length(row: Array) -> float:
    return float(np.sqrt(np.sum(row * row)))


def reseed(*numbers: int) -> None:
    """Seeds torch by all of these numbers. Without an accelerator, `manual_seed` would keep a stack trace of each call."""
    seed = seed_of(*numbers)
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def seed_of(*numbers: int) -> int:
    """A seed for torch that depends on all of these numbers."""
    packed = struct.pack(f"<{len(numbers)}Q", *(number % 2**64 for number in numbers))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1
