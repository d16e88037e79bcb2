"""A party's purse: its ledger, and what the parties sign of each other's ledgers so that none can be put back unseen.

It decides no question's price. What a head says is how many entries a ledger has and their hash: public facts, no documents.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import SPENT
from securetm.accounting.ledger.filter import ALONE
from securetm.accounting.ledger.ledger import MOST
from securetm.accounting.spends import Spend
from securetm.aggregation.identities import SIGNATURE, Identity
from securetm.contracts import Budget, Cupboard
from securetm.errors import BudgetExhausted, LedgerReplaced, Malformed, NotInCohort, NotWitnessed, OutOfBudget

HEAD = b"head of a ledger"
SEEN = b"head of another's ledger"
_HEAD = struct.Struct(">IQ32s32s")  # whose, how many entries, the first entry's hash, the last one's
_SEEN = struct.Struct(">IIQ32s32s")  # by whom, whose, and the same


@dataclass(frozen=True)
class Head:
    """The state of a ledger: which one it is, how long, and the hash of its last entry."""

    ledger: bytes
    count: int
    last: bytes


@dataclass
class Purse:
    """What one party spends from in one session. `others` remembers the other parties' ledgers across sessions."""

    ledger: Ledger
    identity: Identity
    others: Cupboard
    needed: int  # other parties that must have signed the present head before more is spent
    budget: Budget  # of this run; the ledger's own is the party's, for all runs
    _signed_by: dict[int, int] = field(default_factory=dict)  # who signed, and up to which entry
    _left: tuple[Spend, int, int] | None = None  # how many more such answers this run may give, at that length of the ledger

    def charge(self, run: str, spend: Spend, about: dict[str, str | int]) -> None:
        """Refused by name if the others did not sign where the ledger stands, or if a budget does not reach; else on disk."""
        count, _ = self.ledger.head
        signed = sum(upto == count for upto in self._signed_by.values())
        if signed < self.needed:
            raise NotWitnessed(signed, self.needed)
        left = self._allowed(run, spend)
        if left < 1:
            raise OutOfBudget(f"{run} has spent the epsilon = {self.budget.epsilon:g} of its profile")
        try:
            self.ledger.charge(run, spend, about)
        except BudgetExhausted as limit:
            raise OutOfBudget(str(limit)) from limit
        self._left = spend, left - 1, count + 1

    def was_asked(self, run: str, question: str) -> bool:
        """Whether this run paid for such a question before."""
        spent = (entry.content for entry in self.ledger.entries() if entry.content["kind"] == SPENT)
        return any(said["run"] == run and said["about"].get("question") == question for said in spent)

    def _allowed(self, run: str, spend: Spend) -> int:
        """Worked out anew where the ledger holds what was not counted down: composing losses takes longer than a round."""
        count, _ = self.ledger.head
        if self._left is None or (self._left[0], self._left[2]) != (spend, count):
            share = ALONE * self.budget.delta
            left = affordable(self.ledger.spends(run), spend, self.budget.epsilon, share, MOST)
            self._left = spend, left, count
        return self._left[1]

    def announce(self) -> bytes:
        """Where this party's ledger stands, signed."""
        count, last = self.ledger.head
        return self.identity.sign(_HEAD.pack(self.identity.place, count, self.ledger.identity, last), HEAD)

    def countersign(self, heads: Sequence[bytes]) -> tuple[bytes, ...]:
        """Signs the furthest that was ever seen of each of those ledgers: the owner finds out if it says less now."""
        return tuple(self._seen(head) for head in heads)

    def _seen(self, signed: bytes) -> bytes:
        owner, *rest = _opened(_HEAD, signed, "a head of a ledger")
        self._verify(owner, signed, HEAD)
        head = Head(rest[1], rest[0], rest[2])
        known = self._known(owner)
        if known is None or (known.ledger == head.ledger and known.count < head.count):
            self.others.put(self._name(owner), _HEAD.pack(0, head.count, head.ledger, head.last))
            known = head
        return self.identity.sign(_SEEN.pack(self.identity.place, owner, known.count, known.ledger, known.last), SEEN)

    def hear(self, statements: Sequence[bytes]) -> None:
        """What others signed of this ledger; a ledger that is behind any of it was put back, and spends no more."""
        for signed in statements:
            witness, owner, count, ledger, last = _opened(_SEEN, signed, "what was signed of a ledger")
            self._verify(witness, signed, SEEN)
            if owner != self.identity.place or witness == owner:
                raise Malformed("the coordinator", "it was signed of another party's ledger")
            if ledger != self.ledger.identity:
                raise LedgerReplaced(self.identity.me, self.identity.register.name(witness))
            self.ledger.check_against(count, last)
            self._signed_by[witness] = count
        self._keep(statements)

    def _keep(self, statements: Sequence[bytes]) -> None:
        """Into the ledger's file: who signed where it stands now."""
        count, last = self.ledger.head
        name = self.identity.register.name
        now = {name(_SEEN.unpack(signed[:-SIGNATURE])[0]): signed for signed in statements}
        signed_now = {who: signed for who, signed in now.items() if self._signed_by[self.identity.register.place(who)] == count}
        if signed_now:
            self.ledger.witness(count, last, signed_now)

    def _known(self, owner: int) -> Head | None:
        stored = self.others.get(self._name(owner))
        if stored is None:
            return None
        _, count, ledger, last = _HEAD.unpack(stored)
        return Head(ledger, count, last)

    def _name(self, owner: int) -> str:
        return f"ledger of {self.identity.register.name(owner)}"

    def _verify(self, place: int, signed: bytes, context: bytes) -> None:
        register = self.identity.register
        if place >= len(register):
            raise NotInCohort(f"number {place}")
        register.verify(place, signed[:-SIGNATURE], signed[-SIGNATURE:], context, context.decode())


def _opened(layout: struct.Struct, signed: bytes, what: str) -> tuple[Any, ...]:
    if len(signed) != layout.size + SIGNATURE:
        raise Malformed("the coordinator", f"{what} has another length")
    return layout.unpack(signed[:-SIGNATURE])
