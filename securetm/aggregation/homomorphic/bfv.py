"""The BFV sum: whole numbers encrypted by the parties, added by a coordinator that reads nothing, opened by the parties. Exact.

One secret key serves all parties: ONE party and the coordinator together read everything. Masked sums have no such weakness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from securetm.aggregation.homomorphic.parameters import DEGREE, Fit, cheapest
from securetm.aggregation.homomorphic.seal_library import Code, SealContext, memory_file
from securetm.aggregation.homomorphic.shared_key_sum import SharedKeySum
from securetm.contracts import Array, Cohort, Domain, Needs, Terms
from securetm.errors import NeedsIntegers, NeedsSum, SumTooWide


class BfvCode:
    """A whole number is one coefficient modulo t; nothing is ever multiplied, so no slots are needed."""

    name = "bfv"
    ntt = False

    def context_key(self, fit: Fit) -> tuple[str, int, int]:
        """The plaintext modulus is the number of values that the sum can take."""
        return "BFV", fit.modulus.value, fit.values

    def scale(self, fit: Fit) -> float:
        """BFV has none."""
        del fit
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


def fit_whole(name: str, terms: Terms, parties: int) -> tuple[Terms, Fit]:
    """Whole numbers: those of promised reach fit or are refused; of counts nobody bounded, as much as the width can sum."""
    width = ((1 << (terms.bits - 1)) - 1) // parties
    reach = _as_float(int(min(terms.reach, width)))
    fit = cheapest(parties, reach) if reach >= 1 else None
    if fit is None:
        raise SumTooWide(f"ciphertexts of {name}", parties, f"{terms.reach:g}")
    return replace(terms, reach=float(reach)), fit


def _as_float(reach: int) -> int:
    """The largest whole number up to the reach that a float holds: the terms keep a float, and all roles must read the same."""
    nearest = float(reach)
    return int(nearest) if nearest <= reach else int(np.nextafter(nearest, 0.0))


@dataclass(frozen=True)
class BfvSum(SharedKeySum):
    """Exact sums of whole numbers; the default for counts."""

    code: ClassVar[Code] = BfvCode()

    def fit(self, terms: Terms, cohort: Cohort) -> tuple[Terms, Fit]:
        """The admitted terms, and the parameters that every role derives from them."""
        if terms.needs is not Needs.SUM or terms.ragged:
            raise NeedsSum("bfv")
        if terms.domain is not Domain.INTEGER:
            raise NeedsIntegers("bfv")
        return fit_whole("bfv", terms, len(cohort.members))

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """None."""
        del terms, cohort
        return 0.0
