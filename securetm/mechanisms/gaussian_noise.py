"""Gaussian noise rounded to whole numbers: added by each party in full, or by the opening role to the opened sum.

For a whole number x, x plus rounded noise is x plus noise, rounded: a view of the Gaussian mechanism's answer and nothing more,
so its event is exactly that one. It bounds no row; a clip does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from securetm.contracts import Answer, Claim, Cohort, Needs, NoiseBy, Noised, RoundContext, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import NeedsSum
from securetm.mechanisms.noising import (
    AddedNoise,
    PartyNoise,
    check_bounded,
    check_positive,
    claims_against,
    gaussian_answer,
    multiplier_of,
    with_noise,
)
from securetm.mechanisms.samplers import Sampler, rounded_gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class RoundedGaussian(AddedNoise):
    """Noise of `noise_multiplier` times the l2 bound on every coordinate, which is one Gaussian answer."""

    noise_multiplier: float
    plan_numbers: ClassVar[Mapping[str, str]] = {"noise_multiplier": "noise_multiplier"}

    def __post_init__(self) -> None:
        check_positive(self, "noise_multiplier")

    def noise(self, terms: Terms, cohort: Cohort) -> Sampler:
        return rounded_gaussian(multiplier_of(self, terms) * terms.l2)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One Gaussian answer; nothing where a vector was noised before, since no noise is added then."""
        return gaussian_answer(multiplier_of(self, terms), terms) if self.adds(terms) else None


@dataclass(frozen=True)
class GaussianNoise(RoundedGaussian, PartyNoise):
    """Noise that each party adds to its own vector in full, so that no other role sees an exact sum. Noised vectors pass."""


@dataclass(frozen=True)
class CentralNoise(RoundedGaussian):
    """Noise that the opening role adds to the opened sum. What parties send stays exact.

    It protects against readers of the model, not the opener. As it is added after the sum, one dose serves all parties. Its
    place in a profile is after the rounding: the way back goes through the last mechanism first, so it meets the total while
    that still consists of whole numbers.

    The terms keep saying that the vector is not noised. Each opening draws its own noise and is an answer of its own: a
    total that is opened again after a crash is spent again.
    """

    noise_by: ClassVar[NoiseBy] = NoiseBy.OPENER
    leaves: ClassVar[Noised] = Noised.NOT

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same terms. Refuses terms that are not a bounded sum of whole numbers."""
        if terms.noised is Noised.WHOLE:
            return terms
        if terms.needs is not Needs.SUM:
            raise NeedsSum(type(self).__name__)
        check_bounded(self, terms, terms.l2)
        self.noise(terms, cohort)  # refuses noise that is too wide to be drawn
        return terms

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims against those who see only the noised sum; parties do not know the opener's noise."""
        others = len(cohort.members) - 1
        return claims_against({"model reader": others, "party": others - 1})

    def total_deviation(self, terms: Terms) -> float:
        return rounded_gaussian(multiplier_of(self, terms) * terms.l2).deviation if self.adds(terms) else 0.0

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: adds the noise to whole numbers."""
        if not self.adds(terms) or answer.total is None:
            return answer
        noise = self.noise(terms, context.cohort)
        opened = {name: np.asarray(block) for name, block in answer.total.items()}
        noised = {name: block + noise.draw(context.entropy, block.size).reshape(block.shape) for name, block in opened.items()}
        return with_noise(replace(answer, total=noised), noise.deviation)
