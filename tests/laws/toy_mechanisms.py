"""The two smallest honest mechanisms: a clip that writes the bound, and an exact integer noise that reads it.

They show that terms carry what a mechanism must say; real ones live in `securetm/mechanisms`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from securetm.contracts import (
    INF,
    Answer,
    Array,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Mechanism,
    Needs,
    NoiseBy,
    Noised,
    RoundContext,
    Terms,
)
from securetm.entropy import words
from securetm.errors import BadSetting
from securetm.testing.stated_noise import deviation

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class ToyClip(Mechanism):
    """Every unit's row is scaled down to this length, and the terms say so."""

    l2_radius: float = 1.0

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        l2 = min(terms.l2, self.l2_radius)
        l1 = min(terms.l1, l2 * terms.size**0.5, l2**2 if terms.domain is Domain.INTEGER else INF)
        return replace(terms, l1=l1, l2=l2, linf=min(terms.linf, l2))

    def row_radius(self, terms: Terms) -> float:
        return self.l2_radius


@dataclass(frozen=True)
class ToyIntegerNoise(Mechanism):
    """Two-sided geometric noise (the discrete Laplace distribution), as wide as the terms' l1 bound asks for epsilon."""

    epsilon: float = 1.0
    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY

    def scale(self, terms: Terms) -> float:
        return terms.l1 / self.epsilon

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        if (
            terms.domain is not Domain.INTEGER
            or terms.l1 == INF
            or terms.needs is not Needs.SUM
            or terms.noised is not Noised.NOT
        ):
            raise BadSetting("ToyIntegerNoise", "terms", "this query", "must be a noiseless integer sum with a bound on l1")
        reach = terms.reach - cumulative(self.scale(terms))[1]
        return replace(terms, noised=Noised.WHOLE, deviation=deviation(self.scale(terms)), reach=reach)

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset({Claim("the answer is differentially private", "coordinator", len(cohort.members) - 1)})

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        from dp_accounting import LaplaceDpEvent  # slow to import, and only accountants ask

        return LaplaceDpEvent(self.scale(terms) / terms.l1)

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector + two_sided_geometric(context.entropy, len(vector), self.scale(terms))

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return replace(answer, deviation=terms.deviation * len(context.cohort.members) ** 0.5)


def two_sided_geometric(entropy: Entropy, n: int, scale: float) -> Array:
    """n values with P(k) proportional to exp(-|k| / scale), by looking 64 random bits up in the cumulative distribution."""
    table, least = cumulative(scale)
    found: Array = np.searchsorted(table, words(entropy, n), side="right").astype(np.int64) + least
    return found


@lru_cache
def cumulative(scale: float) -> tuple[Array, int]:
    """P(value <= k) in units of 2^-64 for k = least, least + 1, ..., up to where nothing is left; tails below that are cut."""
    with localcontext() as context:
        context.prec = 60
        kept = (-1 / Decimal(scale)).exp()
        reach = int(45 * scale) + 1  # exp(-45) < 2^-64
        tails = [kept**k / (1 + kept) for k in range(reach, -1, -1)]  # P(value <= -k)
        below = tails + [1 - tail for tail in tails[-3::-1]]  # P(value <= k) = 1 - P(value <= -k - 1)
        steps = [int(share * 2**64) for share in below]
    return np.array([step for step in steps if step < 2**64], dtype=np.uint64), -reach
