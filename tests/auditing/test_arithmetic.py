"""The attacks' arithmetic on numbers that are known beforehand: cones, bags of words, whole counts behind shares, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securetm.auditing.parts.gradients import extreme_rays, parallel, readings
from securetm.auditing.parts.shares import counts_behind, scale_of


def inputs_of(counts: np.ndarray) -> np.ndarray:
    logs = np.log1p(counts.astype(float))
    return logs / np.linalg.norm(logs)


# ---- bags of words -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40), max_size=59).map(lambda counts: [*counts, 1]))
def test_counts_come_back_from_the_networks_inputs(counts: list[int]) -> None:
    whole = np.array(counts)
    assert (readings(inputs_of(whole))[0] == whole).all()


# ---- cones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_corners_of_a_cone_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rays = rng.standard_normal((12, 40))
    mixed = rng.random((100, 12)) * (rng.random((100, 12)) < 0.3)
    rows = np.vstack([mixed[mixed.any(axis=1)], 3 * np.eye(12)]) @ rays
    found = extreme_rays(rng.permutation(rows), 12)
    likeness = found @ (rays / np.linalg.norm(rays, axis=1, keepdims=True)).T
    assert len(found) == 12
    assert np.allclose(np.sort(likeness.argmax(axis=1)), np.arange(12))
    assert np.allclose(likeness.max(axis=1), 1.0)


def test_parallel_rows_are_put_together_and_others_are_not() -> None:
    rng = np.random.default_rng(1)
    one, other, third = rng.standard_normal((3, 30))
    rows = np.array([one, 2 * one, other, 0.5 * one, third, 3 * other, np.zeros(30)])
    groups = parallel(rows, np.full(7, 1e-6))
    assert sorted(map(sorted, (group.tolist() for group in groups))) == [[0, 1, 3], [2, 5]]
    assert parallel(rows, np.full(7, np.inf)) == []


# ---- whole counts behind shares ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(10))
def test_a_normalised_row_gives_its_counts_back(kind: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 20.0, 800))
    found = counts_behind((counts / counts.sum()).astype(kind))
    assert found is not None
    assert (found == counts).all()


def test_the_scale_of_noisy_counts_is_found_by_its_line() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(12.0, 1500)
    total = counts.sum()
    near, strong, _ = scale_of((counts + rng.laplace(0, 1 / 8, 1500)) / total, 0.5 * total, 2.0 * total)
    assert near == pytest.approx(total, rel=1e-3)
    assert strong == pytest.approx(1 / (1 + (2 * np.pi / 8) ** 2), abs=0.05)
    _, faint, _ = scale_of((counts + rng.laplace(0, 1.0, 1500)) / total, 0.5 * total, 2.0 * total)
    assert faint < 0.2
