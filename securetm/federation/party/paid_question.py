"""What a party's ledger says of the question that it is asked now: noise that was paid for is never drawn again.

The ledger knows of each answer that was paid for its question and number, who was asked what, and, before the answer leaves,
its digest. So an answer with a digest may have left: the party gives those very bytes or none. An entry without a digest is of
a process that ended before its answer left: that answer is computed now, under the same entry. No document is read here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from securetm.accounting.ledger.accounts import PaidAnswer
from securetm.accounting.spends import Spend
from securetm.aggregation.vectors import pack_vector
from securetm.contracts import Noised, State, Terms
from securetm.federation.budget.witness import BudgetGuard
from securetm.federation.refusal_errors import AnotherCohort, AskedOtherwise, CannotTakePart, LaterAnswered

_LABEL = b"securetm answer that was paid for\n"


@dataclass
class PaidQuestion:
    """One question that spends a budget, as the ledger knows it before it is answered."""

    guard: BudgetGuard
    run: str
    question: str
    number: int
    members: str  # digest of who is asked
    asked: str  # digest of everything that is asked
    given_once: bool  # whether its answer is kept, so that there is never a second one

    def __post_init__(self) -> None:
        account = self.guard.ledger.account(self.run)
        self.entry: PaidAnswer | None = account.paid_for(self.question, self.number) if account else None
        self._of_others = self.entry is not None and self.entry.members != self.members
        self._latest = account.latest(self.question) if account else -1
        if self.entry is not None and self.entry.answer and not self.given_once:
            self.entry = None  # another answer is another release, behind new noise, and is paid for again

    def check_new(self, terms: Terms) -> None:
        """Refuses to compute what may have left, where the store does not have it any more.

        Where a share of noise protects only the sum, an earlier number is not computed either. Other parties may still hold
        their old answers to it. The difference of two sums that share these would have no more noise in it than this party's
        two shares.
        """
        if self._of_others:  # whose store is lost may not be asked by another cohort either
            raise AnotherCohort(self.question, self.number)
        if self.entry is not None:
            if self.entry.answer:
                raise CannotTakePart()
            if self.entry.asked != self.asked:
                raise AskedOtherwise(self.question, self.number)
            self.guard.check_witnessed()
        elif self.given_once and terms.noised is Noised.SHARE and self._latest > self.number:
            raise LaterAnswered(self.question, self.number, self._latest)

    def pay(self, spend: Spend, about: dict[str, str | int]) -> None:
        """Enters that the answer is paid for, unless a process that ended before its answer left paid as much for it."""
        if self.entry is not None and self.entry.price == spend:
            return
        what: dict[str, str | int] = {"question": self.question, "number": self.number}
        entered = self.guard.charge(self.run, spend, {**about, **what, "members": self.members, "asked": self.asked})
        self.entry = PaidAnswer(entered, self.question, self.number, self.members, self.asked, "", spend)

    def settle(self, vector: State, terms: Terms) -> None:
        """Enters the answer's digest before the answer leaves. What was entered before has to be the digest of this answer."""
        if self.entry is None:  # all its noise was drawn and paid for before
            return
        made = hashlib.sha256(_LABEL)
        made.update(pack_vector(vector, terms))
        if not self.entry.answer:
            self.guard.answered(self.run, self.entry.entry, made.digest())
        elif self.entry.answer != made.hexdigest():
            raise CannotTakePart()
