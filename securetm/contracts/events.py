"""The accountant's events: those of dp_accounting that mechanisms name, and one that it lacks. It composes nothing.

Mechanisms import it inside `event`: `securetm --help` has no use for it.
"""

from __future__ import annotations

import attrs

from securetm.extras import loaded

loaded("dp_accounting.dp_event")  # and nothing else of dp_accounting
from dp_accounting.dp_event import ComposedDpEvent as ComposedDpEvent  # noqa: E402
from dp_accounting.dp_event import DiscreteLaplaceDpEvent as DiscreteLaplaceDpEvent  # noqa: E402
from dp_accounting.dp_event import GaussianDpEvent as GaussianDpEvent  # noqa: E402
from dp_accounting.dp_event import PoissonSampledDpEvent as PoissonSampledDpEvent  # noqa: E402
from dp_accounting.dp_event import ZCDpEvent  # noqa: E402


@attrs.define(frozen=True, slots=False)
class SymmetricZCDpEvent(ZCDpEvent):  # type: ignore[misc]  # dp_accounting ships no types
    """Renyi divergence at most xi + rho x order, by noise on whole numbers that is added and symmetric about zero.

    The symmetry is what makes the divergence of a Poisson-sampled answer from an unsampled one the larger of both directions
    (Mironov, Talwar and Zhang 2019, theorem 5), so that its binomial expansion bounds both.
    """
