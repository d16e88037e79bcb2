"""Gaussian noise that each party adds in full, so that no other role sees an exact sum. It bounds no row; a clip does.

What is added is a Gaussian rounded to whole numbers. For a whole number x, x plus rounded noise is x plus noise, rounded: a
view of the Gaussian mechanism's answer and nothing more, so its event is exactly that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import Cohort, Terms
from securetm.mechanisms.noising import PartyNoise, check_positive, gaussian_answer, multiplier_of
from securetm.mechanisms.samplers import Sampler, rounded_gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class GaussianNoise(PartyNoise):
    """Adds noise of `noise_multiplier` times the l2 bound to each coordinate of a party's vector. Noised vectors pass."""

    noise_multiplier: float
    plan_numbers: ClassVar[Mapping[str, str]] = {"noise_multiplier": "noise_multiplier"}

    def __post_init__(self) -> None:
        check_positive(self, "noise_multiplier")

    def noise(self, terms: Terms, cohort: Cohort) -> Sampler:
        """A rounded Gaussian."""
        return rounded_gaussian(multiplier_of(self, terms) * terms.l2)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One Gaussian answer; nothing where words were selected before, since no noise is added then."""
        return gaussian_answer(multiplier_of(self, terms), terms) if self.adds(terms) else None
