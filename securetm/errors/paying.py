"""What keeps a privacy budget from being meant otherwise than it is spent."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse, Refused, SecuretmError, Unsound


class NotNoised(Unsound):
    """this question would be answered exactly, so that no privacy budget could cover it"""

    hint = "put a mechanism with noise behind the clip, or ask this question under a profile without a budget"


class WordsNotSelected(Unsound):
    """a vocabulary made of the parties' words tells which words occur, and makes every epsilon false"""

    hint = "use a public list of words (--vocabulary FILE), or a profile with word_selection"


class PublicBatches(Unsound):
    """documents are taken in an order that the coordinator knows, which amplifies nothing and is not what the budget assumes"""

    hint = 'use kind = "poisson" in place of "shuffled_batches" in the profile'


class NoiseByParties(Unsound):
    """noise is to be added by whoever opens the total, and here the parties open it: each of them would see it without"""

    hint = 'add the noise at the parties: kind = "gaussian" or "noise_shares"'


class SharesInTheClear(Unsound):
    """each party adds a share of the noise only, and here a party's answer is seen by itself, or is if others help to see it"""

    hint = 'add the shares under masked sums, or let each party add all the noise: kind = "gaussian"'


@dataclass(eq=False)
class NotPaidFor(Refused):
    """the question {name!r} has no share in the privacy budget"""

    name: str


@dataclass(eq=False)
class RowsDepend(Refused):
    """{model} bounds no document's part of a sum here: {how}"""

    model: str
    how: str
    hint = 'train on a CPU (device = "cpu"), or on another processor; and please report the processor: nothing was spent'


@dataclass(eq=False)
class DeltaTooLarge(Misuse):
    """{party}: a delta of {delta} is not below 1 / {units}, and would allow to publish one {unit} of them whole"""

    party: str
    delta: float
    units: int
    unit: str
    hint = "set [privacy] delta well below 1 / (number of {unit}s); the others are told nothing"


@dataclass(eq=False)
class NoLedger(Misuse):
    """{party} has no ledger, and profile {profile!r} spends a privacy budget"""

    party: str
    profile: str
    hint = "give the party its ledger; without one nobody knows what was spent before"


@dataclass(eq=False)
class NotWitnessed(Refused):
    """{signed:other party|other parties} signed where this party's ledger stands, and {needed} must before it spends more"""

    signed: int
    needed: int


@dataclass(eq=False)
class LedgerForked(Refused):
    """the ledger of {party} with {shown:entry|entries} does not continue the one that was seen with {seen}"""

    party: str
    seen: int
    shown: int


@dataclass(eq=False)
class LedgerReplaced(Misuse):
    """the ledger of {party} is another one than {witness} has signed before"""

    party: str
    witness: str
    hint = "put the former ledger back: a fresh one would forget what was spent"


@dataclass(eq=False)
class OutOfBudget(Refused):
    """{why}"""

    why: str


@dataclass(eq=False)
class NoBudgetLeft(SecuretmError):
    """the privacy budget of {party} does not reach for another answer"""

    party: str
    hint = (
        "`securetm budget ledger FILE` shows what earlier runs spent; only the party itself can allow more, with --allow, "
        "knowing what that gives up"
    )
