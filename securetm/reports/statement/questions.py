"""Five questions that people ask about a run, which attempts answer which, and what is recommended then, in plain words.

What was tried on the run itself is said first, then what was tried on its model under its profile; the worst of these is the
mark. Another model is shown beside them and marks nothing. An attempt of which nothing was learned answers nothing, and neither
does one that failed at another epsilon."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from securetm.auditing.record import BROKEN, DOCUMENT, HELD, NOT_TESTED, OPEN, STANDINGS, Finding
from securetm.auditing.regulators import CRITERIA, NOT_TRIED, SCOPES, anonymity_of, bearing_on, outcome_of
from securetm.contracts import Claim, Profile, Unit
from securetm.mechanisms.noising import PRIVATE
from securetm.reports.audits.wording import SHARE, figure, ideal, scale_of, tries
from securetm.reports.statement.guesses import MOST_RIGHT
from securetm.threats import read_threat_model
from securetm.wording import counted, listed

ENDED: Mapping[str, str] = {  # what stands on the page where an attempt is spoken of; the word behind it is that of audits
    BROKEN: "it succeeded, against what is promised (broken)",
    OPEN: "it succeeded, and nobody promised otherwise (open)",
    HELD: "what was tried failed (held)",
}
COUNTED: Mapping[str, str] = {  # of questions, in the headline
    BROKEN: "broken (an attack did what is promised to be prevented)",
    OPEN: "open (something got out that nobody promised to keep in)",
    HELD: "held (what was tried failed; that is no proof)",
    NOT_TESTED: "not tested (nothing was learned)",
}


# ---- plain words -----------------------------------------------------------------------------------------------------


@cache
def _plain_words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("plain_words.toml").read_text("utf-8"))


def plain_measure(measure: str) -> str:
    """What an attack measured, in plain words."""
    return _plain_words()["measures"].get(measure, measure)


def plain_claim(what: str, unit: str = "") -> str:
    """What a profile promises, in plain words."""
    named = "word occurrence" if unit == "word" else unit or "document"
    return _plain_words()["claims"].get(what, what).replace("{unit}", named)


def plain_reason(why: str) -> str:
    """Why nothing was learned, in plain words."""
    return next((said for begins, said in _plain_words()["reasons"].items() if why.startswith(begins)), why)


def plain_lie(attempt: str) -> str:
    """A lie that a party was told, in plain words."""
    for term, said in _plain_words()["lies"].items():
        attempt = attempt.replace(term, said)
    return attempt


# ---- the facts of an annex, as plain records: no form of it shows anything else ------------------------------------------

THIS_RUN, SAME_MODEL, OTHER_MODEL = "this run", "same profile and model", "same profile, another model"
UNPROTECTED = "the same model, without protection"  # what a profile without noise hands on is the same
PLACES = (THIS_RUN, SAME_MODEL, UNPROTECTED, OTHER_MODEL)  # what comes first is said first


@dataclass(frozen=True)
class PartyFacts:
    """Who took part, and what was spent of its documents. `key` is a fingerprint; a figure that is not known is None."""

    name: str
    key: str
    epsilon: float | None = None
    delta: float | None = None
    unit: str = ""
    budget: float | None = None
    all_runs: float | None = None
    lasting: bool = False  # whether its ledger outlives the run, so that other runs add up in it


@dataclass(frozen=True)
class RoleFacts:
    """What one role saw, by the profile, and what is promised against it."""

    role: str
    sees: tuple[str, ...]
    promised: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """The worst that came out in one place for one question, and how many attempts were made there."""

    place: str  # one of `PLACES`
    standing: str
    attack: str
    measure: str  # in plain words
    figure: str  # with its interval, as in the record
    tries: str
    value: float | None
    low: float | None
    high: float | None
    model: str
    helpers: int
    day: str
    setting: str = ""
    counts: Mapping[str, int] | None = None  # attempts by standing
    stale: bool = False  # the software changed since
    why: str = ""  # of what tested nothing
    claimed: str = ""  # the epsilon at which it was tried, where that is not this run's
    effort: str = ""  # how hard it was tried
    ideal: str = ""  # what an ideal attacker would have reached with as many tries

    @property
    def tested(self) -> bool:
        """Whether anything was learned."""
        return self.standing != NOT_TESTED

    @property
    def of_this_model(self) -> bool:
        """Whether it can answer for this run: another model is not this one."""
        return self.place != OTHER_MODEL


@dataclass(frozen=True)
class QuestionAnswer:
    """The answer to one of the five questions."""

    question: str
    short: str
    sentence: str
    standing: str  # the mark: the worst on this run and on this model; `not tested` if nothing was learned there
    promised: tuple[str, ...]
    tried: tuple[Tried, ...]
    limit: str = ""  # what the budget proves, whatever anybody tries
    beside: str = ""  # how lies ended that were told to parties


@dataclass(frozen=True)
class CriterionFacts:
    """What came out for one question of regulators, asked of the finished model or of the messages of the training."""

    criterion: str
    scope: str
    outcome: str  # shown, above chance, tried and not shown, or not tried
    attack: str = ""  # the one with the largest figure among those with that outcome
    measure: str = ""  # in plain words
    figure: str = ""  # with its interval, as in the record
    value: float | None = None
    attempts: int = 0  # that bear on it, and learned anything
    ideal: str = ""  # what an ideal attacker would have reached with as many tries


@dataclass(frozen=True)
class Rule:
    """A rule of the recommendation, whether it applies, and what follows from it."""

    rule: str
    applies: bool
    follows: str


@dataclass(frozen=True)
class SignedReport:
    """Everything that the page says."""

    title: str
    run: str
    made: str  # days as in the records; empty if none is noted
    software: str
    digests: Mapping[str, str]  # of run, model, plan and profile
    model: str
    rounds: int
    profile: str
    profile_title: str
    danger: str
    coordinator: str
    parties: tuple[PartyFacts, ...]
    whose: str  # what a party's key is
    roles: tuple[RoleFacts, ...]
    recorded: tuple[str, ...]  # what the transcript itself says was sent
    spent: tuple[str, ...]
    answers: tuple[QuestionAnswer, ...]
    headline: str
    not_tried: tuple[str, ...]
    not_promised: tuple[str, ...]
    rules: tuple[Rule, ...]
    recommendation: str
    regulators: tuple[CriterionFacts, ...]  # of attempts on this run; none where it was not audited
    audits: Mapping[str, str]  # the audits of this run: plan, and the digest of its record
    annexes: Mapping[str, str] = field(default_factory=dict)  # the technical pages that are written beside: SHA-256 by name


COORDINATOR, PARTY, READER = "coordinator", "party", "model reader"
_ABOUT_LIES = ("cannot speak for a party", "cannot show parties different cohorts")  # promises that say nothing of reading
_TWO = 2
_TOGETHER = "Two who work together"
_TWO_MEANS = "This is about two parties that tell each other, or the coordinator, all that they know."
_HELP = {0: "", 1: ", even if one party helps"}


@dataclass(frozen=True)
class Attempted:
    """A finding of which the page speaks: where it was made, and whether the software changed since."""

    place: str
    finding: Finding
    stale: bool = False
    claimed: str = ""  # the epsilon at which it was tried, where that is not this run's

    @property
    def standing(self) -> str:
        """How it ended, for this run: a failure at another epsilon teaches nothing about this one."""
        ended = self.finding.standing
        return NOT_TESTED if ended == HELD and self.claimed else ended

    @property
    def why(self) -> str:
        """Why it taught nothing, where it did not."""
        if self.finding.standing == HELD:
            return f"it failed at {self.claimed}, which is not what this run claims"
        return self.finding.outcome.why


@dataclass(frozen=True)
class Lies:
    """How lies of the coordinator ended that were told to parties, in a sentence."""

    standing: str = NOT_TESTED
    said: str = ""


NO_LIES = Lies()


@dataclass(frozen=True)
class Question:
    """One question: which attempts try it, and which promises are about it."""

    text: str
    tried_by: Callable[[Finding], bool]
    adversary: str
    colluding: int = 0
    active: bool = False

    @property
    def what_if(self) -> bool:
        """Whether it asks what happens then, and not whether something can happen."""
        return bool(self.colluding) or self.active


def _behaviour(finding: Finding) -> str:
    return read_threat_model(finding.attempt.threat_model).adversary(finding.attempt.adversary).behaviour


def _alone(finding: Finding, who: str) -> bool:
    """Whether it is of this adversary, alone and keeping to the rules."""
    quiet = _behaviour(finding) != "active"
    return finding.attempt.adversary == who and not finding.attempt.helpers and not finding.attempt.liars and quiet


def _two(finding: Finding) -> bool:
    """Whether two parties at most helped; or more did, and it held: fewer learn less."""
    helpers = finding.attempt.helpers
    return 1 <= helpers <= _TWO or (helpers > _TWO and finding.standing == HELD)


def _lying(finding: Finding) -> bool:
    return finding.attempt.adversary == COORDINATOR and not finding.attempt.helpers and _behaviour(finding) == "active"


QUESTIONS = (
    Question("Can the coordinator read my documents?", lambda one: _alone(one, COORDINATOR), COORDINATOR),
    Question("Can another party?", lambda one: _alone(one, PARTY), PARTY),
    Question("Can whoever gets the model tell that somebody was in it?", lambda one: one.attempt.adversary == READER, READER),
    Question("What if two of us collude?", _two, COORDINATOR, colluding=_TWO),
    Question("What if the coordinator lies?", _lying, COORDINATOR, active=True),
)


def answered(
    question: Question,
    attempts: Sequence[Attempted],
    claims: Iterable[Claim],
    *,
    active: bool,
    limit: str = "",
    weak: bool = False,
    lies: Lies = NO_LIES,
) -> QuestionAnswer:
    """The answer to a question. `active` says whether the profile promises anything against a coordinator that lies.

    `limit` is what the budget proves of whoever gets the model, where it is promised against them; `weak`: hardly anything.
    """
    held_against = [one for one in claims if one.against == question.adversary and one.colluding >= question.colluding]
    about = [one for one in held_against if question.active or one.what not in _ABOUT_LIES]
    made = [] if question.active and not active else about
    fitting = [one for one in attempts if not one.finding.attempt.baseline and question.tried_by(one.finding)]
    by_place = ([one for one in fitting if one.place == place] for place in PLACES)
    tried = tuple(_told(several) for several in by_place if several)
    counting = [one for one in tried if one.of_this_model and (not one.stale or one.standing in (BROKEN, OPEN))]
    told = lies if question.active else NO_LIES
    worst = min([*(one.standing for one in counting), told.standing], key=STANDINGS.index)
    outdated = any(one.stale for one in tried if one.of_this_model)
    short = _short(question, worst, counting, promised=bool(made))
    elsewhere = any(one.claimed for one in tried if one.of_this_model)
    sentence = _sentence(worst, counting, in_words(made), elsewhere=elsewhere, outdated=outdated)
    limited = limit if question.adversary == READER and any(one.what == PRIVATE for one in made) else ""
    if limited and weak and worst not in (BROKEN, OPEN):
        short = f"{short.rstrip('.')}; but the budget hardly rules it out."
    return QuestionAnswer(question.text, short, sentence, worst, in_words(made), tried, limited, told.said)


def with_what_one_can(answers: Sequence[QuestionAnswer]) -> tuple[QuestionAnswer, ...]:
    """The answers, of which those to "what if …?" say what the first two do, too.

    Two who work together can do whatever one of them can, and a coordinator that lies whatever one can that does not.
    """
    read, party, reader, collude, lies = answers
    return read, party, reader, _no_less(collude, (read, party), _TOGETHER), _no_less(lies, (read,), "A coordinator that lies")


def _no_less(answer: QuestionAnswer, alone: Sequence[QuestionAnswer], who: str) -> QuestionAnswer:
    """The answer, which is never better than that to what one can do alone."""
    said = f"{_TWO_MEANS} " if who == _TOGETHER else ""
    worst = min((one.standing for one in (answer, *alone)), key=STANDINGS.index)
    if worst not in (BROKEN, OPEN) or answer.standing == worst:
        return replace(answer, sentence=f"{said}{answer.sentence}")
    first = next(one for one in alone if one.standing == worst)
    beside = {HELD: f"Beside that: {answer.short[:1].lower()}{answer.short[1:]}"}
    more = beside.get(answer.standing, "What else could be done then was not tried.")
    least = f"{who} can do at least this (“{first.question}”): {first.short} {more}"
    return replace(answer, short=_sentence_of(_WHAT_IF[worst]), sentence=f"{said}{least}", standing=worst)


def in_words(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Promises in plain words, each once with all its units and the most helpers."""
    units: dict[str, set[str]] = {}
    helpers: dict[str, int] = {}
    for claim in claims:
        units.setdefault(claim.what, set()).update([claim.unit.value] if claim.unit else [])
        helpers[claim.what] = max(helpers.get(claim.what, 0), claim.colluding)
    return tuple(
        f"{plain_claim(what, ' or '.join(sorted(units[what])))}{_HELP.get(most, f', even if {most} parties help')}"
        for what, most in sorted(helpers.items())
    )


def _told(several: Sequence[Attempted]) -> Tried:
    """The worst of the attempts in one place: by its standing, whether it is fresh, shares of documents, the larger figure."""

    def rank(one: Attempted) -> tuple[int, bool, bool, bool, float]:
        found = one.finding.outcome.measured
        share = scale_of(found) == SHARE
        return STANDINGS.index(one.standing), one.stale, not share, found.unit != DOCUMENT, -(found.value or 0.0)

    worst = min(several, key=rank)
    finding = worst.finding
    found, counts = finding.outcome.measured, Counter(one.standing for one in several)
    finite = found.value is not None
    return Tried(
        worst.place,
        worst.standing,
        finding.about.title,
        plain_measure(found.measure),
        figure(found) if finite else "",
        tries(found) if found.of else "",
        found.value,
        found.low if finite else None,
        found.high if finite else None,
        finding.run.model,
        finding.attempt.helpers,
        finding.run.kept,
        finding.run.setting,
        {name: counts[name] for name in STANDINGS if counts[name]},
        worst.stale,
        worst.why if worst.standing == NOT_TESTED else "",
        worst.claimed,
        finding.outcome.spent or finding.attempt.effort,
        ideal(finding),
    )


# ---- in words --------------------------------------------------------------------------------------------------------

_WHERE = {
    THIS_RUN: "on this run",
    SAME_MODEL: "in our trials of this profile and model",
    UNPROTECTED: "in our trials of this model without protection",
}
_UNLEARNED = {  # by whether it was tried at another epsilon, and on another version of the software
    (False, False): "Nothing was learned by trying",
    (False, True): "What was tried was tried on another version of the software",
    (True, False): "What was tried was tried at another epsilon",
    (True, True): "What was tried was tried at another epsilon, or on another version of the software",
}
_IS_IT = {BROKEN: "yes, against what is promised", OPEN: "yes, in part"}  # answers to "can somebody …?"
_WHAT_IF = {BROKEN: "then a promise is broken", OPEN: "then something gets out that nobody promised to keep in"}


def _short(question: Question, worst: str, counting: Sequence[Tried], *, promised: bool) -> str:
    """The short answer: how it ended on this run first, and where else it ended worse."""
    if worst == NOT_TESTED:
        unknown = "Assume that documents can be read." if question.what_if else "Assume yes."
        return "Not tried; it rests on what is promised." if promised else unknown
    failed = {one.place: _failed(one) for one in counting if one.standing == HELD}
    if worst == HELD:
        return _sentence_of("; ".join(failed.values()) or "what the parties were told falsely, they refused")
    said = (_WHAT_IF if question.what_if else _IS_IT)[worst]
    where = next((one.place for one in counting if one.standing == worst), "")
    shown = f"{said}, {_WHERE[where]}" if where else said
    return _sentence_of(f"{failed[THIS_RUN]}; {shown}" if THIS_RUN in failed else shown)


def _failed(one: Tried) -> str:
    """How many attempts in one place failed: that is no "no"."""
    return f"{counted((one.counts or {}).get(HELD, 1), 'attempt')} {_WHERE[one.place]} failed"


def _sentence(worst: str, counting: Sequence[Tried], promised: Sequence[str], *, elsewhere: bool, outdated: bool) -> str:
    """What is promised, word for word, and what came out, with how hard it was tried."""
    made = f"Promised is: {'; '.join(promised)}." if promised else "Nothing is promised about this."
    if worst == NOT_TESTED:
        return f"{made} {_UNLEARNED[elsewhere, outdated]}."
    first = next((one for one in counting if one.standing == worst and one.figure), None)
    shown = [one for one in counting if one is first or (one.place == THIS_RUN and one.tested and one.figure)]
    return " ".join((made, *map(_reached, shown)))


def _reached(one: Tried) -> str:
    """The most that came out in one place; of a failure also how hard it was tried, and what could have come out."""
    of = f", {one.tries}" if one.tries else ""
    most = f"The most that came out {_WHERE[one.place]}: {one.figure} {one.measure}{of}"
    at = f", at {one.claimed}" if one.claimed else ""
    if one.standing != HELD:
        return f"{most}{at}."
    spent = f" It was tried with {one.effort}." if one.effort else ""
    return f"{most}; {one.ideal}.{spent}"


def _sentence_of(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


_WITHHOLD = "Do not hand over this model, and stop the training"
_AMONG = "Hand over this model only to people who may read the documents"
_CONDITIONS = "Hand over this model if the conditions below are met"
_NOTHING = "Nothing that was tried speaks against handing over this model"


def rules_for(
    answers: Sequence[QuestionAnswer], profile: Profile, parties: Sequence[PartyFacts], right: float | None
) -> tuple[Rule, ...]:
    """All rules in their order, each with whether it applies. `right` is the share of right guesses that the budget allows."""
    broken = any(tried.standing == BROKEN for one in answers for tried in one.tried) or any(
        one.standing == BROKEN for one in answers
    )
    open_ = [one.question for one in answers if one.standing == OPEN]
    untried = [one for one in answers if not any(tried.place == THIS_RUN and tried.tested for tried in one.tried)]
    budgeted = profile.budget is not None and profile.budget.unit is not Unit.WORD
    return (
        Rule("Something that the profile promises was broken, with this model or another.", broken, _WITHHOLD),
        Rule("No budget limits what the model tells of any one document or person.", not budgeted, _AMONG),
        Rule(
            f"All runs so far let guesses whether somebody was in them be right more than {100 * MOST_RIGHT:g} times in 100: a "
            "limit that securetm chose, and no law.",
            right is not None and right > MOST_RIGHT,
            _AMONG,
        ),
        Rule(
            "Something gets out that nobody promised to keep in.",
            bool(open_),
            f"{_CONDITIONS}: whoever signs accepts what is marked as open, in writing",
        ),
        Rule(
            "The budget was kept for this run alone, so that another run over the same documents would not count it.",
            budgeted and not all(one.lasting for one in parties),
            f"{_CONDITIONS}: there is no other run over these documents",
        ),
        Rule(
            "Not all five questions were tried on this run.",
            bool(untried),
            f"{_CONDITIONS}: {_relies_on(untried)}",
        ),
    )


def recommended(rules: Sequence[Rule]) -> str:
    """What the first rule that applies says; the conditions of later ones are listed with it."""
    return next((one.follows.partition(":")[0] for one in rules if one.applies), _NOTHING) + "."


def _relies_on(untried: Sequence[QuestionAnswer]) -> str:
    """What whoever signs relies on where this run was not tried: trials of other runs, or none at all, question by question."""
    places = {one.question: {tried.of_this_model for tried in one.tried if tried.tested} for one in untried}
    elsewhere = tuple(f"“{question}”" for question, known in places.items() if True in known)
    others = tuple(f"“{question}”" for question, known in places.items() if known == {False})
    nowhere = tuple(f"“{question}”" for question, known in places.items() if not known)
    said = [f"on trials of other runs for {listed(elsewhere)}"] if elsewhere else []
    said += [f"on what is promised, and on trials of other models only, for {listed(others)}"] if others else []
    said += [f"on what is promised, and on no trial at all, for {listed(nowhere)}"] if nowhere else []
    return f"whoever signs relies {', and '.join(said)}"


def asked_by_regulators(findings: Sequence[Finding]) -> tuple[CriterionFacts, ...]:
    """Each question, asked of the finished model and of the messages; none where nothing was tried on the run."""
    made = [one for one in findings if not one.attempt.baseline]
    outcomes = {(one.criterion, one.scope): one.outcome for one in anonymity_of(made)}
    if not outcomes:
        return ()
    places = ((criterion, scope) for criterion in CRITERIA for scope in SCOPES)
    return tuple(_facts(criterion, scope, outcomes[criterion, scope], made) for criterion, scope in places)


def _facts(criterion: str, scope: str, outcome: str, findings: Sequence[Finding]) -> CriterionFacts:
    """The outcome with the largest figure that stands behind it."""
    told = [one for one in bearing_on(findings, criterion, scope) if outcome_of(one) != NOT_TRIED]
    if not told:
        return CriterionFacts(criterion, scope, NOT_TRIED)
    worst = max((one for one in told if outcome_of(one) == outcome), key=_rank)
    found = worst.outcome.measured
    said = (worst.about.title, plain_measure(found.measure), figure(found), found.value)
    return CriterionFacts(criterion, scope, outcome, *said, len(told), ideal(worst))


def _rank(finding: Finding) -> tuple[bool, float]:
    """Shares before other figures, which cannot be compared with them; then the larger one."""
    found = finding.outcome.measured
    return scale_of(found) == SHARE, found.value or 0.0
