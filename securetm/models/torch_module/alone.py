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
        self._kept: dict[int, Array] = {}  # gradients that were computed, as far as there is room

    def norms(self, owners: Array) -> Array:
        """The length of each owner's summed gradient, owners in sorted order."""
        names, member = np.unique(owners, return_inverse=True)
        lengths = np.empty(len(names))
        for owner in range(len(names)):
            total = np.zeros(self._size)
            for _, row in self._rows(np.flatnonzero(member == owner)):
                total += row
            lengths[owner] = np.sqrt(np.sum(total * total))
        return lengths

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight x gradient."""
        total = np.zeros(self._size)
        for document, row in self._rows(np.flatnonzero(weights)):
            total += float(weights[document]) * row
        return total.astype(weights.dtype)

    def _rows(self, documents: Array) -> Iterator[tuple[int, Array]]:
        shared = {id(parameter): parameter for parameter in self._network.parameters()}
        for document in documents.tolist():
            if document in self._kept:
                yield document, self._kept[document]
                continue
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed_of(*self._seed, int(self._inputs.keys[document])))
                row = self._row(copy.deepcopy(self._network, dict(shared)), document)
            if (len(self._kept) + 1) * self._size <= _ROOM:
                self._kept[document] = row
            yield document, row

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


def seed_of(*numbers: int) -> int:
    """A seed for torch that depends on all of these numbers."""
    packed = struct.pack(f"<{len(numbers)}Q", *(number % 2**64 for number in numbers))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1
