"""The measurement of a DP-SGD step runs whole on a small network, and what was committed keeps its bars."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.bench import dp as bench_dp
from securetm.contracts import Array
from securetm.models.neural.prodlda import ProdLDA

COMMITTED = Path(lab.__file__).parent / "results" / "bench-dp.json"


def test_it_measures_ours_beside_opacus(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opacus")
    monkeypatch.setattr(bench_dp, "TURNS", 2)
    monkeypatch.setattr(bench_dp, "measurable", lambda: False)  # processes of their own would each compile anew
    told: list[tuple[int, int]] = []
    result = bench_dp.bench(on_progress=lambda done, total: told.append((done, total)), words=80, batch=6)
    assert told[-1] == (14, 14)
    assert result["missing"] == ["peak memory: only on Linux"]
    peers = [row["peer"] for row in result["rows"]]
    assert peers == ["our own step without privacy"] * 3 + [bench_dp.ALONE, "Opacus hooks", "Opacus ghost clipping"]
    assert all(row["ours"] > 0 and row["theirs"] > 0 for row in result["rows"])


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


def test_the_committed_steps_keep_their_bars() -> None:
    rows = json.loads(COMMITTED.read_text("utf-8"))["rows"]
    bound = [row for row in rows if "limit" in row]
    assert len(bound) == 6
    assert all(row["of_limit"] <= 1 for row in bound)
    against_opacus = [row for row in rows if row["peer"].startswith("Opacus")]
    assert len(against_opacus) == 4
    assert all(row["ratio"] > 1 for row in against_opacus)
