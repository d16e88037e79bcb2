"""Rounds real vectors to a grid of whole numbers, so that a secure sum can add them in a ring. It adds no noise.

A value beyond the promised range is clamped to it, and one that is no number counts as 0. The party keeps the number of such
values to itself: a refusal that depended on the data would be an answer.
"""

from __future__ import annotations

import numpy as np

from securetm.compiled import njit
from securetm.contracts import INF, Answer, Array, Cohort, Domain, Mechanism, Noised, RoundContext, Terms, Unit
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Mismatch, check_setting
from securetm.mechanisms.noising import check_positive
from securetm.sessions.session_memory import count_up

ROUNDINGS = ("nearest", "stochastic")
CLAMPED = "clamped"  # in the party's own store: how many values it clamped so far,
NO_NUMBERS = "no numbers"  # and how many were no finite numbers


@dataclass(frozen=True)
class Clamped(Mechanism):
    """Clamps real values to plus or minus `span`, or `wide_span` where terms ask for 64 bits. It rounds nothing."""

    span: float = 4096.0
    wide_span: float = 2.0**30

    def __post_init__(self) -> None:
        for name in ("span", "wide_span"):
            check_positive(self, name)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(terms, reach=min(terms.reach, self.bound(terms))) if terms.domain is Domain.REAL else terms

    def bound(self, terms: Terms) -> float:
        return self.wide_span if terms.bits == 64 else self.span

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party: clamps, and notes in its own store how many values were clamped."""
        numbers = np.isfinite(vector)
        count_up(context.store, NO_NUMBERS, int((~numbers).sum()))
        vector = np.where(numbers, vector, vector.dtype.type(0))
        count_up(context.store, CLAMPED, int((np.abs(vector) > terms.reach).sum()))
        return np.clip(vector, -terms.reach, terms.reach)


@dataclass(frozen=True)
class FixedPoint(Clamped):
    """Rounds to a grid as fine as the ring allows for a cohort of that size. Whole numbers stay as they are.

    `ring` forces its width in bits: 32 halves the bytes of what would travel in 64, on a coarser grid. `headroom` is the share
    of the ring that is left for noise. Where rows are clipped, the grid follows the clip and not the span: rounding a party's
    sum moves each coordinate by up to one step more than the row does, and one more is allowed for the sum's own arithmetic in
    floating point, so a clip of `steps` x sqrt(coordinates) steps grows by a share of 2 / `steps`. The range then holds the
    sum of `crowd` rows that all point the same way, and what is beyond is clamped: that brings sums closer, never apart.
    """

    rounding: str = "nearest"
    ring: int = 0
    headroom: float = 0.0
    steps: float = 256.0
    crowd: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "rounding", self.rounding in ROUNDINGS, f"must be one of {', '.join(ROUNDINGS)}")
        check_setting(self, "ring", self.ring in (0, 32, 64), "must be 32 or 64, or 0 for what each question asks for")
        check_setting(self, "headroom", 0 <= self.headroom < 1, "must be at least 0 and below 1")
        check_setting(self, "steps", 1 <= self.steps < INF, "must be at least 1 and finite")
        check_setting(self, "crowd", self.crowd >= 1, "must be at least 1")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of whole numbers whose sum over the cohort fits the ring; grid and reach are public."""
        if terms.noised is Noised.SHARE or (terms.noised is Noised.WHOLE and terms.domain is Domain.REAL):
            raise noise_before_rounding()
        if terms.grid > 0:
            raise BadSetting("the profile", "fixed_point", "behind fixed_point", "would scale the sum twice, so name it once")
        bits = self.ring or terms.bits
        ring = int((1.0 - self.headroom) * ((1 << (bits - 1)) - 1))
        most = min(ring // len(cohort.members), 1 << 52)  # beyond 2^53 a float64 skips whole numbers
        if terms.domain is Domain.INTEGER:
            return replace(terms, bits=bits, reach=min(terms.reach, float(most)))
        if terms.l2 < INF:
            return self._on_the_grid_of_its_clip(terms, cohort, bits, most)
        grid = min(self.bound(terms), terms.reach) / most
        return replace(terms, domain=Domain.INTEGER, bits=bits, grid=grid, reach=float(most))

    def _on_the_grid_of_its_clip(self, terms: Terms, cohort: Cohort, bits: int, most: int) -> Terms:
        size = terms.size
        grid = terms.l2 / (self.steps * size**0.5)
        crowd = 1 if terms.unit is Unit.PARTY else self.crowd  # a party has one row of its own
        needed = crowd * min(terms.linf, terms.l2) / grid
        if needed > most:
            raise Mismatch(
                (
                    "{crowd} rows of this question need values up to {needed} steps, and {bits} bits leave each of "
                    "{parties} parties {most}"
                ),
                hint="of fixed_point: lower `steps` (a coarser grid), `crowd` or `headroom`, or set `ring` = 64",
                crowd=crowd,
                needed=f"{needed:.0f}",
                bits=bits,
                parties=len(cohort.members),
                most=str(most),
            )
        bounds = {"l1": terms.l1 / grid + 2 * size, "l2": terms.l2 / grid + 2 * size**0.5, "linf": terms.linf / grid + 2}
        reach = min(float(most), terms.reach / grid)
        return replace(terms, domain=Domain.INTEGER, bits=bits, grid=grid, reach=reach, **bounds)

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party: rounds. Stochastic rounding draws its coins from the party's entropy."""
        whole = np.empty(len(vector), dtype=np.int32 if terms.bits == 32 else np.int64)
        if terms.grid == 0:
            numbers = super().on_vector(vector, terms, context) if vector.dtype.kind == "f" else vector
            count_up(context.store, CLAMPED, _clamp(numbers, int(terms.reach), whole))
            return whole
        coins = context.entropy.bytes(4 * len(vector)) if self.rounding == "stochastic" else b""
        clamped, broken = _to_grid(vector, 1.0 / terms.grid, terms.reach, np.frombuffer(coins, dtype="<u4"), whole)
        count_up(context.store, NO_NUMBERS, broken)
        count_up(context.store, CLAMPED, clamped)
        return whole

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: the sum as real numbers."""
        if terms.grid == 0 or answer.total is None:
            return answer
        real = {name: block * terms.grid for name, block in answer.total.items()}
        return replace(answer, total=real, deviation=answer.deviation * terms.grid)


@njit(cache=True)
def _clamp(values: Array, reach: int, out: Array) -> int:
    """Clamps whole numbers in one pass, and counts those that it changed."""
    clamped = 0
    for i in range(len(values)):
        clamped += values[i] > reach or values[i] < -reach
        out[i] = min(max(values[i], -reach), reach)
    return clamped


@njit(cache=True, error_model="numpy")
def _to_grid(values: Array, steps: float, reach: float, coins: Array, out: Array) -> tuple[int, int]:
    """Scales, clamps and rounds in one pass. Counts clamped values, and values that are not finite, which become 0."""
    clamped = broken = 0
    drawn = len(coins) > 0
    for i in range(len(values)):
        finite = np.isfinite(values[i])
        scaled = float(values[i]) * steps if finite else 0.0
        broken += not finite
        clamped += abs(scaled) > reach
        bounded = min(max(scaled, -reach), reach)
        out[i] = np.floor(bounded + coins[i] * 2.0**-32) if drawn else np.rint(bounded)
    return clamped, broken


def noise_before_rounding() -> Mismatch:
    """The refusal of noise that is there before rounding."""
    return Mismatch(
        "a share of noise must be added after rounding, not before",
        hint="in the profile, put the [[mechanism]] that rounds before the one that adds noise",
    )
