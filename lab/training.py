"""Rounds played in one process: one curator with plain noise in its sums, and parties whose answers are added without any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Memory, Query, State, TopicModel
from securetm.mechanisms.sampling import batch_rows


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


def together(model: TopicModel, parties: Mapping[str, Any], state: State, rounds: int, seed: int = 0) -> State:
    """What a federation learns whose answers are only added: each party answers on its batch, or on all its documents."""
    memories: dict[str, Memory] = {name: {} for name in parties}
    for number in range(rounds):
        sums: dict[str, Array] = {}
        for place, (name, documents) in enumerate(parties.items()):
            query, rng = model.query(model.for_party(state, name)), np.random.default_rng([seed, number, place])
            batch = query.terms.batch
            drawn = documents.select(batch_rows(np.asarray(documents.keys), batch, number, seed)) if batch else documents
            answer = exact_sum(query, drawn, rng, memory=memories[name])
            sums = {block: sums[block] + part if sums else part for block, part in answer.items()}
        state = model.update(state, Answer(sums))
    return state
