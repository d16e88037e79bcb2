"""Real vectors on a grid of whole numbers, so that a sum can be hidden in a ring. It bounds and rounds; it adds no noise.

A value beyond the promised range is clamped to it. How many were, stays with the party: a refusal that depended on the
data would be an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from securetm.contracts import INF, Answer, Array, Cohort, Desk, Domain, Mechanism, Noised, Terms
from securetm.errors import BadSetting, NoiseBeforeRounding, NotFinite

ROUNDINGS = ("nearest", "stochastic")
CLAMPED = "clamped"  # in the party's own cupboard: how many values it clamped so far


@dataclass(frozen=True)
class Clamped(Mechanism):
    """Real values within plus or minus `span`, or `wide_span` where terms ask for 64 bits. It rounds nothing."""

    span: float = 4096.0
    wide_span: float = 2.0**30

    def __post_init__(self) -> None:
        for name in ("span", "wide_span"):
            if not 0 < getattr(self, name) < INF:
                raise BadSetting(type(self).__name__, name, str(getattr(self, name)), "must be above 0 and finite")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:  # noqa: ARG002 - the span is the same for any cohort
        """The same terms with a reach."""
        return replace(terms, reach=min(terms.reach, self.bound(terms))) if terms.domain is Domain.REAL else terms

    def bound(self, terms: Terms) -> float:
        """The span for terms of that width."""
        return self.wide_span if terms.bits == 64 else self.span

    def on_vector(self, vector: Array, terms: Terms, desk: Desk) -> Array:
        """Run by a party; how much was clamped stays in its own cupboard."""
        if not np.isfinite(vector).all():
            raise NotFinite(int((~np.isfinite(vector)).sum()))
        note_clamped(int((np.abs(vector) > terms.reach).sum()), desk)
        return np.clip(vector, -terms.reach, terms.reach)


@dataclass(frozen=True)
class FixedPoint(Clamped):
    """Values on a grid as fine as the ring allows for a cohort of that size; whole numbers stay as they are.

    `ring` forces its width in bits: 32 halves the bytes of what would travel in 64, on a coarser grid.
    """

    rounding: str = "nearest"
    ring: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounding not in ROUNDINGS:
            raise BadSetting("FixedPoint", "rounding", self.rounding, f"is none of {', '.join(ROUNDINGS)}")
        if self.ring not in (0, 32, 64):
            raise BadSetting("FixedPoint", "ring", str(self.ring), "must be 32 or 64, or 0 for what each question asks for")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """Whole numbers whose sum over the cohort fits the ring; the step and the reach are public."""
        if terms.noised is not Noised.NOT:
            raise NoiseBeforeRounding()
        bits = self.ring or terms.bits
        most = min(((1 << (bits - 1)) - 1) // len(cohort.members), 1 << 52)  # beyond 2^53 a float64 skips whole numbers
        if terms.domain is Domain.INTEGER:
            return replace(terms, bits=bits, reach=min(terms.reach, float(most)))
        grid = min(self.bound(terms), terms.reach) / most
        return replace(terms, domain=Domain.INTEGER, bits=bits, grid=grid, reach=float(most))

    def on_vector(self, vector: Array, terms: Terms, desk: Desk) -> Array:
        """Run by a party. Stochastic rounding draws its coins from the party's own entropy."""
        if terms.grid == 0:
            return super().on_vector(vector, terms, desk).astype(np.int64)
        whole = np.empty(len(vector), dtype=np.int32 if terms.bits == 32 else np.int64)
        coins = desk.entropy.bytes(4 * len(vector)) if self.rounding == "stochastic" else b""
        clamped, broken = _to_grid(vector, 1.0 / terms.grid, terms.reach, np.frombuffer(coins, dtype="<u4"), whole)
        if broken:
            raise NotFinite(broken)
        note_clamped(clamped, desk)
        return whole

    def on_answer(self, answer: Answer, terms: Terms, desk: Desk) -> Answer:  # noqa: ARG002
        """Back to real numbers, for whoever opened the sum."""
        if terms.grid == 0 or answer.total is None:
            return answer
        return replace(answer, total={name: block * terms.grid for name, block in answer.total.items()})


@njit(cache=True, error_model="numpy")
def _to_grid(values: Array, steps: float, reach: float, coins: Array, out: Array) -> tuple[int, int]:
    """One pass: scale, clamp, round. It counts what was clamped and what is not finite."""
    clamped = broken = 0
    drawn = len(coins) > 0
    for i in range(len(values)):
        scaled = float(values[i]) * steps
        broken += not np.isfinite(scaled)
        clamped += abs(scaled) > reach
        bounded = min(max(scaled, -reach), reach)
        out[i] = np.floor(bounded + coins[i] * 2.0**-32) if drawn else np.rint(bounded)
    return clamped, broken


def note_clamped(count: int, desk: Desk) -> None:
    """Run by a party: how many values it ever clamped, in its own cupboard and nowhere else."""
    if count:
        before = int.from_bytes(desk.cupboard.get(CLAMPED) or b"")
        desk.cupboard.put(CLAMPED, (before + count).to_bytes(8))
