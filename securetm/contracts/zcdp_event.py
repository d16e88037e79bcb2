"""The accountant's events that dp_accounting lacks, in its own terms. It composes nothing; that is the accounting's work.

Importing it imports dp_accounting, which takes longer than `securetm --help` may: mechanisms do so inside `event`.
"""

from __future__ import annotations

import attrs
from dp_accounting import ZCDpEvent


@attrs.define(frozen=True, slots=False)
class SymmetricZCDpEvent(ZCDpEvent):  # type: ignore[misc]  # dp_accounting ships no types
    """Renyi divergence at most xi + rho x order, by noise on whole numbers that is added and symmetric about zero.

    The symmetry is what makes the divergence of a Poisson-sampled answer from an unsampled one the larger of both directions
    (Mironov, Talwar and Zhang 2019, theorem 5), so that its binomial expansion bounds both.
    """
