"""Whole Gaussian noise at a party: as wide as its bound asks for, on the grid, and accounted as a Gaussian."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.contracts import INF, Domain, Mechanism, Noised, Terms, Unit
from securetm.errors import BadSetting, NeedsIntegers
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.mechanism_errors import NoiseOnNoise, NoiseWithoutClip
from securetm.mechanisms.quantising import FixedPoint
from securetm.mechanisms.sampling import PoissonSample
from securetm.testing.mechanism_laws import COHORT, InTurn, MechanismLaws, context
from securetm.testing.stated_noise import rounded_gaussian
from tests.mechanisms.noisy import BOUNDED, COUNTS, GRADIENT, REAL


@pytest.mark.parametrize("noise_multiplier", [0.4, 1.0, 60.0])
class TestGaussianNoise(MechanismLaws):
    distribution = staticmethod(rounded_gaussian)

    @pytest.fixture
    def mechanism(self, noise_multiplier: float) -> Mechanism:
        return GaussianNoise(noise_multiplier)

    @pytest.fixture
    def before(self) -> Terms:
        return BOUNDED


@pytest.mark.parametrize(
    ("terms", "refusal"),
    [
        (COUNTS, NoiseWithoutClip),
        (REAL, NeedsIntegers),
        (replace(REAL, l2=INF), NoiseWithoutClip),
        (replace(BOUNDED, noised=Noised.SHARE), NoiseOnNoise),
    ],
)
def test_what_it_cannot_protect_is_refused(terms: Terms, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        GaussianNoise(1.0).admit(terms, COHORT)


def test_selected_words_pass_and_spend_nothing_here() -> None:
    selected, sums = replace(COUNTS, noised=Noised.WHOLE), np.arange(11)
    mechanism = GaussianNoise(1.0)
    assert mechanism.admit(selected, COHORT) == selected
    assert mechanism.event(selected, COHORT) is None
    assert mechanism.failure_probability(selected, COHORT) == 0
    assert mechanism.on_vector(sums, selected, context()) is sums


def test_the_event_follows_from_the_terms_of_the_whole_profile() -> None:
    noise = GaussianNoise(1.25)
    profile = InTurn((PoissonSample(0.02), Clip(0.5), FixedPoint(headroom=0.05), noise))
    admitted = profile.admit(replace(GRADIENT, batch=16), COHORT)
    assert noise.event(admitted, COHORT) == PoissonSampledDpEvent(0.02, GaussianDpEvent(1.25))
    assert admitted.domain is Domain.INTEGER
    assert admitted.l2 == pytest.approx(256 * 20 + 2 * 20)
    assert admitted.deviation == pytest.approx(1.25 * admitted.l2)
    assert MaskedSum().admit(admitted, replace(COHORT, threshold=4)).bits == 32
    assert noise.failure_probability(admitted, COHORT) < 1e-30


def test_the_noise_comes_out_in_the_units_of_the_clip() -> None:
    profile: Any = InTurn((Clip(0.5), FixedPoint(headroom=0.05), GaussianNoise(1.0)))
    terms = profile.admit(GRADIENT, COHORT)
    drawn = np.concatenate([profile.through(np.zeros(400, np.float32), GRADIENT, context()) for _ in range(30)]) * terms.grid
    assert (
        abs(drawn.std() / 0.5 - 1.008) < 0.05
    )  # 12,000 draws, 7.7 standard errors; 0.8 % more than the clip asks for: what rounding may add to a row


def test_it_holds_against_everybody_else_together() -> None:
    made = {(c.against, c.colluding, c.unit) for c in GaussianNoise(1.0).claims(COHORT)}
    assert made == {
        (who, n, unit)
        for unit in (Unit.DOCUMENT, Unit.PERSON)
        for who, n in (("coordinator", 3), ("model reader", 3), ("party", 2))
    }


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), INF])
def test_settings_are_checked(value: float) -> None:
    with pytest.raises(BadSetting):
        GaussianNoise(value)
