"""The least noise of a plan is searched for once in each process of the tests, and not again for equal plans. It tests nothing.

A search composes privacy losses dozens of times, and most plans of tests repeat a few. Tests of the search itself call it.
What was composed and asked of it is remembered longer than a user's process does, for the same reason. So are the docstrings
that trials are made of: a dozen files of tests make one, and to read them takes two seconds.
"""

from __future__ import annotations

from functools import cache, lru_cache, wraps
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Every test of this process uses it. A process that only hands tests out to others loads nothing for it."""
    if config.getoption("numprocesses", None):
        return
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from securetm.accounting import bounds, losses
    from securetm.federation.budget import prices as paying
    from securetm.trial import files

    search, found = paying._least_noise, dict[tuple[bytes, bytes, int, float], float]()

    @wraps(search)
    def kept(agreement: Any, parties: int) -> float:
        """The noise that was found for a plan with the same content, or that is found now."""
        exactly = agreement.digest, agreement.profile.digest, parties, losses.FINEST
        if exactly not in found:
            found[exactly] = search(agreement, parties)
        return found[exactly]

    paying._least_noise = kept
    files.some_docstrings = cache(files.some_docstrings)
    losses._single, losses._repeated = (lru_cache(64)(one.__wrapped__) for one in (losses._single, losses._repeated))
    losses.composed = bounds.composed = lru_cache(64)(losses.composed.__wrapped__)
    for name in ("get_epsilon_for_delta", "get_delta_for_epsilon"):
        setattr(PrivacyLossDistribution, name, _remembering(getattr(PrivacyLossDistribution, name)))


def _remembering(asked: Any) -> Any:
    """A question to a distribution that it answers once for each number."""

    @wraps(asked)
    def answer(distribution: Any, number: Any) -> Any:
        known = vars(distribution).setdefault(f"_{asked.__name__}", {})
        if not isinstance(number, float):
            return asked(distribution, number)
        if number not in known:
            known[number] = asked(distribution, number)
        return known[number]

    return answer
