"""What an audit found, as plain records, and how a verdict is reached. It runs no attack and shows nothing.

A verdict is `refuted`, `not refuted` or `not tested`. There is none that says "safe": an attack that fails proves nothing but
that it failed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from securetm.leakage.attack import Estimate, Proportion
from securetm.leakage.illustrations import Curve, Example
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED

DOCUMENT = "document"  # the unit of shares of all documents of which a party trained on some


@dataclass(frozen=True)
class Measured:
    """A measure with its interval; hits and tries where it is a share."""

    measure: str
    unit: str
    value: float | None
    low: float
    high: float
    ceiling: float  # the low end that an ideal attacker would have reached with as many tries
    hits: int | None = None
    of: int | None = None
    by_chance: float | None = None  # what the same attack reached on random numbers


@dataclass(frozen=True)
class Finding:
    """One attack on one claim of one profile."""

    attack: str
    title: str
    adversary: str
    threat_model: str
    profile: str
    model: str
    claim: str
    measured: Measured
    refuted_from: float
    confidence: float
    verdict: str
    why: str
    baseline: bool
    claimed: bool  # whether the profile makes this claim at all
    accepted: str  # why the threat model accepts that it does not hold, or nothing
    seconds: float
    chance: Measured | None = None  # the same attack on random numbers
    beside: tuple[Measured, ...] = ()
    examples: tuple[Example, ...] = ()
    curves: tuple[Curve, ...] = ()
    epsilon: float | None = None  # what the run claims, where it claims differential privacy
    delta: float | None = None
    epsilon_unit: str = ""  # of what one more or less is hidden: document, person, word
    tests: int = 1  # of a claimed epsilon in this audit, for which the confidence is corrected
    run: str = ""
    setting: str = ""  # of the run, in words: documents per answer, parties
    effort: str = ""  # as the plan asks for it
    spent: str = ""  # what of it the run had room for
    helpers: int = 0  # parties that told the adversary all they hold
    liars: int = 0  # parties that sent what the attack had them send
    canaries: int = 0  # made documents that were drawn for each party
    without: int = 0  # parties that a second run, to compare with, was made without
    kept: str = ""  # the day on which it was found, where it was kept and not made again
    citation: str = ""
    cost: str = ""
    given: str = ""
    sees: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    remark: str = ""


EVERY_PARTY = "every party"  # in place of a party that refused: all answered, and alike


@dataclass(frozen=True)
class Refusal:
    """A run that was really begun below a profile's minimum, or a lie that was really told in one, and what became of it."""

    profile: str
    attempt: str  # in words: how many documents of how many parties
    documents: int  # in the sum that was asked for; 0 of a lie
    minimum: int  # that the profile demands; 0 where that is not what was tried
    refused: bool
    by: str  # who refused; nobody where it went on
    reason: str  # as named to the others; of a lie that nobody refused, that the profile claims nothing against it

    @property
    def broken(self) -> bool:
        """Whether a profile promises that it is refused, and nobody refused it."""
        return not self.refused and (self.minimum > 0 or not self.reason)


@dataclass(frozen=True)
class Audit:
    """All findings of one plan, and what was left untried."""

    plan: str
    title: str
    run: str
    findings: tuple[Finding, ...]
    not_tried: tuple[str, ...]
    seconds: float
    version: str
    reproduce: tuple[str, ...]
    refusals: tuple[Refusal, ...] = ()
    made: str = ""  # the day, as 2026-01-31

    @property
    def refuted_claims(self) -> tuple[Finding, ...]:
        """Claims that a profile makes and an attack refuted; what nobody claims cannot be refuted."""
        return tuple(f for f in self.findings if f.verdict == REFUTED and f.claimed and not f.baseline)

    @property
    def broken_promises(self) -> tuple[Refusal, ...]:
        """What parties should have refused, and did not."""
        return tuple(one for one in self.refusals if one.broken)

    @property
    def blunt(self) -> tuple[Finding, ...]:
        """Baselines that the attack did not break: whatever depends on them is not tested."""
        return tuple(f for f in self.findings if f.baseline and f.verdict != REFUTED)


def measured(name: str, unit: str, worth: Proportion | Estimate, confidence: float, reachable: float = 1.0) -> Measured:
    """A measure with its exact interval; of documents, an ideal attacker gets those that took part, and no others."""
    from securetm.leakage.intervals import clopper_pearson

    if isinstance(worth, Estimate):
        found = None if math.isnan(worth.value) else worth.value
        return Measured(name, unit, found, worth.low, worth.high, worth.ceiling)
    confidence = 1.0 - (1.0 - confidence) * worth.doubt
    low, high = clopper_pearson(worth.hits, worth.of, confidence)
    most = round(worth.of * reachable) if unit == DOCUMENT else worth.of
    ceiling = clopper_pearson(most, worth.of, confidence)[0]
    value = worth.hits / worth.of if worth.of else None
    return Measured(name, unit, value, low, high, ceiling, worth.hits, worth.of)


def is_sound(worth: Proportion | Estimate) -> bool:
    """Whether it can be judged at all: no verdict may hang on what is no number, or on ends that are not in their order.

    A `Bounded` of which nothing is known has no value (NaN), but ends all the same.
    """
    if isinstance(worth, Proportion):
        return 0 <= worth.hits <= worth.of and 0 < worth.doubt <= 1
    value = worth.low if math.isnan(worth.value) else worth.value
    return math.isfinite(worth.low) and not math.isnan(worth.ceiling) and worth.low <= value <= worth.high


def judged_alone(found: Measured, chance: Measured, refuted_from: float) -> tuple[str, str]:
    """The verdict and its reason, before the baseline is looked at."""
    if found.value is None:
        return NOT_TESTED, "there was nothing to try it on"
    if found.ceiling < refuted_from:
        return NOT_TESTED, f"too little was tried: even an ideal attacker's interval would begin at {found.ceiling:.3g}"
    if chance.low >= refuted_from and found.low <= chance.high:
        return NOT_TESTED, "random numbers reach as much, so this measure tells nothing apart here"
    if found.low >= refuted_from and found.low > chance.high:
        return REFUTED, f"the interval begins at {found.low:.3g}, and {refuted_from:.3g} counts as refuted"
    if found.low >= refuted_from:
        return NOT_TESTED, "its interval does not lie above that of chance"
    reached = f"reached {found.value:.3g}, and by its interval {found.low:.3g} to {found.high:.3g}"
    return NOT_REFUTED, f"this attack, at this effort, {reached}; an interval that begins at {refuted_from:.3g} would refute it"


def with_baseline(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings of one trial: an attack that cannot break what is known not to hold means nothing by failing elsewhere.

    What it did refute, above its own control, stays refuted.
    """
    if any(f.baseline and f.verdict == REFUTED for f in findings):
        return findings
    why = "the attack did not break the baseline, where the claim is known not to hold, so its failure here means nothing"
    return tuple(f if f.baseline or f.verdict == REFUTED else replace(f, verdict=NOT_TESTED, why=why) for f in findings)
