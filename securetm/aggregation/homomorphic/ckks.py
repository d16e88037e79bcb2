"""The CKKS sum: real numbers encrypted by the parties, added by a coordinator that reads nothing, opened by the parties.

One secret key serves all parties: ONE party and the coordinator together read everything. Masked sums have no such weakness.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sum import SharedKeySum
from securetm.aggregation.homomorphic.parameters import DEGREE, MODULI, Fit, cheapest, largest_reach
from securetm.aggregation.homomorphic.seal_library import Code, SealContext
from securetm.contracts import INF, Array, Cohort, Domain, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import NeedsReach, SumTooWide, check_setting

FINEST = 2**52  # steps from zero to the reach: a float64 has no finer ones


@lru_cache(maxsize=1)
def _roots() -> tuple[Array, Array, Array]:
    """The 4096th roots of unity that twist a polynomial, and which odd power each slot (and its conjugate) stands for."""
    twist = np.exp(1j * np.pi * np.arange(DEGREE) / DEGREE)
    powers, power = np.empty(DEGREE // 2, dtype=np.int64), 1
    for i in range(DEGREE // 2):
        powers[i], power = power, power * 3 % (2 * DEGREE)
    return twist, (powers - 1) // 2, (2 * DEGREE - powers - 1) // 2


def slots_of(polynomials: Array) -> Array:
    """The values of real polynomials at the roots that CKKS calls slots, one row each."""
    twist, places, _ = _roots()
    return (np.fft.ifft(polynomials * twist, axis=1) * DEGREE)[:, places]


def polynomial_of(slots: Array) -> Array:
    """The real coefficients of a polynomial with these slots."""
    twist, places, conjugates = _roots()
    values = np.empty(DEGREE, dtype=np.complex128)
    values[places], values[conjugates] = slots, np.conj(slots)
    return np.asarray((np.fft.fft(values) / DEGREE * np.conj(twist)).real)


class CkksCode:
    """A number is one coefficient, not a slot: slots serve multiplication, and here they would spread the noise.

    Every coefficient is a multiple of the step, which is larger than all noise. Rounding to it after decryption removes the
    noise altogether, so that what is opened says nothing about the key.
    """

    name = "ckks"
    ntt = True

    def context_key(self, fit: Fit) -> tuple[str, int, int]:
        """CKKS has no plaintext modulus."""
        return "CKKS", fit.modulus.value, 0

    def scale(self, fit: Fit) -> float:
        return float(fit.step)

    def write(self, context: SealContext, rows: Array, fit: Fit) -> Iterator[Any]:
        """Through SEAL's own encoder, which turns slots into coefficients again."""
        encoder = context.api.CKKSEncoder(context.native)
        for start in range(0, len(rows), 64):
            for slots in slots_of(rows[start : start + 64]):
                made = context.api.Plaintext()
                encoder.encode(slots.tolist(), float(fit.step), made)
                yield made

    def read(self, context: SealContext, plaintext: Any, fit: Fit) -> Array:
        """Rounded to whole numbers of steps."""
        slots = context.api.CKKSEncoder(context.native).decode_complex(plaintext)
        return np.rint(polynomial_of(np.array(slots))).astype(np.int64)


@dataclass(frozen=True)
class CkksSum(SharedKeySum):
    """Sums of real numbers within plus or minus `span` (or the terms' own reach), in 2^`precision_bits` steps or more."""

    span: float = INF
    precision_bits: int = 30  # float32 has 24 and a sign; spans are wider than most values, so a few more
    code: ClassVar[Code] = CkksCode()

    def __post_init__(self) -> None:
        check_setting(self, "span", self.span > 0, "must be above 0")
        check_setting(self, "precision_bits", 2 <= self.precision_bits <= 52, "must lie between 2 and 52")

    def fit_real(self, terms: Terms, parties: int) -> tuple[Terms, Fit]:
        """Steps between the values, as fine as the parameters carry."""
        reach = min(self.span, terms.reach)
        if reach == INF:
            raise NeedsReach("ckks")
        least = 1 << (self.precision_bits - 1)
        room = (largest_reach(modulus, parties) for modulus in MODULI)  # of which the smallest sufficient one gives its steps
        steps = min(next((most for most in room if most >= least), least), FINEST)
        steps = round(reach / terms.grid) if terms.grid else steps
        fit = cheapest(parties, steps) if 1 <= steps <= FINEST else None
        if fit is None:
            raise SumTooWide("ciphertexts of ckks", parties, f"{steps:g} steps")
        return replace(terms, reach=reach, grid=terms.grid or reach / steps), fit

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """Half a step for each party, and the rounding of float64; no error for whole numbers."""
        admitted = self.admit(terms, cohort)
        if admitted.domain is Domain.INTEGER:
            return 0.0
        parties = len(cohort.members)
        return parties * (admitted.grid / 2 + admitted.reach * 2.0**-50)
