"""Discrete Laplace noise that each party adds to counts with an l1 bound. Its delta is its failure probability.

One coordinate that carries the whole l1 bound is the worst case: noise that hides a shift of a + b in one coordinate hides
shifts of a and b in two at least as well. With r = exp(-1/scale), the privacy loss of a shift by k is k - 2 min(Y, k) steps,
where P(Y >= j) = r^j / (1 + r). Divide the tail of min(Y, a) + min(Y', b) by that of min(Y, a + b): the ratio starts at 1,
rises above it and falls below it once. Likelihood ratios of equal mean whose tails cross once are ordered as Blackwell asks.
"""

from __future__ import annotations

from math import expm1, log1p
from typing import TYPE_CHECKING

from securetm.contracts import Cohort, Noised, Terms
from securetm.data_classes import dataclass
from securetm.errors import BadSetting
from securetm.mechanisms.noising import PartyNoise, check_positive
from securetm.mechanisms.samplers import Sampler, discrete_laplace

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class DiscreteLaplaceNoise(PartyNoise):
    """Adds noise of scale l1 / `epsilon` to each coordinate of a party's vector. Noised vectors pass."""

    epsilon: float

    def __post_init__(self) -> None:
        check_positive(self, "epsilon")

    def bound(self, terms: Terms) -> float:
        return terms.l1

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of the noised vector. A document must have at least one whole unit to add."""
        done = super().admit(terms, cohort)
        if terms.noised is Noised.NOT and terms.l1 < 1:
            raise BadSetting("DiscreteLaplaceNoise", "l1", str(terms.l1), "leaves a document no whole unit to add")
        return done

    def noise(self, terms: Terms, cohort: Cohort) -> Sampler:
        return discrete_laplace(terms.l1 / self.epsilon)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One answer about rows of whole numbers.

        Sampled, it is a pure epsilon of log(1 + q (e^epsilon - 1)); the worst mechanism of that epsilon tells one bit with
        that odds ratio, and so does discrete Laplace noise on a shift of one.
        """
        if not self.adds(terms):
            return None
        from securetm.contracts.events import DiscreteLaplaceDpEvent

        steps, scale = int(terms.l1), terms.l1 / self.epsilon
        if terms.sampling == 1:
            return DiscreteLaplaceDpEvent(1 / scale, steps)
        return DiscreteLaplaceDpEvent(log1p(terms.sampling * expm1(steps / scale)), 1)
