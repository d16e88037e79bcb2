"""Discrete Laplace noise: pure epsilon for l1-bounded counts, with the worst case in one coordinate."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

from securetm.contracts import Array, Mechanism, Noised, Terms
from securetm.errors import BadSetting, NeedsIntegers
from securetm.mechanisms.laplace_noise import DiscreteLaplaceNoise
from securetm.mechanisms.mechanism_errors import NoiseOnNoise, NoiseWithoutClip
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, context
from securetm.testing.stated_noise import discrete_laplace
from tests.mechanisms.noisy import BOUNDED, COUNTS, REAL


@pytest.mark.parametrize("epsilon", [0.02, 1.0, 4.0])
class TestDiscreteLaplaceNoise(MechanismLaws):
    distribution = staticmethod(discrete_laplace)

    @pytest.fixture
    def mechanism(self, epsilon: float) -> Mechanism:
        return DiscreteLaplaceNoise(epsilon)

    @pytest.fixture
    def before(self) -> Terms:
        return BOUNDED


@pytest.mark.parametrize(
    ("terms", "refusal"),
    [
        (COUNTS, NoiseWithoutClip),
        (replace(REAL, l1=3.0), NeedsIntegers),
        (replace(BOUNDED, noised=Noised.SHARE), NoiseOnNoise),
        (replace(BOUNDED, l1=0.5), BadSetting),
    ],
)
def test_what_it_cannot_protect_is_refused(terms: Terms, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        DiscreteLaplaceNoise(1.0).admit(terms, COHORT)


def test_selected_words_pass_and_spend_nothing_here() -> None:
    selected, sums, mechanism = replace(COUNTS, noised=Noised.WHOLE), np.arange(11), DiscreteLaplaceNoise(1.0)
    assert mechanism.admit(selected, COHORT) == selected
    assert mechanism.event(selected, COHORT) is None
    assert mechanism.on_vector(sums, selected, context()) is sums
    assert mechanism.failure_probability(selected, COHORT) == 0


def losses(scale: float, shifts: tuple[int, ...]) -> tuple[Array, Array]:
    """Masses with and without the shifts, over all combinations of values in which anything happens."""
    far = int(60 * scale)
    with_it = without = np.ones(1)
    for shift in shifts:
        values = np.arange(-far, far + shift + 1)
        clean, moved = (np.exp(-np.abs(values - by) / scale) * np.tanh(1 / (2 * scale)) for by in (0, shift))
        without, with_it = np.multiply.outer(without, clean).ravel(), np.multiply.outer(with_it, moved).ravel()
    return with_it, without


def delta(shifts: tuple[int, ...], scale: float, epsilon: float) -> float:
    with_it, without = losses(scale, shifts)
    return float(np.maximum(with_it - np.exp(epsilon) * without, 0).sum())


@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_one_coordinate_is_the_worst_case(scale: float) -> None:
    for epsilon in np.linspace(0, 4 / scale, 17):
        chain = [delta(shifts, scale, epsilon) for shifts in ((4,), (3, 1), (2, 2))]
        assert all(more >= less - 1e-12 for more, less in pairwise(chain))
        assert delta((2,), scale, epsilon) >= delta((1, 1), scale, epsilon) - 1e-12


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_the_event_is_never_below_the_truth(rate: float) -> None:
    mechanism, terms = DiscreteLaplaceNoise(2.0), replace(BOUNDED, l1=3.7, sampling=rate)
    event: Any = mechanism.event(mechanism.admit(terms, COHORT), COHORT)
    accountant = PLDAccountant()
    accountant.compose(event)
    with_it, without = losses(3.7 / 2.0, (3,))
    mixed = rate * with_it + (1 - rate) * without
    for epsilon in (0.05, 0.2, 0.5, 1.0, 1.5):
        truth = max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in ((mixed, without), (without, mixed)))
        assert accountant.get_delta(epsilon) >= truth - 1e-12
    assert accountant.get_epsilon(1e-12) <= 1.001 * np.log1p(rate * np.expm1(3 / 1.85))


def test_settings_are_checked() -> None:
    with pytest.raises(BadSetting):
        DiscreteLaplaceNoise(-1.0)
