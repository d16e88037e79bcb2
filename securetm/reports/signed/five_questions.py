"""Five questions that people ask about a run, and which attempts answer which. It runs no attack and reads no file.

An answer takes the worst of all places in which something was tried. An attempt of which nothing was learned answers nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from securetm.contracts import Claim
from securetm.leakage.audit_record import DOCUMENT, Finding
from securetm.leakage.verdicts import BROKEN, HELD, NOT_TESTED, OPEN, STANDINGS, standing
from securetm.mechanisms.noising import PRIVATE
from securetm.reports.audit_wording import SHARE, figure, scale_of, tries
from securetm.reports.signed.plain_words import plain_claim, plain_measure
from securetm.reports.signed.report_facts import PLACES, QuestionAnswer, Tried
from securetm.threats import read_threat_model

COORDINATOR, PARTY, READER = "coordinator", "party", "model reader"
PROMISED = "promised"
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
    made = [] if question.active and not active else held_against
    fitting = [one for one in attempts if not one.finding.attempt.baseline and question.tried_by(one.finding)]
    by_place = ([one for one in fitting if one.place == place] for place in PLACES)
    tried = tuple(_told(several) for several in by_place if several)
    ended = [one.standing for one in tried if not one.stale or one.standing in (BROKEN, OPEN)]
    told = lies if question.active else NO_LIES
    worst = min([*ended, told.standing], key=STANDINGS.index)
    short, sentence = _in_words(question, worst, bool(made), outdated=any(one.stale for one in tried))
    limited = limit if question.adversary == READER and any(one.what == PRIVATE for one in made) else ""
    if limited and weak and worst not in (BROKEN, OPEN):
        short = f"{short.rstrip('.')}; but the budget hardly rules it out."
    return QuestionAnswer(
        question.text, short, sentence + _worst_said(tried, worst), worst, in_words(made), tried, limited, told.said
    )


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
    more = {HELD: "What was tried beside that got no more."}.get(answer.standing, "What else could be done then was not tried.")
    least = f"{who} can do at least this (“{first.question}”): {first.short} {first.sentence} {more}"
    return replace(answer, short=_WHAT_IF[worst], sentence=f"{said}{least}", standing=worst)


def _worst_said(tried: Sequence[Tried], worst: str) -> str:
    """The figure of what succeeded, which belongs to the answer and not below it."""
    if worst not in (BROKEN, OPEN):
        return ""
    shown = max((one for one in tried if one.standing == worst and one.figure), key=_share, default=None)
    if shown is None:
        return ""
    of = f", {shown.tries}" if shown.tries else ""
    return f" The most that came out: {shown.figure} {shown.measure}{of}."


def _share(one: Tried) -> tuple[bool, float]:
    return "%" in one.figure, one.value or 0.0


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
    """The worst of the attempts in one place: first by its standing, then shares of documents, then the larger figure."""

    def rank(one: Attempted) -> tuple[int, bool, bool, float]:
        found = one.finding.outcome.measured
        share = scale_of(found) == SHARE
        return STANDINGS.index(standing(one.finding)), not share, found.unit != DOCUMENT, -(found.value or 0.0)

    worst = min(several, key=rank)
    finding = worst.finding
    found, counts = finding.outcome.measured, Counter(standing(one.finding) for one in several)
    finite = found.value is not None
    return Tried(
        worst.place,
        standing(finding),
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
        finding.outcome.why if standing(finding) == NOT_TESTED else "",
    )


_IS_IT = {  # answers to "can somebody …?"
    BROKEN: "Yes, against what is promised.",
    OPEN: "Yes, in part.",
    HELD: "Not by anything that was tried.",
    PROMISED: "It is promised that not; not tried.",
    NOT_TESTED: "Assume yes.",
}
_WHAT_IF = {  # answers to "what if …?"
    BROKEN: "Then a promise is broken.",
    OPEN: "Then something gets out that nobody promised to keep in.",
    HELD: "Nothing that was tried succeeded.",
    PROMISED: "The promise covers it; not tried.",
    NOT_TESTED: "Assume that documents can be read.",
}


def _in_words(question: Question, worst: str, promised: bool, *, outdated: bool) -> tuple[str, str]:
    """The short answer, and a sentence that says how it is known. `outdated`: tried on another version of the software only."""
    short = _WHAT_IF if question.what_if else _IS_IT
    if worst == BROKEN:
        return short[worst], "An attack succeeded at what the profile promises to prevent."
    if worst == OPEN:
        return short[worst], "An attack succeeded at something that the profile does not promise to prevent."
    begins = f"The profile {'promises' if promised else 'does not promise'} that it cannot be done"
    if worst == HELD:
        return short[worst], f"{begins}; no attack that was tried did it."
    learned = "what was tried was tried on another version of the software" if outdated else "nothing was learned by trying"
    return short[PROMISED if promised else NOT_TESTED], f"{begins}; {learned}."
