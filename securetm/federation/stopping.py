"""Decides whether training ends before its last round, from public facts and answers, never from a party's own figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from securetm.contracts import State
from securetm.plans import TrainingChoice


@dataclass
class Stopping:
    """The history of one measure that should fall, and whether it still does."""

    choice: TrainingChoice
    history: list[float] = field(default_factory=list)

    def due(self, done: int) -> bool:
        """Whether the measure is to be taken after this many rounds."""
        return self.choice.stop != "rounds" and done % self.choice.every == 0

    def note(self, value: float) -> bool:
        """Adds a value; true if it is the best so far."""
        self.history.append(value)
        return value <= _least(self.history)  # never true of what is not a number

    def settled(self) -> bool:
        """Whether the last `patience` values improved on the best before them by no more than the tolerance."""
        patience = self.choice.patience
        if len(self.history) <= patience:
            return False
        best, recent = _least(self.history[:-patience]), _least(self.history[-patience:])
        return recent >= best * (1 - self.choice.tolerance)


def relative_change(before: State, after: State) -> float:
    """How far the weights moved, as a share of their length (gFedNTM's stopping measure)."""
    moved = sum(float(np.sum((after[name].astype(float) - before[name]) ** 2)) for name in _weights(after))
    length = sum(float(np.sum(before[name].astype(float) ** 2)) for name in _weights(after))
    return float(np.sqrt(moved / max(length, 1e-300)))


def _least(values: Sequence[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.inf)


def _weights(state: State) -> list[str]:
    return [name for name, array in state.items() if array.dtype.kind == "f"]
