"""Shamir's secret sharing over the prime 2^256 + 297: any 32 bytes are a secret. It checks no share; commitments do.

Many secrets are dealt at once: one Horner pass over integers that carry the same coefficient of every polynomial side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from securetm.contracts import Entropy

PRIME = 2**256 + 297
SHARE = 33  # bytes of one share
_DRAWN = 48  # bytes for one coefficient: reduced modulo the prime it is uniform to within 2^-127


def deal(secrets: Sequence[bytes], points: Sequence[int], threshold: int, entropy: Entropy) -> list[list[int]]:
    """Run by the dealer: one list for each point, with that holder's share of every secret. Points are 1, 2, ..."""
    drawn = entropy.bytes(_DRAWN * len(secrets) * (threshold - 1))
    coefficients = [
        [int.from_bytes(drawn[at : at + _DRAWN], "big") % PRIME for at in range(start, start + _DRAWN * len(secrets), _DRAWN)]
        for start in range(0, len(drawn), _DRAWN * len(secrets) or 1)
    ]
    whole = [[int.from_bytes(secret, "big") for secret in secrets], *coefficients]  # whole[i]: the coefficients of x^i
    return _evaluate(whole, points)


def _evaluate(whole: Sequence[Sequence[int]], points: Sequence[int]) -> list[list[int]]:
    """Every polynomial at every point. No slot can spill into the next: it is as wide as the largest value."""
    width = (257 + len(whole) * (max(points).bit_length() + 1)) // 8 + 1
    packed = [int.from_bytes(b"".join(value.to_bytes(width, "big") for value in row), "big") for row in reversed(whole)]
    size, shares = len(whole[0]) * width, []
    for point in points:
        total = 0
        for coefficient in packed:
            total = total * point + coefficient
        row = total.to_bytes(size, "big")
        shares.append([int.from_bytes(row[at : at + width], "big") % PRIME for at in range(0, size, width)])
    return shares


@lru_cache(maxsize=256)
def weights_at_zero(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's coefficients, the same for every secret whose shares lie at these points. One inversion in all."""
    tops, bottoms = [], []
    for one in points:
        top = bottom = 1
        for other in points:
            if other != one:
                top, bottom = top * other, bottom * (other - one)
        tops.append(top)
        bottoms.append(bottom % PRIME)
    return tuple(top * inverse % PRIME for top, inverse in zip(tops, _inverses(bottoms), strict=True))


def _inverses(values: Sequence[int]) -> list[int]:
    before = [1]
    for value in values:
        before.append(before[-1] * value % PRIME)
    inverse, found = pow(before[-1], -1, PRIME), []
    for value, product in zip(reversed(values), reversed(before[:-1]), strict=True):
        found.append(inverse * product % PRIME)
        inverse = inverse * value % PRIME
    return found[::-1]


def combine(points: tuple[int, ...], shares: Sequence[int]) -> int:
    """The value at zero. It is the secret only if every share is true; a value of 2^256 or more is none."""
    return sum(weight * share for weight, share in zip(weights_at_zero(points), shares, strict=True)) % PRIME
