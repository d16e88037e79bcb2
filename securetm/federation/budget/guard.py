"""What guards a party's budget: its ledger, which pays for every answer before anything is drawn, and the others' signatures.

The ledger knows of each answer that was paid for its question and number, who was asked what, and, before the answer leaves,
its digest. So an answer with a digest may have left: the party gives those very bytes or none. An entry without a digest is of
a process that ended before its answer left: that answer is computed now, under the same entry. No document is read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import MOST, PaidAnswer
from securetm.accounting.ledger.ledger import BudgetExhausted, LedgerReplaced
from securetm.accounting.ledger.ledger_file import follow
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.aggregation.vectors import pack_vector
from securetm.contracts import Budget, Noised, State, Store, Terms
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, NotInCohort, Refused
from securetm.federation.budget.witness import (
    KNOWN,
    NONCE,
    SEEN,
    SEEN_BY,
    SIGNED_HEAD,
    TAG,
    Head,
    head_of,
    kept_under,
    remembered,
    seen_head_of,
)
from securetm.federation.refusal_errors import (
    AnotherCohort,
    AskedOtherwise,
    CannotTakePart,
    LaterAnswered,
    LedgerForked,
    NotWitnessed,
    OutOfBudget,
)
from securetm.federation.wire.wire import LINK, MOST_LINKS
from securetm.sessions.framing import Label
from securetm.sessions.identities import Identity
from securetm.wording import upward


class StaleSignature(Refused):
    """{sender} signed this head before the last invitation of the ledger's owner"""

    sender: str


_LABEL = b"securetm answer that was paid for\n"


@dataclass
class BudgetGuard:
    """The ledger of one party in one session. `others` keeps the heads of the other parties' ledgers across sessions."""

    ledger: Ledger
    identity: Identity
    others: Store
    needed: int  # other parties that must have signed the present head before more is spent
    budget: Budget  # of this run; the ledger's own is the party's, for all runs
    tag: bytes = bytes(TAG)  # of the data set that the ledger belongs to
    nonce: bytes = field(default_factory=lambda: OperatingSystem().bytes(NONCE))  # in every head that this guard announces
    _signed_by: dict[int, int] = field(default_factory=dict)  # who signed, and up to which entry
    _left: tuple[Spend, int, list[Spend]] | None = None  # how many more such answers a run may give that has spent so much

    def check_witnessed(self) -> None:
        """Refuses if the others did not sign the present head: it may be an older copy that was put back."""
        count, _ = self.ledger.head
        signed = sum(upto == count for upto in self._signed_by.values())
        if signed < self.needed:
            raise NotWitnessed(signed, self.needed)

    def charge(self, run: str, spend: Spend, about: dict[str, str | int]) -> int:
        """Writes the spend to disk, and returns the number of its entry.

        Refuses if the others did not sign the present head, or if a budget does not suffice.
        """
        self.check_witnessed()
        left = self._allowed(run, spend)
        if left < 1:
            raise OutOfBudget(f"{run} has spent the epsilon = {upward(self.budget.epsilon)} of its profile")
        try:
            entered = self.ledger.charge(run, spend, about)
        except BudgetExhausted as limit:
            raise OutOfBudget(str(limit)) from limit
        self._left = spend, left - 1, self.ledger.spends(run)
        return entered

    def look_ahead(self, run: str, spend: Spend, answers: int) -> None:
        """Composes what the run is going to ask, `answers` times in all, so that paying for an answer is quick."""
        account = self.ledger.account(run)
        ahead = max(1, answers - (account.answers[spend] if account else 0))
        self.ledger.look_ahead(run, spend, min(ahead, max(1, self._allowed(run, spend, ahead))))

    def was_asked(self, run: str, question: str) -> bool:
        """Whether this run paid for such a question before."""
        account = self.ledger.account(run)
        return account is not None and account.was_asked(question)

    def _allowed(self, run: str, spend: Spend, likely: int = 1) -> int:
        """Returns how many such answers the budget allows. It counts them down: composing losses takes longer than a round."""
        before = self.ledger.spends(run)
        if self._left is None or (self._left[0], self._left[2]) != (spend, before):
            left = affordable(before, spend, self.budget.epsilon, ALONE * self.budget.delta, MOST, likely)
            self._left = spend, left, before
        return self._left[1]

    def announce(self) -> bytes:
        """Returns the signed head of this party's ledger."""
        return self._signed_head(*self.ledger.head)

    def lead(self, statements: Sequence[bytes]) -> tuple[bytes, bytes]:
        """Returns the head of this ledger, and the links to it from the shortest ledger that others signed.

        Where one message does not hold all links, it is an earlier head.
        """
        self.hear(statements)
        present, last = self.ledger.head
        since = min((seen_head_of(signed).count for signed in statements), default=present)
        links = self.ledger.links(since, MOST_LINKS)
        reached = since + len(links)
        return self._signed_head(reached, self.ledger.head_at(reached) or last), b"".join(links)

    def countersign(self, heads: Sequence[bytes], links: Sequence[bytes] = ()) -> tuple[bytes, ...]:
        """Signs the longest state that was ever seen of each of those ledgers. An owner whose ledger is shorter finds out."""
        return tuple(self._seen(head, followed) for head, followed in zip(heads, links or [b""] * len(heads), strict=True))

    def _signed_head(self, count: int, last: bytes) -> bytes:
        statement = SIGNED_HEAD.pack(self.identity.place, count, self.ledger.identity, last, self.nonce, self.tag)
        return self.identity.sign(Label.LEDGER_HEAD, statement)

    def _seen(self, signed: bytes, links: bytes) -> bytes:
        head = head_of(signed)
        self._verify(head.owner, signed, Label.LEDGER_HEAD)
        name = self.identity.register.name(head.owner)
        known = remembered(self.others, name, head.owner, head.tag)
        if known is None or self._follows(head, known, links):
            self.others.put(kept_under(name, head.tag), KNOWN.pack(0, head.count, head.ledger, head.last))
            known = head
        statement = SEEN.pack(self.identity.place, head.owner, known.count, known.ledger, known.last, head.nonce)
        return self.identity.sign(Label.LEDGER_SEEN, statement)

    def _follows(self, head: Head, known: Head, links: bytes) -> bool:
        """Whether the links prove that this head continues the known one. Refuses where the proof fails.

        Without links, or of another ledger than the known one, nothing is proven: then this party signs the known head again.
        """
        if not links or head.ledger != known.ledger or head.count <= known.count:
            return False
        digests = [links[at : at + LINK] for at in range(0, len(links), LINK)]
        if len(digests) != head.count - known.count or follow(known.last, digests) != head.last:
            raise LedgerForked(self.identity.register.name(head.owner), known.count, head.count)
        return True

    def hear(self, statements: Sequence[bytes]) -> None:
        """Takes what others signed of this ledger. A ledger that is shorter than any of it was put back, and spends no more."""
        (count, last), name = self.ledger.head, self.identity.register.name
        signed_now: dict[str, bytes] = {}
        for signed in statements:
            seen = seen_head_of(signed)
            witness = SEEN_BY.unpack(signed[: SEEN_BY.size])[0]
            self._verify(witness, signed, Label.LEDGER_SEEN)
            if seen.owner != self.identity.place or witness == seen.owner:
                raise Malformed("the coordinator", "it was signed of another party's ledger")
            if seen.nonce != self.nonce:
                raise StaleSignature(name(witness))
            if seen.ledger != self.ledger.identity:
                raise LedgerReplaced(self.identity.me, name(witness))
            self.ledger.check_against(seen.count, seen.last)
            self._signed_by[witness] = seen.count
            if seen.count == count:
                signed_now[name(witness)] = signed
        if signed_now:
            self.ledger.witness(count, last, signed_now)

    def _verify(self, place: int, signed: bytes, label: Label) -> None:
        register = self.identity.register
        if place >= len(register):
            raise NotInCohort(f"number {place}")
        register.opened(place, register.name(place), signed, label)


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
            self.guard.ledger.answered(self.run, self.entry.entry, made.digest())
        elif self.entry.answer != made.hexdigest():
            raise CannotTakePart()
