"""A party's guard: its ledger, and what the parties sign of each other's ledgers so that none can be put back unseen.

A party signs a head only if it follows from the one that it saw before: digests of the entries between them prove that. A
ledger that it never saw is taken as it is. It decides no question's price. A head and its links say how many entries there are:
public facts, no documents.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import SPENT
from securetm.accounting.ledger.hash_chain import follow
from securetm.accounting.ledger.ledger import MOST
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.ledger_errors import BudgetExhausted, LedgerReplaced
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Store
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, NotInCohort
from securetm.federation.paying_errors import LedgerForked, NotWitnessed, OutOfBudget
from securetm.federation.wire import LINK, MOST_LINKS
from securetm.sessions.identities import SIGNATURE, Identity
from securetm.sessions.labels import Label
from securetm.sessions.session_errors import StaleSignature

NONCE = 16
_KNOWN = struct.Struct(">IQ32s32s")  # 0, how many entries, the first entry's hash, the last one's: as a party remembers it
_HEAD = struct.Struct(f">IQ32s32s{NONCE}s")  # whose, how many entries, both hashes, and the owner's nonce
_SEEN = struct.Struct(f">IIQ32s32s{NONCE}s")  # by whom, whose, and the same
_SEEN_BY = struct.Struct(">I")


@dataclass(frozen=True)
class Head:
    """The state of a ledger: whose it is, which one, how long, and the hash of its last entry.

    The nonce is new each time the owner is invited. Who signs what it has seen repeats it, so that nothing that was signed
    before counts after another invitation, also under the same session.
    """

    owner: int
    ledger: bytes
    count: int
    last: bytes
    nonce: bytes = field(default=b"", compare=False)


@dataclass
class BudgetGuard:
    """What one party spends from in one session. `others` remembers the other parties' ledgers across sessions."""

    ledger: Ledger
    identity: Identity
    others: Store
    needed: int  # other parties that must have signed the present head before more is spent
    budget: Budget  # of this run; the ledger's own is the party's, for all runs
    nonce: bytes = field(default_factory=lambda: OperatingSystem().bytes(NONCE))  # in every head that this guard announces
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
        """How many more such answers this run may give. It counts down where it can: composing losses is slow."""
        count, _ = self.ledger.head
        if self._left is None or (self._left[0], self._left[2]) != (spend, count):
            share = ALONE * self.budget.delta
            left = affordable(self.ledger.spends(run), spend, self.budget.epsilon, share, MOST)
            self._left = spend, left, count
        return self._left[1]

    def announce(self) -> bytes:
        """Where this party's ledger stands, signed."""
        return self._signed_head(*self.ledger.head)

    def lead(self, statements: Sequence[bytes]) -> tuple[bytes, bytes]:
        """From the least that others signed of this ledger to its end, or as far as one message goes: a head, and the links."""
        self.hear(statements)
        present, last = self.ledger.head
        since = min((standing_of(signed).count for signed in statements), default=present)
        links = self.ledger.links(since, MOST_LINKS)
        reached = since + len(links)
        return self._signed_head(reached, self.ledger.head_at(reached) or last), b"".join(links)

    def countersign(self, heads: Sequence[bytes], links: Sequence[bytes] = ()) -> tuple[bytes, ...]:
        """Signs the furthest that was ever seen of each of those ledgers: the owner finds out if it says less now."""
        return tuple(self._seen(head, way) for head, way in zip(heads, links or [b""] * len(heads), strict=True))

    def _signed_head(self, count: int, last: bytes) -> bytes:
        statement = _HEAD.pack(self.identity.place, count, self.ledger.identity, last, self.nonce)
        return self.identity.sign(Label.LEDGER_HEAD, statement)

    def _seen(self, signed: bytes, links: bytes) -> bytes:
        head = head_of(signed)
        self._verify(head.owner, signed, Label.LEDGER_HEAD)
        known = self._known(head.owner)
        if known is None or self._follows(head, known, links):
            self.others.put(self._name(head.owner), _KNOWN.pack(0, head.count, head.ledger, head.last))
            known = head
        statement = _SEEN.pack(self.identity.place, head.owner, known.count, known.ledger, known.last, head.nonce)
        return self.identity.sign(Label.LEDGER_SEEN, statement)

    def _follows(self, head: Head, known: Head, links: bytes) -> bool:
        """Whether that head is proven to continue what was seen before; refused by name where the proof fails.

        Without links this party says only where it stands, and of another ledger it has seen nothing.
        """
        if not links or head.ledger != known.ledger or head.count <= known.count:
            return False
        digests = [links[at : at + LINK] for at in range(0, len(links), LINK)]
        if len(digests) != head.count - known.count or follow(known.last, digests) != head.last:
            raise LedgerForked(self.identity.register.name(head.owner), known.count, head.count)
        return True

    def hear(self, statements: Sequence[bytes]) -> None:
        """What others signed of this ledger; a ledger that is behind any of it was put back, and spends no more."""
        for signed in statements:
            seen = standing_of(signed)
            witness = _SEEN_BY.unpack(signed[: _SEEN_BY.size])[0]
            self._verify(witness, signed, Label.LEDGER_SEEN)
            if seen.owner != self.identity.place or witness == seen.owner:
                raise Malformed("the coordinator", "it was signed of another party's ledger")
            if seen.nonce != self.nonce:
                raise StaleSignature(self.identity.register.name(witness))
            if seen.ledger != self.ledger.identity:
                raise LedgerReplaced(self.identity.me, self.identity.register.name(witness))
            self.ledger.check_against(seen.count, seen.last)
            self._signed_by[witness] = seen.count
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
        return remembered(self.others, self.identity.register.name(owner), owner)

    def _name(self, owner: int) -> str:
        return f"ledger of {self.identity.register.name(owner)}"

    def _verify(self, place: int, signed: bytes, label: Label) -> None:
        register = self.identity.register
        if place >= len(register):
            raise NotInCohort(f"number {place}")
        register.opened(place, register.name(place), signed, label)


def quorum(others: int, colluding: int) -> int:
    """How many of the other parties must sign where a ledger stands: any two such sets share one that does not help.

    That one signs no history beside the one that it saw. Where all others help, all must sign, and it proves nothing.
    """
    return min((others + colluding) // 2 + 1, others)


def remembered(others: Store, name: str, owner: int = 0) -> Head | None:
    """The furthest that a party has seen of that party's ledger, as it keeps it."""
    stored = others.get(f"ledger of {name}")
    if stored is None:
        return None
    _, count, ledger, last = _KNOWN.unpack(stored)
    return Head(owner, ledger, count, last)


def head_of(signed: bytes) -> Head:
    """What an owner signed of its ledger; who signed is not checked here."""
    owner, count, ledger, last, nonce = _opened(_HEAD, signed, "a head of a ledger")
    return Head(owner, ledger, count, last, nonce)


def standing_of(signed: bytes) -> Head:
    """What a peer signed of another's ledger; who signed is not checked here."""
    _, owner, count, ledger, last, nonce = _opened(_SEEN, signed, "what was signed of a ledger")
    return Head(owner, ledger, count, last, nonce)


def _opened(layout: struct.Struct, signed: bytes, what: str) -> tuple[Any, ...]:
    if len(signed) != layout.size + SIGNATURE:
        raise Malformed("the coordinator", f"{what} has another length")
    return layout.unpack(signed[:-SIGNATURE])
