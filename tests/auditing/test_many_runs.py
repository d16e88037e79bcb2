"""Many noised sums by the profiles' own parts: honest noise is not refuted, half of it is, and a clip that does not clip is.

Intervals at 99.98 % are wrong once in 5,000 draws: that is what they promise. Draws are the same in every run of the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.many_runs import (
    DIRECT,
    GAUSSIAN,
    NUMBERS,
    CanarySumSource,
)
from securetm.auditing.views import AdversaryView, PublicFacts
from securetm.contracts import Cohort, Rows, Terms
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.samplers import Sampler, rounded_gaussian
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.plans.agreement import agree
from securetm.plans.recommend import whole_plan

from ..quick_part import quick
from .conftest import PARTIES, adversary

WORDS = tuple(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))
FEW, MANY = 80_000, 400_000
AT = 0.9998  # a plan of five claims at 99.9 %
GAUSSIANS = ("dp-central", "dp-distributed", "dp-local", "fortress")
MODELS = ("lda", "prodlda")  # counts, and gradients on a grid
PAIRS = quick(
    [(profile, model) for profile in GAUSSIANS for model in MODELS], *list(zip(GAUSSIANS, 2 * MODELS, strict=True))[::3]
)


@pytest.fixture
def public(tmp_path: Path) -> Callable[..., PublicFacts]:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS))

    def facts(profile: str, model: str = "lda", **settings: Any) -> PublicFacts:
        named = {name.replace("_", ".", 1): value for name, value in settings.items()}
        whole = {
            "profile": profile,
            "model.name": model,
            "vocabulary.source": "file",
            "origins.vocabulary": "made up",
            "vocabulary.file": str(path),
            **named,
        }
        plan = whole_plan(None, whole)
        return PublicFacts(PARTIES, agree(plan))

    return facts


def _tried(facts: PublicFacts, runs: int, name: str = "many_run_epsilon", confidence: float = AT) -> tuple[Score, Score]:
    """What the attack is worth, and what it makes of the same sums in a random order."""
    effort, tried = {"rounds": 1, "runs": runs}, attack_called(name)
    assert tried.pose is not None
    truth = GroundTruth(WORDS, {}, {}, confidence=confidence, public=facts)
    posed = tried.pose(truth, effort, np.random.default_rng(0))
    view = AdversaryView(adversary(), facts, {"request": ()}, WORDS, question=posed.question)
    chance = replace(view, question=posed.redrawn(np.random.default_rng(1)))
    truth = replace(truth, answer=posed.answer)
    told, control = (tried.judge(tried.attack(one, effort), truth) for one in (view, chance))
    return told, control


def _shown(measures: Mapping[str, Estimate | Proportion], name: str) -> Estimate:
    found = measures[name]
    assert isinstance(found, Estimate)
    return found


# ---- test builds whose noise is half of what its event says ---------------------------------------------------------


def _half_central(self: Any, terms: Terms, _: Cohort) -> Sampler:
    return rounded_gaussian(self.noise_multiplier * terms.l2 / 2)


def _third_central(self: Any, terms: Terms, _: Cohort) -> Sampler:
    return rounded_gaussian(self.noise_multiplier * terms.l2 / 3)


_share, _law = NoiseShares._law, LaplaceCounts.law


def _half_share(self: NoiseShares, variance: float) -> Sampler:
    return _share(self, variance / 4)


def _half_law(self: LaplaceCounts, words: int) -> SlotNoise:
    return replace(_law(self, words), epsilon=2 * self.epsilon)


@pytest.fixture
def half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CentralNoise, "noise", _half_central)
    monkeypatch.setattr(GaussianNoise, "noise", _half_central)
    monkeypatch.setattr(NoiseShares, "_law", _half_share)  # of every part of a share
    monkeypatch.setattr(LaplaceCounts, "law", _half_law)


@pytest.fixture
def a_third_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CentralNoise, "noise", _third_central)
    monkeypatch.setattr(GaussianNoise, "noise", _third_central)


@pytest.mark.parametrize(("profile", "model"), PAIRS)
def test_honest_noise_is_not_refuted(public: Callable[..., PublicFacts], profile: str, model: str) -> None:
    told, chance = _tried(public(profile, model), FEW)
    for measure in (DIRECT, GAUSSIAN):
        shown = _shown(told.measures, measure)
        assert shown.low < 1.0
        assert shown.low <= shown.value <= shown.high <= shown.ceiling
        assert _shown(chance.measures, measure).low < 0.2
    assert _shown(told.measures, GAUSSIAN).low > 0.35  # and it is no blunt tool


@pytest.mark.parametrize(("profile", "model"), PAIRS)
@pytest.mark.usefixtures("half_the_noise")
def test_half_the_noise_is_refuted(public: Callable[..., PublicFacts], profile: str, model: str) -> None:
    told, chance = _tried(public(profile, model), FEW)
    shown = _shown(told.measures, GAUSSIAN)
    assert shown.low > 1.0  # refuted
    assert shown.low > _shown(chance.measures, GAUSSIAN).high


@pytest.mark.parametrize("halved", quick([False, True], True))
@pytest.mark.parametrize("profile", quick(GAUSSIANS, "dp-local", "fortress"))
def test_what_is_claimed_is_the_mechanism_s_own_event_whatever_is_drawn(
    public: Callable[..., PublicFacts], profile: str, halved: bool, request: pytest.FixtureRequest
) -> None:
    if halved:
        request.getfixturevalue("half_the_noise")
    claimed = CanarySumSource.about(public(profile), WORDS).claimed
    known = {"dp-central": 4.3772, "dp-local": 4.3772, "dp-distributed": 4.5203, "fortress": 1.0625}
    assert claimed.epsilon == pytest.approx(known[profile], abs=1e-3)  # sampled, it would be far less
    assert not claimed.pure


@pytest.mark.parametrize("profile", quick(["dp-central", "dp-local"], "dp-local"))
@pytest.mark.usefixtures("a_third_of_the_noise")
def test_very_many_sums_refute_too_little_noise_with_nothing_assumed(public: Callable[..., PublicFacts], profile: str) -> None:
    """A third: 1.57 is shown, with a deviation of 0.06 from draw to draw. Of half of it 1.14, with 0.05: too near to 1."""
    assert _shown(_tried(public(profile), MANY)[0].measures, DIRECT).low > 1.0


@pytest.mark.usefixtures("half_the_noise")
def test_words_behind_half_the_noise_are_refuted(public: Callable[..., PublicFacts]) -> None:
    facts = public("iftm")
    assert CanarySumSource.about(facts, WORDS).claimed.epsilon == pytest.approx(8.0)
    assert _shown(_tried(facts, MANY)[0].measures, DIRECT).low > 1.1


# ---- other faults, and no noise at all ------------------------------------------------------------------------------


def _long_row(self: Any, terms: Terms) -> float:
    return 2.0


def _whole_row(self: Any, rows: Rows, terms: Terms) -> Rows:
    return rows


def test_a_clip_that_lets_twice_its_radius_through_is_refuted(
    public: Callable[..., PublicFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clip, "row_radius", _long_row)
    assert _shown(_tried(public("dp-local", "prodlda"), FEW)[0].measures, GAUSSIAN).low > 1.0  # refuted


def test_counts_that_are_not_bounded_are_refuted(public: Callable[..., PublicFacts], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedCounts, "on_rows", _whole_row)
    assert _shown(_tried(public("dp-local", "lda"), FEW)[0].measures, GAUSSIAN).low > 1.0  # refuted


# ---- what the sums are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "deviation"), [("dp-local", 1.0), ("dp-distributed", 1.0), ("dp-central", 1.0)])
def test_sums_laid_end_to_end_have_noise_of_their_own(
    public: Callable[..., PublicFacts], profile: str, deviation: float
) -> None:
    one = CanarySumSource.about(public(profile, "prodlda"), WORDS)
    opened = one.opened(5_000, present=False)
    assert opened.shape == (5_000, NUMBERS)
    assert opened.std(axis=0) == pytest.approx(np.full(NUMBERS, deviation), rel=0.08)
    assert np.abs(np.corrcoef(opened.T) - np.eye(NUMBERS)).max() < 0.1
    assert np.abs(np.corrcoef(opened[:-1, 0], opened[1:, 0])[0, 1]) < 0.1


def test_the_canary_is_as_long_as_the_bound_and_no_longer(public: Callable[..., PublicFacts]) -> None:
    for model, length in (("prodlda", 1.0), ("lda", 30**0.5)):
        one = CanarySumSource.about(public("dp-central", model, privacy_noise=0.1), WORDS)
        moved = one.opened(4_000, present=True).mean(axis=0) - one.opened(4_000, present=False).mean(axis=0)
        assert np.linalg.norm(moved) == pytest.approx(length, rel=0.02)
