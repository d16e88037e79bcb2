"""The annex of the sheet to sign: its facts, and the sections that every form of it shows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from securetm.accounting.calculator.persons import MANY_PARTIES, grown
from securetm.auditing.attacks import attack_names
from securetm.auditing.record import BROKEN, HELD, NOT_TESTED, OPEN, STANDINGS, Audit
from securetm.auditing.regulators import CRITERIA
from securetm.contracts import Unit
from securetm.credentials.keys import fingerprint_of
from securetm.plans.profiles import claims_of
from securetm.reports.document import Document, Reply, Section
from securetm.reports.profiles import views_of
from securetm.reports.statement.guesses import MOST_RIGHT, limit_said, right_guesses
from securetm.reports.statement.questions import (
    QUESTIONS,
    THIS_RUN,
    PartyFacts,
    QuestionAnswer,
    RoleFacts,
    SignedReport,
    answered,
    asked_by_regulators,
    in_words,
    plain_reason,
    recommended,
    rules_for,
    with_what_one_can,
)
from securetm.reports.statement.seal import annex_marks, shown_digest
from securetm.reports.statement.sources import ReportSources, attempts_on, lies_to_parties
from securetm.reports.texts import said, sections, sentence
from securetm.threats import CHANNELS, read_threat_model
from securetm.version import __version__

_SEVERAL = (2, 5, 10)  # documents of a person, of which the page says what they spend together


def right_guesses_of(sources: ReportSources) -> float | None:
    """The largest share of right guesses whether somebody was in it, where a coin is right half of the time."""
    budget = sources.profile.budget
    if budget is None or budget.unit is Unit.WORD:
        return None
    return max((right_guesses(*_of_all_runs(one)) for one in sources.paid), default=None)


def limit_of(sources: ReportSources, right: float | None) -> str:
    """What the budget proves, whatever anybody tries; empty where it proves nothing of documents."""
    if right is None:
        return ""
    if unbounded := sources.unbounded_because:
        return f"All runs so far together are unbounded, because of {unbounded}: nothing limits a guess."
    others = any(_of_all_runs(one)[0] > float(one["epsilon"]) for one in sources.paid)
    return f"{limit_said(right)}{' That is what the results of all runs so far tell together.' if others else ''}"


def spent_in_words(sources: ReportSources, right: float | None) -> tuple[str, ...]:
    paid, budget = sources.paid, sources.profile.budget
    if budget is None or not paid:
        return said("annex.spent", None)
    worst = float(sources.worst["epsilon"]), float(sources.worst["delta"])
    unbounded = sources.unbounded_because
    whole = max(map(_of_all_runs, paid))
    others = any(  # other runs are known
        (one.get("all_runs") is not None and not one.get("trial", False)) or _of_all_runs(one)[0] > float(one["epsilon"])
        for one in paid
    )
    known = budget.unit is Unit.DOCUMENT and not unbounded
    group = [(several, grown(*whole, several)) for several in _SEVERAL] if known else []
    return said("annex.spent", budget, worst, limit_of(sources, right), unbounded, whole, others, group, MANY_PARTIES)


def _of_all_runs(one: Mapping[str, Any]) -> tuple[float, float]:
    """Epsilon and delta of all runs that the record knows: of the party's ledger, and of what this run started from."""
    if one.get("unbounded_because"):
        return math.inf, 1.0
    own = float(one["epsilon"]), float(one["delta"])
    if one.get("all_runs") is None:
        return own
    return max(own[0], float(one["all_runs"])), max(own[1], float(one["all_runs_delta"]))


# ---- the facts -------------------------------------------------------------------------------------------------------

_ROLES = {"the coordinator": "coordinator", "every other party": "party", "whoever gets the model": "model reader"}
_MOST_NAMED = 4
_WITH_REASON = re.compile(r"the attack “(?P<title>.*)” \(\w+\): (?P<why>.+)")  # as auditing/runner.py writes it


def signed_report(sources: ReportSources) -> SignedReport:
    profile, audits = sources.profile, [audit for audit, _ in sources.audits]
    claims = claims_of(profile, sources.cohort)
    threats = read_threat_model(profile.threat_model)
    active = any(one.name == "coordinator" and one.behaviour == "active" for one in threats.adversaries)
    right = right_guesses_of(sources)
    limit, weak = limit_of(sources, right), right is not None and right > MOST_RIGHT
    attempts, lies = attempts_on(sources), lies_to_parties(profile.name)
    asked = (answered(one, attempts, claims, active=active, limit=limit, weak=weak, lies=lies) for one in QUESTIONS)
    answers, parties = with_what_one_can(tuple(asked)), _parties(sources)
    rules = rules_for(answers, profile, parties, right)
    own = (one.standing for audit in audits for one in audit.findings if not one.attempt.baseline)
    counts = Counter(one.standing for one in answers), Counter(own)  # of the five questions, and of what was tried on this run
    simulated = "a simulation on one machine: whoever owned that machine could read everything"
    digests = {
        "run": sources.run_digest,
        "model": sources.model_digest,
        "plan": sources.plan_digest,
        "profile": profile.digest.hex(),
        "roster": sources.roster_digest,
    }
    return SignedReport(
        title=f"What was done with the documents: {sources.run}",
        run=sources.run,
        made=sentence("annex.made", sources.begun, sorted({audit.made for audit in audits if audit.made})),
        software=sources.software or f"not noted; this page is by securetm {__version__}",
        digests={name: digest for name, digest in digests.items() if digest},
        model=sources.model,
        rounds=sources.rounds,
        profile=profile.name,
        profile_title=profile.title,
        danger=profile.danger,
        coordinator=f"the coordinator of the federation {sources.federation}" if sources.federation else simulated,
        parties=parties,
        whose=sentence("annex.whose", sources),
        roles=tuple(
            RoleFacts(view.role, view.sees, in_words(claim for claim in claims if claim.against == _ROLES[view.role]))
            for view in views_of(profile, len(sources.cohort.members))
        ),
        recorded=said("annex.recorded", sources, CHANNELS),
        spent=(*spent_in_words(sources, right), *sources.before),
        answers=answers,
        headline=sentence("annex.headline", *([(one, of[one]) for one in STANDINGS if of[one]] for of in counts)),
        not_tried=tuple(_not_tried(sources, audits, answers)),
        not_promised=threats.risks,
        rules=rules,
        recommendation=recommended(rules),
        regulators=asked_by_regulators([finding for audit in audits for finding in audit.findings]),
        audits={audit.plan: digest for audit, digest in sources.audits},
    )


def _parties(sources: ReportSources) -> tuple[PartyFacts, ...]:
    spent, found = {str(one["party"]): one for one in sources.spent}, []
    for name in sources.members:
        key, own = sources.keys.get(name, b""), spent.get(name, {})
        paid = own.get("epsilon") is not None
        figures = (
            own.get("epsilon"),
            own.get("delta"),
            own.get("unit", "") if paid else "",
            own.get("budget"),
            own.get("all_runs"),
        )
        lasting = paid and not own.get("trial", False)
        found.append(PartyFacts(name, fingerprint_of(key) if key else "", *figures, lasting=lasting))
    return tuple(found)


def _not_tried(sources: ReportSources, audits: Sequence[Audit], answers: Sequence[QuestionAnswer]) -> tuple[str, ...]:
    """What was not tried, and attacks that were left out or tested nothing, by their reason."""
    done = {one.attempt.attack for audit in audits for one in audit.findings if one.standing != NOT_TESTED}
    left_out, nothing = dict[str, dict[str, None]](), dict[str, dict[str, None]]()
    for text in dict.fromkeys(one for audit in audits for one in audit.not_tried):
        if (found := _WITH_REASON.fullmatch(text)) is not None:
            left_out.setdefault(found["why"], {})[found["title"]] = None
    for one in (finding for audit in audits for finding in audit.findings):
        if one.standing == NOT_TESTED and not one.attempt.baseline:
            nothing.setdefault(plain_reason(one.outcome.why), {})[one.about.title] = None
    tested = {answer.question: [one for one in answer.tried if one.tested] for answer in answers}
    nowhere = {name: bool(of) for name, of in tested.items() if not any(one.of_this_model for one in of)}
    elsewhere = [name for name, of in tested.items() if name not in nowhere and all(one.place != THIS_RUN for one in of)]
    facts = (bool(audits), sources.with_content, len(done), len(attack_names()), left_out, nothing)
    return said("annex.not_tried", *facts, nowhere.items(), elsewhere)


# ---- the sections ----------------------------------------------------------------------------------------------------


def annex(report: SignedReport) -> Document:
    made = f"; {report.made}" if report.made else ""
    subtitle = f"Run “{report.run}”, protection “{report.profile}”{made}. Software: securetm {report.software}."
    conditions = [one.follows.partition(": ")[2] for one in report.rules if one.applies and ": " in one.follows]
    came_out = {name: [one for one in report.regulators if one.criterion == name] for name in CRITERIA}
    parts = (
        *sections("annex.first", report, conditions),
        Section("Five questions", tuple(map(_reply, report.answers))),
        *sections("annex.rest", report, came_out),
    )
    return Document(report.title, subtitle, parts, "annex", tuple(report.annexes), ending=said("statement.itself"))


def annex_foot(statement: str, day: str) -> str:
    """What stands on every sheet of an annex."""
    return f"Annex to the statement {shown_digest(statement)}" + (f", {day}" if day else "")


def bind(made: Document, statement: str, day: str) -> Document:
    """The annex of one sheet: it names the sheet's statement on every page."""
    foot = annex_foot(statement, day)
    return replace(made, title=f"Annex: {made.title}", foot=foot, marks=annex_marks(statement), day=day)


def _reply(answer: QuestionAnswer) -> Reply:
    limits = tuple(filter(None, (answer.limit, answer.beside)))
    tried = []
    for one in answer.tried:  # where, what came out with its interval, how much was tried, and how the other attempts ended
        counts = Counter(one.counts or {one.standing: 1})
        counts[one.standing] -= 1
        succeeded = counts[BROKEN] + counts[OPEN]
        ended = (succeeded, "succeeded, too"), (counts[HELD], "did not succeed"), (counts[NOT_TESTED], "taught nothing")
        tried.append(sentence("annex.tried", one, plain_reason(one.why), [each for each in ended if each[0]]))
    told = (answer.sentence, *limits, *(tried or said("annex.nowhere")))
    return Reply(answer.question, answer.standing, answer.short, told)
