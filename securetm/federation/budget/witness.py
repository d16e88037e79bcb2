"""Heads of ledgers, and what the parties sign of each other's, so that none is put back unnoticed. Each role's half is here.

A party signs a head only if it follows from the head that it saw before: digests of the entries between them prove that. A
ledger that it never saw is taken as it is. A head and its links tell how many entries there are, which is public, and nothing
of documents. The coordinator carries heads, links and signatures between the parties, and none trusts it: it only finds out
which party lacks which links, so that honest parties can go on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import LedgerReplaced
from securetm.accounting.ledger.ledger_file import follow
from securetm.contracts import Store
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, NotInCohort, Refused
from securetm.federation.refusal_errors import LedgerForked, NotWitnessed
from securetm.federation.wire import wire
from securetm.federation.wire.wire import LINK, MOST_LINKS
from securetm.sessions.framing import Label
from securetm.sessions.identities import SIGNATURE, Identity

NONCE = TAG = 16
_LEDGER_OF = "ledger of "  # in the store, before the owner's name
KNOWN = struct.Struct(">IQ32s32s")  # 0, how many entries, the first entry's hash, the last one's: as a party remembers it
SIGNED_HEAD = struct.Struct(f">IQ32s32s{NONCE}s{TAG}s")  # whose, how many entries, both hashes, the owner's nonce, the data set
SEEN = struct.Struct(f">IIQ32s32s{NONCE}s")  # by whom, whose, and the same
SEEN_BY = struct.Struct(">I")


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


def quorum(others: int, colluding: int) -> int:
    """Returns how many of the other parties must sign a ledger's head: any two such sets share a party that does not collude.

    That party signs no second history. Where all others collude, all must sign, and it proves nothing.
    """
    return min((others + colluding) // 2 + 1, others)


def remembered(others: Store, name: str, owner: int = 0, tag: bytes = bytes(TAG)) -> Head | None:
    """Returns the last head of that party's ledger over that data set that a party has seen and kept."""
    stored = others.get(kept_under(name, tag))
    if stored is None:
        return None
    _, count, ledger, last = KNOWN.unpack(stored)
    return Head(owner, ledger, count, last)


def kept_under(name: str, tag: bytes) -> str:
    """Where a party keeps the head of that owner's ledger over that data set."""
    return _LEDGER_OF + name + (f" {tag.hex()}" if any(tag) else "")


def head_of(signed: bytes) -> Head:
    """Returns the head that an owner signed. It does not check who signed."""
    owner, count, ledger, last, nonce, tag = _opened(SIGNED_HEAD, signed, "a head of a ledger")
    return Head(owner, ledger, count, last, nonce, tag)


def seen_head_of(signed: bytes) -> Head:
    """Returns the head of another party's ledger that a party signed. It does not check who signed."""
    _, owner, count, ledger, last, nonce = _opened(SEEN, signed, "what was signed of a ledger")
    return Head(owner, ledger, count, last, nonce)


def _opened(layout: struct.Struct, signed: bytes, what: str) -> tuple[Any, ...]:
    if len(signed) != layout.size + SIGNATURE:
        raise Malformed("the coordinator", f"{what} has another length")
    return layout.unpack(signed[:-SIGNATURE])


# ---- a party's half --------------------------------------------------------------------------------------------------


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


# ---- the coordinator's half ------------------------------------------------------------------------------------------

MOST_TURNS = 100  # of links before a question: a hostile party's ledger may grow without end
Carry = Callable[[Mapping[str, wire.Body]], Mapping[str, wire.Accepted]]


@dataclass(frozen=True)
class _Lead:
    """The links from an entry of a ledger to a head of it."""

    since: int
    head: bytes
    links: bytes


@dataclass
class Countersigning:
    """The last head that each owner signed in this session, and what each other party last signed of it."""

    members: tuple[str, ...]
    carry: Carry
    heads: dict[str, bytes] = field(default_factory=dict)
    _signed: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by owner, then by witness

    def gather(self) -> dict[str, tuple[bytes, ...]]:
        """Returns what the parties sign of each other's ledgers as these are now. Without it they would spend nothing more."""
        followed = -1
        for _ in range(MOST_TURNS):
            self._show(self._leads())
            if followed >= self._followed() or not any(map(self._behind, self.heads)):
                break
            followed = self._followed()
        return {owner: tuple(signed.values()) for owner, signed in self._signed.items()}

    def deliver(self) -> None:
        """Shows every party, at the end of a session, who signed the last head of its ledger."""
        signed = self.gather()
        self.carry({owner: wire.Links(statements) for owner, statements in signed.items()})

    def _followed(self) -> int:
        """Returns how far all parties have followed all ledgers, as one number that grows."""
        return sum(seen_head_of(one).count for signed in self._signed.values() for one in signed.values())

    def _behind(self, owner: str) -> list[bytes]:
        """Returns what was signed of a shorter ledger than it is now, since its owner was invited last."""
        present, signed = head_of(self.heads[owner]), self._signed.get(owner, {}).values()
        standing = ((one, seen_head_of(one)) for one in signed)
        return [one for one, seen in standing if seen.count < present.count and seen.nonce == present.nonce]

    def _leads(self) -> dict[str, _Lead]:
        """Asks the owners of ledgers that others saw shorter. One statement of each length that somebody saw is enough."""
        behind = {owner: {seen_head_of(one): one for one in self._behind(owner)} for owner in self.heads}
        asked = {owner: wire.Links(tuple(lengths.values())) for owner, lengths in behind.items() if lengths}
        led = self.carry(asked) if asked else {}
        since = {owner: min(head.count for head in lengths) for owner, lengths in behind.items() if lengths}
        return {owner: _Lead(since[owner], *map(bytes, said.parcels)) for owner, said in led.items() if len(said.parcels) == 2}

    def _show(self, leads: Mapping[str, _Lead]) -> None:
        """Shows every party the heads of the others, and notes what it signs of them."""
        shown = {member: self._shown(member, leads) for member in self.members}
        others = {member: [owner for owner in self.heads if owner != member] for member in self.members}
        answered = self.carry(shown)
        for member in self.members:
            parcels = answered[member].parcels if member in answered else (b"",) * len(others[member])
            for owner, signed in zip(others[member], parcels, strict=False):
                by_witness = self._signed.setdefault(owner, {})
                if signed:
                    by_witness[member] = bytes(signed)
                else:  # a party that no longer answers is not waited for
                    by_witness.pop(member, None)

    def _shown(self, member: str, leads: Mapping[str, _Lead]) -> wire.Witness:
        """Returns every other head, with links for a party that has seen less of it, as many as one message takes."""
        heads, links, left = [], [], wire.MOST_LINKED
        for owner in self.heads:
            if owner == member:
                continue
            lead, before = leads.get(owner), self._signed.get(owner, {}).get(member)
            links.append(b"")
            if lead and before and (seen := seen_head_of(before).count) >= lead.since:
                missing = lead.links[(seen - lead.since) * LINK :]
                links[-1] = missing if len(missing) <= left else b""
            left -= len(links[-1])
            heads.append(lead.head if lead else self.heads[owner])
        return wire.Witness(tuple(heads), tuple(links) if any(links) else ())
