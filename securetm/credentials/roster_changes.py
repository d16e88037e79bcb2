"""What a new roster changes: who came, who left, whose keys are others now. It shows nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from securetm.credentials.certificates import day_and_time
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster, Member

STAYS = "stays"


@dataclass(frozen=True)
class RosterChange:
    """One line about one member."""

    name: str
    what: str  # came, left, revoked, stays, or what changed
    identity: str  # its fingerprint
    until: str  # the end of its certificate
    holds: int = 0  # how many documents or persons it says that it holds at least


def changes(old: FederationRoster | None, new: FederationRoster) -> tuple[RosterChange, ...]:
    """A line for each member of either roster, in the order of the names after the coordinator."""
    before = {one.name: one for one in old.everybody} if old else {}
    return tuple(_changes(before, {one.name: one for one in new.everybody}, new.revoked))


def _changes(before: dict[str, Member], after: dict[str, Member], revoked: frozenset[str]) -> Iterator[RosterChange]:
    for name in sorted({*before, *after}, key=lambda name: (name != COORDINATOR, name)):
        member = after.get(name) or before[name]
        what = _what(before.get(name), after.get(name))
        what = "revoked" if what == "left" and member.revocable & revoked else what
        yield RosterChange(name, what, member.fingerprint, day_and_time(member.certificate.until), member.holds)


def _what(before: Member | None, after: Member | None) -> str:
    if before is None or after is None:
        return "came" if before is None else "left"
    if before.identity != after.identity:
        return "identity changed"
    if before.certificate.public_key != after.certificate.public_key:
        return "TLS key changed"
    if before.certificate.der != after.certificate.der:
        return "certificate renewed"
    return STAYS if before.holds == after.holds else "other number"
