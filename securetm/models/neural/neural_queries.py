"""What the neural topic models ask: a gradient over one batch, or the difference of weights after local epochs.

They know the model by `NeuralTopicModel`'s losses and steps, and neither encoder nor decoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from securetm.contracts import Array, Block, ClippedSum, Memory, State, Terms, Unit
from securetm.models.neural import optimisers

if TYPE_CHECKING:
    from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class StepQuery:
    """Asks for the sum of the documents' gradients at the current weights. The party has drawn the batch already."""

    model: NeuralTopicModel
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: its gradient and a one."""
        layout = (Block("gradient", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, batch=self.model.batch, bits=_bits(self.model.dtype))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the gradient of each given document. Their noise is public, so neither memory nor rng is used."""
        count = len(documents)
        if count:
            losses = self.model.losses(self.state, documents.counts, documents.keys, documents.embeddings)
            clipped_sum.add_losses(losses, owners=np.arange(count), beside=np.ones((count, 1), dtype=self.model.dtype))


@dataclass(frozen=True)
class EpochsQuery:
    """Asks each party to train by itself and to answer with the difference of its weights, as one row (FedAvg)."""

    model: NeuralTopicModel
    state: State

    @property
    def terms(self) -> Terms:
        """One row per party: its difference times its number of documents, and that number."""
        layout = (Block("difference", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, unit=Unit.PARTY, bits=_bits(self.model.dtype))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Batches are shuffled by the rng. The optimiser starts without moments, since these never travel."""
        count = len(documents)
        if count:
            difference = self._trained(documents, rng) - self.state["weights"]
            row = np.append(count * difference, self.state["weights"].dtype.type(count))
            clipped_sum.add(row[None, :], owners=np.zeros(1, dtype=np.int64))

    def _trained(self, documents: Any, rng: np.random.Generator) -> Array:
        model, weights = self.model, self.state["weights"].copy()
        memory: State = optimisers.moments(model.optimiser, weights)
        for number, rows in enumerate(self._batches(len(documents), rng), start=1):
            # The noise's step counts rounds in its high half and local steps in its low half, so none is used twice.
            step = (self.state["step"] << 32) + number
            inside = {"weights": weights, "step": step, "seed": self.state["seed"]}
            embeddings = None if documents.embeddings is None else documents.embeddings[rows]
            losses = model.losses(inside, documents.counts[rows], documents.keys[rows], embeddings)
            gradient = losses.gradient(np.ones(len(rows), weights.dtype))
            weights, memory = model.stepped(weights, gradient, len(rows), memory, number, in_place=True)
        return weights

    def _batches(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        for _ in range(self.model.local_epochs):
            order = rng.permutation(count)
            yield from np.split(order, range(self.model.batch, count, self.model.batch))


def _bits(dtype: str) -> int:
    return 32 if dtype == "float32" else 64
