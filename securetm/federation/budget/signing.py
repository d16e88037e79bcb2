"""What a party signs of ledgers: the head of its own, and of each other's the longest state that it ever saw (`witness.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import LedgerReplaced
from securetm.accounting.ledger.ledger_file import follow
from securetm.contracts import Store
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, NotInCohort, Refused
from securetm.federation.budget.witness import (
    KNOWN,
    NONCE,
    SEEN,
    SEEN_BY,
    SIGNED_HEAD,
    TAG,
    UNCONFIRMED,
    UNPAID,
    Head,
    head_of,
    kept_under,
    remembered,
    seen_head_of,
)
from securetm.federation.refusal_errors import LedgerForked, NotWitnessed
from securetm.federation.wire.wire import LINK, MOST_LINKS
from securetm.sessions.framing import Label
from securetm.sessions.identities import Identity


class StaleSignature(Refused):
    """{sender} signed this head before the last invitation of the ledger's owner"""

    sender: str


@dataclass
class LedgerWitness:
    """What the parties sign of each other's ledgers in one session, as one of them sees it."""

    ledger: Ledger
    identity: Identity
    others: Store  # keeps the heads of the other parties' ledgers across sessions
    needed: int  # other parties that must have signed the present head before more is spent
    tag: bytes = bytes(TAG)  # of the data set that the ledger belongs to
    nonce: bytes = field(default_factory=lambda: OperatingSystem().bytes(NONCE))  # in every head that this party announces
    _signed_by: dict[int, int] = field(default_factory=dict)  # who signed, and up to which entry

    def check_witnessed(self) -> None:
        """Refuses if the others did not sign the present head: it may be an older copy that was put back."""
        count, _ = self.ledger.head
        signed = sum(upto == count for upto in self._signed_by.values())
        if signed < self.needed:
            raise NotWitnessed(signed, self.needed)

    @property
    def is_confirmed(self) -> bool:
        """Whether nothing is forgotten as far as others know: not where this home was made of a copy that nobody has signed."""
        return not self.others.get(UNCONFIRMED)

    @property
    def may_have_lost(self) -> bool:
        """Whether one answer may be missing that nobody signed yet, as this home was made of a copy."""
        return bool(self.others.get(UNPAID))

    def paid_for_lost(self) -> None:
        self.others.put(UNPAID, b"")

    def announce(self) -> bytes:
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
        """Signs the longest state that was ever seen of each of those ledgers. An owner whose ledger is shorter finds out.

        A party out of a copy may have seen more than it knows, and signs nothing.
        """
        if not self.is_confirmed:
            return (b"",) * len(heads)
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
        if not self.is_confirmed and sum(upto == count for upto in self._signed_by.values()) >= self.needed:
            self.others.put(UNCONFIRMED, b"")

    def _verify(self, place: int, signed: bytes, label: Label) -> None:
        register = self.identity.register
        if place >= len(register):
            raise NotInCohort(f"number {place}")
        register.opened(place, register.name(place), signed, label)
