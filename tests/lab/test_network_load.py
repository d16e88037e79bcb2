"""The load on a network is measured with sums that are right, and every figure that is promised is there."""

from __future__ import annotations

import pytest

from lab.bench.federation import bench

pytestmark = pytest.mark.slow  # it starts processes that import everything


def test_masked_rounds_over_the_network() -> None:
    result = bench(parties=4, length=70_000)
    first, *rest = result["rows"]
    assert first["peer"]
    assert first["ratio"] > 0
    assert {row["unit"] for row in rest} == {"rounds per minute", "MB", "MiB"}
    up = next(row["ours"] for row in rest if "to the coordinator" in row["case"])
    assert 4 * 70_000 * 4 / 1e6 < up < 1.1 * 4 * 70_000 * 4 / 1e6  # one masked vector of each party
