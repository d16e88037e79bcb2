"""What each adversary of a threat model is required not to learn, who claims it, what tried it and how that ended.

It reads kept evidence and shows it; it attacks nothing, and knows no more than profile, threat models, plans and evidence say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from glob import escape as escaped
from pathlib import Path
from typing import Any

from securetm.aggregation import AGGREGATIONS
from securetm.contracts import Adversary, Claim, Cohort, Profile, Requirement, ThreatModel, Unit
from securetm.leakage.audit_plans import Trial, audit_plan_names, read_audit_plan
from securetm.leakage.audit_record import Finding, flat
from securetm.leakage.evidence import Evidence, evidence_folder, read_evidence
from securetm.leakage.evidence_hashes import TRIAL
from securetm.leakage.staleness import changed_since, trials_by_hash
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED
from securetm.mechanisms import MECHANISMS
from securetm.profiles import claims_of, cohort_of, count_of_parties, read_profile
from securetm.registries import Registry
from securetm.reports.audit_wording import figure
from securetm.reports.threat_refusals import (
    LIES,
    lies_on,
    refusal_facts,
    rests_on_refusing,
)
from securetm.threats import gaps, read_threat_model, threat_model_names
from securetm.toml_settings import require

NEVER = "never tried"
_NAMED = ("model.name", "model.batch", "corpus.parties", "training.rounds")  # settings that a result's own label holds
_ORDER = (REFUTED, NOT_REFUTED, NOT_TESTED)


@dataclass(frozen=True)
class _Known:
    """All that is known of one profile: its parts' claims for a cohort, what was kept, and what plans would try."""

    profile: Profile
    cohort: Cohort
    tried: tuple[tuple[str, Finding, tuple[str, ...], Mapping[str, Any]], ...]  # model, result, why it is stale, its settings
    planned: tuple[tuple[str, Trial], ...]  # name of the plan, trial
    lies: tuple[str, ...] = ()  # names of the plans in which its coordinator lies to the parties
    refusals: Mapping[str, Any] = field(default_factory=dict)  # what is kept of the parties' refusals

    @cached_property
    def claims(self) -> frozenset[Claim]:
        return claims_of(self.profile, self.cohort)

    @cached_property
    def made(self) -> tuple[tuple[str, Claim], ...]:
        """Each claim with the part of the profile that makes it; with thousands of parties that takes its time."""
        parts: list[tuple[Registry, Any]] = [(AGGREGATIONS, self.profile.aggregation)]
        parts += [(MECHANISMS, part) for part in self.profile.mechanisms]
        return tuple((f"{of.kind} {of.name_of(part)}", claim) for of, part in parts for claim in part.claims(self.cohort))


def threats_of(name: str, parties: int | None = None, *, every: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """A profile against its threat model, or against every one: what is required, claimed, tried, and with what result."""
    profile = read_profile(name)
    members = tuple(f"party {n}" for n in range(_parties(parties, profile)))
    threats = cache(read_threat_model)
    plans = tuple(read_audit_plan(plan, threats) for plan in audit_plan_names())
    kept = [read_evidence(path) for path in sorted((folder or evidence_folder()).glob(f"{escaped(profile.name)}--*.json"))]
    hashed = {plan.name: trials_by_hash(plan) for plan in plans if plan.name in {one.plan for one in kept}}
    tries = tuple((one.model, *tried) for one in kept for tried in _with_age(one, hashed.get(one.plan, {})))
    planned = tuple((plan.name, trial) for plan in plans for trial in plan.trials if profile.name in trial.profiles)
    lies = tuple(plan.name for plan in plans if profile.name in plan.moves)
    refusals = refusal_facts(profile.name, folder or evidence_folder())
    known = _Known(profile, cohort_of(profile, members), tries, planned, lies, refusals)
    found = [finding for one in kept for finding in one.findings]
    others = [other for other in threat_model_names() if every and other != profile.threat_model]
    return {
        "profile": profile.name,
        "title": profile.title,
        "parties": len(members),
        "threat_models": [_facts(read_threat_model(each), known) for each in (profile.threat_model, *others)],
        "refuted_claims": sorted({one.attempt.claim for one in found if one.outcome.verdict == REFUTED and one.about.claimed}),
        "models": sorted({one.model for one in kept}),
        "refusals": refusals,
    }


def _parties(wanted: int | None, profile: Profile) -> int:
    """How many parties the answer is about."""
    parties, most = count_of_parties(profile, wanted), profile.aggregation.most_parties
    require(parties <= most, f"profile {profile.name}", "parties", parties, f"must be at most {most:,}")
    return parties


def _with_age(kept: Evidence, trials: Mapping[str, Trial]) -> list[tuple[Finding, tuple[str, ...], Mapping[str, Any]]]:
    """Each result, with what changed since, and what its plan set of its runs beside what every result names."""
    known = {digest: trial.run for digest, trial in trials.items()}
    runs = [known.get(tried.attempt.bound.get(TRIAL, ""), {}) for tried in kept.findings]
    set_ = [{name: value for name, value in run.items() if name not in _NAMED} for run in runs]
    return [(tried, changed_since(tried, kept.plan, trials), run) for tried, run in zip(kept.findings, set_, strict=True)]


# ---- one threat model ----------------------------------------------------------------------------------------------


def _facts(threats: ThreatModel, known: _Known) -> dict[str, Any]:
    return {
        "name": threats.name,
        "title": threats.title,
        "own": threats.name == known.profile.threat_model,
        "gaps": len(gaps(threats, known.claims)),
        "adversaries": [_adversary(one, threats, known) for one in threats.adversaries],
        "accepts": [
            {"claim": what, "reason": reason, **_attempts(Claim(what, ""), (), known)} for what, reason in threats.accepts
        ],
        "out_of_scope": list(threats.out_of_scope),
    }


def _adversary(adversary: Adversary, threats: ThreatModel, known: _Known) -> dict[str, Any]:
    wanted = [one for one in threats.requires if one.claim.against == adversary.name]
    return {
        "adversary": adversary.name,
        "behaviour": adversary.behaviour,
        "sees": list(adversary.sees),
        "colludes_with_parties": adversary.colludes_with_parties,
        "required": [_required(one, adversary, threats, known) for one in wanted],
    }


def _required(wanted: Requirement, adversary: Adversary, threats: ThreatModel, known: _Known) -> dict[str, Any]:
    missing = {(gap.claim, gap.adversary): gap.reason for gap in gaps(threats, known.claims)}
    return {
        "claim": wanted.claim.what,
        "unit": wanted.claim.unit.value if wanted.claim.unit else None,
        "because": wanted.because,
        "colluding": wanted.claim.colluding,
        "claimed_by": _claimed_by(wanted.claim, known),
        "gap": missing.get((wanted.claim.what, adversary.name), ""),
        **_attempts(wanted.claim, (adversary,), known),
    }


def _claimed_by(wanted: Claim, known: _Known) -> list[dict[str, Any]]:
    """Each part of the profile that says so, with how many helpers it bears, and for whom."""
    found = [
        {"by": by, "colluding": claim.colluding, "unit": claim.unit.value if claim.unit else None}
        for by, claim in known.made
        if (claim.what, claim.against) == (wanted.what, wanted.against)
    ]
    return sorted(found, key=lambda one: (one["by"], one["unit"] or ""))


# ---- what tried it -------------------------------------------------------------------------------------------------


def _attempts(claim: Claim, adversaries: Sequence[Adversary], known: _Known) -> dict[str, Any]:
    """Kept results on this claim by what these adversaries see, the attacks that plans would still try, and how it stands.

    What is accepted is accepted of everybody: then no adversary is named, and each result counts.
    """
    empty = {"answer", "sealed"} - {known.profile.aggregation.channel}  # whoever may read it finds nothing there
    tried = [one for one in known.tried if one[1].attempt.claim == claim.what and _by_these(one[1], claim, adversaries, empty)]
    done = {result.attempt.attack for _, result, *_ in tried}
    waiting = [one for one in known.planned if one[1].claim == claim.what and one[1].attack not in done]
    still = {(trial.attack, plan) for plan, trial in waiting if _planned_for(trial, claim, adversaries)}
    active = any(one.behaviour == "active" for one in adversaries)
    lies = lies_on(claim, known.refusals) if active else []
    if active and rests_on_refusing(claim) and not lies:
        still |= {(LIES, plan) for plan in known.lies}
    verdicts = {one.outcome.verdict for _, one, changed, _ in tried if not changed or one.outcome.verdict == REFUTED}
    verdicts |= {one["verdict"] for one in lies if not one["stale"] or one["verdict"] == REFUTED}
    return {
        "tried_by": [_attempt(*one) for one in tried],
        "lies": lies,
        "planned": [{"attack": attack, "plan": plan} for attack, plan in sorted(still)],
        "result": next((verdict for verdict in _ORDER if verdict in verdicts), NEVER),
    }


def _by_these(tried: Finding, claim: Claim, adversaries: Sequence[Adversary], empty: set[str]) -> bool:
    """Whether one of them could have done it: it has the name, sees all that was read, and has as many helpers."""
    attempt, refuted = tried.attempt, tried.outcome.verdict == REFUTED
    able = (
        one.name == attempt.adversary
        and set(tried.about.sees) - empty <= set(one.sees)
        and attempt.helpers <= one.colludes_with_parties
        and (refuted or one.behaviour == _behaviour(attempt.threat_model, attempt.adversary))
        for one in adversaries  # who keeps to the rules and fails says nothing of who breaks them
    )
    return not adversaries or (any(able) and _same_unit(attempt.threat_model, attempt.adversary, claim))


def _planned_for(trial: Trial, claim: Claim, adversaries: Sequence[Adversary]) -> bool:
    """As far as a plan says: what its own adversary sees is seen by one of these."""
    own = _shipped(trial.threat_model).adversaries
    sees = next(set(one.sees) for one in own if one.name == trial.adversary)
    behaves = _behaviour(trial.threat_model, trial.adversary)
    able = (one.name == trial.adversary and sees <= set(one.sees) and one.behaviour == behaves for one in adversaries)
    return not adversaries or (any(able) and _same_unit(trial.threat_model, trial.adversary, claim))


def _behaviour(threat_model: str, adversary: str) -> str:
    return next(one.behaviour for one in _shipped(threat_model).adversaries if one.name == adversary)


def _same_unit(threat_model: str, adversary: str, claim: Claim) -> bool:
    """A trial speaks of the unit that its own threat model asks for: of single words, or of documents at least."""
    asked = _shipped(threat_model).requires
    units = {one.claim.unit for one in asked if (one.claim.what, one.claim.against) == (claim.what, adversary)}
    return not units or (Unit.WORD in units) == (claim.unit is Unit.WORD)


_shipped = cache(read_threat_model)


_SHOWN = (
    *("attack", "title", "setting", "verdict", "why", "claimed", "baseline"),
    *("measure", "unit", "value", "low", "high", "ceiling", "helpers", "epsilon"),
)


def _attempt(model: str, tried: Finding, changed: tuple[str, ...], settings: Mapping[str, Any]) -> dict[str, Any]:
    fields = flat(tried)
    return {
        **{name: fields[name] for name in _SHOWN},
        "model": model,
        "settings": dict(settings),
        "date": tried.run.kept,
        "stale": list(changed),
        "shown": figure(tried.outcome.measured),
    }
