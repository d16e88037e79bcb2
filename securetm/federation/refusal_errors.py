"""What a role answers to a message that does not follow the agreement. The class name travels, the facts do not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from securetm.errors import Misuse, Refused, error_class


class Failed(Refused):
    """this party could not do what was asked of it"""

    hint = "what went wrong is in that party's own log; it tells nobody else"


class WrongAgreement(Refused):
    """the {what} of the invitation is not the one this party accepted"""

    what: str


class NotInvited(Refused):
    """a question came before an invitation"""


class UnknownQuestion(Refused):
    """nobody agreed to a question called {name!r}"""

    name: str


class QuestionNotAllowed(Refused):
    """this party does not allow the question {name!r} on its documents"""

    name: str
    hint = "`questions` under [policy] of PARTY.toml lists what may be asked"


class WrongRound(Refused):
    """the round id does not follow from the session, the terms and the profile"""


class OutOfTurn(Refused):
    """round {serial} was asked for after round {last}"""

    serial: int
    last: int


class BadState(Refused):
    """what a question is about does not fit: {problem}"""

    problem: str


class AlreadyAnswered(Refused):
    """a question about the corpus alone was answered before, to another cohort"""

    hint = "two exact sums over cohorts one party apart show that party's vector: use another session's answer, or add noise"


class AnotherSample(Refused):
    """question {question!r} number {number} is to be asked of other parties: the plan's seed decides of which"""

    question: str
    number: int


class AnotherCohort(Refused):
    """question {question!r} number {number} was answered before, to another cohort"""

    question: str
    number: int
    hint = (
        "two exact sums of one round over cohorts one party apart show that party's vector: where the members or their keys "
        "changed within a run, begin another one (another seed in the plan)"
    )


class AskedOtherwise(Refused):
    """question {question!r} number {number} was answered before, about something else"""

    question: str
    number: int
    hint = (
        "a number is answered again only for the very same question, state, words and memory: where the coordinator lost its "
        "store, begin another run (another seed in the plan)"
    )


class CannotTakePart(Refused):
    """this party cannot take part in this question: it paid for its answer, and does not have that answer any more"""

    hint = (
        "a paid share of noise is never drawn again: put the newest copy of the party's store back, "
        "or let the others go on with the next question"
    )


class LaterAnswered(Refused):
    """question {question!r} number {number} is asked again, and number {later} was answered since"""

    question: str
    number: int
    later: int
    hint = "a new share of noise beside the others' old ones would hide too little: go on with the next number"


class AnotherList(Refused):
    """this run has another list of words already"""

    hint = "a run has one list of words, because several lists show which documents hold single words; begin a new run"


class AskedTooOften(Refused):
    """the plan has no question {question!r} number {number}"""

    question: str
    number: int
    hint = "every answer tells more about the documents, so a party gives only as many as the plan needs"


class TooManySetups(Refused):
    """the plan has {most:answer|answers}, and as many set-ups were made in this session"""

    most: int
    hint = "a set-up costs every party keys, and serves at least one answer: go on with the last one, or invite again"


class TooFewDocumentsPromised(Refused):
    """a sum may be opened over {promised:document|documents}, where this party demands {need}"""

    promised: int
    need: int
    hint = "`least_documents` under [policy] of PARTY.toml says what a sum with this party's documents must hold"


class BelowMinimum(Refused):
    """{batch} documents from each of the {left} parties that may remain in a round are below the profile's minimum of {need}"""

    batch: int
    left: int
    need: int
    hint = "every party must bring batches (`batch` of [model]) so large that parties which drop out leave enough"


class NotPaidFor(Refused):
    """the question {name!r} has no share in the privacy budget"""

    name: str


class NotWitnessed(Refused):
    """{signed:other party|other parties} signed the head of this party's ledger, and {needed} must before it spends more"""

    signed: int
    needed: int


class LedgerForked(Refused):
    """the ledger of {party} with {shown:entry|entries} does not continue the one that was seen with {seen}"""

    party: str
    seen: int
    shown: int


class OutOfBudget(Refused):
    """{why}"""

    why: str


_POLICY = "PolicyAgainst"
_OWN = "its own policy does not allow"
REASONS: Mapping[str, str] = {
    f"{_POLICY}Profile": f"{_OWN} the profile",
    f"{_POLICY}Model": f"{_OWN} the model",
    f"{_POLICY}Module": f"{_OWN} the module of the model",
    f"{_POLICY}Question": f"{_OWN} a question that the plan asks",
    f"{_POLICY}Epsilon": f"{_OWN} the budget that the plan spends",
    f"{_POLICY}Unit": f"{_OWN} a budget of the unit that the plan protects",
    f"{_POLICY}Unbounded": f"{_OWN} releases without a bound, which the plan makes",
    f"{_POLICY}Parties": f"{_OWN} sums over so few parties",
    f"{_POLICY}Coordinator": f"{_OWN} this coordinator",
    f"{_POLICY}Plan": f"{_OWN} what the plan asks",
    "TooFewToTakePart": "it holds fewer documents than the least number that a sum needs of each party",
    "DeltaTooLarge": "the plan's delta is too large for the number of documents",
    "NotByBlocks": "the model or the profile needs all documents in memory, and this party reads them from disk",
    "NoPersons": "its documents name no persons, whom the plan's budget protects",
    "OutOfBudget": "its privacy budget allows no other answer",
    "AnotherBuild": "it runs a build of securetm that the roster does not list",
}


class NotAllowedHere(Misuse):
    """the party's policy does not allow {what} {value}, which the {where} has"""

    rule: str  # of the policy, as it travels: the end of one of the REASONS
    what: str
    value: str
    where: str
    allowed: str
    hint = "allowed: {allowed}; change [policy] of PARTY.toml only if the organisation agrees"


def reason_of(problem: Exception) -> str:
    """The name under which this problem of a party travels; empty if it stays at home."""
    name = _POLICY + problem.rule if isinstance(problem, NotAllowedHere) else type(problem).__name__
    return name if name in REASONS else ""


def in_words(name: str) -> str:
    """What a name that came from a party, or that it was given, means to the coordinator's operator."""
    if name in REASONS:
        return REASONS[name]
    kind = error_class(name)
    sentence = "" if kind is None else re.sub(r"\{[^}]*\}", "…", kind.__doc__ or "")  # the facts stayed at the other end
    return sentence or name
