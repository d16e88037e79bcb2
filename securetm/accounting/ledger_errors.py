"""What a party's ledger refuses, and ledgers that cannot be believed. No error names a document."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class BudgetExhausted(SecuretmError):
    """{run} stops: of epsilon {epsilon:upward} per {unit}, {spent:upward} is spent; {planned} more would make {would:upward}"""

    run: str
    planned: int
    unit: str
    spent: float
    would: float
    epsilon: float
    delta: float
    hint = "nothing was sent for it; keep the model as it is, or agree on a larger budget, which is entered in the ledger"


class UnitsDiffer(Misuse):
    """{path} counts the budget of each {ledger}, and this would spend the budget of each {other}"""

    path: str
    ledger: str
    other: str
    hint = "give each unit a ledger of its own: budgets of different units stand side by side and are never added"


class LedgerOfAnother(Misuse):
    """{path} is the ledger of {owner}, not of {asked}"""

    path: str
    owner: str
    asked: str
    hint = "give {asked} a ledger of its own; each party's ledger is private"


class RunChanged(Misuse):
    """{run} began under {before}, and would go on under {now}"""

    run: str
    before: str
    now: str
    hint = "a run keeps its profile, because that fixes in advance what it spends; begin another run"


class NoBudgetYet(Misuse):
    """{path} has no budget yet: only runs without a bound were entered in it"""

    path: str
    hint = "the first run under a profile with a budget gives the ledger that budget; change it after that"


class AnsweredOtherwise(SecuretmError):
    """{run} gave another answer to what entry {entry} of its ledger paid for"""

    run: str
    entry: int
    hint = "nothing was sent: put the newest copy of the party's store back, or go on with the next question"


class LedgerEnded(Misuse):
    """{path} takes no more entries: {successor} succeeds it"""

    path: str
    successor: str
    hint = "begin a new run over these documents: its ledger begins with all that was spent of them"


class LedgerTampered(SecuretmError):
    """{path} was changed from outside: {problem}"""

    path: str
    entry: int
    problem: str
    hint = "answer nothing with it: restore the latest copy that was not changed, or take the budget as spent"


class LedgerRolledBack(SecuretmError):
    """{path} holds {have:entry|entries}, and not the history of {seen:entry|entries} that {who} saw"""

    path: str
    have: int
    seen: int
    who: str = "others"
    hint = (
        "it is an older copy, or was cut off or written anew: restore the copy with {seen} entries, or take the budget as spent"
    )


class LedgerDamaged(SecuretmError):
    """{path} cannot be read as a ledger: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy; without one, take the budget as spent, because nobody knows what was sent"


class LedgerUnreadable(Misuse):
    """{path} cannot be opened as a ledger: {problem}"""

    path: str
    problem: str
    hint = "give the path of the ledger's file, and check that it may be read"


class LedgerUnwritten(SecuretmError):
    """nothing could be entered in {path}: {problem}"""

    path: str
    problem: str
    hint = "free space on the disk or allow writing, then go on: what was entered before is safe, and nothing was sent"


class LedgerBusy(SecuretmError):
    """another process has held {path} for {seconds:g} seconds"""

    path: str
    seconds: float
    hint = "wait for it, or end it; what it entered stays"


class LedgerReplaced(Misuse):
    """the ledger of {party} is not the one that {witness} signed before"""

    party: str
    witness: str
    hint = "put the former ledger back: a new one would omit what was spent"
