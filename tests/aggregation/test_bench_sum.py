"""The bench of the masked sum keeps its record's form, and its coordinator's memory does not grow with the parties."""

from __future__ import annotations

import pytest

from lab.bench.sum import bench


@pytest.mark.slow
def test_the_record_has_every_phase_and_a_limit() -> None:
    told: list[tuple[int, int]] = []
    record = bench(parties=4, length=50_000, on_progress=lambda done, total: told.append((done, total)))
    assert set(record) == {"bench", "machine", "rows", "missing"}
    assert all({"case", "ours", "unit"} <= set(row) for row in record["rows"])
    cases = [row["case"] for row in record["rows"]]
    for phase in ("mask expansion", "Shamir", "set-up: deal", "round: mask", "round: unmask", "1 missing", "peak memory"):
        assert any(phase in case for case in cases)
    assert {row["of_limit"] for row in record["rows"] if "limit" in row}
    assert told == [(done, 5) for done in range(1, 6)]


@pytest.mark.slow
def test_the_coordinators_memory_is_the_same_for_three_times_the_parties() -> None:
    growth = [row["ours"] for row in bench(parties=2, length=100_000)["rows"] if "memory, 30 parties against 10" in row["case"]]
    assert growth[0] < 1.2


@pytest.mark.slow
def test_one_message_is_as_long_as_float32() -> None:
    rows = bench(parties=3, length=20_000)["rows"]
    sent = [row["bytes_up"] for row in rows if row["case"].startswith("round: mask") and "bytes_up" in row]
    assert set(sent) == {4 * 20_000 + 184}
