"""What a profile costs in quality, seconds, bytes and rounds: rows of `data/committed_figures.json`, by profile and epsilon.

`lab.fits.committed_figures` makes them of committed results. A profile that none tried has the figures of the nearest one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from securetm.contracts import Profile
from securetm.data_classes import dataclass
from securetm.plans.profiles import BLIND, claims_of, cohort_of

SHOWN = (8.0, 3.0, 1.0)  # epsilons of the sentence about a profile
_USUAL_PARTIES = 5


@dataclass(frozen=True)
class ProfileCost:
    """Committed figures of one training under a profile, beside the same training without noise."""

    profile: str
    measured_under: str  # the profile of the figures of quality
    epsilon: float | None
    setting: str  # what was trained, on what
    perplexity: float  # of held-out words
    perplexity_without_noise: float
    perplexity_of_frequencies: float | None  # of word frequencies alone
    f1: float | None  # of a classifier on the topics
    f1_without_noise: float | None
    f1_without_documents: float | None  # on topics of public word vectors, which no document made
    rounds: int
    seconds: float
    megabytes: float
    counted: str  # in these: all messages, or those of the parties
    bytes_up: float  # of an encrypted answer, times that of 32-bit numbers; 1 where nothing is encrypted
    bytes_down: float
    sources: tuple[str, ...]  # commands that make the results again
    model: str
    documents: int
    parties: int
    topics: int
    words: int

    @property
    def quality_lost(self) -> float:
        """How many times the perplexity without noise."""
        return self.perplexity / self.perplexity_without_noise

    @property
    def burden(self) -> tuple[float, float]:
        """What costs less is smaller: quality first, then bytes."""
        return round(self.quality_lost, 4), self.megabytes * (self.bytes_up + self.bytes_down)


def by_cost(profile: Profile) -> tuple[float, float, int, str]:
    """The place of a profile among others: those that cost less come first, and of equal ones those that promise less."""
    promised = len(claims_of(profile, cohort_of(profile, max(profile.minimum_parties, _USUAL_PARTIES))))
    return (*cost_of(profile).burden, promised, profile.name)


def cost_of(profile: Profile, epsilon: float | None = None) -> ProfileCost:
    """The figures of a shipped profile at its own budget, or at the largest that was tried and is at most `epsilon`."""
    tried = _tried(profile.name)
    if profile.budget is None or len(tried) == 1:
        return next(iter(tried.values()))
    if epsilon is None:
        return tried[profile.budget.epsilon]
    known = sorted(one for one in tried if one is not None)
    return tried[max((one for one in known if one <= epsilon), default=known[0])]


def frontier_says(profile: str) -> str:
    tried = [one for epsilon in SHOWN if (one := _tried(profile).get(epsilon)) and one.measured_under == profile and one.f1]
    if not tried:
        return ""
    each = ", ".join(f"{one.f1:.2f} at epsilon {one.epsilon:g}" for one in tried)
    first = tried[0]
    return (
        f"lda-vi from a public start; on {first.documents:,} documents of 20 Newsgroups a classifier on its {first.topics} "
        f"topics has F1 {each}, {first.f1_without_noise:.2f} without noise, and {first.f1_without_documents:.2f} on topics "
        "that no document made (python -m lab reproduce private-frontier)"
    )


def cost_of_list(way: str, *, noised: bool, by_parties: bool) -> Mapping[str, float]:
    """Words found, seconds and megabytes from each party, of five with 20 Newsgroups. Nothing where it was not measured."""
    of = {"list": way, "noised": noised, "by_parties": by_parties and way == BLIND and not noised}
    rows = json.loads(resources.files("securetm.reports").joinpath("data/committed_lists.json").read_text("utf-8"))
    found = [row for row in rows if of.items() <= row.items()]
    return {name: row[name] for row in found for name in ("words", "seconds", "megabytes")}


@cache
def _tried(profile: str) -> Mapping[float | None, ProfileCost]:
    rows = json.loads(resources.files("securetm.reports").joinpath("data/committed_figures.json").read_text("utf-8"))
    found = (ProfileCost(**{**row, "sources": tuple(row["sources"])}) for row in rows if row["profile"] == profile)
    return {one.epsilon: one for one in found}
