"""The BFV sum: whole numbers encrypted by the parties, added by a coordinator that reads nothing, opened by the parties. Exact.

One secret key serves all parties: ONE party and the coordinator together read everything. Masked sums have no such weakness.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sum import SharedKeySum
from securetm.aggregation.homomorphic.parameters import DEGREE, Fit
from securetm.aggregation.homomorphic.seal_library import Code, SealContext, memory_file
from securetm.contracts import Array
from securetm.data_classes import dataclass


class BfvCode:
    """A whole number is one coefficient modulo t; nothing is ever multiplied, so no slots are needed."""

    name = "bfv"
    ntt = False

    def context_key(self, fit: Fit) -> tuple[str, int, int]:
        """The plaintext modulus is the number of values that the sum can take."""
        return "BFV", fit.modulus.value, fit.values

    def scale(self, fit: Fit) -> float:
        return 1.0

    def write(self, context: SealContext, rows: Array, fit: Fit) -> Iterator[Any]:
        """Negative numbers count down from t."""
        with memory_file() as using:
            for row in rows % fit.values:
                yield context.plaintext(row, using)

    def read(self, context: SealContext, plaintext: Any, fit: Fit) -> Array:
        """The upper half of 0 .. t - 1 is negative."""
        plaintext.resize(DEGREE)
        with memory_file() as using:
            found = context.coefficients(plaintext, using).astype(np.int64)
        return np.where(found > fit.values // 2, found - fit.values, found)


@dataclass(frozen=True)
class BfvSum(SharedKeySum):
    """Exact sums of whole numbers; the default for counts."""

    code: ClassVar[Code] = BfvCode()
