"""Audits as an audit plan would give them, from records alone: a small one, and one with all that a page can show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec.structs import fields, replace

from securetm.auditing.attack import Estimate, Proportion
from securetm.auditing.judging import measured
from securetm.auditing.record import (
    NOT_REFUTED,
    NOT_TESTED,
    REFUTED,
    About,
    AttackedRun,
    AttackOutcome,
    Attempt,
    Audit,
    Curve,
    Example,
    Finding,
    RefusalRecord,
)

MEASURE, UNIT = "documents recovered exactly", "document"
CHANCE = measured(MEASURE, UNIT, Proportion(0, 300), 0.95)


def finding(**changes: Any) -> Finding:
    """A finding as an audit would give it."""
    attempt = Attempt(
        attack="gradient_inversion",
        threat_model="curious_coordinator",
        adversary="coordinator",
        claim="sees only sums",
        refuted_from=0.05,
        confidence=0.95,
        baseline=True,
        effort="4 rounds",
    )
    outcome = AttackOutcome(
        measured=measured(MEASURE, UNIT, Proportion(292, 300), 0.95),
        verdict=REFUTED,
        why="the interval begins at 0.948",
        seconds=3.2,
        chance=CHANCE,
        beside=(measured("named words that occur", "word", Proportion(10, 40), 0.95),),
        examples=(Example("river ×2, <boat>", "river ×2, <boat>", True), Example("court", "", False)),
    )
    about = About(
        title="Documents from <one> gradient",
        claimed=False,
        citation="Somebody 2020",
        cost="nothing",
        given="the words",
        sees=("request", "answer"),
        limits=("the first", "the second"),
    )
    return changed(
        Finding(attempt, AttackedRun(profile="open", model="prodlda", setting="5 parties"), outcome, about), **changes
    )


def changed(one: Finding, **changes: Any) -> Finding:
    """The finding with other fields, each in the part that has it."""
    for part in fields(Finding):
        record = getattr(one, part.name)
        own = {name: changes.pop(name) for name in record.__struct_fields__ if name in changes}
        one = replace(one, **{part.name: replace(record, **own)})
    assert not changes, f"a finding has no {', '.join(changes)}"
    return one


CLAIM = finding(
    profile="masked", measured=CHANCE, verdict=NOT_REFUTED, why="reached 0", baseline=False, claimed=True, examples=()
)
LEAK = finding(profile="masked", baseline=False, accepted="the total may be known", claim="the total is private")
IDLE = finding(profile="masked", measured=measured(MEASURE, UNIT, Proportion(0, 0), 0.95), verdict=NOT_TESTED, baseline=False)
AUDIT = Audit(
    "quick", "What <is> learned?", "demonstration", (finding(), CLAIM, LEAK, IDLE), ("membership & more",), 41.0, "0.1.0",
    ("securetm audit quick",),
)  # fmt: skip


# ---- curves and epsilons, as membership inference and canaries give them -------------------------------------------


def roc(label: str, shift: float, tries: int = 1000, seed: int = 1) -> Curve:
    """The curve of a test whose scores lie so far apart."""
    rng = np.random.default_rng(seed)
    out, inside = np.sort(rng.standard_normal(tries)), np.sort(rng.standard_normal(tries) + shift)
    at = np.unique(np.concatenate([out, inside]))[::-1]
    false = [float(1 - np.searchsorted(out, t) / tries) for t in at]
    true = [float(1 - np.searchsorted(inside, t) / tries) for t in at]
    return Curve("roc", label, tuple(false), tuple(true))


MEMBERSHIP = finding(
    attack="membership",
    title="Whether a document was in the training",
    adversary="model reader",
    threat_model="published_model",
    claim="a document's membership is hidden",
    measured=measured("members found at 0.1 % false positives", UNIT, Proportion(138, 1000), 0.999),
    confidence=0.999,
    chance=measured("members found at 0.1 % false positives", UNIT, Proportion(1, 1000), 0.999),
    beside=(measured("area under the curve", "pair", Estimate(0.843, 0.821, 0.862, 0.999), 0.999),),
    examples=(),
    curves=(roc("likelihood ratio, 40 shadow models", 1.6), roc("loss threshold", 0.4, seed=2)),
    sees=("model", "vocabulary"),
    setting="5 parties, all documents of each in every answer, 20 rounds",
    effort="40 shadows, 2000 candidates",
    citation="Carlini et al. 2022, arXiv 2112.03570; Manzonelli et al. 2024",
)
PROTECTED = changed(
    MEMBERSHIP,
    profile="dp-central",
    baseline=False,
    claimed=True,
    verdict=NOT_REFUTED,
    why="this attack, at this effort, reached 0.002",
    measured=measured("members found at 0.1 % false positives", UNIT, Proportion(2, 1000), 0.99975),
    confidence=0.99975,
    tests=4,
    refuted_from=0.0027,
    chance=measured("members found at 0.1 % false positives", UNIT, Proportion(1, 1000), 0.99975),
    epsilon=1.0,
    delta=1e-5,
    epsilon_unit="document",
    curves=(
        Curve("roc", "chance", (0.0, 1.0), (0.0, 1.0)),
        roc("likelihood ratio, 40 shadow models", 0.1, seed=3),
        roc("loss threshold", 0.02, seed=4),
    ),
    beside=(measured("area under the curve", "pair", Estimate(0.512, 0.48, 0.54, 0.999), 0.99975),),
)
EMPIRICAL = finding(
    attack="empirical_epsilon",
    title="The epsilon that canaries show",
    adversary="model reader",
    threat_model="published_model",
    profile="dp-central",
    claim="the total is differentially private",
    measured=measured("epsilon shown for certain", "epsilon", Estimate(1.42, 0.62, 2.31, 4.6), 0.999),
    confidence=0.999,
    refuted_from=4.38,
    epsilon=4.38,
    delta=1e-5,
    epsilon_unit="document",
    tests=4,
    chance=measured("epsilon shown for certain", "epsilon", Estimate(0.0, 0.0, 0.4, 2.2), 0.999),
    baseline=False,
    claimed=True,
    verdict=NOT_REFUTED,
    why="this attack, at this effort, reached 1.42",
    beside=(),
    examples=(),
    curves=(Curve("epsilon", "one run, 1000 canaries", (0.5, 1.0, 2.0, 4.38, 10.0), (0.1, 0.3, 0.8, 1.42, 2.9)),),
    sees=("model",),
    effort="1000 canaries",
)
UNPROTECTED = changed(
    EMPIRICAL,
    profile="open",
    measured=measured("epsilon shown for certain", "epsilon", Estimate(7.1, 5.2, math.inf, 7.4), 0.999),
    epsilon=None,
    delta=None,
    epsilon_unit="",
    tests=1,
    refuted_from=4.0,
    baseline=True,
    claimed=False,
    verdict=REFUTED,
    why="the interval begins at 5.2",
    curves=(),
)
REFUSED = RefusalRecord("masked", "19 documents of each of 5 parties in a sum", 95, 100, True, "south", "BelowMinimum")
FULL = replace(
    AUDIT,
    findings=(finding(examples=(Example("river ×2, boat, ferry, shore", "river ×2, boat, harbour", False),)),
              CLAIM, LEAK, IDLE, MEMBERSHIP, PROTECTED, UNPROTECTED, EMPIRICAL),
    refusals=(REFUSED,),
    made="2026-01-31",
)  # fmt: skip


def large(findings: int) -> Audit:
    """As many findings as a full plan may have, over many profiles, attacks and models."""
    kinds = FULL.findings
    named = "open masked masked_strict iftm ckks bfv dp-central dp-local dp-distributed fortress"
    profiles = named.split()
    several = tuple(
        changed(kinds[n % len(kinds)], profile=profiles[n % len(profiles)], model=("prodlda", "lda-matched")[n % 2])
        for n in range(findings)
    )
    return replace(FULL, plan="full", findings=several, not_tried=tuple(f"thing {n}" for n in range(12)))
