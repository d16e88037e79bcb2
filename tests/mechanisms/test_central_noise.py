"""Noise on the opened total: one dose for all parties, none in what they send, and no claim against the opener."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.contracts import Answer, Mechanism, Needs, NoiseBy, Noised, Terms
from securetm.errors import BadSetting, NeedsIntegers, NeedsSum
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import CentralNoise
from securetm.mechanisms.mechanism_errors import NoiseOnNoise, NoiseWithoutClip
from securetm.mechanisms.quantising import FixedPoint
from securetm.testing.mechanism_laws import COHORT, InTurn, MechanismLaws, context
from securetm.testing.stated_noise import rounded_gaussian
from tests.mechanisms.noisy import BOUNDED, COUNTS, EACH, GRADIENT, REAL


@pytest.mark.parametrize("noise_multiplier", [0.5, 30.0])
class TestCentralNoise(MechanismLaws):
    distribution = staticmethod(rounded_gaussian)

    @pytest.fixture
    def mechanism(self, noise_multiplier: float) -> Mechanism:
        return CentralNoise(noise_multiplier)

    @pytest.fixture
    def before(self) -> Terms:
        return BOUNDED


@pytest.mark.parametrize(
    ("terms", "refusal"),
    [
        (COUNTS, NoiseWithoutClip),
        (REAL, NeedsIntegers),
        (EACH, NeedsSum),
        (replace(BOUNDED, needs=Needs.EACH), NeedsSum),
        (replace(BOUNDED, noised=Noised.SHARE), NoiseOnNoise),
    ],
)
def test_what_it_cannot_protect_is_refused(terms: Terms, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        CentralNoise(1.0).admit(terms, COHORT)


def test_it_says_who_adds_it_and_claims_nothing_against_them() -> None:
    mechanism = CentralNoise(1.0)
    assert mechanism.noise_by is NoiseBy.OPENER
    assert {claim.against for claim in mechanism.claims(COHORT)} == {"party", "model reader"}


def test_the_total_is_noised_on_the_grid_and_then_real_again() -> None:
    profile = InTurn((Clip(0.5), FixedPoint(), CentralNoise(2.0)))
    terms = profile.admit(GRADIENT, COHORT)
    assert terms.noised is Noised.NOT
    sent = profile.through(np.full(400, 0.125, np.float32), GRADIENT, context())
    assert set(sent.tolist()) == {round(0.125 / terms.grid)}  # what a party sends is exact
    opened = [profile.on_answer(Answer({"gradient": 3 * sent}), terms, context()).total for _ in range(20)]
    noise = np.array([total["gradient"] for total in opened if total is not None]) - 0.375
    assert abs(noise.std() / 1.0 - 1.008) < 0.06  # 8,000 draws, 7.6 standard errors
    steps = np.array([total["gradient"] for total in opened if total is not None]) / terms.grid
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert profile.parts[-1].event(terms, COHORT) == GaussianDpEvent(2.0)


def test_what_parties_noised_is_left_alone() -> None:
    mechanism, selected, answer = CentralNoise(1.0), replace(COUNTS, noised=Noised.WHOLE), Answer({"a": np.arange(3)})
    assert mechanism.admit(selected, COHORT) == selected
    assert mechanism.on_answer(answer, selected, context()) is answer
    assert mechanism.event(selected, COHORT) is None
    assert mechanism.failure_probability(selected, COHORT) == 0


def test_settings_are_checked() -> None:
    with pytest.raises(BadSetting):
        CentralNoise(0.0)
