"""A profile against threat models: what is required, which part claims it, what tried it, and with what result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from securetm.auditing.record import HELD, NOT_REFUTED, NOT_TESTED, REFUTED, STANDING, Finding, RefusalRecord, flat, standing_of
from securetm.contracts import Adversary, Claim, Profile, Requirement, ThreatModel, Unit
from securetm.plans.profiles import cohort_of, count_of_parties, read_profile
from securetm.reports.audits.wording import CAUTION, figure, ideal
from securetm.reports.document import Paragraph, Table, Words, paragraphs
from securetm.reports.profiles import parts_of, promised_of
from securetm.reports.terminal import rich_table, show
from securetm.settings import require
from securetm.threats import Gap, gaps, read_threat_model, threat_model_names
from securetm.wording import counted, upward

_CHANGED = " changed since"  # the end of each sentence of auditing/evidence.py about one change
LIES = "lies told to parties"  # the attempt on a claim that parties keep by refusing
_KEPT_BY_REFUSING = ("cannot speak for a party", "cannot show parties different cohorts")


def kept_evidence(profile: str, folder: Path, model: str = "") -> list[Evidence]:
    """What is kept of trials of this profile, with this model or with any."""
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
        "lies": _counts(lies),
        "below_minimum": {**_counts(below), "minimum": max((one.minimum for one in below), default=0)},
        "not_held": [one.attempt for one in kept.refusals if one.broken],
        "not_claimed": [
            {"attempt": one.attempt, "reason": one.reason}
            for one in kept.refusals
            if not one.refused and not one.broken  # a party answered a lie, and the profile claims nothing against it
        ],
    }


def _counts(tried: list[RefusalRecord]) -> dict[str, int]:
    return {"tried": len(tried), "refused": sum(one.refused for one in tried)}


def rests_on_refusing(claim: Claim) -> bool:
    """Whether parties keep this claim by refusing messages of a malicious coordinator."""
    return claim.what in _KEPT_BY_REFUSING


def lies_on(claim: Claim, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kept lies as a result on this claim; empty if none was told.

    The claim is refuted if a party answered a lie that it should have refused, or one that shows that this claim fails.
    """
    if not facts or not rests_on_refusing(claim) or not facts["lies"]["tried"]:
        return []
    shown = any(one["reason"].endswith(claim.what) for one in facts["not_claimed"])
    verdict = REFUTED if facts["not_held"] or shown else NOT_REFUTED
    rest = {name: facts[name] for name in ("plan", "date", "stale", "not_held", "not_claimed")}
    called = standing_of(verdict, claimed=True)
    return [{"attempt": LIES, "verdict": verdict, STANDING: called, **facts["lies"], **rest}]


def lies_in_words(one: Mapping[str, Any]) -> str:
    """How the lies ended, in one line."""
    answered = "; ".join(f"{lie['attempt']} ({lie['reason']})" for lie in one["not_claimed"])
    broken = f"; NOT HELD: {'; '.join(one['not_held'])}" if one["not_held"] else ""
    beside = f"; answered: {answered}" if answered else ""
    return f": {one['refused']} of {one['tried']} lies refused, {one['date']}{broken}{beside}"


def stale_in_words(reasons: Sequence[str]) -> str:
    """All that changed since a result was kept, in one sentence; empty if nothing did."""
    changed = [reason.removesuffix(_CHANGED) for reason in reasons if reason.endswith(_CHANGED)]
    rest = [reason for reason in reasons if not reason.endswith(_CHANGED)]
    said = [", ".join(changed) + _CHANGED] if changed else []
    return f"stale: {'; '.join([*said, *rest])}" if reasons else ""


def outside_claims(facts: Mapping[str, Any], lies_shown: bool) -> list[str]:
    """Results that stand in no claim's row: runs below the minimum, and lies unless a row shows them."""
    if not facts:
        return []
    sentences, below = [], facts["below_minimum"]
    stale = f"; {stale_in_words(facts['stale'])}" if facts["stale"] else ""
    if facts["lies"]["tried"] and not lies_shown:
        sentences.append(f"{LIES.capitalize()}{lies_in_words({**facts, **facts['lies']})}{stale}.")
    if below["tried"]:
        ended = f"{below['refused']} of {below['tried']} refused, {facts['date']}{stale}"
        sentences.append(f"Runs begun with too few documents for a minimum of {below['minimum']:,}: {ended}.")
    return sentences


Parts = tuple[str | Words, ...]  # of a line
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
    kept = kept_results(profile.name, folder)
    known = _Known(
        profile,
        _claims(profile, count),
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


def _claims(profile: Profile, parties: int) -> tuple[tuple[str, Claim], ...]:
    """Each claim with the part of the profile that makes it. This is slow for thousands of parties."""
    cohort = cohort_of(profile, parties)
    parts = parts_of(profile)
    return tuple((f"{registry.kind} {name}", claim) for registry, name, part in parts for claim in part.claims(cohort))


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
    show(_on_screen(facts), to)


def _on_screen(facts: Mapping[str, Any]) -> Iterator[Any]:
    yield Paragraph(f"{facts['profile']}: {facts['title']}", "strong")
    required = []
    for threats in facts["threat_models"]:
        own = "its threat model" if threats["own"] else "another threat model"
        yield Paragraph(("\n", Words(threats["name"], "strong"), f", {own}: {threats['title']}"))
        for adversary in threats["adversaries"]:
            required += adversary["required"]
            yield _adversary(adversary)
        promised = [((f"“{one['claim']}”",), one) for one in threats["accepts"] if one["promised"]]
        accepted = [((f"“{one['claim']}”: {one['reason']}",), one) for one in threats["accepts"] if not one["promised"]]
        if promised:
            yield _table("Not required, and promised by this profile all the same", "claim", promised)
        if accepted:
            yield _table("Knowingly accepted that this may not hold", "claim, and the reason", accepted)
    yield from paragraphs(outside_claims(facts["refusals"], any(one["lies"] for one in required)))
    yield _sentence(facts)
    yield Paragraph(CAUTION)


def _adversary(adversary: Mapping[str, Any]) -> Any:
    helpers = adversary["colludes_with_parties"]
    helped = f", helped by {counted(helpers, 'party', 'parties')}" if helpers else ""
    name = f"{adversary['adversary'].capitalize()} ({adversary['behaviour']}{helped})"
    who = f"{name}, sees: {', '.join(adversary['sees'])}"
    if not adversary["required"]:
        return Paragraph(f"{who}. Nothing is required against it.")
    return _table(who, "required, and who claims it", [(_asked(one), one) for one in adversary["required"]])


def _table(title: str, asked: str, rows: Sequence[tuple[Parts, Mapping[str, Any]]]) -> Any:
    """What is asked, and what tried it; two columns, wide enough for names of attacks at eighty characters."""
    cells = tuple(((first,), (_results(one),)) for first, one in rows)
    table = rich_table(Table((asked, "what tried it, and how that ended"), cells, title=title, kind="lines"), expand=True)
    table.columns[0].ratio, table.columns[1].ratio = 2, 4
    return table


def _asked(wanted: Mapping[str, Any]) -> Parts:
    unit = f" per {wanted['unit']}" if wanted["unit"] else ""
    promises: dict[tuple[str, int], list[str]] = {}
    for one in wanted["claimed_by"]:
        promises.setdefault((one["by"], one["colluding"]), []).extend([one["unit"]] if one["unit"] else [])
    said = (f"\nclaimed by {_promise(by, helpers, units)}" for (by, helpers), units in promises.items())
    gap = ("\n", Words("GAP:", "danger"), f" {wanted['gap']}") if wanted["gap"] else ()
    return f"“{wanted['claim']}”{unit}", *said, *gap


def _promise(by: str, helpers: int, units: Sequence[str]) -> str:
    whose = f", per {' or '.join(units)}" if units else ""
    helped = {0: "if no party helps", 1: "even if one party helps"}.get(helpers, f"even if {helpers} parties help")
    return f"{by}{whose}, {helped}"


def _results(asked: Mapping[str, Any]) -> Parts:
    """Each attack with its result below it, then the attacks that plans would still run."""
    done = [_tried(one, asked["tried_by"]) for one in asked["tried_by"]]
    done += [(f"{LIES}\n", _verdict(one), lies_in_words(one), *_stale(one)) for one in asked["lies"]]
    plans: dict[str, list[str]] = {}
    for one in asked["planned"]:
        plans.setdefault(one["attack"], []).append(one["plan"])
    done += [(f"{attack} (plan {', '.join(names)}): no result is kept",) for attack, names in plans.items()]
    return tuple(part for place, one in enumerate(done or [(NEVER,)]) for part in (*(("\n",) if place else ()), *one))


def _tried(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> Parts:
    """The attack with its title; below it the verdict with its figures, and what changed since."""
    helped = f", {one['helpers']} helping" if one["helpers"] else ""
    alike = [other for other in among if (other["attack"], other["model"]) == (one["attack"], one["model"])]
    whole = one["setting"] if len(alike) > 1 else ""  # where two results differ in that alone
    told = [f"{name.removeprefix('model.')} = {value}" for name, value in one["settings"].items()]
    said = "; ".join(filter(None, (whole, ", ".join(part for part in told if part not in whole))))
    name = f"{one['attack']}, {one['model']}{helped}" + (f" ({said})" if said else "")
    title = f": {one['title']}" if one["title"] else ""
    at = f", at epsilon {upward(one['epsilon'])}" if one["epsilon"] is not None else ""
    could = (f"; {one['ideal']}{at}" if one["ideal"] else at) if one[STANDING] == HELD else ""
    why = f"; {one['why']}" if one["verdict"] == NOT_TESTED else ""
    figure = f": {one['shown']} {one['measure']}{could}, {one['date']}{why}"
    return Words(name, "strong"), f"{title}\n", _verdict(one), figure, *_stale(one)


def _verdict(one: Mapping[str, Any]) -> Words:
    return Words(one[STANDING], f"verdict {one[STANDING]}")


def _stale(one: Mapping[str, Any]) -> Parts:
    return (Words(f"\n{stale_in_words(one['stale'])}", "note"),) if one["stale"] else ()


def _sentence(facts: Mapping[str, Any]) -> Paragraph:
    """How the profile stands against its own threat model."""
    own = facts["threat_models"][0]
    if facts["refusals"].get("not_held"):
        return Paragraph(f"NOT HELD: parties should have refused {'; '.join(facts['refusals']['not_held'])}.", "danger")
    if facts["refuted_claims"]:
        named = ", ".join(f"“{claim}”" for claim in facts["refuted_claims"])
        return Paragraph(f"Broken by our own attacks: {named}, which this profile claims.", "danger")
    if own["gaps"]:
        gaps = counted(own["gaps"], "gap")
        return Paragraph(f"{gaps}: {own['name']} requires what this profile does not claim.", "danger")
    asked = [wanted for adversary in own["adversaries"] for wanted in adversary["required"]]
    untried = sum(wanted["result"] in (NEVER, NOT_TESTED) for wanted in asked)
    if not asked:
        return Paragraph(f"{own['name']} requires nothing of a profile.")
    return Paragraph(
        f"Every claim that {own['name']} requires is made; {len(asked) - untried} of {len(asked)} were tried{_helped(asked)}, "
        "none broken by these attacks, at the effort and the epsilons of these trials."
    )


def _helped(asked: Sequence[Mapping[str, Any]]) -> str:
    """A remark if the fresh results on some claim all have fewer helpers than the claim must withstand."""
    for one in asked:  # a lie has no helpers
        fresh = [tried.get("helpers", 0) for tried in (*one["tried_by"], *one["lies"]) if not tried["stale"]]
        if fresh and max(fresh) < one["colluding"]:
            return ", some of them with fewer helpers than are feared"
    return ""
