"""The benches run whole on a few documents, say which peers are missing, and measure what their rows say."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bench import dp as bench_dp
from lab.bench.correlated_noise import averages, least_noise
from lab.bench.sum import bench as bench_sum
from securetm.contracts import Array
from securetm.models.neural.prodlda import ProdLDA


@pytest.mark.parametrize("name", bench_dp.STEPS)
def test_each_of_our_steps_is_what_its_name_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[Array] = []
    advance = ProdLDA.advance
    monkeypatch.setattr(ProdLDA, "advance", lambda *a, **k: (sums.append(a[2]["gradient"].copy()), advance(*a, **k))[1])
    for _ in range(2):
        bench_dp._ours(name, 80, 6)()
    again = bool((sums[0] == sums[1]).all())
    length = float(np.linalg.norm(sums[0]))
    assert again == (name != bench_dp.NOISED)
    assert (length <= 6 * bench_dp.RADIUS) == (name in (bench_dp.CLIPPED, bench_dp.ROUNDED))


WORKLOADS = {
    "averages": averages(4, 0.3),
    "sums": np.tril(np.ones((4, 4))),
    "signs": np.random.default_rng(3).normal(size=(3, 4)),
    "last": averages(4, 0.5)[-1:],
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_independent_noise_attains_it_for_every_document(name: str) -> None:
    effects, rng = WORKLOADS[name], np.random.default_rng(1)
    weights = np.linalg.norm(effects, axis=0)
    matrix = np.diag(np.sqrt(weights / weights.sum()))
    assert np.linalg.norm(effects @ np.linalg.inv(matrix)) == pytest.approx(least_noise(effects))
    for _ in range(200):
        rows = rng.normal(size=(4, 5))
        assert np.linalg.norm(matrix @ (rows / np.linalg.norm(rows, axis=1, keepdims=True))) <= 1 + 1e-12


@pytest.mark.slow
def test_a_masked_sum_is_measured_phase_by_phase() -> None:
    """One message is as long as float32, and the coordinator's memory is the same for three times the parties."""
    told: list[tuple[int, int]] = []
    record = bench_sum(parties=4, length=100_000, on_progress=lambda done, total: told.append((done, total)))
    assert set(record) == {"bench", "machine", "rows", "missing"}
    rows = record["rows"]
    assert all({"case", "ours", "unit"} <= set(row) for row in rows)
    for phase in ("mask expansion", "Shamir", "set-up: deal", "round: mask", "round: unmask", "1 missing", "peak memory"):
        assert any(phase in row["case"] for row in rows)
    assert {row["of_limit"] for row in rows if "limit" in row}
    assert told == [(done, 5) for done in range(1, 6)]
    assert next(row["ours"] for row in rows if "memory, 30 parties against 10" in row["case"]) < 1.2
    sent = {row["bytes_up"] for row in rows if row["case"].startswith("round: mask, 4 parties") and "bytes_up" in row}
    assert sent == {4 * 100_000 + 184}
