"""A profile against threat models: what is required, which part claims it, what tried it, and with what result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from glob import escape as escaped
from pathlib import Path
from typing import Any

from rich.console import Console

from securetm.auditing.bindings import TRIAL
from securetm.auditing.evidence import (
    Evidence,
    changed_since,
    evidence_folder,
    read_evidence,
    refusals_of,
    stale_refusals,
    trials_by_hash,
)
from securetm.auditing.plans import Trial, audit_plan_names, read_audit_plan
from securetm.auditing.record import NOT_REFUTED, NOT_TESTED, REFUTED, STANDING, Finding, flat, standing_of
from securetm.contracts import Adversary, Claim, Profile, Requirement, ThreatModel, Unit
from securetm.data_classes import dataclass
from securetm.plans.profiles import cohort_of, count_of_parties, read_profile
from securetm.reports.audits.wording import CAUTION, figure, ideal
from securetm.reports.profiles import parts_of, promised_of
from securetm.reports.terminal import show
from securetm.reports.texts import blocks
from securetm.settings import require
from securetm.threats import Gap, gaps, read_threat_model, threat_model_names

_CHANGED = " changed since"  # the end of each sentence of auditing/evidence.py about one change
LIES = "lies told to parties"  # the attempt on a claim that parties keep by refusing
_KEPT_BY_REFUSING = ("cannot speak for a party", "cannot show parties different cohorts")


def kept_evidence(profile: str, folder: Path, model: str = "") -> list[Evidence]:
    wanted = f"{escaped(profile)}--{escaped(model) or '*'}.json"
    return [read_evidence(path) for path in sorted(folder.glob(wanted))]


@dataclass(frozen=True)
class KeptResult:
    """A kept finding, what changed since, and the trial of its plan, if there still is one."""

    model: str
    finding: Finding
    stale: tuple[str, ...]
    trial: Trial | None


def kept_results(profile: str, folder: Path) -> list[KeptResult]:
    """What is kept of trials of this profile, each beside what changed since."""
    found = []
    for kept in kept_evidence(profile, folder):
        trials = _trials_of(kept.plan)
        for one in kept.findings:
            stale, trial = changed_since(one, kept.plan, trials), trials.get(one.attempt.bound.get(TRIAL, ""))
            found.append(KeptResult(kept.model, one, stale, trial))
    return found


@cache
def _trials_of(plan: str) -> Mapping[str, Trial]:
    return trials_by_hash(read_audit_plan(plan, _shipped)) if plan in audit_plan_names() else {}


def refusal_facts(profile: str, folder: Path) -> dict[str, Any]:
    """What is kept of one profile's refusals, as plain data; empty if nothing is."""
    kept = refusals_of(profile, folder)
    if kept is None:
        return {}
    lies, below = ([one for one in kept.refusals if (one.minimum == 0) == lie] for lie in (True, False))
    return {
        "plan": kept.plan,
        "date": kept.date,
        "stale": list(stale_refusals(kept)),
        "lies": {"tried": len(lies), "refused": sum(one.refused for one in lies)},
        "below_minimum": {
            "tried": len(below),
            "refused": sum(one.refused for one in below),
            "minimum": max((one.minimum for one in below), default=0),
        },
        "not_held": [one.attempt for one in kept.refusals if one.broken],
        "not_claimed": [
            {"attempt": one.attempt, "reason": one.reason}
            for one in kept.refusals
            if not one.refused and not one.broken  # a party answered a lie, and the profile claims nothing against it
        ],
    }


def rests_on_refusing(claim: Claim) -> bool:
    """Whether parties keep this claim by refusing messages of a malicious coordinator."""
    return claim.what in _KEPT_BY_REFUSING


def stale_in_words(reasons: Sequence[str]) -> str:
    """All that changed since a result was kept, in one sentence; empty if nothing did."""
    changed = [reason.removesuffix(_CHANGED) for reason in reasons if reason.endswith(_CHANGED)]
    rest = [reason for reason in reasons if not reason.endswith(_CHANGED)]
    said = [", ".join(changed) + _CHANGED] if changed else []
    return f"stale: {'; '.join([*said, *rest])}" if reasons else ""


NEVER = "never tried"
_NAMED = ("model.name", "model.batch", "corpus.parties", "training.rounds")  # settings that a result's own label holds
_ORDER = (REFUTED, NOT_REFUTED, NOT_TESTED)
_SHOWN = (
    *("attack", "title", "setting", "verdict", "why", "claimed", "baseline"),
    *("measure", "unit", "value", "low", "high", "ceiling", "helpers", "epsilon"),
)
_shipped = cache(read_threat_model)


@dataclass(frozen=True)
class _Known:
    """What is known of one profile: the claims of its parts for a cohort, what was kept, and what plans would try."""

    profile: Profile
    claims: tuple[tuple[str, Claim], ...]  # each with the part that makes it
    tried: tuple[KeptResult, ...]
    planned: tuple[tuple[str, Trial], ...]  # name of the plan, trial
    lies: tuple[str, ...]  # names of the plans in which the coordinator lies to the parties
    refusals: Mapping[str, Any]  # what is kept of the parties' refusals


def threats_of(name: str, parties: int | None = None, *, every: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """What the profile's threat model, or every threat model, requires; who claims it, what tried it, and the result."""
    profile, folder = read_profile(name), folder or evidence_folder()
    count, most = count_of_parties(profile, parties), profile.aggregation.most_parties
    require(count <= most, f"profile {profile.name}", "parties", count, f"must be at most {most:,}")
    plans = tuple(read_audit_plan(plan, _shipped) for plan in audit_plan_names())
    kept, cohort = kept_results(profile.name, folder), cohort_of(profile, count)
    known = _Known(
        profile,
        tuple((f"{of.kind} {part}", claim) for of, part, made in parts_of(profile) for claim in made.claims(cohort)),
        tuple(kept),
        tuple((plan.name, trial) for plan in plans for trial in plan.trials if profile.name in trial.profiles),
        tuple(plan.name for plan in plans if profile.name in plan.moves),
        refusal_facts(profile.name, folder),
    )
    found = [one.finding for one in kept]
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
        "out_of_scope": list(threats.risks),
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
    refusals = known.refusals
    lies = []
    if active and rests_on_refusing(claim) and refusals and refusals["lies"]["tried"]:
        # refuted if a party answered a lie that it should have refused, or one that shows that this claim fails
        shown = any(one["reason"].endswith(claim.what) for one in refusals["not_claimed"])
        verdict = REFUTED if refusals["not_held"] or shown else NOT_REFUTED
        rest = {name: refusals[name] for name in ("plan", "date", "stale", "not_held", "not_claimed")}
        called = standing_of(verdict, claimed=True)
        lies = [{"attempt": LIES, "verdict": verdict, STANDING: called, **refusals["lies"], **rest}]
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


def _attempt(one: KeptResult) -> dict[str, Any]:
    fields, run = flat(one.finding), one.trial.run if one.trial else {}
    return {
        **{name: fields[name] for name in _SHOWN},
        STANDING: one.finding.standing,
        "model": one.model,
        "settings": {name: value for name, value in run.items() if name not in _NAMED},
        "date": one.finding.run.kept,
        "stale": list(one.stale),
        "shown": figure(one.finding.outcome.measured),
        "ideal": ideal(one.finding),
    }


def show_threats(facts: Mapping[str, Any], to: Console) -> None:
    """A table for each adversary, what is accepted, and one sentence on how the profile stands."""
    required = [one for threats in facts["threat_models"] for who in threats["adversaries"] for one in who["required"]]
    asked = [one for who in facts["threat_models"][0]["adversaries"] for one in who["required"]]  # by its own threat model
    helpers = ([tried.get("helpers", 0) for tried in (*one["tried_by"], *one["lies"]) if not tried["stale"]] for one in asked)
    fewer = any(fresh and max(fresh) < one["colluding"] for fresh, one in zip(helpers, asked, strict=True))
    untried = sum(one["result"] in (NEVER, NOT_TESTED) for one in asked)
    lies_shown = any(one["lies"] for one in required)
    show(blocks("threats.shown", facts, _settings_said, stale_in_words, lies_shown, len(asked), untried, fewer, CAUTION), to)


def _settings_said(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """What tells a result from others of the same attack on the same model."""
    alike = [other for other in among if (other["attack"], other["model"]) == (one["attack"], one["model"])]
    whole = one["setting"] if len(alike) > 1 else ""  # where two results differ in that alone
    told = [f"{name.removeprefix('model.')} = {value}" for name, value in one["settings"].items()]
    return "; ".join(filter(None, (whole, ", ".join(part for part in told if part not in whole))))
