"""One curator who has all documents trains a model, with plain Gaussian noise in its sums: what settings are compared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Memory, Query, State, TopicModel


def exact_sum(
    query: Query, documents: Any, rng: np.random.Generator, radius: float = np.inf, memory: Memory | None = None
) -> Mapping[str, Array]:
    """The answer to a question without noise, of rows that are clipped at the radius."""
    summed = ClippedRowSum(query.terms, radius)
    query.answer(documents, summed, {} if memory is None else memory, rng)
    return summed.blocks()


def noised(exact: Mapping[str, Array], deviation: float, rng: np.random.Generator) -> Answer:
    """The answer with noise of this deviation in every cell."""
    cells = {name: block + rng.normal(0.0, deviation, block.shape) for name, block in exact.items()}
    return Answer(cells, deviation=deviation)


def trained(
    model: TopicModel, documents: Any, state: State, rounds: int, radius: float, deviation: float, rng: np.random.Generator
) -> State:
    """The state after so many rounds."""
    for _ in range(rounds):
        state = model.update(state, noised(exact_sum(model.query(state), documents, rng, radius), deviation, rng))
    return state
