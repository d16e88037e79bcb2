"""What guards a party's budget: its ledger, which pays for every answer before anything is drawn.

The ledger knows of each answer that was paid for its question and number, who was asked what, and, before the answer leaves,
its digest. So an answer with a digest may have left: the party gives those very bytes or none. An entry without a digest is of
a process that ended before its answer left: that answer is computed now, under the same entry. No document is read here.
"""

from __future__ import annotations

import hashlib

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import MOST, PaidAnswer
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.aggregation.vectors import pack_vector
from securetm.contracts import Budget, Noised, State, Terms
from securetm.data_classes import dataclass, replace
from securetm.federation.budget.signing import LedgerWitness
from securetm.federation.refusal_errors import AnotherCohort, AskedOtherwise, CannotTakePart, LaterAnswered, OutOfBudget
from securetm.wording import upward

_LABEL = b"securetm answer that was paid for\n"


@dataclass
class BudgetGuard:
    """The ledger of one party in one session of a run, and the budget of that run."""

    ledger: Ledger
    witness: LedgerWitness
    run: str  # what the ledger calls the run
    budget: Budget  # of this run; the ledger's own is the party's, for all runs
    _left: tuple[Spend, int, list[Spend]] | None = None  # how many more such answers it may give after it has spent so much

    def charge(self, spend: Spend, about: dict[str, str | int]) -> int:
        """Writes the spend to disk, and returns the number of its entry.

        Refuses if the others did not sign the present head, or if a budget does not suffice.
        """
        self.witness.check_witnessed()
        if self.witness.may_have_lost:
            self._charge_what_may_be_lost(spend, about)
        return self._charge(spend, about)

    def _charge(self, spend: Spend, about: dict[str, str | int]) -> int:
        left = self._allowed(spend)
        if left < 1:
            raise OutOfBudget(f"{self.run} has spent the epsilon = {upward(self.budget.epsilon)} of its profile")
        try:
            entered = self.ledger.charge(self.run, spend, about)
        except BudgetExhausted as limit:
            raise OutOfBudget(str(limit)) from limit
        self._left = spend, left - 1, self.ledger.spends(self.run)
        return entered

    def _charge_what_may_be_lost(self, spend: Spend, about: dict[str, str | int]) -> None:
        """Pays for the one answer that a copy may not know although the others signed its head: they sign before the next.

        Of each kind that the ledger knows one is entered, as nobody can say of which kind the lost one was.
        """
        whose = {name: fact for name, fact in about.items() if name in ("profile", "digest", "unit")}
        known = {replace(kind, count=1): None for account in self.ledger.runs() for kind in account.answers}
        for kind in {spend: None, **known}:
            self._charge(kind, {**whose, "lost": "after the copy of this home was made"})
        self.witness.paid_for_lost()

    def look_ahead(self, spend: Spend, answers: int) -> None:
        """Composes what the run is going to ask, `answers` times in all, so that paying for an answer is quick."""
        account = self.ledger.account(self.run)
        ahead = max(1, answers - (account.answers[spend] if account else 0))
        self.ledger.look_ahead(self.run, spend, min(ahead, max(1, self._allowed(spend, ahead))))

    def was_asked(self, question: str) -> bool:
        account = self.ledger.account(self.run)
        return account is not None and account.was_asked(question)

    def _allowed(self, spend: Spend, likely: int = 1) -> int:
        """Returns how many such answers the budget allows. It counts them down: composing losses takes longer than a round."""
        before = self.ledger.spends(self.run)
        if self._left is None or (self._left[0], self._left[2]) != (spend, before):
            left = affordable(before, spend, self.budget.epsilon, ALONE * self.budget.delta, MOST, likely)
            self._left = spend, left, before
        return self._left[1]


@dataclass
class PaidQuestion:
    """One question that spends a budget, as the ledger knows it before it is answered."""

    guard: BudgetGuard
    question: str
    number: int
    members: str  # digest of who is asked
    asked: str  # digest of everything that is asked
    given_once: bool  # whether its answer is kept, so that there is never a second one

    def __post_init__(self) -> None:
        account = self.guard.ledger.account(self.guard.run)
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
            self.guard.witness.check_witnessed()
        elif self.given_once and terms.noised is Noised.SHARE and self._latest > self.number:
            raise LaterAnswered(self.question, self.number, self._latest)

    def pay(self, spend: Spend, about: dict[str, str | int]) -> None:
        """Enters that the answer is paid for, unless a process that ended before its answer left paid as much for it."""
        if self.entry is not None and self.entry.price == spend:
            return
        what: dict[str, str | int] = {"question": self.question, "number": self.number}
        entered = self.guard.charge(spend, {**about, **what, "members": self.members, "asked": self.asked})
        self.entry = PaidAnswer(entered, self.question, self.number, self.members, self.asked, "", spend)

    def settle(self, vector: State, terms: Terms) -> None:
        """Enters the answer's digest before the answer leaves. What was entered before has to be the digest of this answer."""
        if self.entry is None:  # all its noise was drawn and paid for before
            return
        made = hashlib.sha256(_LABEL)
        made.update(pack_vector(vector, terms))
        if not self.entry.answer:
            self.guard.ledger.answered(self.guard.run, self.entry.entry, made.digest())
        elif self.entry.answer != made.hexdigest():
            raise CannotTakePart()
