"""The rotation: lengths stay, peaks go, every party turns alike, and whoever opens the sum turns it back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from securetm.contracts import Answer, Block, Domain, Mechanism, Needs, Noised, Terms
from securetm.errors import BadSetting, Mismatch
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.quantising import FixedPoint
from securetm.mechanisms.rotating import Rotation
from securetm.testing.mechanism_laws import COHORT, InTurn, MechanismLaws, context
from tests.mechanisms.noisy import COUNTS

REAL = Terms((Block("a", (3, 2)), Block("b", (5,))), bits=64)


class TestRotation(MechanismLaws):
    mixes = True

    @pytest.fixture(params=[{}, {"l1": 11.0, "l2": 11**0.5, "linf": 1.0}])
    def before(self, request: pytest.FixtureRequest) -> Terms:
        return replace(REAL, **request.param)

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return Rotation()


class TestRotationBetweenClipAndGrid(MechanismLaws):
    mixes = True

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return InTurn((Clip(0.8), Rotation(), FixedPoint(steps=4)))


@pytest.mark.parametrize("size", [1, 2, 3, 11, 64, 1000])
def test_lengths_stay_and_the_way_back_is_exact(size: int) -> None:
    terms = replace(REAL, layout=(Block("a", (size,)),))
    vector = np.random.default_rng(size).normal(size=size).astype(np.float32)
    turned = Rotation().on_vector(vector, terms, context())
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(vector), rel=1e-6)
    back = Rotation().on_answer(Answer({"a": turned}), terms, context()).total
    assert back is not None
    np.testing.assert_allclose(back["a"], vector, atol=1e-12)


def test_each_round_turns_otherwise_and_all_parties_alike() -> None:
    vector, other = np.arange(11.0), context(replace(COHORT, round_id=b"another"))
    once, again = (Rotation().on_vector(vector, REAL, context()) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert np.abs(Rotation().on_vector(vector, REAL, other) - once).max() > 0.1


def test_a_coarse_grid_clamps_less_of_a_peak() -> None:
    """The same narrow ring, with and without a rotation: a sum with one large coordinate survives only rotated."""
    terms = replace(REAL, layout=(Block("a", (1024,)),), bits=32)
    vector = np.zeros(1024)
    vector[3] = 4000.0

    def sent_and_opened(profile: InTurn) -> float:
        admitted = profile.admit(terms, COHORT)
        opened = profile.on_answer(Answer({"a": profile.through(vector, terms, context())}), admitted, context()).total
        assert opened is not None
        return float(np.abs(opened["a"] - vector).max())

    assert sent_and_opened(InTurn((FixedPoint(span=500.0),))) == pytest.approx(3500.0)
    assert sent_and_opened(InTurn((Rotation(), FixedPoint(span=500.0)))) < 1e-3


def test_noise_after_the_grid_is_turned_back_into_noise_of_the_same_size() -> None:
    profile = InTurn((Clip(1.0), Rotation(), FixedPoint(), GaussianNoise(1.0)))
    terms = replace(REAL, layout=(Block("a", (20_000,)),), bits=32)
    admitted = profile.admit(terms, COHORT)
    answer = profile.on_answer(Answer({"a": profile.through(np.zeros(20_000), terms, context())}), admitted, context())
    assert answer.total is not None
    assert abs(answer.total["a"].std() / 1.008 - 1) < 7 / np.sqrt(2 * 20_000)  # seven standard errors
    assert answer.deviation == pytest.approx(1.008 * len(COHORT.members) ** 0.5, rel=1e-3)  # the noise of all, in its units


@pytest.mark.parametrize("terms", [COUNTS, replace(REAL, needs=Needs.EACH), replace(REAL, ragged=True)])
def test_what_is_not_a_real_sum_passes(terms: Terms) -> None:
    vector = np.arange(11)
    assert Rotation().admit(terms, COHORT) == terms
    assert Rotation().on_vector(vector, terms, context()) is vector
    answer = Answer({"a": vector[:6].reshape(3, 2), "b": vector[6:]})
    assert terms.needs is Needs.EACH or terms.ragged or Rotation().on_answer(answer, terms, context()) is answer


def test_noise_comes_after_it() -> None:
    with pytest.raises(Mismatch, match="a share of noise must be added"):
        Rotation().admit(replace(REAL, noised=Noised.WHOLE), COHORT)


def test_behind_the_grid_it_is_refused() -> None:
    """There it would turn nothing, and turn back what was never turned."""
    with pytest.raises(BadSetting, match="behind fixed_point"):
        Rotation().admit(Terms((Block("a", (8,)),), domain=Domain.INTEGER, grid=0.5), COHORT)
