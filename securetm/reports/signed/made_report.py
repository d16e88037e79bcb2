"""Puts the facts of the page to sign together, from what report_sources.py read. It reads no file of the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from securetm.contracts import Claim, Profile
from securetm.credentials.fingerprints import fingerprint_of
from securetm.leakage.attacks import attack_names
from securetm.leakage.audit_record import Audit
from securetm.leakage.verdicts import NOT_TESTED, STANDINGS, standing
from securetm.profiles import claims_of, cohort_of
from securetm.reports.explanation import views_of
from securetm.reports.guess_limit import MOST_RIGHT
from securetm.reports.signed.five_questions import QUESTIONS, answered, in_words, with_what_one_can
from securetm.reports.signed.plain_words import COUNTED, plain_reason
from securetm.reports.signed.recommendation import recommended, rules_for
from securetm.reports.signed.regulator_facts import asked_by_regulators
from securetm.reports.signed.report_facts import THIS_RUN, PartyFacts, QuestionAnswer, RoleFacts, SignedReport
from securetm.reports.signed.report_sources import ReportSources, attempts_on, lies_to_parties
from securetm.reports.signed.spent_facts import limit_of, right_guesses_of, spent_in_words
from securetm.threats import CHANNELS, read_threat_model
from securetm.version import __version__
from securetm.wording import counted, listed

_ROLES = {"the coordinator": "coordinator", "every other party": "party", "whoever gets the model": "model reader"}
_MOST_NAMED = 4
_WITH_REASON = re.compile(r"the attack “(?P<title>.*)” \(\w+\): (?P<why>.+)")  # as leakage/untried.py writes it


def signed_report(sources: ReportSources) -> SignedReport:
    """All facts of the page."""
    profile, budget = sources.profile, sources.profile.budget
    claims = claims_of(profile, cohort_of(profile, _members(sources)))
    active = any(one.name == "coordinator" and one.behaviour == "active" for one in _adversaries(profile))
    parties, right = _parties(sources), right_guesses_of(sources.spent, budget)
    attempts = attempts_on(sources)
    limit, lies = limit_of(sources.spent, right), lies_to_parties(profile.name)
    weak = right is not None and right > MOST_RIGHT
    asked = (answered(one, attempts, claims, active=active, limit=limit, weak=weak, lies=lies) for one in QUESTIONS)
    answers = with_what_one_can(tuple(asked))
    audits = [audit for audit, _ in sources.audits]
    rules = rules_for(answers, profile, parties, right)
    return SignedReport(
        title=f"What was done with the documents: {sources.run}",
        run=sources.run,
        made=_days(sources, audits),
        software=sources.software or f"not noted; this page is by securetm {__version__}",
        digests=_digests(sources),
        model=sources.model,
        rounds=sources.rounds,
        profile=profile.name,
        profile_title=profile.title,
        danger=profile.danger,
        coordinator=_coordinator(sources),
        parties=parties,
        whose=_whose(sources),
        roles=_roles(profile, claims, len(_members(sources))),
        recorded=_recorded(sources),
        spent=(*spent_in_words(sources.spent, budget, right), *sources.before),
        answers=answers,
        headline=_headline(answers, audits),
        not_tried=_not_tried(sources, audits, answers),
        not_promised=_not_promised(profile),
        rules=rules,
        recommendation=recommended(rules),
        regulators=asked_by_regulators([finding for audit in audits for finding in audit.findings]),
        audits={audit.plan: digest for audit, digest in sources.audits},
    )


def _members(sources: ReportSources) -> tuple[str, ...]:
    """The parties; at home with one party, as many as its profile needs, since it keeps no list of the others."""
    least = max(sources.profile.minimum_parties, 2)
    return sources.members if len(sources.members) >= least else tuple(f"party {n}" for n in range(least))


def _adversaries(profile: Profile) -> Sequence[Any]:
    return read_threat_model(profile.threat_model).adversaries


def _days(sources: ReportSources, audits: Sequence[Audit]) -> str:
    tried = sorted({audit.made for audit in audits if audit.made})
    said = [f"trained {sources.begun}"] if sources.begun else []
    return ", ".join([*said, *([f"tried {listed(tuple(tried))}"] if tried else [])])


def _digests(sources: ReportSources) -> Mapping[str, str]:
    found = {
        "run": sources.run_digest,
        "model": sources.model_digest,
        "plan": sources.plan_digest,
        "profile": sources.profile.digest.hex(),
        "roster": sources.roster_digest,
    }
    return {name: digest for name, digest in found.items() if digest}


# ---- who ----------------------------------------------------------------------------------------------------------


def _coordinator(sources: ReportSources) -> str:
    if sources.federation:
        return f"the coordinator of the federation {sources.federation}"
    return "a simulation on one machine: whoever owned that machine could read everything"


def _whose(sources: ReportSources) -> str:
    if not sources.keys:
        return "The keys of the others are in the roster that this party accepted."
    if sources.federation:
        return "A key's fingerprint is the one in the roster of the federation; compare it there."
    return "These keys were made for this simulation. They prove nothing about any organisation."


def _parties(sources: ReportSources) -> tuple[PartyFacts, ...]:
    spent = {str(one["party"]): one for one in sources.spent}
    return tuple(_party(name, sources.keys.get(name, b""), spent.get(name, {})) for name in sources.members)


def _party(name: str, key: bytes, spent: Mapping[str, Any]) -> PartyFacts:
    return PartyFacts(
        name,
        fingerprint_of(key) if key else "",
        spent.get("epsilon"),
        spent.get("delta"),
        spent.get("unit", "") if spent.get("epsilon") is not None else "",
        spent.get("budget"),
        spent.get("all_runs"),
        lasting=bool(spent) and not spent.get("trial", False) and spent.get("epsilon") is not None,
    )


# ---- what was seen --------------------------------------------------------------------------------------------


def _roles(profile: Profile, claims: frozenset[Claim], parties: int) -> tuple[RoleFacts, ...]:
    views = views_of(profile, parties)
    return tuple(RoleFacts(one.role, one.sees, _promised(_ROLES[one.role], claims)) for one in views)


def _promised(role: str, claims: frozenset[Claim]) -> tuple[str, ...]:
    return in_words(claim for claim in claims if claim.against == role)


def _recorded(sources: ReportSources) -> tuple[str, ...]:
    sent = tuple(
        f"{CHANNELS.get(channel, channel)}: {counted(number, 'message')}, {length:,} bytes"
        for channel, number, length in sources.channels
    )
    told = tuple(f"answers to the question “{name}”: {number:,}" for name, number in sources.told.items())
    return sent or told or ("nothing: the folder holds no transcript",)


# ---- what was tried, and what was not ------------------------------------------------------------------------------


def _headline(answers: Sequence[QuestionAnswer], audits: Sequence[Audit]) -> str:
    """Counts what was tried on this run, and how the five questions stand."""
    counts = Counter(one.standing for one in answers)
    said = listed(tuple(f"{counts[name]} {COUNTED[name]}" for name in STANDINGS if counts[name]))
    found = [finding for audit in audits for finding in audit.findings if not finding.attempt.baseline]
    if not found:
        return f"Five questions: {said}. Nothing was tried on this run: no audit of it was made."
    own = Counter(map(standing, found))
    tried = listed(tuple(f"{own[name]} {name}" for name in STANDINGS if own[name]))
    return f"Five questions: {said}. {counted(len(found), 'attempt was', 'attempts were')} made on this run: {tried}."


def _not_tried(sources: ReportSources, audits: Sequence[Audit], answers: Sequence[QuestionAnswer]) -> tuple[str, ...]:
    said: list[str] = []
    if not audits:
        kept = "securetm audit quick --run RUN tries it" if sources.with_content else "its messages were not kept (--record)"
        said.append(f"No attack was tried on this run, because no audit of it was made; {kept}")
    else:
        done = {one.attempt.attack for audit in audits for one in audit.findings if standing(one) != NOT_TESTED}
        known = len(attack_names())
        said.append(f"{known - len(done)} of the {known} attacks that securetm knows; the annex lists them")
        said += _left_out(audits)
    said += _nothing_learned(audits)
    nowhere = {
        one.question: _beside(one) for one in answers if not any(each.tested and each.of_this_model for each in one.tried)
    }
    said += [f"“{question}”: tried nowhere, on no run of this profile{beside}" for question, beside in nowhere.items()]
    others = [one for one in answers if one.question not in nowhere and not _on_this_run(one)]
    if others:
        said.append(
            f"Of this run itself: {listed(tuple(f'“{one.question}”' for one in others))}. Trials of other runs answer these"
        )
    return tuple(said)


def _beside(answer: QuestionAnswer) -> str:
    """Where trials of another model, or at another epsilon, are all that there is."""
    other = any(each.tested for each in answer.tried)
    return " with this model; what was tried with another one stands beside the answer" if other else ""


def _left_out(audits: Sequence[Audit]) -> list[str]:
    """Attacks that the audits left out for a reason of this run, by their reason."""
    reasons: dict[str, dict[str, None]] = {}
    for sentence in dict.fromkeys(one for audit in audits for one in audit.not_tried):
        if (found := _WITH_REASON.fullmatch(sentence)) is not None:
            reasons.setdefault(found["why"], {})[found["title"]] = None
    return [f"{_named(titles)}: {why}" for why, titles in reasons.items()]


def _named(titles: Collection[str]) -> str:
    """Attacks by their titles, or their number where they are many."""
    return counted(len(titles), "attack") if len(titles) > _MOST_NAMED else listed(tuple(f"“{one}”" for one in titles))


def _nothing_learned(audits: Sequence[Audit]) -> list[str]:
    """Attempts that tested nothing, by their reason."""
    reasons: dict[str, dict[str, None]] = {}
    for one in (one for audit in audits for one in audit.findings):
        if standing(one) == NOT_TESTED and not one.attempt.baseline:
            reasons.setdefault(one.outcome.why, {})[one.about.title] = None
    return [f"{_named(titles)}: nothing was learned, because {plain_reason(why)}" for why, titles in reasons.items()]


def _on_this_run(answer: QuestionAnswer) -> bool:
    return any(each.place == THIS_RUN and each.tested for each in answer.tried)


def _not_promised(profile: Profile) -> tuple[str, ...]:
    threats = read_threat_model(profile.threat_model)
    return threats.out_of_scope
