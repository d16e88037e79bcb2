"""What models ask that learn by gradients: a gradient over one batch, or the difference of weights after local epochs.

They know the model by its losses and its own training, and no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from securetm.contracts import Array, Block, ClippedSum, Losses, Memory, State, Terms, Unit


class LearnsByEpochs(Protocol):
    """A model that a party can train by itself. Its state has one flat array of weights."""

    def trained(self, state: State, documents: Any, memory: Memory, rng: np.random.Generator) -> Array:
        """The weights after the local epochs of one party."""


class LearnsByGradients(Protocol):
    """A model whose loss has a gradient for each document. Its state has one flat array of weights."""

    @property
    def batch(self) -> int:
        """Documents of each party in a step."""

    def losses_of(self, state: State, documents: Any) -> Losses:
        """The losses of these documents."""


@dataclass(frozen=True)
class StepQuery:
    """Asks for the sum of the documents' gradients at the current weights. The party has drawn the batch already."""

    model: LearnsByGradients
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: its gradient and a one."""
        layout = (Block("gradient", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, batch=self.model.batch, bits=_bits(self.state))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the gradient of each given document. Their noise is public, so neither memory nor rng is used."""
        if count := len(documents):
            ones = np.ones((count, 1), dtype=self.state["weights"].dtype)
            clipped_sum.add_losses(self.model.losses_of(self.state, documents), owners=np.arange(count), beside=ones)


@dataclass(frozen=True)
class EpochsQuery:
    """Asks each party to train by itself and to answer with the difference of its weights, as one row (FedAvg)."""

    model: LearnsByEpochs
    state: State

    @property
    def terms(self) -> Terms:
        """One row per party: its difference times its number of documents, and that number."""
        layout = (Block("difference", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, unit=Unit.PARTY, bits=_bits(self.state))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """Batches are shuffled by the rng."""
        if count := len(documents):
            difference = self.model.trained(self.state, documents, memory, rng) - self.state["weights"]
            row = np.append(count * difference, difference.dtype.type(count))
            clipped_sum.add(row[None, :], owners=np.zeros(1, dtype=np.int64))


def _bits(state: State) -> int:
    return 8 * state["weights"].dtype.itemsize
