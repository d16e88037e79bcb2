"""Each law of mechanisms catches the fault it is there for, put into a real mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.contracts import INF, Answer, Array, Cohort, Mechanism, RoundContext, Terms
from securetm.entropy import OperatingSystem, Seeded
from securetm.mechanisms.clipping import BoundedCounts, Clip, at_most
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.mechanisms.laplace_noise import DiscreteLaplaceNoise
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.quantising import FixedPoint
from securetm.mechanisms.rotating import Rotation
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, discrete_laplace, rounded_gaussian, skellam
from securetm.mechanisms.sampling import PoissonSample, ShuffledBatches
from securetm.testing import mechanism_laws, stated_noise
from securetm.testing.mechanism_laws import InTurn, MechanismLaws, each_terms, integer_terms

REAL = replace(integer_terms(), domain=each_terms().domain)
BOUNDED = integer_terms(l1=11.0, l2=11**0.5, linf=1.0)


class TestShuffledBatches(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return ShuffledBatches()


# ---- mutants -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClipsTooLate(Clip):
    """States one radius and clips to another."""

    def row_radius(self, terms: Terms) -> float:
        return 1.01 * self.radius


@dataclass(frozen=True)
class ClipsCoordinates(Clip):
    """Cuts each coordinate to the radius, and calls that the length."""

    def row_radius(self, terms: Terms) -> float:
        return INF

    def on_rows(self, rows: Any, terms: Terms) -> Any:
        return rows.clip(-self.radius, self.radius) if isinstance(rows, np.ndarray) else rows


@dataclass(frozen=True)
class ClipsTheBatch(Clip):
    """Scales all rows by their common mean length: one outlier changes everybody's row."""

    def on_rows(self, rows: Any, terms: Terms) -> Any:
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return dense / max(1.0, float(np.linalg.norm(dense, axis=1).mean()))


@dataclass(frozen=True)
class ForgetsSmallPrint(Clip):
    """States an l1 bound that only holds for one coordinate."""

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(super().admit(terms, cohort), l1=self.radius)


@dataclass(frozen=True)
class HalfTheNoise(DiscreteLaplaceNoise):
    """Draws at half the scale that its terms state."""

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector + discrete_laplace(terms.l1 / self.epsilon / 2).draw(context.entropy, len(vector))


@dataclass(frozen=True)
class RepeatedNoise(DiscreteLaplaceNoise):
    """Always the same noise, which two questions cancel."""

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return super().on_vector(vector, terms, replace(context, entropy=Seeded(bytes(32), unsafe=True)))


@dataclass(frozen=True)
class Loosened(Clip):
    """Forgets a tighter bound that was there before."""

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(terms, l2=self.radius)


@dataclass(frozen=True)
class NoEvent(DiscreteLaplaceNoise):
    """Noise that no accountant ever hears of."""

    def event(self, terms: Terms, cohort: Cohort) -> None:
        return None


@dataclass(frozen=True)
class WithReplacement(Clip):
    """Draws a document more than once, so that its row is in the sum more than once."""

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return documents.select(np.zeros(len(documents), dtype=np.int64))


@dataclass(frozen=True)
class RateOnPaper(PoissonSample):
    """States a sampling rate and takes every document."""

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return documents


@dataclass(frozen=True)
class SharedSeed(PoissonSample):
    """Draws at the right rate, the same documents every time."""

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return super().on_documents(documents, terms, replace(context, entropy=Seeded(bytes(32), unsafe=True)))


@dataclass(frozen=True)
class CountsByPlace(BoundedCounts):
    """Chooses what to keep of a row by where the row stands: one row less, and all others change."""

    def on_rows(self, rows: Any, terms: Terms) -> Any:
        dense = np.array(rows.toarray() if not isinstance(rows, np.ndarray) else rows)
        rolled = np.array([np.roll(at_most(np.roll(row, i)[None], self.most, self.each)[0], -i) for i, row in enumerate(dense)])
        return rolled.reshape(dense.shape)


@dataclass(frozen=True)
class ExactGrid(FixedPoint):
    """Forgets that rounding moves a row, so the noise after it is scaled to the length from before."""

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        admitted = super().admit(terms, cohort)
        return replace(admitted, l1=terms.l1 / admitted.grid, l2=terms.l2 / admitted.grid, linf=terms.linf / admitted.grid)


@dataclass(frozen=True)
class HalfTheGaussian(GaussianNoise):
    """Draws half of what it states."""

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector + rounded_gaussian(self.noise_multiplier * terms.l2 / 2).draw(context.entropy, len(vector))


@dataclass(frozen=True)
class NoRoom(GaussianNoise):
    """Forgets that noise makes a vector larger."""

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(super().admit(terms, cohort), reach=terms.reach)


@dataclass(frozen=True)
class ATenthLess(GaussianNoise):
    """Draws a tenth less than it states."""

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector + rounded_gaussian(0.9 * self.noise_multiplier * terms.l2).draw(context.entropy, len(vector))


@dataclass(frozen=True)
class HalfTheDose(CentralNoise):
    """Noises the total half as much as it states."""

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return CentralNoise(self.noise_multiplier / 2).on_answer(answer, terms, context)


@dataclass(frozen=True)
class BoastfulNoise(GaussianNoise):
    """Noise as stated, and an event of twice as much."""

    def event(self, terms: Terms, cohort: Cohort) -> Any:
        return GaussianNoise(2 * self.noise_multiplier).event(terms, cohort)


@dataclass(frozen=True)
class SampledOnPaper(DiscreteLaplaceNoise):
    """An event as if units were sampled ten times as rarely."""

    def event(self, terms: Terms, cohort: Cohort) -> Any:
        return super().event(replace(terms, sampling=terms.sampling / 10 if terms.sampling < 1 else 1), cohort)


@dataclass(frozen=True)
class SharesOfAll(NoiseShares):
    """Sizes shares as if nobody dropped out or colluded."""

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        everybody = replace(context.cohort, threshold=len(context.cohort.members), colluding=0)
        return super().on_vector(vector, terms, replace(context, cohort=everybody))


@dataclass(frozen=True)
class SpentForAll(NoiseShares):
    """Shares of the right size, and an event that counts those of the colluding too."""

    def event(self, terms: Terms, cohort: Cohort) -> Any:
        more = len(cohort.members) / (cohort.threshold - cohort.colluding)
        return NoiseShares(self.noise_multiplier * more**0.5).event(terms, cohort)


@dataclass(frozen=True)
class CarelessFailures(GaussianNoise):
    """Says that its answers often fall outside of its event."""

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        return float("inf")


class IntegerNoiseLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.discrete_laplace)


class GaussianLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.rounded_gaussian)


class ShareLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.discrete_gaussian)


LAWS, GAUSSIAN, SHARES = IntegerNoiseLaws(), GaussianLaws(), ShareLaws()


@pytest.mark.parametrize(
    ("law", "mutant", "before"),
    [
        (LAWS.test_bound, ClipsTooLate(1.0), REAL),
        (LAWS.test_bound, ClipsCoordinates(1.0), REAL),
        (LAWS.test_bound, ClipsTheBatch(1.0), REAL),
        (LAWS.test_bound, ForgetsSmallPrint(1.0), REAL),
        (LAWS.test_no_document_counts_twice, WithReplacement(1.0), REAL),
        (LAWS.test_honesty, HalfTheNoise(1.0), BOUNDED),
        (LAWS.test_noise_is_fresh, RepeatedNoise(1.0), BOUNDED),
        (LAWS.test_a_bound_is_never_loosened, Loosened(5.0), BOUNDED),
        (LAWS.test_noise_has_an_event_and_a_claim, NoEvent(1.0), BOUNDED),
        (LAWS.test_each_row_is_bounded_by_itself, ClipsTheBatch(1.0), REAL),
        (LAWS.test_each_row_is_bounded_by_itself, CountsByPlace(3), integer_terms()),
        (LAWS.test_the_stated_sampling_is_applied, RateOnPaper(0.2), REAL),
        (LAWS.test_the_stated_sampling_is_applied, SharedSeed(0.2), REAL),
        (LAWS.test_bound, InTurn((Clip(0.8), ExactGrid(steps=2))), REAL),
        (LAWS.test_bound, InTurn((Clip(0.8), Rotation(), ExactGrid(steps=2))), REAL),
        (GAUSSIAN.test_honesty, HalfTheGaussian(2.0), BOUNDED),
        (GAUSSIAN.test_honesty, ATenthLess(2.0), BOUNDED),
        (GAUSSIAN.test_honesty, HalfTheDose(2.0), BOUNDED),
        (GAUSSIAN.test_the_event_spends_no_less_than_the_noise_hides, BoastfulNoise(2.0), BOUNDED),
        (GAUSSIAN.test_the_reach_has_room_for_the_noise, NoRoom(2.0), BOUNDED),
        (GAUSSIAN.test_the_failure_probability_is_a_small_probability, CarelessFailures(2.0), BOUNDED),
        (LAWS.test_the_event_claims_no_more_amplification_than_the_sampling_gives, SampledOnPaper(1.0), BOUNDED),
        (SHARES.test_honesty_when_parties_drop_out_and_collude, SharesOfAll(3.0), BOUNDED),
        (SHARES.test_the_event_spends_no_less_than_the_noise_hides, SpentForAll(3.0), BOUNDED),
    ],
)
def test_the_law_catches_the_mutant(law: Any, mutant: Mechanism, before: Terms) -> None:
    with pytest.raises(AssertionError):
        law(mutant, before)


@pytest.mark.parametrize(
    ("law", "sampler", "stated"),
    [(rounded_gaussian, 5.0, 5.0**2 + 1 / 12), (discrete_gaussian, 5.0, 25.0), (skellam, 25.0, 25.0)],
)
def test_the_laws_know_their_distributions(law: Any, sampler: float, stated: float) -> None:
    """Each sampler fits its own law, and a deviation a fifth off fits none."""
    drawn: Sampler = law(sampler)
    noise = drawn.draw(OperatingSystem(), mechanism_laws.SAMPLES).astype(float)
    own = getattr(stated_noise, law.__wrapped__.__name__)
    for factor, fits in ((1.0, True), (1.2, False), (0.8, False)):
        assert (stated_noise.misfit(noise, own(replace(BOUNDED, deviation=factor * stated**0.5))) <= 1) is fits


def test_the_stated_deviation_counts() -> None:
    """A mechanism whose noise is right and whose statement is twice too large is caught as well."""

    class Overstated(DiscreteLaplaceNoise):
        def admit(self, terms: Terms, cohort: Cohort) -> Terms:
            admitted = super().admit(terms, cohort)
            return replace(admitted, deviation=2 * admitted.deviation)

    with pytest.raises(AssertionError, match="not what the terms state"):
        LAWS.test_honesty(Overstated(1.0), BOUNDED)
