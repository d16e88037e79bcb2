"""What a forecast stands on: public numbers of a training under a budget. It forecasts nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from securetm.contracts import Profile
from securetm.errors import BadSetting
from securetm.plans.profiles import count_of_parties, noise_in_sum, read_profile
from securetm.plans.rules import USUAL_START, asks_first, noise_of_one_round
from securetm.settings import require

_WHERE = "forecast"
PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE = "public", "plain", "moments", "moments without vectors"
STARTS = (PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE)


@dataclass(frozen=True)
class ForecastSetting:
    """A training, by public numbers. The defaults are those of a run under a budget; 0 rounds: as many as the rule says."""

    documents: int  # of all parties together
    epsilon: float  # of each document, or of each person where persons have several documents
    delta: float = 1e-5
    model: str = "lda-vi"
    start: str = PUBLIC  # of lda-vi: at topics of public word vectors, plain, or at topics that `moments` finds first
    start_said: bool = True  # by the plan: rounds follow from it; else they are those from public topics
    words: int = 1_000
    topics: int = 20
    rounds: int = 0
    length: float = 50.0  # words of a document that are on the list
    general_list: bool = False  # whether the words are those of general language, and not of texts like these
    documents_per_person: float = 1.0  # on average; above 1 the budget is each person's
    noise_factor: float = 1.0  # the noise in the sum, over that of one curator with all documents (`under_profile`)
    noise: float = 0.0  # multiplier of the noise of one round; 0: the least with which the budget lasts for all rounds
    radius: float = 2.0  # of the clip of a row of counts

    def __post_init__(self) -> None:
        """Refuses numbers that no training has."""
        for name, least in (("documents", 1), ("words", 2), ("topics", 1), ("rounds", 0)):
            value = getattr(self, name)
            require(least <= value <= 10**9, _WHERE, name, value, f"must be from {least:,} to 1,000,000,000")
        for name in ("epsilon", "length", "noise_factor", "radius"):
            value = getattr(self, name)
            require(0 < value < 1e6, _WHERE, name, value, "must be above 0 and below 1,000,000")
        require(self.start in STARTS, _WHERE, "start", self.start, known=STARTS)
        require(0 <= self.noise < 1e6, _WHERE, "noise", self.noise, "must be from 0 to 1,000,000")
        require(0 < self.delta < 1, _WHERE, "delta", self.delta, "must lie between 0 and 1")
        least_each = 1 <= self.documents_per_person <= self.documents
        problem = "must be at least 1, and at most the number of documents"
        require(least_each, _WHERE, "documents_per_person", self.documents_per_person, problem)

    @property
    def for_rounds(self) -> float:
        """The share of the budget, in squares of noise, that the rounds have: what a first question of moments leaves."""
        return 1.0 - USUAL_START if self.start in (BY_MOMENTS, BY_MOMENTS_ALONE) else 1.0

    @property
    def said_plain(self) -> bool:
        """Whether the plan says that it begins plainly: then it is asked as often as topics at random need."""
        return self.start_said and self.start == PLAIN

    @property
    def units(self) -> float:
        """How many documents or persons have the budget."""
        return self.documents / self.documents_per_person


def under_profile(profile: Profile, parties: int) -> float:
    """The noise in a sum under this profile over that of one curator. A profile without a budget is refused."""
    if profile.budget is None:
        problem = "spends no privacy budget, so there is nothing to forecast"
        raise BadSetting(_WHERE, "profile", profile.name, problem)
    return noise_in_sum(profile, parties)


def setting_under(
    name: str, documents: int, parties: int | None = None, *, vectors: bool = True, **known: Any
) -> ForecastSetting:
    """A setting under the profile of that name, with its budget where none is given; `known` are further fields.

    `vectors` says whether any are installed: without them a run whose plan leaves its start open begins plainly.
    """
    profile = read_profile(name)
    factor = under_profile(profile, count_of_parties(profile, parties))
    assert profile.budget is not None  # as `under_profile` refuses
    stated = {"epsilon": profile.budget.epsilon, "delta": profile.budget.delta}
    given = {field: value for field, value in known.items() if value is not None}
    setting = ForecastSetting(documents, **{**stated, **given, "noise_factor": factor})
    return setting if "start" in given else replace(setting, start=_usual_start(setting, vectors), start_said=False)


def _usual_start(setting: ForecastSetting, vectors: bool) -> str:
    """How a run begins whose plan leaves that open, but says how many documents there are, and how long."""
    noise = noise_of_one_round(setting.epsilon, setting.delta) * setting.noise_factor
    first = asks_first(round(setting.units), setting.length, setting.topics, setting.words, noise)
    if first:
        return BY_MOMENTS if vectors else BY_MOMENTS_ALONE
    return PUBLIC if vectors else PLAIN
