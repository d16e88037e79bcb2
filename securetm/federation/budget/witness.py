"""Heads of ledgers, and what the parties sign of each other's, so that none is put back unnoticed.

A party signs a head only if it follows from the head that it saw before: digests of the entries between them prove that. A
ledger that it never saw is taken as it is. A head and its links tell how many entries there are, which is public, and nothing
of documents. The coordinator carries heads, links and signatures between the parties, and none trusts it: it only finds out
which party lacks which links, so that honest parties can go on. A party's half is in `signing.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from securetm.contracts import Store
from securetm.data_classes import dataclass, field
from securetm.errors import Malformed
from securetm.federation.wire import wire
from securetm.federation.wire.wire import LINK
from securetm.sessions.identities import SIGNATURE

NONCE = TAG = 16
_LEDGER_OF = "ledger of "  # in the store, before the owner's name
# in the store of a home that was made of a copy: until others signed its ledger, and until it paid for what may be lost
UNCONFIRMED, UNPAID = "restored, and not confirmed by others", "restored, and an answer may be lost"
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


# ---- the coordinator's half ------------------------------------------------------------------------------------------

MOST_TURNS = 100  # of links before a question: a hostile party's ledger may grow without end
Carry = Callable[[Mapping[str, wire.Body]], Mapping[str, wire.Accepted]]
LedgerStep = tuple[Mapping[str, wire.Body], Callable[[Mapping[str, wire.Accepted]], None]]  # and what takes the replies


@dataclass(frozen=True)
class _Lead:
    since: int
    head: bytes
    links: bytes


@dataclass
class Countersigning:
    """The last head that each owner signed in this session, and what each other party last signed of it."""

    members: tuple[str, ...]
    carry: Carry
    heads: dict[str, bytes] = field(default_factory=dict)
    along: bool = False  # whether these messages go out along with others, so that mostly nothing is left to ask for
    _signed: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by owner, then by witness
    _silent: tuple[str, ...] = ()  # who signed nothing of what was shown last: out of a copy, it waits for what others sign
    _led: dict[str, _Lead] = field(default_factory=dict)  # what came along with an answer, to be shown next

    def gather(self, here: Collection[str] = ()) -> dict[str, tuple[bytes, ...]]:
        """Returns what the parties sign of each other's ledgers as these are now. Without it they would spend nothing more."""
        followed, told = -1, False
        for _ in range(MOST_TURNS):
            if self.along and not self._unsigned(here):
                break
            led, self._led = self._led, {}
            self._show(led or self._leads())
            if self._silent and not told:
                told = bool(self.carry({one: wire.Links(tuple(self._signed[one].values())) for one in self._silent}))
                self._show({})
            if followed >= self._followed() or not any(map(self._behind, self.heads)):
                break
            followed = self._followed()
        return {owner: tuple(signed.values()) for owner, signed in self._signed.items()}

    def deliver(self, here: Collection[str] = (), carry: Carry | None = None) -> None:
        """Shows every party, at the end of a session, who signed the last head of its ledger."""
        signed = self.gather(here)
        (carry or self.carry)({owner: wire.Links(statements) for owner, statements in signed.items()})

    def _unsigned(self, here: Collection[str]) -> set[str]:
        """The owners of ledgers whose present head somebody who is there has not signed."""
        return {
            owner
            for owner in self.heads
            for member in here
            if member != owner and not self._covers(self._signed.get(owner, {}).get(member), head_of(self.heads[owner]))
        }

    @staticmethod
    def _covers(signed: bytes | None, present: Head) -> bool:
        seen = seen_head_of(signed) if signed else None
        return seen is not None and seen.nonce == present.nonce and seen.count >= present.count

    def to_show(self, here: Collection[str]) -> LedgerStep:
        """What every party is shown along with another message; nothing if all is signed, or links are lacking."""
        unsigned = self._unsigned(here)
        if not unsigned or any(owner not in self._led for owner in unsigned if self._behind(owner)):
            return {}, lambda _: None
        shown, self._led = self._to_show(self._led), {}
        return shown, partial(self._take_shown, [*self.heads])

    def to_lead(self) -> LedgerStep:
        """Asks the owners for links to the heads that they will have after the question along with which this goes."""
        now = {owner: head_of(head) for owner, head in self.heads.items()}
        signed = {
            owner: {seen_head_of(one).count: one for one in said.values() if seen_head_of(one).nonce == now[owner].nonce}
            for owner, said in self._signed.items()
            if owner in now
        }
        asked = {owner: wire.Links(tuple(lengths.values())) for owner, lengths in signed.items() if lengths}
        since = {owner: min(lengths) for owner, lengths in signed.items() if lengths}

        def took(led: Mapping[str, wire.Accepted]) -> None:
            self._led = _leads_in(led, since)

        return asked, took

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
        return _leads_in(led, since)

    def _show(self, leads: Mapping[str, _Lead]) -> None:
        """Shows every party the heads of the others, and notes what it signs of them."""
        owners = [*self.heads]
        self._take_shown(owners, self.carry(self._to_show(leads)))

    def _to_show(self, leads: Mapping[str, _Lead]) -> dict[str, wire.Witness]:
        return {member: self._shown(member, leads) for member in self.members}

    def _take_shown(self, owners: Sequence[str], answered: Mapping[str, wire.Accepted]) -> None:
        others = {member: [owner for owner in owners if owner != member] for member in self.members}
        for member in self.members:
            parcels = answered[member].parcels if member in answered else (b"",) * len(others[member])
            for owner, signed in zip(others[member], parcels, strict=False):
                by_witness = self._signed.setdefault(owner, {})
                if signed:
                    by_witness[member] = bytes(signed)
                else:  # a party that no longer answers is not waited for
                    by_witness.pop(member, None)
        self._silent = tuple(one for one, said in answered.items() if self._signed.get(one) and not any(said.parcels))

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


def _leads_in(led: Mapping[str, wire.Accepted], since: Mapping[str, int]) -> dict[str, _Lead]:
    return {owner: _Lead(since[owner], *map(bytes, said.parcels)) for owner, said in led.items() if len(said.parcels) == 2}
