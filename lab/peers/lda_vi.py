"""Oracles for `lda-vi`, which spend a budget on less.

What an oracle knows comes from a training without noise on the same documents. So no figure of an oracle is private: they show
limits only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Self

import numpy as np

from lab.documents import JudgedDocuments
from lab.training import exact_sum
from securetm.contracts import Answer, Array, State
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.plans.agreement import Agreement

_CLEAR_ROUNDS = 20  # without noise


@dataclass(frozen=True)
class BeginsAtTruth(Agreement):
    """An agreement whose training begins at known counts; what is public of the words stays public."""

    known: Array | None = None

    @classmethod
    def after(cls, agreement: Agreement, known: Array) -> Self:
        """The same agreement, which knows the counts."""
        return cls(**{field.name: getattr(agreement, field.name) for field in fields(agreement)}, known=known)

    def start(self, vocabulary: Sequence[str], frequencies: Array | None = None) -> State:
        assert self.known is not None
        return {**super().start(vocabulary, frequencies), "counts": self.known}


class KnownAssignments(VariationalLDA):
    """Its documents answer by the true topics; of the sum it believes what it would of any other, from equal topics on."""

    def update(self, state: State, answer: Answer) -> State:
        """Reads the sum as if every topic had had the word frequencies."""
        return super().update({**state, "counts": np.ones_like(state["counts"])}, answer)


def knowing_topics(agreement: Agreement, documents: JudgedDocuments) -> Agreement:
    """The oracle that knows the true topics, and estimates words and weights."""
    return BeginsAtTruth.after(agreement, _truth(agreement, documents))


def knowing_assignments(agreement: Agreement, documents: JudgedDocuments) -> Agreement:
    """The oracle whose documents know their topics, and that estimates each topic's words."""
    known = _truth(agreement, documents)
    model = KnownAssignments(**agreement.plan.model.settings)
    return BeginsAtTruth(**{**vars(BeginsAtTruth.after(agreement, known)), "model": model})


def _truth(agreement: Agreement, documents: JudgedDocuments) -> Array:
    plan = agreement.plan
    model = VariationalLDA(**plan.model.settings)
    return _true_counts(model, documents, 1 - plan.training.held_out, plan.seed, plan.privacy.radius)


@lru_cache(1)
def _true_counts(model: VariationalLDA, documents: JudgedDocuments, share: float, seed: int, radius: float) -> Array:
    """The counts that the model finds without noise on the documents that the parties train on."""
    known = documents.held_back(share, seed)[0]
    state = model.start(known.vocabulary, np.random.default_rng(seed))
    for _ in range(_CLEAR_ROUNDS):
        state = model.update(state, Answer(exact_sum(model.query(state), known, np.random.default_rng(0), radius)))
    found: Array = state["counts"]
    return found
