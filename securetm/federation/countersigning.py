"""How the coordinator carries heads of ledgers, links and signatures between the parties. It believes none of them.

The parties guard their budgets themselves: here it is only found out who lacks which links, so that honest ones can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from securetm.federation import wire
from securetm.federation.witness import head_of, standing_of

MOST_TURNS = 100  # of links before a question: a hostile party's ledger may grow without end
Carry = Callable[[Mapping[str, wire.Body]], Mapping[str, wire.Accepted]]


@dataclass(frozen=True)
class _Way:
    """The links from an entry of a ledger to a head of it."""

    since: int
    head: bytes
    links: bytes

    def from_entry(self, number: int) -> bytes:
        """What is left of it for who saw that entry; nothing for who saw less, or needs none."""
        return self.links[(number - self.since) * wire.LINK :] if number >= self.since else b""


@dataclass
class Countersigning:
    """One session's heads, as their owners last said, and what each other party last signed of them."""

    members: tuple[str, ...]
    carry: Carry
    heads: dict[str, bytes] = field(default_factory=dict)
    _signed: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by owner, then by witness

    def gather(self) -> dict[str, tuple[bytes, ...]]:
        """What the parties sign of each other's ledgers as these stand now; without it they would spend nothing more."""
        gone = -1
        for _ in range(MOST_TURNS):
            self._show(self._ways())
            if gone >= self._gone() or not any(map(self._behind, self.heads)):
                break
            gone = self._gone()
        return {owner: tuple(signed.values()) for owner, signed in self._signed.items()}

    def deliver(self) -> None:
        """At the end of a session: every party hears who signed where its ledger stands now."""
        signed = self.gather()
        self.carry({owner: wire.Links(statements) for owner, statements in signed.items()})

    def _gone(self) -> int:
        """How far all parties have followed all ledgers, as one number that grows."""
        return sum(standing_of(one).count for signed in self._signed.values() for one in signed.values())

    def _behind(self, owner: str) -> list[bytes]:
        """What was signed of that ledger when it had fewer entries than it has now, since its owner was invited last."""
        present, signed = head_of(self.heads[owner]), self._signed.get(owner, {}).values()
        standing = ((one, standing_of(one)) for one in signed)
        return [one for one, seen in standing if seen.count < present.count and seen.nonce == present.nonce]

    def _ways(self) -> dict[str, _Way]:
        """From the owners of ledgers that others saw shorter: one statement of each place where somebody stands is enough."""
        asked: dict[str, wire.Body] = {}
        for owner in self.heads:
            places = {standing_of(one): one for one in self._behind(owner)}
            if places:
                asked[owner] = wire.Links(tuple(places.values()))
        led = self.carry(asked) if asked else {}
        return {owner: _way(said, asked[owner]) for owner, said in led.items() if len(said.parcels) == 2}

    def _show(self, ways: Mapping[str, _Way]) -> None:
        shown = {member: self._shown(member, ways) for member in self.members}
        others = {member: [owner for owner in self.heads if owner != member] for member in self.members}
        answered = self.carry(shown)
        for member in self.members:  # who says nothing any more is not waited for
            parcels = answered[member].parcels if member in answered else (b"",) * len(others[member])
            for owner, signed in zip(others[member], parcels, strict=False):
                self._note(owner, member, signed)

    def _note(self, owner: str, witness: str, signed: bytes) -> None:
        by_witness = self._signed.setdefault(owner, {})
        if signed:
            by_witness[witness] = signed
        else:
            by_witness.pop(witness, None)

    def _shown(self, member: str, ways: Mapping[str, _Way]) -> wire.Witness:
        """Every other head, with links for a party that has seen less of it, as many as one message takes."""
        heads, links, left = [], [], wire.MOST_LINKED
        for owner in self.heads:
            if owner == member:
                continue
            way, before = ways.get(owner), self._signed.get(owner, {}).get(member)
            fits = way.from_entry(standing_of(before).count) if way and before else b""
            fits = fits if len(fits) <= left else b""
            left -= len(fits)
            heads.append(way.head if way else self.heads[owner])
            links.append(fits)
        return wire.Witness(tuple(heads), tuple(links) if any(links) else ())


def _way(said: wire.Accepted, asked: wire.Body) -> _Way:
    assert isinstance(asked, wire.Links)
    return _Way(min(standing_of(one).count for one in asked.statements), *said.parcels)
