"""The annex of the sheet to sign: its facts, and the sections that every form of it shows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from securetm.accounting.calculator.persons import MANY_PARTIES, grown
from securetm.auditing.attacks import attack_names
from securetm.auditing.record import BROKEN, HELD, NOT_TESTED, OPEN, STANDINGS, Audit
from securetm.auditing.regulators import CRITERIA, INFERENCE, LINKING, NOT_SHOWN, NOT_TRIED, SCOPES, SINGLING_OUT
from securetm.contracts import Unit
from securetm.credentials.keys import fingerprint_of
from securetm.plans.profiles import claims_of
from securetm.reports.document import Block, Document, Items, Paragraph, Reply, Section, Table, items, paragraphs
from securetm.reports.profiles import views_of
from securetm.reports.statement.guesses import MOST_RIGHT, limit_said, right_guesses
from securetm.reports.statement.questions import (
    COUNTED,
    ENDED,
    OTHER_MODEL,
    QUESTIONS,
    SAME_MODEL,
    THIS_RUN,
    UNPROTECTED,
    CriterionFacts,
    PartyFacts,
    QuestionAnswer,
    RoleFacts,
    SignedReport,
    Tried,
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
from securetm.reports.texts import said
from securetm.threats import CHANNELS, read_threat_model
from securetm.version import __version__
from securetm.wording import counted, downward_whole, listed, upward, upward_figure

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


def spent_in_words(sources: ReportSources, right: float | None) -> Iterator[str]:
    """What this run spent, what all runs did, and what follows for a guess and for a person."""
    paid, budget = sources.paid, sources.profile.budget
    if budget is None or not paid:
        yield "There is no budget: nothing limits what the results tell of one document or person."
        return
    most = max(paid, key=lambda one: float(one["epsilon"]))
    epsilon, delta = float(most["epsilon"]), float(most["delta"])
    whose = "word occurrence" if budget.unit is Unit.WORD else budget.unit.value
    chance = f"one chance in {downward_whole(1 / delta)} that this limit fails" if delta > 0 else "this limit cannot fail"
    yield f"At most epsilon = {upward(epsilon)} per {whose}, with delta = {upward_figure(delta)}; {chance}."
    if budget.unit is Unit.WORD:
        yield "This bounds single words. For a whole document it is that many times its words, which bounds hardly anything."
        return
    if limit := limit_of(sources, right):
        yield f"That means: {limit[0].lower()}{limit[1:]}"
    if unbounded := sources.unbounded_because:
        yield f"All runs over these documents so far, together: unbounded, because of {unbounded}."
        return
    whole, loss = max(map(_of_all_runs, paid))
    known = any(one.get("all_runs") is not None and not one.get("trial", False) for one in paid)  # of other runs
    if known or any(_of_all_runs(one)[0] > float(one["epsilon"]) for one in paid):
        together = f"at most epsilon = {upward(whole)}, with delta = {upward_figure(loss)}"
        yield f"All runs over these documents so far, together: {together}. Later runs add to it."
    if budget.unit is Unit.PERSON:
        yield f"Per document it is at most the same, {upward(whole)}: what bounds a person bounds each of their documents."
        yield f"{MANY_PARTIES} No party can see it."
    else:
        bounds = ((several, grown(whole, loss, several)) for several in _SEVERAL)
        group = "; ".join(
            f"{upward(one.epsilon)} for {several} documents (delta = {upward_figure(one.delta)})" for several, one in bounds
        )
        yield f"Per person it is more: {group}. How many documents a person has is not known here."


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
    """All facts of the page."""
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
    tried = sorted({audit.made for audit in audits if audit.made})
    days = ([f"trained {sources.begun}"] if sources.begun else []) + ([f"tried {listed(tuple(tried))}"] if tried else [])
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
        made=", ".join(days),
        software=sources.software or f"not noted; this page is by securetm {__version__}",
        digests={name: digest for name, digest in digests.items() if digest},
        model=sources.model,
        rounds=sources.rounds,
        profile=profile.name,
        profile_title=profile.title,
        danger=profile.danger,
        coordinator=f"the coordinator of the federation {sources.federation}" if sources.federation else simulated,
        parties=parties,
        whose=_whose(sources),
        roles=tuple(
            RoleFacts(view.role, view.sees, in_words(claim for claim in claims if claim.against == _ROLES[view.role]))
            for view in views_of(profile, len(sources.cohort.members))
        ),
        recorded=_recorded(sources),
        spent=(*spent_in_words(sources, right), *sources.before),
        answers=answers,
        headline=_headline(answers, audits),
        not_tried=tuple(_not_tried(sources, audits, answers)),
        not_promised=threats.out_of_scope,
        rules=rules,
        recommendation=recommended(rules),
        regulators=asked_by_regulators([finding for audit in audits for finding in audit.findings]),
        audits={audit.plan: digest for audit, digest in sources.audits},
    )


def _whose(sources: ReportSources) -> str:
    if not sources.keys:
        return "The keys of the others are in the roster that this party accepted."
    if sources.federation:
        return "A key's fingerprint is the one in the roster of the federation; compare it there."
    return "These keys were made for this simulation. They prove nothing about any organisation."


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


def _recorded(sources: ReportSources) -> tuple[str, ...]:
    sent = tuple(
        f"{CHANNELS.get(channel, channel)}: {counted(number, 'message')}, {length:,} bytes"
        for channel, number, length in sources.channels
    )
    told = tuple(f"answers to the question “{name}”: {number:,}" for name, number in sources.told.items())
    return sent or told or ("nothing: the folder holds no transcript",)


def _headline(answers: Sequence[QuestionAnswer], audits: Sequence[Audit]) -> str:
    """Counts what was tried on this run, and how the five questions stand."""
    counts = Counter(one.standing for one in answers)
    said = listed(tuple(f"{counts[name]} {COUNTED[name]}" for name in STANDINGS if counts[name]))
    found = [finding for audit in audits for finding in audit.findings if not finding.attempt.baseline]
    if not found:
        return f"Five questions: {said}. Nothing was tried on this run: no audit of it was made."
    own = Counter(one.standing for one in found)
    tried = listed(tuple(f"{own[name]} {name}" for name in STANDINGS if own[name]))
    return f"Five questions: {said}. {counted(len(found), 'attempt was', 'attempts were')} made on this run: {tried}."


def _not_tried(sources: ReportSources, audits: Sequence[Audit], answers: Sequence[QuestionAnswer]) -> Iterator[str]:
    if not audits:
        kept = "securetm audit quick --run RUN tries it" if sources.with_content else "its messages were not kept (--record)"
        yield f"No attack was tried on this run, because no audit of it was made; {kept}"
    else:
        done = {one.attempt.attack for audit in audits for one in audit.findings if one.standing != NOT_TESTED}
        known = len(attack_names())
        yield f"{known - len(done)} of the {known} attacks that securetm knows; the annex lists them"
    yield from _nothing_learned(audits)
    elsewhere = []
    for answer in answers:
        tested = [one for one in answer.tried if one.tested]
        if not any(one.of_this_model for one in tested):
            beside = " with this model; what was tried with another one stands beside the answer" if tested else ""
            yield f"“{answer.question}”: tried nowhere, on no run of this profile{beside}"
        elif not any(one.place == THIS_RUN for one in tested):
            elsewhere.append(f"“{answer.question}”")
    if elsewhere:
        yield f"Of this run itself: {listed(tuple(elsewhere))}. Trials of other runs answer these"


def _nothing_learned(audits: Sequence[Audit]) -> Iterator[str]:
    """Attacks that the audits left out for a reason of this run, and attempts that tested nothing, by their reason."""
    left_out, nothing = dict[str, dict[str, None]](), dict[str, dict[str, None]]()
    for sentence in dict.fromkeys(one for audit in audits for one in audit.not_tried):
        if (found := _WITH_REASON.fullmatch(sentence)) is not None:
            left_out.setdefault(found["why"], {})[found["title"]] = None
    for one in (finding for audit in audits for finding in audit.findings):
        if one.standing == NOT_TESTED and not one.attempt.baseline:
            nothing.setdefault(one.outcome.why, {})[one.about.title] = None
    yield from (f"{_named(titles)}: {why}" for why, titles in left_out.items())
    yield from (f"{_named(titles)}: nothing was learned, because {plain_reason(why)}" for why, titles in nothing.items())


def _named(titles: Collection[str]) -> str:
    """Attacks by their titles, or their number where they are many."""
    return counted(len(titles), "attack") if len(titles) > _MOST_NAMED else listed(tuple(f"“{one}”" for one in titles))


# ---- the sections ----------------------------------------------------------------------------------------------------

MEANING = {
    BROKEN: "an attack did what the profile promises to prevent",
    OPEN: "an attack got something that nobody promised to protect",
    HELD: "what was tried failed, as far as the figure beside it says; another attack, or more effort, might succeed",
    NOT_TESTED: "nothing was learned",
}
_PLACES = {
    THIS_RUN: "This run",
    SAME_MODEL: "Our own trials of this profile and model",
    OTHER_MODEL: "Beside this, and no answer for this model: our own trials of this profile with another one",
    UNPROTECTED: "Our own trials without any protection, where the finished model is the same, as no noise is in it",
}
LEFT_UNTRIED = "What was not tried, and why"
TRIED_NOWHERE = "Tried nowhere."
_MASKED = (
    "Masked or encrypted means: to the others what one party sends looks like chance, and only the total over all parties is "
    "opened. Noise is chance that is added to numbers, so that they do not tell who was in them."
)
ASKED = {  # by opinion 05/2014
    SINGLING_OUT: "records that identify one person can be isolated",
    LINKING: "two records about the same person, or the same group, can be linked",
    INFERENCE: "something about a person can be deduced with significant probability",
}
_OPINION = (
    "The European Data Protection Board calls a model anonymous if it is insignificantly likely, for every person and with all "
    "means reasonably likely to be used, that personal data of those it learned from are extracted from it, or are obtained by "
    "queries (opinion 28/2024). Earlier guidance asks three questions (opinion 05/2014)."
)
_MARKS = (
    "A mark is the worst of what was tried on this run, and on this model under this profile. None means safe: “held” says "
    "that what was tried failed, “not tested” that nobody knows."
)
_LIMITS = (
    "This does not say that the model is anonymous: that is judged case by case, by whoever answers for the data and then by "
    "the authority. The opinion is about the finished model; only those who took part saw the messages. Figures are averages "
    "over documents, and the opinion asks about every person. What was not tried, or not well enough, may succeed."
)


def annex(report: SignedReport) -> Document:
    """The annex in words."""
    made = f"; {report.made}" if report.made else ""
    subtitle = f"Run “{report.run}”, protection “{report.profile}”{made}. Software: securetm {report.software}."
    return Document(
        report.title, subtitle, tuple(_sections(report)), "annex", tuple(report.annexes), ending=said("statement.itself")
    )


def annex_foot(statement: str, day: str) -> str:
    """What stands on every sheet of an annex."""
    return f"Annex to the statement {shown_digest(statement)}" + (f", {day}" if day else "")


def bind(made: Document, statement: str, day: str) -> Document:
    """The annex of one sheet: it names the sheet's statement on every page."""
    foot = annex_foot(statement, day)
    return replace(made, title=f"Annex: {made.title}", foot=foot, marks=annex_marks(statement), day=day)


def _sections(report: SignedReport) -> Iterator[Section]:
    conditions = tuple(one.follows.partition(": ")[2] for one in report.rules if one.applies and ": " in one.follows)
    danger = paragraphs((report.danger,), "strong")
    yield Section("Five marks", (_marks(report), Paragraph(_MARKS)))
    yield Section(
        "Recommendation", (Paragraph(report.recommendation, "strong"), *items(conditions), *danger, Paragraph(report.headline))
    )
    yield Section("Five questions", tuple(map(_reply, report.answers)))
    yield Section("What was spent", paragraphs(report.spent))
    yield Section("What regulators ask", tuple(_regulators(report)), aside=True)
    yield Section("What was trained, and by whom", tuple(_trained(report)), folded=True)
    yield Section("Fingerprints", tuple(_fingerprints(report)), folded=True)
    yield Section("What each role saw", tuple(_roles(report)), folded=True)
    yield Section(LEFT_UNTRIED, (Items(report.not_tried),))
    if report.not_promised:
        yield Section("What the profile leaves out", (Items(report.not_promised),), folded=True)
    yield Section("By which rules it is recommended", tuple(_rules(report)), folded=True)
    yield Section(
        "Three words for three things", (Table(("word", "means"), tuple(MEANING.items()), shares=(0.2, 0.8)),), folded=True
    )


def _marks(report: SignedReport) -> Table:
    """One mark for each question: what it is about can be seen before anything else is read."""
    rows = tuple((one.question, one.standing, one.short) for one in report.answers)
    return Table(("question", "mark", "in short"), rows, shares=(0.36, 0.12, 0.52))


# ---- answers -------------------------------------------------------------------------------------------------------


def _reply(answer: QuestionAnswer) -> Reply:
    limits = tuple(filter(None, (answer.limit, answer.beside)))
    tried = tuple(map(_in_words, answer.tried)) or (TRIED_NOWHERE,)
    return Reply(answer.question, answer.standing, answer.short, (answer.sentence, *limits, *tried))


def _in_words(tried: Tried) -> str:
    """Where it was tried, what came out with its interval, and how much was tried there."""
    place = _PLACES[tried.place] + (f" ({tried.model})" if tried.place == OTHER_MODEL else "")
    helped = f" with {counted(tried.helpers, 'party', 'parties')} helping" if tried.helpers else ""
    if not tried.tested:
        return f"{place}{helped}: {NOT_TESTED}, because {plain_reason(tried.why)}."
    of = f", {tried.tries}" if tried.tries else ""
    at = f", at {tried.claimed}" if tried.claimed else ""
    could = f"; {tried.ideal}" if tried.standing == HELD and tried.ideal else ""
    since = " The software changed since." if tried.stale else ""
    measured = f"{_capital(tried.measure)}: {tried.figure}{of}{could}."
    return f"{place}{helped}{at}: {ENDED[tried.standing]}. {measured}{_other_attempts(tried)}{since}"


def _other_attempts(tried: Tried) -> str:
    """How the other attempts in the same place ended: the page shows the worst."""
    counts = Counter(tried.counts or {tried.standing: 1})
    counts[tried.standing] -= 1
    ended = {
        "succeeded, too": counts[BROKEN] + counts[OPEN],
        "did not succeed": counts[HELD],
        "taught nothing": counts[NOT_TESTED],
    }
    left = tuple(f"{number} {name}" for name, number in ended.items() if number)
    return f" This is the worst of {counts.total() + 1} attempts there; of the others {listed(left)}." if left else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _regulators(report: SignedReport) -> Iterator[Block]:
    """The three questions with the figures of this run, what the opinions say, and what all this does not establish."""
    if not report.regulators:
        yield Paragraph(f"{_OPINION} Nothing of this was tried on this run, because no audit of it was made.")
        return
    found = {(one.criterion, one.scope): _came_out(one) for one in report.regulators}
    rows = tuple((_capital(name), ASKED[name], *(found[name, scope] for scope in SCOPES)) for name in CRITERIA)
    heads = ("question", "asks whether", "of the finished model", "of the messages")
    yield Paragraph(_OPINION)
    yield Table(heads, rows, shares=(0.13, 0.29, 0.29, 0.29))
    yield Paragraph(_LIMITS)


def _came_out(one: CriterionFacts) -> str:
    """The outcome, and the figure that stands behind it with its interval."""
    if one.outcome == NOT_TRIED:
        return NOT_TRIED
    worst = f", the largest of {one.attempts}" if one.attempts > 1 else ""
    could = f"; {one.ideal}" if one.outcome == NOT_SHOWN and one.ideal else ""
    return f"{one.outcome}: {one.figure} {one.measure}{worst}{could}"


def _trained(report: SignedReport) -> Iterator[Block]:
    title = f"{report.profile_title[:1].lower()}{report.profile_title[1:]}"
    yield Paragraph(
        f"A model that sorts documents by subjects ({report.model}, {counted(report.rounds, 'round')}). "
        f"It was put together by {report.coordinator}. Protection: {title}."
    )
    yield Paragraph(_MASKED)
    if all(one.epsilon is None for one in report.parties):
        yield Paragraph(f"Took part: {listed(tuple(one.name for one in report.parties))}.")
        return
    rows = ((one.name, _epsilon(one.epsilon, one.unit), _epsilon(one.budget, "")) for one in report.parties)
    yield Table(("party", "spent in this run", "of a budget of"), tuple(rows), shares=(0.3, 0.4, 0.3))


def _epsilon(value: float | None, unit: str) -> str:
    return "–" if value is None else f"epsilon = {upward(value)}" + (f" per {unit}" if unit else "")


def _fingerprints(report: SignedReport) -> Iterator[Block]:
    """Of the parties' keys, and of everything that a signature is meant to cover."""
    if keys := tuple((one.name, one.key) for one in report.parties if one.key):
        yield Table(("party", "key fingerprint"), keys, shares=(0.2, 0.8))
    yield Paragraph(report.whose)
    digests = {f"the {name}": digest for name, digest in report.digests.items()}
    digests |= {f"the audit “{plan}”": digest for plan, digest in report.audits.items()}
    digests |= {f"the annex {name}": digest for name, digest in report.annexes.items()}
    yield Table(("fingerprint (SHA-256) of", "value"), tuple(digests.items()), shares=(0.3, 0.7))


def _roles(report: SignedReport) -> Iterator[Block]:
    yield Paragraph("A sum, or total, is what the numbers of all parties add up to. An answer is what one party sends.")
    rows = tuple((one.role, "; ".join(one.sees), "; ".join(one.promised) or "nothing") for one in report.roles)
    yield Table(("who", "sees", "what is promised against it"), rows, shares=(0.16, 0.44, 0.4))
    yield Paragraph(f"Sent in this run, as its own record says: {'; '.join(report.recorded)}.")


def _rules(report: SignedReport) -> Iterator[Block]:
    rows = tuple((one.rule, "yes" if one.applies else "–", f"{one.follows}.") for one in report.rules)
    yield Table(("rule", "applies", "then"), rows, shares=(0.42, 0.1, 0.48))
    yield Paragraph("The first rule that applies is the recommendation; the conditions of all that apply are listed with it.")
