"""What a party reads out of how the shared weights move, and a coordinator out of what a party trained alone."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.auditing.attacks.update_inversion import gradient_behind
from securetm.models.gradients import OPTIMISERS, optimiser_moments, optimiser_step


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_the_gradient_behind_a_step_is_within_its_error(optimiser: str) -> None:
    """The project's own optimiser makes the step."""
    rng = np.random.default_rng(8)
    weights = rng.normal(0, 0.1, 4000).astype(np.float32)
    gradient = (rng.normal(size=4000) * 10.0 ** rng.uniform(-6, -3, 4000)).astype(np.float32)
    after, _ = optimiser_step(weights, gradient, 1.0, optimiser_moments(optimiser, weights), 1, 5e-3, 0.9)
    undone = gradient_behind(weights, after, optimiser, 5e-3)
    off = np.abs(undone.values - gradient)
    assert (off <= 3 * undone.errors).mean() > 0.99
    assert np.sum(undone.errors < 0.1 * np.abs(gradient)) > 1000
    assert undone.blur == np.median(undone.errors[undone.values != 0] / np.abs(undone.values[undone.values != 0]))
