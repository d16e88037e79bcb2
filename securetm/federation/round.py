"""One round: its identity, and the way of a party's documents through the door. It knows no transport.

The order of the stations is written once, here: documents, rows, vector. What leaves `pour` is what is sealed and sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import numpy as np

from securetm.clipped_sum import ClippedRowSum, blocks_of
from securetm.contracts import (
    INF,
    Answer,
    Array,
    Cohort,
    Mechanism,
    Memory,
    Needs,
    Profile,
    Query,
    RoundContext,
    Rows,
    State,
    Terms,
    Unit,
)
from securetm.toml_settings import digest


@dataclass(frozen=True)
class Poured:
    """What a party's documents gave in one round. Only the vector may leave; the rest is for the party's own store."""

    vector: Mapping[str, Array]
    documents: int
    loss: float
    lost: int = 0  # rows and coordinates that were not finite, and so counted as nothing


def round_identity(
    session: bytes, question: str, cohort: Cohort, serial: int, terms: Terms, under: bytes, about: bytes, words: bytes
) -> bytes:
    """The round id: equal only if both sides mean the same question, cohort, profile (`under`), state (`about`) and words."""
    promised = {name: _plain(value) for name, value in asdict(terms).items()}
    who = [list(cohort.members), cohort.threshold, cohort.colluding, cohort.seed]
    return digest([session.hex(), question, cohort.number, serial, who, promised, under.hex(), about.hex(), words.hex()])


def question_identity(question: str, number: int, terms: Terms) -> bytes:
    """The name of a question that stays the same in every session; about the corpus alone, it is the same at every number."""
    return digest([question, None if terms.data_only else number])


def preparation_identity(session: bytes, number: int, rounds: int) -> bytes:
    """The name of one set-up of the aggregation."""
    return digest([session.hex(), "prepare", number, rounds])


def _plain(value: Any) -> Any:
    """As JSON can carry it: infinity as text, a choice as its name."""
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, float) else value


def state_digest(state: State, terms: Terms) -> bytes:
    """The hash of what a question is about. Where a sum is asked for, a coordinator that shows two parties different
    states gets two round ids and no sum; where each answer stands alone, states may differ."""
    return b"" if terms.needs is Needs.EACH else digest_of_arrays(state)


def digest_of_arrays(state: State) -> bytes:
    """The hash of named arrays, with their types and shapes."""
    whole = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        whole.update(f"{name} {array.dtype.str} {array.shape};".encode())
        whole.update(array.data)
    return whole.digest()


def pour(
    query: Query,
    documents: Any,
    profile: Profile,
    terms: Terms,
    context: RoundContext,
    memory: Memory,
    rng: np.random.Generator,
) -> Poured:
    """Run by a party: its documents through every station of its profile. The coordinator learns only what is sent of it."""
    before = _terms_before(query.terms, profile, context.cohort)
    rows = query.terms
    for mechanism, known in before:
        documents = mechanism.on_documents(documents, known, context)
        rows = mechanism.poured(rows)
    clipped_sum = _clipped_sum(rows, before, documents, context)
    with np.errstate(all="ignore"):  # what overflows counts as nothing; a warning would be one more thing to tell apart
        query.answer(documents, clipped_sum, memory, rng)
        return _poured(clipped_sum, before, terms, context, len(documents))


def pour_nothing(query: Query, profile: Profile, terms: Terms, context: RoundContext) -> Poured:
    """Run by a party: what no document gives, through the stations of a vector; its noise is that of any other answer."""
    before = _terms_before(query.terms, profile, context.cohort)
    rows = query.terms
    for mechanism, _ in before:
        rows = mechanism.poured(rows)
    return _poured(ClippedRowSum(rows), before, terms, context, 0)


def _poured(clipped_sum: ClippedRowSum, stations: Stations, terms: Terms, context: RoundContext, documents: int) -> Poured:
    vector = clipped_sum.vector()
    for mechanism, known in stations:
        vector = mechanism.on_vector(vector, mechanism.admit(known, context.cohort), context)
    return Poured(blocks_of(vector, terms), documents, clipped_sum.loss, clipped_sum.lost)


def as_opened(answer: Answer, profile: Profile, terms: Terms, context: RoundContext) -> Answer:
    """Run by whoever opens the sum, coordinator or party: the answer back through the stations, the last one first."""
    for mechanism in reversed(profile.mechanisms):
        answer = mechanism.on_answer(answer, terms, context)
    return answer


Stations = Sequence[tuple[Mechanism, Terms]]  # each mechanism with the terms that reach it


def _terms_before(terms: Terms, profile: Profile, cohort: Cohort) -> Stations:
    stations = []
    for mechanism in profile.mechanisms:
        stations.append((mechanism, terms))
        terms = mechanism.admit(terms, cohort)
    return stations


def _clipped_sum(terms: Terms, stations: Stations, documents: Any, context: RoundContext) -> ClippedRowSum:
    """The counter that these documents are poured into, with the stations that stand at its door."""
    radius = min((mechanism.row_radius(known) for mechanism, known in stations), default=INF)
    persons = documents.persons if terms.unit is Unit.PERSON else None
    return ClippedRowSum(
        terms, radius, lambda rows: _on_rows(rows, stations), lambda sums: _on_named(sums, stations, context), persons
    )


def _on_named(sums: Array, stations: Stations, context: RoundContext) -> Array:
    for mechanism, known in stations:
        sums = mechanism.on_named(sums, known, context)
    return sums


def _on_rows(rows: Rows, stations: Stations) -> Rows:
    for mechanism, known in stations:
        rows = mechanism.on_rows(rows, known)
    return rows
