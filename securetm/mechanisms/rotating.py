"""A random rotation of real vectors before rounding, and its inverse after. It protects nothing, since it is public.

It helps where a few coordinates of a sum are much larger than the rest: rotated, they are all about as large, so fewer values
are clamped and a coarser grid will do (fewer bits). Where the ring is wide enough for the sum as it is, it only costs time.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_256
from typing import Any, ClassVar

import numpy as np

from securetm.answers.clipped_sum import blocks_of
from securetm.compiled import njit
from securetm.contracts import INF, Answer, Array, Cohort, Domain, Mechanism, Needs, Noised, RoundContext, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting
from securetm.mechanisms.quantising import noise_before_rounding


@dataclass(frozen=True)
class Rotation(Mechanism):
    """Signs that follow from the round's public name, then a Walsh-Hadamard transform, in blocks of powers of two.

    Lengths stay as they are, so it belongs between the clip and the grid. What one coordinate may hold does change: up to the
    whole length of a row.
    """

    mixes: ClassVar[bool] = True

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same l2 bound, and the bounds on coordinates that follow from it."""
        if terms.grid > 0:  # what was not turned before the grid must not be turned back behind it
            raise BadSetting("the profile", "rotation", "behind fixed_point", "turns nothing there and belongs before the grid")
        if not _turns(terms):
            return terms
        if terms.noised is not Noised.NOT:
            raise noise_before_rounding()
        reach = INF if terms.reach == INF else terms.reach * terms.size**0.5
        return replace(terms, linf=terms.l2, l1=terms.l2 * terms.size**0.5, reach=reach)

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party: rotates its sum, which is the sum of the rotated rows."""
        if not _turns(terms):
            return vector
        turned = np.asarray(vector, dtype=np.float64) * _signs(context.cohort.round_id, len(vector))
        _transform(turned)
        return turned

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: applies the transform again, and then the signs."""
        if answer.total is None or not (_turns(terms) or terms.grid > 0):  # whole numbers of real origin were turned
            return answer
        flat: Any = np.concatenate([np.asarray(block, dtype=np.float64).ravel() for block in answer.total.values()])
        _transform(flat)
        flat *= _signs(context.cohort.round_id, len(flat))
        return replace(answer, total=blocks_of(flat, replace(terms, ragged=False)))


def _turns(terms: Terms) -> bool:
    return terms.domain is Domain.REAL and terms.needs is Needs.SUM and not terms.ragged


@lru_cache(maxsize=2)
def _signs(name: bytes, size: int) -> Array:
    """A public sign for each coordinate, from the round id."""
    bits = np.unpackbits(np.frombuffer(shake_256(b"rotation " + name).digest(-(-size // 8)), dtype=np.uint8))[:size]
    return 1.0 - 2.0 * bits


@njit(cache=True)
def _transform(values: Array) -> None:
    """In place: transforms the largest block of 2^k values, then the rest likewise. Each block keeps its l2 norm."""
    start = 0
    while start < len(values):
        size = 1
        while 2 * size <= len(values) - start:
            size *= 2
        half = 1
        while half < size:
            for first in range(start, start + size, 2 * half):
                for i in range(first, first + half):
                    left, right = values[i], values[i + half]
                    values[i], values[i + half] = left + right, left - right
            half *= 2
        norm = np.sqrt(size)
        for i in range(start, start + size):  # cell by cell: to assign a slice takes seconds to compile
            values[i] /= norm
        start += size
