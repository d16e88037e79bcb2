"""What a profile costs in quality, seconds, bytes and rounds, by committed results (`data/committed_figures.json`).

A profile that no result tried has the figures of the nearest one that was tried, which is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import exp
from typing import Any

from securetm.contracts import Profile, Unit
from securetm.plans.profiles import claims_of, cohort_of

FRONTIER, BENCH, WORDS, HE = "reproduce-private-frontier", "bench-private", "reproduce-iftm", "bench-he"
CORPUS, TOPICS, JUDGING = "20 Newsgroups", 20, 0.1
MODEL, CONTROL, FREQUENCIES, _NO_NOISE = "lda-vi, public start", "public start, no document", "word frequencies", "masked"
SHOWN = (8.0, 3.0, 1.0)  # epsilons of the sentence about a profile
_AS = {"fortress": "dp-distributed", "open": _NO_NOISE, "masked_strict": _NO_NOISE, "bfv": _NO_NOISE, "ckks": _NO_NOISE}
_USUAL_PARTIES, _DOCUMENTS = 5, 18_820


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
    model: str = "lda-vi"
    documents: int = _DOCUMENTS
    parties: int = _USUAL_PARTIES
    topics: int = TOPICS
    words: int = 1_000

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
    members = tuple(f"party {n}" for n in range(max(profile.minimum_parties, _USUAL_PARTIES)))
    promised = len(claims_of(profile, cohort_of(profile, members)))
    return (*cost_of(profile).burden, promised, profile.name)


def cost_of(profile: Profile, epsilon: float | None = None) -> ProfileCost:
    """The figures of a shipped profile at its own budget, or at the largest that was tried and is at most `epsilon`."""
    budget = profile.budget
    if budget is not None and budget.unit is Unit.WORD:
        return _of_words(profile.name, budget.epsilon)
    if budget is None:
        return _of_frontier(profile.name, None)
    tried = _tried(_AS.get(profile.name, profile.name))
    asked = budget.epsilon if epsilon is None else max((one for one in tried if one <= epsilon), default=tried[0])
    return _of_frontier(profile.name, asked)


def frontier_says(profile: str) -> str:
    """What quality to expect under this profile, in one sentence; nothing where it was not tried."""
    found = _frontier()
    at = [(epsilon, found[MODEL, profile, epsilon]["f1"]) for epsilon in SHOWN if (MODEL, profile, epsilon) in found]
    if not at:
        return ""
    each = ", ".join(f"{value:.2f} at epsilon {epsilon:g}" for epsilon, value in at)
    without, vectors = (found[model, _NO_NOISE, None]["f1"] for model in (MODEL, CONTROL))
    return (
        f"lda-vi from a public start; on 18,820 documents of {CORPUS} a classifier on its {TOPICS} topics has F1 {each}, "
        f"{without:.2f} without noise, and {vectors:.2f} on topics that no document made "
        "(python -m lab reproduce private-frontier)"
    )


def _tried(measured: str) -> tuple[float, ...]:
    """The epsilons at which this profile was measured, the smallest first."""
    found = (epsilon for model, profile, epsilon in _frontier() if (model, profile) == (MODEL, measured))
    return tuple(sorted(epsilon for epsilon in found if epsilon is not None))


def _of_frontier(name: str, epsilon: float | None) -> ProfileCost:
    """Figures of the frontier of private models.

    Seconds of noise in shares are those of the bench, which ran alone, for as many rounds.
    """
    measured = _AS.get(name, name)
    row, beside = _frontier()[MODEL, measured, epsilon], _frontier()
    without, vectors = beside[MODEL, _NO_NOISE, None], beside[CONTROL, _NO_NOISE, None]
    benched = _benched() if measured == "dp-distributed" else None
    up, down = _encrypted(name)
    return ProfileCost(
        profile=name,
        measured_under=measured,
        epsilon=epsilon,
        setting=f"{MODEL}, {TOPICS} topics, 1,000 public words, {_DOCUMENTS:,} documents of {CORPUS}, five parties",
        perplexity=exp(-row["held_out"]),
        perplexity_without_noise=exp(-without["held_out"]),
        perplexity_of_frequencies=exp(-beside[FREQUENCIES, _NO_NOISE, None]["held_out"]),
        f1=row["f1"],
        f1_without_noise=without["f1"],
        f1_without_documents=vectors["f1"],
        rounds=int(row["rounds"]),
        seconds=benched["ours"] * row["rounds"] / benched["rounds"] if benched else row["seconds"],
        megabytes=row["megabytes"],
        counted="all messages",
        bytes_up=up,
        bytes_down=down,
        sources=tuple(_command(one) for one in (FRONTIER, *((BENCH,) if benched else ()), *((HE,) if up != 1 else ()))),
    )


def _of_words(name: str, epsilon: float) -> ProfileCost:
    """Figures of matched LDA over documents with noise in the place of words, beside the same without noise."""
    rows = {(row["model"], row["form"]): row for row in _rows(WORDS)}
    row, without = rows["lda", f"matched, epsilon {epsilon:g} per word"], rows["lda", "matched"]
    setting = f"matched lda, 20 topics of each party, 2,000 words, {_DOCUMENTS:,} documents of {CORPUS}, five parties"
    return ProfileCost(
        profile=name,
        measured_under=name,
        epsilon=epsilon,
        setting=setting,
        perplexity=row["held_out"],
        perplexity_without_noise=without["held_out"],
        perplexity_of_frequencies=None,
        f1=None,
        f1_without_noise=None,
        f1_without_documents=None,
        rounds=row["rounds"],
        seconds=row["seconds"],
        megabytes=row["megabytes_up"],
        counted="messages of the parties",
        bytes_up=1,
        bytes_down=1,
        sources=(_command(WORDS),),
        model="lda",
        words=2_000,
    )


def _frontier() -> Mapping[tuple[str, str, float | None], Mapping[str, Any]]:
    """The rows of the frontier in one frame, by model, profile and epsilon."""
    return {(row["model"], row["profile"], row["epsilon"]): row for row in _rows(FRONTIER)}


def _benched() -> Mapping[str, Any]:
    row: Mapping[str, Any] = next(row for row in _rows(BENCH) if row["case"].startswith(MODEL))
    return row


def _encrypted(name: str) -> tuple[float, float]:
    """How many times the bytes of 32-bit numbers one party's encrypted answer and the sum take, if they are encrypted."""
    rows = {row["case"]: row.get("times_float32", 1.0) for row in _rows(HE)}
    found = [
        next((times for case, times in rows.items() if case.startswith(f"bytes {way} for one party: {name},")), 1.0)
        for way in ("up", "down")
    ]
    return found[0], found[1]


def _command(result: str) -> str:
    """The command that makes a result again."""
    kind, _, name = result.partition("-")
    return f"python -m lab {kind} {name}"


def _rows(result: str) -> Sequence[Mapping[str, Any]]:
    return _figures()[result]


@cache
def _figures() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    text = resources.files("securetm.reports").joinpath("data/committed_figures.json").read_text("utf-8")
    found: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(text)
    return found
