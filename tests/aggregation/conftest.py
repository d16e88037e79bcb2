"""Federations of five behind masks, with and without signed lists of survivors."""

from __future__ import annotations

import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from tests.aggregation.played import Played, names

from .tampering import ROUNDS, N


@pytest.fixture
def played() -> Played:
    return Played(MaskedSum(), names(N)).prepare(ROUNDS)


@pytest.fixture
def careful() -> Played:
    return Played(MaskedSum(consistency=True), names(N)).prepare(ROUNDS)
