"""A party's budget guard: its ledger, and what the parties sign of each other's ledgers so that none is put back unnoticed.

A party signs a head only if it follows from the head that it saw before: digests of the entries between them prove that. A
ledger that it never saw is taken as it is. It decides no question's price. A head and its links tell how many entries there
are, which is public, and nothing of documents.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.hash_chain import follow
from securetm.accounting.ledger.ledger import MOST
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.ledger_errors import BudgetExhausted, LedgerReplaced
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Store
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, NotInCohort
from securetm.federation.refusal_errors import LedgerForked, NotWitnessed, OutOfBudget
from securetm.federation.wire.wire import LINK, MOST_LINKS
from securetm.sessions.identities import SIGNATURE, Identity
from securetm.sessions.labels import Label
from securetm.sessions.session_errors import StaleSignature
from securetm.wording import upward

NONCE = TAG = 16
_LEDGER_OF = "ledger of "  # in the store, before the owner's name
_KNOWN = struct.Struct(">IQ32s32s")  # 0, how many entries, the first entry's hash, the last one's: as a party remembers it
_HEAD = struct.Struct(f">IQ32s32s{NONCE}s{TAG}s")  # whose, how many entries, both hashes, the owner's nonce, the data set
_SEEN = struct.Struct(f">IIQ32s32s{NONCE}s")  # by whom, whose, and the same
_SEEN_BY = struct.Struct(">I")


@dataclass(frozen=True)
class Head:
    """The state of a ledger: whose it is, which one, how long, and the hash of its last entry.

    The nonce is new each time the owner is invited, and whoever signs a head repeats it. So no signature counts after another
    invitation, also in the same session.
    """

    owner: int
    ledger: bytes
    count: int
    last: bytes
    nonce: bytes = field(default=b"", compare=False)
    tag: bytes = field(default=bytes(TAG), compare=False)  # of the data set: an owner may have several ledgers


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
    _left: tuple[Spend, int, int] | None = None  # how many more such answers this run may give, at that length of the ledger

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
        count, _ = self.ledger.head
        left = self._allowed(run, spend)
        if left < 1:
            raise OutOfBudget(f"{run} has spent the epsilon = {upward(self.budget.epsilon)} of its profile")
        try:
            entered = self.ledger.charge(run, spend, about)
        except BudgetExhausted as limit:
            raise OutOfBudget(str(limit)) from limit
        self._left = spend, left - 1, count + 1
        return entered

    def answered(self, run: str, entry: int, answer: bytes) -> None:
        """Writes the digest of the answer that this entry paid for to disk, before the answer leaves."""
        before, _ = self.ledger.head
        self.ledger.answered(run, entry, answer)
        if self._left is not None and self._left[2] == before:
            self._left = *self._left[:2], before + 1

    def was_asked(self, run: str, question: str) -> bool:
        """Whether this run paid for such a question before."""
        account = self.ledger.account(run)
        return account is not None and account.was_asked(question)

    def _allowed(self, run: str, spend: Spend) -> int:
        """Returns how many such answers the budget allows. It counts them down: composing losses takes longer than a round."""
        count, _ = self.ledger.head
        if self._left is None or (self._left[0], self._left[2]) != (spend, count):
            share = ALONE * self.budget.delta
            left = affordable(self.ledger.spends(run), spend, self.budget.epsilon, share, MOST)
            self._left = spend, left, count
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
        since = min((standing_of(signed).count for signed in statements), default=present)
        links = self.ledger.links(since, MOST_LINKS)
        reached = since + len(links)
        return self._signed_head(reached, self.ledger.head_at(reached) or last), b"".join(links)

    def countersign(self, heads: Sequence[bytes], links: Sequence[bytes] = ()) -> tuple[bytes, ...]:
        """Signs the longest state that was ever seen of each of those ledgers. An owner whose ledger is shorter finds out."""
        return tuple(self._seen(head, followed) for head, followed in zip(heads, links or [b""] * len(heads), strict=True))

    def _signed_head(self, count: int, last: bytes) -> bytes:
        statement = _HEAD.pack(self.identity.place, count, self.ledger.identity, last, self.nonce, self.tag)
        return self.identity.sign(Label.LEDGER_HEAD, statement)

    def _seen(self, signed: bytes, links: bytes) -> bytes:
        head = head_of(signed)
        self._verify(head.owner, signed, Label.LEDGER_HEAD)
        name = self.identity.register.name(head.owner)
        known = remembered(self.others, name, head.owner, head.tag)
        if known is None or self._follows(head, known, links):
            self.others.put(_kept_under(name, head.tag), _KNOWN.pack(0, head.count, head.ledger, head.last))
            known = head
        statement = _SEEN.pack(self.identity.place, head.owner, known.count, known.ledger, known.last, head.nonce)
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
            seen = standing_of(signed)
            witness = _SEEN_BY.unpack(signed[: _SEEN_BY.size])[0]
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


def quorum(others: int, colluding: int) -> int:
    """Returns how many of the other parties must sign a ledger's head: any two such sets share a party that does not collude.

    That party signs no second history. Where all others collude, all must sign, and it proves nothing.
    """
    return min((others + colluding) // 2 + 1, others)


def remembered(others: Store, name: str, owner: int = 0, tag: bytes = bytes(TAG)) -> Head | None:
    """Returns the last head of that party's ledger over that data set that a party has seen and kept."""
    stored = others.get(_kept_under(name, tag))
    if stored is None:
        return None
    _, count, ledger, last = _KNOWN.unpack(stored)
    return Head(owner, ledger, count, last)


def _kept_under(name: str, tag: bytes) -> str:
    return _LEDGER_OF + name + (f" {tag.hex()}" if any(tag) else "")


def head_of(signed: bytes) -> Head:
    """Returns the head that an owner signed. It does not check who signed."""
    owner, count, ledger, last, nonce, tag = _opened(_HEAD, signed, "a head of a ledger")
    return Head(owner, ledger, count, last, nonce, tag)


def standing_of(signed: bytes) -> Head:
    """Returns the head of another party's ledger that a party signed. It does not check who signed."""
    _, owner, count, ledger, last, nonce = _opened(_SEEN, signed, "what was signed of a ledger")
    return Head(owner, ledger, count, last, nonce)


def _opened(layout: struct.Struct, signed: bytes, what: str) -> tuple[Any, ...]:
    if len(signed) != layout.size + SIGNATURE:
        raise Malformed("the coordinator", f"{what} has another length")
    return layout.unpack(signed[:-SIGNATURE])
