"""Real vectors on a grid of whole numbers, so that a sum can be hidden in a ring. It bounds and rounds; it adds no noise.

A value beyond the promised range is clamped to it. How many were, stays with the party: a refusal that depended on the
data would be an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from securetm.contracts import INF, Answer, Array, Cohort, Desk, Domain, Mechanism, Noised, Terms
from securetm.errors import BadSetting, NoiseBeforeRounding, NotFinite

ROUNDINGS = ("nearest", "stochastic")
CLAMPED = "clamped"  # in the party's own cupboard: how many values it clamped so far


@dataclass(frozen=True)
class FixedPoint(Mechanism):
    """Values within plus or minus `span`, in steps as fine as the ring allows for a cohort of that size.

    Terms of 64 bits get a 64-bit ring and `wide_span`. Whole numbers stay as they are, clamped to what the ring can sum.
    """

    span: float = 4096.0
    wide_span: float = 2.0**36
    rounding: str = "stochastic"

    def __post_init__(self) -> None:
        if self.rounding not in ROUNDINGS:
            raise BadSetting("FixedPoint", "rounding", self.rounding, f"is none of {', '.join(ROUNDINGS)}")
        for name in ("span", "wide_span"):
            if not 0 < getattr(self, name) < INF:
                raise BadSetting("FixedPoint", name, str(getattr(self, name)), "must be above 0 and finite")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """Whole numbers whose sum over the cohort fits the ring, the step and the reach being public."""
        if terms.noised is not Noised.NOT:
            raise NoiseBeforeRounding()
        most = ((1 << (terms.bits - 1)) - 1) // len(cohort.members)
        if terms.domain is Domain.INTEGER:
            return replace(terms, reach=min(terms.reach, float(most)))
        span = min(self.wide_span if terms.bits == 64 else self.span, terms.reach)
        most = min(most, 1 << 52)  # beyond it a float64 is no longer a whole number
        return replace(terms, domain=Domain.INTEGER, grid=span / most, reach=float(most))

    def on_vector(self, vector: Array, terms: Terms, desk: Desk) -> Array:
        """Run by a party. Stochastic rounding draws its coins from the party's own entropy."""
        if not np.isfinite(vector).all():
            raise NotFinite(int((~np.isfinite(vector)).sum()))
        scaled = vector if terms.grid == 0 else vector.astype(np.float64) / terms.grid
        self._count(int((np.abs(scaled) > terms.reach).sum()), desk)
        bounded = np.clip(scaled, -terms.reach, terms.reach)
        return (bounded if terms.grid == 0 else self._rounded(bounded, desk)).astype(np.int64)

    def on_answer(self, answer: Answer, terms: Terms, desk: Desk) -> Answer:  # noqa: ARG002
        """Back to real numbers, for whoever opened the sum."""
        if terms.grid == 0 or answer.total is None:
            return answer
        return replace(answer, total={name: block * terms.grid for name, block in answer.total.items()})

    def _rounded(self, values: Array, desk: Desk) -> Array:
        if self.rounding == "nearest":
            return np.rint(values)
        lower = np.floor(values)
        coins = np.frombuffer(desk.entropy.bytes(4 * len(values)), dtype="<u4")
        up: Array = lower + ((values - lower) * 2.0**32 > coins)
        return up

    def _count(self, clamped: int, desk: Desk) -> None:
        if clamped:
            before = int.from_bytes(desk.cupboard.get(CLAMPED) or b"")
            desk.cupboard.put(CLAMPED, (before + clamped).to_bytes(8))
