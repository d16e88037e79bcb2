"""A profile against threat models: what is required, which part claims it, what tried it, and with what result.

This module reads profiles, threat models, audit plans and kept evidence. It runs no attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from glob import escape as escaped
from pathlib import Path
from typing import Any

from securetm.contracts import Adversary, Claim, Profile, Requirement, ThreatModel, Unit
from securetm.leakage.audit_plans import AuditPlan, Trial, audit_plan_names, read_audit_plan
from securetm.leakage.audit_record import STANDING, Finding, flat
from securetm.leakage.evidence import Evidence, evidence_folder, read_evidence
from securetm.leakage.evidence_hashes import TRIAL
from securetm.leakage.staleness import changed_since, trials_by_hash
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED, standing
from securetm.profiles import cohort_of, count_of_parties, read_profile
from securetm.reports.audit_wording import figure, ideal
from securetm.reports.explanation import promised_of
from securetm.reports.part_tables import parts_of
from securetm.reports.threat_refusals import LIES, lies_on, refusal_facts, rests_on_refusing
from securetm.threats import Gap, gaps, read_threat_model, threat_model_names
from securetm.toml_settings import require

NEVER = "never tried"
_NAMED = ("model.name", "model.batch", "corpus.parties", "training.rounds")  # settings that a result's own label holds
_ORDER = (REFUTED, NOT_REFUTED, NOT_TESTED)
_SHOWN = (
    *("attack", "title", "setting", "verdict", "why", "claimed", "baseline"),
    *("measure", "unit", "value", "low", "high", "ceiling", "helpers", "epsilon"),
)
_shipped = cache(read_threat_model)


@dataclass(frozen=True)
class _KeptResult:
    """A kept finding, what changed since, and what its plan set of the run that the finding's label does not say."""

    model: str
    finding: Finding
    stale: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class _Known:
    """What is known of one profile: the claims of its parts for a cohort, what was kept, and what plans would try."""

    profile: Profile
    claims: tuple[tuple[str, Claim], ...]  # each with the part that makes it
    tried: tuple[_KeptResult, ...]
    planned: tuple[tuple[str, Trial], ...]  # name of the plan, trial
    lies: tuple[str, ...]  # names of the plans in which the coordinator lies to the parties
    refusals: Mapping[str, Any]  # what is kept of the parties' refusals


def threats_of(name: str, parties: int | None = None, *, every: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """What the profile's threat model, or every threat model, requires; who claims it, what tried it, and the result."""
    profile, folder = read_profile(name), folder or evidence_folder()
    count, most = count_of_parties(profile, parties), profile.aggregation.most_parties
    require(count <= most, f"profile {profile.name}", "parties", count, f"must be at most {most:,}")
    plans = tuple(read_audit_plan(plan, _shipped) for plan in audit_plan_names())
    kept = [read_evidence(path) for path in sorted(folder.glob(f"{escaped(profile.name)}--*.json"))]
    known = _Known(
        profile,
        _claims(profile, count),
        tuple(_kept_results(kept, plans)),
        tuple((plan.name, trial) for plan in plans for trial in plan.trials if profile.name in trial.profiles),
        tuple(plan.name for plan in plans if profile.name in plan.moves),
        refusal_facts(profile.name, folder),
    )
    found = [finding for one in kept for finding in one.findings]
    others = [other for other in threat_model_names() if every and other != profile.threat_model]
    return {
        "profile": profile.name,
        "title": profile.title,
        "parties": count,
        "threat_models": [_facts(_shipped(each), known) for each in (profile.threat_model, *others)],
        "refuted_claims": sorted({one.attempt.claim for one in found if one.outcome.verdict == REFUTED and one.about.claimed}),
        "models": sorted({one.model for one in kept}),
        "refusals": known.refusals,
    }


def _claims(profile: Profile, parties: int) -> tuple[tuple[str, Claim], ...]:
    """Each claim with the part of the profile that makes it. This is slow for thousands of parties."""
    cohort = cohort_of(profile, tuple(f"party {n}" for n in range(parties)))
    parts = parts_of(profile)
    return tuple((f"{registry.kind} {name}", claim) for registry, name, part in parts for claim in part.claims(cohort))


def _kept_results(kept: Sequence[Evidence], plans: Sequence[AuditPlan]) -> list[_KeptResult]:
    hashed = {plan.name: trials_by_hash(plan) for plan in plans if plan.name in {one.plan for one in kept}}
    found = []
    for evidence in kept:
        trials = hashed.get(evidence.plan, {})
        for finding in evidence.findings:
            trial = trials.get(finding.attempt.bound.get(TRIAL, ""))
            settings = {name: value for name, value in (trial.run if trial else {}).items() if name not in _NAMED}
            found.append(_KeptResult(evidence.model, finding, changed_since(finding, evidence.plan, trials), settings))
    return found


# ---- one threat model ----------------------------------------------------------------------------------------------


def _facts(threats: ThreatModel, known: _Known) -> dict[str, Any]:
    made = frozenset(claim for _, claim in known.claims)
    required, missing, promised = threats.requires, gaps(threats, made), promised_of(made, threats)
    return {
        "name": threats.name,
        "title": threats.title,
        "own": threats.name == known.profile.threat_model,
        "gaps": len(missing),
        "adversaries": [
            {
                "adversary": one.name,
                "behaviour": one.behaviour,
                "sees": list(one.sees),
                "colludes_with_parties": one.colludes_with_parties,
                "required": [_required(wanted, one, missing, known) for wanted in required if wanted.claim.against == one.name],
            }
            for one in threats.adversaries
        ],
        "accepts": [
            {"claim": what, "reason": reason, "promised": what in promised, **_attempts(Claim(what, ""), (), known)}
            for what, reason in threats.accepts
        ],
        "out_of_scope": list(threats.out_of_scope),
    }


def _required(wanted: Requirement, adversary: Adversary, missing: Sequence[Gap], known: _Known) -> dict[str, Any]:
    """One required claim: which parts make it, for whom and against how many helpers, and what tried it."""
    claim = wanted.claim
    claimed_by = [
        {"by": by, "colluding": made.colluding, "unit": made.unit.value if made.unit else None}
        for by, made in known.claims
        if (made.what, made.against) == (claim.what, claim.against)
    ]
    return {
        "claim": claim.what,
        "unit": claim.unit.value if claim.unit else None,
        "because": wanted.because,
        "colluding": claim.colluding,
        "claimed_by": sorted(claimed_by, key=lambda one: (one["by"], one["unit"] or "")),
        "gap": next((gap.reason for gap in missing if (gap.claim, gap.adversary) == (claim.what, claim.against)), ""),
        **_attempts(claim, (adversary,), known),
    }


# ---- what tried it -------------------------------------------------------------------------------------------------


def _attempts(claim: Claim, adversaries: Sequence[Adversary], known: _Known) -> dict[str, Any]:
    """Kept results on this claim against these adversaries, the attacks that plans would still try, and the result.

    What a threat model accepts has no adversary: then every result on the claim counts.
    """
    empty = {"answer", "sealed"} - {known.profile.aggregation.channel}  # such a channel of this profile carries no message
    on_claim = [one for one in known.tried if one.finding.attempt.claim == claim.what]
    tried = [one for one in on_claim if _covers(one.finding, claim, adversaries, empty)]
    done = {one.finding.attempt.attack for one in tried}
    waiting = [one for one in known.planned if one[1].claim == claim.what and one[1].attack not in done]
    still = {(trial.attack, plan) for plan, trial in waiting if _planned_for(trial, claim, adversaries)}
    active = any(one.behaviour == "active" for one in adversaries)
    lies = lies_on(claim, known.refusals) if active else []
    if active and rests_on_refusing(claim) and not lies:
        still |= {(LIES, plan) for plan in known.lies}
    ended = [(one.finding.outcome.verdict, one.stale) for one in tried] + [(one["verdict"], one["stale"]) for one in lies]
    verdicts = {verdict for verdict, stale in ended if not stale or verdict == REFUTED}
    return {
        "tried_by": [_attempt(one) for one in tried],
        "lies": lies,
        "planned": [{"attack": attack, "plan": plan} for attack, plan in sorted(still)],
        "result": next((verdict for verdict in _ORDER if verdict in verdicts), NEVER),
    }


def _covers(tried: Finding, claim: Claim, adversaries: Sequence[Adversary], empty: set[str]) -> bool:
    """Whether one of them could have run the attack: same name, all channels that it read, and as many helpers.

    An attack that keeps to the protocol and fails shows nothing about an adversary that violates it.
    """
    attempt, refuted = tried.attempt, tried.outcome.verdict == REFUTED
    own = _shipped(attempt.threat_model).adversary(attempt.adversary)
    able = (
        one.name == own.name
        and set(tried.about.sees) - empty <= set(one.sees)
        and attempt.helpers <= one.colludes_with_parties
        and (refuted or one.behaviour == own.behaviour)
        for one in adversaries
    )
    return not adversaries or (any(able) and _same_unit(attempt.threat_model, own.name, claim))


def _planned_for(trial: Trial, claim: Claim, adversaries: Sequence[Adversary]) -> bool:
    """Whether one of them sees at least what the trial's own adversary sees, and behaves alike."""
    own = _shipped(trial.threat_model).adversary(trial.adversary)
    able = (one.name == own.name and set(own.sees) <= set(one.sees) and one.behaviour == own.behaviour for one in adversaries)
    return not adversaries or (any(able) and _same_unit(trial.threat_model, own.name, claim))


def _same_unit(threat_model: str, adversary: str, claim: Claim) -> bool:
    """Whether the trial's threat model asks for single words where the claim does, and for documents or more otherwise."""
    asked = _shipped(threat_model).requires
    units = {one.claim.unit for one in asked if (one.claim.what, one.claim.against) == (claim.what, adversary)}
    return not units or (Unit.WORD in units) == (claim.unit is Unit.WORD)


def _attempt(one: _KeptResult) -> dict[str, Any]:
    fields = flat(one.finding)
    return {
        **{name: fields[name] for name in _SHOWN},
        STANDING: standing(one.finding),
        "model": one.model,
        "settings": dict(one.settings),
        "date": one.finding.run.kept,
        "stale": list(one.stale),
        "shown": figure(one.finding.outcome.measured),
        "ideal": ideal(one.finding),
    }
