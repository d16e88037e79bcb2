"""Chooses which documents of a party take part in a round: by secret coins, or in batches that follow from their keys.

It bounds nothing. Only the coins amplify privacy; whoever knows the keys knows the batches, so their terms keep a sampling rate
of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array, Cohort, Entropy, Mechanism, RoundContext, Sampling, Terms, Unit
from securetm.errors import NoPersons, check_setting
from securetm.mechanisms.batch_draws import batch_rows
from securetm.mechanisms.secret_coins import tossed

AMPLIFIED = (Unit.DOCUMENT, Unit.PERSON)  # whose presence a coin decides; a party or a single word is there or not


@dataclass(frozen=True)
class PoissonSample(Mechanism):
    """Where a question asks for a batch, each document (or person) takes part with probability `rate`.

    The coins are independent and come from the operating system. They are neither stored nor sent, and nor is their number.
    They are exact, with probability floor(rate x 2^64) / 2^64, so the real probability is never above the rate.
    """

    rate: float
    sampling: ClassVar[Sampling] = Sampling.COINS
    plan_numbers: ClassVar[Mapping[str, str]] = {"rate": "rate"}

    def __post_init__(self) -> None:
        check_setting(self, "rate", 0 < self.rate <= 1, "must be above 0 and at most 1")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same terms with the sampling rate and without a batch: the coins choose the documents instead."""
        if terms.batch == 0:
            return terms
        return replace(terms, batch=0, sampling=terms.sampling * self.rate if terms.unit in AMPLIFIED else terms.sampling)

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """Run by a party: the documents that its coins chose, perhaps none. No other role learns which, or how many."""
        if terms.batch == 0:
            return documents
        if terms.unit is not Unit.PERSON:
            return documents.select(self._chosen(len(documents), context.entropy))
        if documents.persons is None:
            raise NoPersons()
        people, whose = np.unique(documents.persons, return_inverse=True)
        chosen = np.zeros(len(people), dtype=bool)
        chosen[self._chosen(len(people), context.entropy)] = True
        return documents.select(np.flatnonzero(chosen[whose]))

    def _chosen(self, n: int, entropy: Entropy) -> Array:
        return tossed(n, int(Fraction(self.rate) * 2**64), entropy)


@dataclass(frozen=True)
class ShuffledBatches(Mechanism):
    """Draws a full batch for each round anew, by the keys of the documents."""

    sampling: ClassVar[Sampling] = Sampling.PUBLIC

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """The party's batch for this round, or all its documents if the question asks for no batch."""
        if terms.batch == 0 or len(documents) == 0:
            return documents
        rows = batch_rows(np.asarray(documents.keys), terms.batch, context.cohort.number, context.cohort.seed)
        return documents.select(rows)
