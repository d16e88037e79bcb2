"""Which modulus carries a sum, and in how many digits: public arithmetic that all roles repeat. It touches no ciphertext.

One ring for all: polynomials of 2048 coefficients, one prime modulus of 40, 48 or 54 bits. The homomorphic encryption
standard allows 54 bits there at 128-bit security with ternary secrets; the smallest that holds the sum is the cheapest.
"""

from __future__ import annotations

import numpy as np

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Array, Block, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import SumTooWide

DEGREE = 2048  # coefficients of a ciphertext's polynomials, and values that one ciphertext carries
SEED = 64  # bytes that stand for the random half of a fresh ciphertext
NOISE = 22  # one fresh ciphertext: |e| <= 21, a centred binomial of 42 coins, and at most 1 of rounding
LARGEST = 2**63  # a sum has to fit a 64-bit integer
DIGITS = (1, 2, 3)


@dataclass(frozen=True)
class Modulus:
    """A prime that is 1 modulo 4096, and the bytes that one of its residues takes."""

    value: int
    bits: int
    width: int


MODULI = (Modulus(1099511590913, 40, 5), Modulus(281474976694273, 48, 6), Modulus(18014398509404161, 54, 7))


@dataclass(frozen=True)
class Fit:
    """How whole numbers of at most `reach` travel, so that the sum over `parties` of them comes out exactly.

    A number is written in `digits` balanced digits of `shift` bits; every digit goes through a ciphertext of its own.
    """

    modulus: Modulus
    parties: int
    reach: int
    digits: int = 1
    shift: int = 0

    @property
    def digit_reach(self) -> int:
        """The largest absolute value of one party's digit."""
        if self.digits == 1:
            return self.reach
        half = 1 << (self.shift - 1)
        top = -(-(self.reach + half * (self.digits - 1)) >> (self.shift * (self.digits - 1))) + 1
        return max(half, top)

    @property
    def values(self) -> int:
        """How many values the sum of one digit can take: BFV's plaintext modulus."""
        return 2 * self.parties * self.digit_reach + 1

    @property
    def step(self) -> int:
        """The distance of two neighbouring values in CKKS: a power of two that drowns the noise of all parties."""
        return 1 << (64 * self.parties - 1).bit_length()

    @property
    def holds(self) -> bool:
        """Whether noise can never reach half a step: 4 x the noise of all parties between two values, or more."""
        room = max(4 * NOISE * self.parties, self.step)
        return self.values * room <= self.modulus.value and self.parties * self.reach < LARGEST

    def ciphertexts(self, size: int) -> int:
        """How many ciphertexts carry `size` values."""
        return self.digits * -(-size // DEGREE)

    def fresh_bytes(self, size: int) -> int:
        """Bytes of one party's ciphertexts: one polynomial each and a seed for the other."""
        return self.ciphertexts(size) * (DEGREE * self.modulus.width + SEED)

    def sum_bytes(self, size: int) -> int:
        """Bytes of the sum: both polynomials, because the sum of random halves has no seed."""
        return self.ciphertexts(size) * 2 * DEGREE * self.modulus.width


def cheapest(parties: int, reach: int) -> Fit | None:
    """The fit with the fewest bytes per value, if there is one."""
    bits = reach.bit_length() + 1
    options = (Fit(m, parties, reach, digits, -(-bits // digits) if digits > 1 else 0) for m in MODULI for digits in DIGITS)
    fitting = [fit for fit in options if fit.holds]
    return min(fitting, key=lambda fit: (fit.digits * fit.modulus.width, fit.digits), default=None)


def fit_whole(name: str, terms: Terms, parties: int) -> tuple[Terms, Fit]:
    """The fit of whole numbers: of their promised reach, or, where nobody bounded counts, of as much as the width can sum."""
    least = int(min(terms.reach, ((1 << (terms.bits - 1)) - 1) // parties))
    nearest = float(least)  # terms keep a float, and all roles must read the same
    reach = int(nearest) if nearest <= least else int(np.nextafter(nearest, 0.0))
    fit = cheapest(parties, reach) if reach >= 1 else None
    if fit is None:
        raise SumTooWide(f"ciphertexts of {name}", parties, f"{terms.reach:g}")
    return replace(terms, reach=float(reach)), fit


def largest_reach(modulus: Modulus, parties: int) -> int:
    """The largest reach that one digit under this modulus holds."""
    step = max(4 * NOISE * parties, Fit(modulus, parties, 1).step)
    return max(0, (modulus.value // step - 1) // (2 * parties))


def to_digits(numbers: Array, fit: Fit) -> Array:
    """Polynomials, one row each: the lowest digits of all numbers first, each digit filled up with zeros."""
    rows = []
    for _ in range(fit.digits - 1):
        half = 1 << (fit.shift - 1)
        low = ((numbers + half) & ((1 << fit.shift) - 1)) - half
        rows.append(_in_polynomials(low))
        numbers = (numbers - low) >> fit.shift
    return np.concatenate([*rows, _in_polynomials(numbers)])


def from_digits(polynomials: Array, fit: Fit, size: int) -> Array:
    """The numbers behind summed digits."""
    total = np.zeros(size, dtype=np.int64)
    for place, digit in enumerate(np.split(polynomials, fit.digits)):
        total += digit.ravel()[:size] << (fit.shift * place)
    return total


def real_or_whole(total: Array, layout: tuple[Block, ...], grid: float) -> dict[str, Array]:
    """The summed whole numbers in the units of the question, block by block."""
    return blocks_of(total * grid if grid else total, Terms(layout))


def _in_polynomials(numbers: Array) -> Array:
    rows = np.zeros(-(-len(numbers) // DEGREE) * DEGREE, dtype=np.int64)
    rows[: len(numbers)] = numbers
    return rows.reshape(-1, DEGREE)
