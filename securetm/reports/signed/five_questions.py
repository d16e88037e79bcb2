"""Five questions that people ask about a run, and which attempts answer which. It runs no attack and reads no file.

What was tried on the run itself is said first, then what was tried on its model under its profile; the worst of these is the
mark. Another model is shown beside them and marks nothing. An attempt of which nothing was learned answers nothing, and neither
does one that failed at another epsilon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from securetm.contracts import Claim
from securetm.leakage.audit_record import DOCUMENT, Finding
from securetm.leakage.verdicts import BROKEN, HELD, NOT_TESTED, OPEN, STANDINGS, standing
from securetm.mechanisms.noising import PRIVATE
from securetm.reports.audit_wording import SHARE, figure, ideal, scale_of, tries
from securetm.reports.signed.plain_words import plain_claim, plain_measure
from securetm.reports.signed.report_facts import PLACES, SAME_MODEL, THIS_RUN, UNPROTECTED, QuestionAnswer, Tried
from securetm.threats import read_threat_model
from securetm.wording import counted

COORDINATOR, PARTY, READER = "coordinator", "party", "model reader"
PROMISED = "promised"
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
        ended = standing(self.finding)
        return NOT_TESTED if ended == HELD and self.claimed else ended

    @property
    def why(self) -> str:
        """Why it taught nothing, where it did not."""
        if standing(self.finding) == HELD:
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
    return 1 <= helpers <= _TWO or (helpers > _TWO and standing(finding) == HELD)


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
