"""Each law of mechanisms catches the fault it is there for, put into a real mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from securetm.contracts import INF, Array, Cohort, Mechanism, RoundContext, Terms
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
from tests.laws.toys import spoiled

REAL = replace(integer_terms(), domain=each_terms().domain)
BOUNDED = integer_terms(l1=11.0, l2=11**0.5, linf=1.0)


class TestShuffledBatches(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return ShuffledBatches()


# ---- mutants: each a mechanism with one other method -------------------------------------------------------------------


class IntegerNoiseLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.discrete_laplace)


class GaussianLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.rounded_gaussian)


class ShareLaws(MechanismLaws):
    distribution = staticmethod(stated_noise.discrete_gaussian)


LAWS, GAUSSIAN, SHARES = IntegerNoiseLaws(), GaussianLaws(), ShareLaws()
LAPLACE, SHARE, CLIP = DiscreteLaplaceNoise(1.0), NoiseShares(3.0), Clip(1.0)


def unfresh(context: RoundContext) -> RoundContext:
    return replace(context, entropy=Seeded(bytes(32), unsafe=True))


def clips_the_batch(self: Clip, rows: Any, terms: Terms) -> Any:
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return dense / max(1.0, float(np.linalg.norm(dense, axis=1).mean()))


def counts_by_place(self: BoundedCounts, rows: Any, terms: Terms) -> Any:
    dense = np.array(rows.toarray() if not isinstance(rows, np.ndarray) else rows)
    rolled = np.array([np.roll(at_most(np.roll(row, i)[None], self.most, self.each)[0], -i) for i, row in enumerate(dense)])
    return rolled.reshape(dense.shape)


def exact_grid(self: FixedPoint, terms: Terms, cohort: Cohort) -> Terms:
    admitted = FixedPoint.admit(self, terms, cohort)
    return replace(admitted, l1=terms.l1 / admitted.grid, l2=terms.l2 / admitted.grid, linf=terms.linf / admitted.grid)


def noised(share: float) -> Any:
    """A Gaussian that draws a share of what it states."""

    def draw(self: GaussianNoise, vector: Array, terms: Terms, context: RoundContext) -> Array:
        noise = rounded_gaussian(share * self.noise_multiplier * terms.l2)
        return vector + noise.draw(context.entropy, len(vector))

    return spoiled(GaussianNoise(2.0), on_vector=draw)


def shares_of_all(self: NoiseShares, vector: Array, terms: Terms, context: RoundContext) -> Array:
    everybody = replace(context.cohort, threshold=len(context.cohort.members), colluding=0)
    return NoiseShares.on_vector(self, vector, terms, replace(context, cohort=everybody))


def spent_for_all(self: NoiseShares, terms: Terms, cohort: Cohort) -> Any:
    more = len(cohort.members) / (cohort.threshold - cohort.colluding)
    return NoiseShares(self.noise_multiplier * more**0.5).event(terms, cohort)


BATCHED = spoiled(CLIP, on_rows=clips_the_batch)
COARSE = spoiled(FixedPoint(steps=2), admit=exact_grid)
MUTANTS: Mapping[str, tuple[Any, Mechanism, Terms]] = {
    "states one radius and clips to another": (
        LAWS.test_bound,
        spoiled(CLIP, row_radius=lambda self, terms: 1.01 * self.radius),
        REAL,
    ),
    "cuts each coordinate to the radius, and calls that the length": (
        LAWS.test_bound,
        spoiled(
            CLIP,
            row_radius=lambda self, terms: INF,
            on_rows=lambda self, rows, terms: rows.clip(-1, 1) if isinstance(rows, np.ndarray) else rows,
        ),
        REAL,
    ),
    "scales all rows by their common mean length": (LAWS.test_bound, BATCHED, REAL),
    "states an l1 bound that only holds for one coordinate": (
        LAWS.test_bound,
        spoiled(CLIP, admit=lambda self, terms, cohort: replace(Clip.admit(self, terms, cohort), l1=self.radius)),
        REAL,
    ),
    "draws a document more than once": (
        LAWS.test_no_document_counts_twice,
        spoiled(CLIP, on_documents=lambda self, documents, *_: documents.select(np.zeros(len(documents), dtype=np.int64))),
        REAL,
    ),
    "draws at half the scale that its terms state": (
        LAWS.test_honesty,
        spoiled(
            LAPLACE,
            on_vector=lambda self, vector, terms, context: (
                vector + discrete_laplace(terms.l1 / self.epsilon / 2).draw(context.entropy, len(vector))
            ),
        ),
        BOUNDED,
    ),
    "draws always the same noise, which two questions cancel": (
        LAWS.test_noise_is_fresh,
        spoiled(
            LAPLACE,
            on_vector=lambda self, vector, terms, context: DiscreteLaplaceNoise.on_vector(
                self, vector, terms, unfresh(context)
            ),
        ),
        BOUNDED,
    ),
    "forgets a tighter bound that was there before": (
        LAWS.test_a_bound_is_never_loosened,
        spoiled(Clip(5.0), admit=lambda self, terms, cohort: replace(terms, l2=self.radius)),
        BOUNDED,
    ),
    "adds noise that no accountant hears of": (
        LAWS.test_noise_has_an_event_and_a_claim,
        spoiled(LAPLACE, event=lambda *_: None),
        BOUNDED,
    ),
    "lets one outlier change every row": (LAWS.test_each_row_is_bounded_by_itself, BATCHED, REAL),
    "keeps of a row what its place decides": (
        LAWS.test_each_row_is_bounded_by_itself,
        spoiled(BoundedCounts(3), on_rows=counts_by_place),
        integer_terms(),
    ),
    "states a sampling rate and takes every document": (
        LAWS.test_the_stated_sampling_is_applied,
        spoiled(PoissonSample(0.2), on_documents=lambda self, documents, *_: documents),
        REAL,
    ),
    "draws the same documents every time": (
        LAWS.test_the_stated_sampling_is_applied,
        spoiled(
            PoissonSample(0.2),
            on_documents=lambda self, documents, terms, context: PoissonSample.on_documents(
                self, documents, terms, unfresh(context)
            ),
        ),
        REAL,
    ),
    "forgets that rounding moves a row": (LAWS.test_bound, InTurn((Clip(0.8), COARSE)), REAL),
    "forgets it behind a rotation": (LAWS.test_bound, InTurn((Clip(0.8), Rotation(), COARSE)), REAL),
    "draws half of what it states": (GAUSSIAN.test_honesty, noised(0.5), BOUNDED),
    "draws a tenth less than it states": (GAUSSIAN.test_honesty, noised(0.9), BOUNDED),
    "noises the total half as much as it states": (
        GAUSSIAN.test_honesty,
        spoiled(CentralNoise(2.0), on_answer=lambda self, *answer: CentralNoise(1.0).on_answer(*answer)),
        BOUNDED,
    ),
    "has an event of twice its noise": (
        GAUSSIAN.test_the_event_spends_no_less_than_the_noise_hides,
        spoiled(GaussianNoise(2.0), event=lambda self, *asked: GaussianNoise(4.0).event(*asked)),
        BOUNDED,
    ),
    "forgets that noise makes a vector larger": (
        GAUSSIAN.test_the_reach_has_room_for_the_noise,
        spoiled(
            GaussianNoise(2.0),
            admit=lambda self, terms, cohort: replace(GaussianNoise.admit(self, terms, cohort), reach=terms.reach),
        ),
        BOUNDED,
    ),
    "falls outside of its event often": (
        GAUSSIAN.test_the_failure_probability_is_a_small_probability,
        spoiled(GaussianNoise(2.0), failure_probability=lambda *_: float("inf")),
        BOUNDED,
    ),
    "has an event as if units were sampled ten times as rarely": (
        LAWS.test_the_event_claims_no_more_amplification_than_the_sampling_gives,
        spoiled(
            LAPLACE,
            event=lambda self, terms, cohort: DiscreteLaplaceNoise.event(
                self, replace(terms, sampling=terms.sampling / 10 if terms.sampling < 1 else 1), cohort
            ),
        ),
        BOUNDED,
    ),
    "sizes shares as if nobody dropped out or colluded": (
        SHARES.test_honesty_when_parties_drop_out_and_collude,
        spoiled(SHARE, on_vector=shares_of_all),
        BOUNDED,
    ),
    "counts the shares of the colluding too": (
        SHARES.test_the_event_spends_no_less_than_the_noise_hides,
        spoiled(SHARE, event=spent_for_all),
        BOUNDED,
    ),
}


@pytest.mark.parametrize("fault", MUTANTS)
def test_the_law_catches_the_mutant(fault: str) -> None:
    law, mutant, before = MUTANTS[fault]
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

    def overstated(self: DiscreteLaplaceNoise, terms: Terms, cohort: Cohort) -> Terms:
        admitted = DiscreteLaplaceNoise.admit(self, terms, cohort)
        return replace(admitted, deviation=2 * admitted.deviation)

    with pytest.raises(AssertionError, match="not what the terms state"):
        LAWS.test_honesty(spoiled(LAPLACE, admit=overstated), BOUNDED)
