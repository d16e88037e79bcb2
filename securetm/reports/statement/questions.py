"""Five questions that people ask about a run, which attempts answer which, and what is recommended then, in plain words.

What was tried on the run itself is said first, then what was tried on its model under its profile; the worst of these is the
mark. Another model is shown beside them and marks nothing. An attempt of which nothing was learned answers nothing, and neither
does one that failed at another epsilon."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from securetm.auditing.record import BROKEN, DOCUMENT, HELD, NOT_TESTED, OPEN, STANDINGS, Finding
from securetm.auditing.regulators import CRITERIA, NOT_TRIED, SCOPES, anonymity_of, bearing_on, outcome_of
from securetm.contracts import Claim, Profile, Unit
from securetm.data_classes import dataclass, field, replace
from securetm.mechanisms.noising import PRIVATE
from securetm.reports.audits.threats import rests_on_refusing
from securetm.reports.audits.wording import SHARE, figure, ideal, scale_of, tries
from securetm.reports.statement.guesses import MOST_RIGHT
from securetm.reports.texts import said, sentence
from securetm.threats import read_threat_model

# ---- plain words -----------------------------------------------------------------------------------------------------


@cache
def _plain_words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("plain_words.toml").read_text("utf-8"))


def plain_measure(measure: str) -> str:
    return _plain_words()["measures"].get(measure, measure)


def plain_claim(what: str, unit: str = "") -> str:
    named = "word occurrence" if unit == "word" else unit or "document"
    return _plain_words()["claims"].get(what, what).replace("{unit}", named)


def plain_reason(why: str) -> str:
    return next((said for begins, said in _plain_words()["reasons"].items() if why.startswith(begins)), why)


def plain_lie(attempt: str) -> str:
    for term, plain in _plain_words()["lies"].items():
        attempt = attempt.replace(term, plain)
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
    rule: str
    applies: bool
    follows: str


@dataclass(frozen=True)
class SignedReport:
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
_TWO = 2


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
    about = [one for one in held_against if question.active or not rests_on_refusing(one)]  # that says nothing of reading
    made = [] if question.active and not active else about
    fitting = [one for one in attempts if not one.finding.attempt.baseline and question.tried_by(one.finding)]
    by_place = ([one for one in fitting if one.place == place] for place in PLACES)
    tried = tuple(_told(several) for several in by_place if several)
    counting = [one for one in tried if one.of_this_model and (not one.stale or one.standing in (BROKEN, OPEN))]
    told = lies if question.active else NO_LIES
    worst = min([*(one.standing for one in counting), told.standing], key=STANDINGS.index)
    outdated = any(one.stale for one in tried if one.of_this_model)
    failed = {one.place: (one.counts or {}).get(HELD, 1) for one in counting if one.standing == HELD}
    where = next((one.place for one in counting if one.standing == worst), "")
    short = sentence("annex.short", worst, question.what_if, failed, where, bool(made))
    elsewhere = any(one.claimed for one in tried if one.of_this_model)
    first = next((one for one in counting if one.standing == worst and one.figure), None)
    shown = [one for one in counting if one is first or (one.place == THIS_RUN and one.tested and one.figure)]
    answer = sentence("annex.answer", in_words(made), worst, shown, elsewhere, outdated)
    limited = limit if question.adversary == READER and any(one.what == PRIVATE for one in made) else ""
    if limited and weak and worst not in (BROKEN, OPEN):
        short = f"{short.rstrip('.')}; but the budget hardly rules it out."
    return QuestionAnswer(question.text, short, answer, worst, in_words(made), tried, limited, told.said)


def with_what_one_can(answers: Sequence[QuestionAnswer]) -> tuple[QuestionAnswer, ...]:
    """The answers, of which those to "what if …?" say what the first two do, too.

    Two who work together can do whatever one of them can, and a coordinator that lies whatever one can that does not.
    """
    read, party, reader, collude, lies = answers
    return read, party, reader, _no_less(collude, (read, party), two=True), _no_less(lies, (read,))


def _no_less(answer: QuestionAnswer, alone: Sequence[QuestionAnswer], *, two: bool = False) -> QuestionAnswer:
    """The answer, which is never better than that to what one can do alone."""
    worst = min((one.standing for one in (answer, *alone)), key=STANDINGS.index)
    same = worst not in (BROKEN, OPEN) or answer.standing == worst
    first = None if same else next(one for one in alone if one.standing == worst)
    said_of = sentence("annex.no_less", answer, first, two)
    short = answer.short if same else sentence("annex.what_if", worst)
    return replace(answer, short=short, sentence=said_of, standing=answer.standing if same else worst)


def in_words(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Promises in plain words, each once with all its units and the most helpers."""
    units: dict[str, set[str]] = {}
    helpers: dict[str, int] = {}
    for claim in claims:
        units.setdefault(claim.what, set()).update([claim.unit.value] if claim.unit else [])
        helpers[claim.what] = max(helpers.get(claim.what, 0), claim.colluding)
    promises = [(plain_claim(what, " or ".join(sorted(units[what]))), most) for what, most in sorted(helpers.items())]
    return said("annex.promised", promises)


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


def rules_for(
    answers: Sequence[QuestionAnswer], profile: Profile, parties: Sequence[PartyFacts], right: float | None
) -> tuple[Rule, ...]:
    """All rules in their order, each with whether it applies. `right` is the share of right guesses that the budget allows."""
    untried = [one for one in answers if not any(tried.place == THIS_RUN and tried.tested for tried in one.tried)]
    budgeted = profile.budget is not None and profile.budget.unit is not Unit.WORD
    applies = (
        any(BROKEN in (answer.standing, *(one.standing for one in answer.tried)) for answer in answers),
        not budgeted,
        right is not None and right > MOST_RIGHT,
        any(one.standing == OPEN for one in answers),
        budgeted and not all(one.lasting for one in parties),
        bool(untried),
    )
    known = [(one.question, {tried.of_this_model for tried in one.tried if tried.tested}) for one in untried]
    elsewhere = [question for question, of in known if True in of]
    others, nowhere = ([question for question, of in known if of == which] for which in ({False}, set()))
    lines = said("annex.rules", MOST_RIGHT, elsewhere, others, nowhere)
    return tuple(map(Rule, lines[::2], applies, lines[1::2]))


def recommended(rules: Sequence[Rule]) -> str:
    """What the first rule that applies says; the conditions of later ones are listed with it."""
    nothing = sentence("annex.nothing_against")
    return next((one.follows.partition(":")[0] for one in rules if one.applies), nothing) + "."


def asked_by_regulators(findings: Sequence[Finding]) -> tuple[CriterionFacts, ...]:
    """Each question, asked of the finished model and of the messages; none where nothing was tried on the run."""
    made = [one for one in findings if not one.attempt.baseline]
    outcomes = {(one.criterion, one.scope): one.outcome for one in anonymity_of(made)}
    if not outcomes:
        return ()
    facts = []
    for criterion, scope in ((criterion, scope) for criterion in CRITERIA for scope in SCOPES):
        told = [one for one in bearing_on(made, criterion, scope) if outcome_of(one) != NOT_TRIED]
        if not told:
            facts.append(CriterionFacts(criterion, scope, NOT_TRIED))
            continue
        outcome = outcomes[criterion, scope]  # with the largest figure that stands behind it
        worst = max((one for one in told if outcome_of(one) == outcome), key=_rank)
        found = worst.outcome.measured
        said_of = (worst.about.title, plain_measure(found.measure), figure(found), found.value)
        facts.append(CriterionFacts(criterion, scope, outcome, *said_of, len(told), ideal(worst)))
    return tuple(facts)


def _rank(finding: Finding) -> tuple[bool, float]:
    """Shares before other figures, which cannot be compared with them; then the larger one."""
    found = finding.outcome.measured
    return scale_of(found) == SHARE, found.value or 0.0
