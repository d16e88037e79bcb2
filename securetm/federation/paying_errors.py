"""Questions that a party's budget or ledger does not allow. It counts nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError, Unsound

_MORE = (
    "name a public list of words, which costs nothing (--vocabulary english, or FILE), bring together parties with more "
    "documents, or let words cost more: --set privacy.words= with a number below the profile's"
)


class LedgersWithoutDocuments(Misuse):
    """{folder} holds ledgers, and no list of the documents that they belong to"""

    folder: str
    hint = "put documents.sqlite back, or give --ledgers another folder; what was spent of those documents stays spent"


class NoLedgerThere(Misuse):
    """there is no ledger in {path}"""

    path: str
    hint = "give a ledger, the folder of a run under a profile with a budget, or a folder that was given to --ledgers"


class LedgerGone(Misuse):
    """{path} is gone, and it holds what was spent of documents of this run"""

    path: str
    hint = "put it back; without it, take the budget of these documents as spent"


class LedgerExhausted(SecuretmError):
    """{path} allows no other answer of {party}: of epsilon {epsilon:upward}, {runs:run has|runs have} spent {spent:upward}"""

    path: str
    party: str
    epsilon: float
    spent: float
    runs: int
    hint = (
        "`securetm budget ledger {path}` shows what each run spent, and --allow there allows more, knowing what that gives up; "
        "a run without --ledgers has a budget of its own, a trial's, which guards nothing across runs"
    )


class OtherUnit(Unsound):
    """the answers to {question!r} are bounded for each {bounded}, and the budget protects each {protected}"""

    question: str
    bounded: str
    protected: str
    hint = (
        "one {protected} can turn a {bounded}'s row into any other: ask for a row for each {protected} (local_epochs = 0; "
        "nmf instead of fednmf)"
    )


class NotPaidFor(Refused):
    """the question {name!r} has no share in the privacy budget"""

    name: str


class DeltaTooLarge(Misuse):
    """{party}: a delta of {delta} is not below 1 / {units}, and would allow to publish one {unit} of them whole"""

    party: str
    delta: float
    units: int
    unit: str
    hint = (
        "set [privacy] delta to a tenth of 1 / (number of {unit}s of all parties), or less; {units:,} is the least number of "
        "them that is known here, from these documents and the roster"
    )


class HoldsLess(Misuse):
    """{party} holds fewer than the {holds:,} that the roster says it holds at least, counted by {unit}"""

    party: str
    holds: int
    unit: str
    hint = (
        "say the smaller number (securetm keys request --holds N), and let the coordinator's operator make the next roster; "
        "the others judge delta by it"
    )


class NoLedger(Misuse):
    """{party} has no ledger to enter what it releases under profile {profile!r}"""

    party: str
    profile: str
    hint = "give the party its ledger; without one nobody knows what was released before"


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


class NoBudgetLeft(SecuretmError):
    """the privacy budget of {party} allows no other answer"""

    party: str
    hint = (
        "`securetm budget ledger FILE` shows what earlier runs spent; only the party itself can allow more, with --allow, "
        "knowing what that gives up"
    )


class DrawnUnpaid(SecuretmError):
    """noise was to be drawn before it was charged"""

    hint = "a mechanism that draws once must remember what it drew, for the documents that reach it"


class NoWordCanBeFound(Misuse):
    """no word can be found: {whose} has at most {most:document|documents}, and behind the noise a word needs {need} of them"""

    whose: str
    most: int
    need: int  # documents
    hint = _MORE


class TooFewWordsFound(SecuretmError):
    """the selection of words found {found:word|words}: behind its noise a word needs about {need} documents of {whose}"""

    found: int
    need: int
    whose: str
    hint = _MORE + "; what the selection cost is spent"
