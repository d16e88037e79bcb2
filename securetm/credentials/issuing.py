"""How requests become members: the next version of a roster, with certificates that an authority issues or members bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from securetm.credentials.acceptance import fits
from securetm.credentials.authority import Authority
from securetm.credentials.certificates import Certificate
from securetm.credentials.diagnosis import WARNED
from securetm.credentials.fingerprints import fingerprint_of, parsed_fingerprint
from securetm.credentials.key_errors import NoCertificate
from securetm.credentials.key_requests import KeyRequest
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster, Member, check_address
from securetm.credentials.roster_errors import IdentityChanged, KeyIsRevoked
from securetm.settings import require

DAYS = 365  # that a certificate is valid


@dataclass(frozen=True)
class Issuing:
    """What turns requests into members: the moment, how long a certificate is valid, and an authority if there is one."""

    now: datetime
    days: int = DAYS
    authority: Authority | None = None

    def first(self, federation: str, address: str, request: KeyRequest) -> FederationRoster:
        """The first roster of a federation: the coordinator alone."""
        return FederationRoster(federation, 1, address, self._member(request, address), ())

    def enrol(self, roster: FederationRoster, requests: Sequence[KeyRequest]) -> FederationRoster:
        """The next version of the roster, with these members added or their keys replaced. What was replaced is revoked."""
        for request in requests:
            roster = self._enrolled(roster, request)
        return roster

    def renew(self, roster: FederationRoster) -> FederationRoster:
        """The roster with new certificates, for the same keys, in the place of those that end soon."""
        for member in roster.everybody:
            own = member.certificate.federation == roster.federation and self.authority is not None
            if own and member.certificate.until - self.now < WARNED:
                certificate = self._issued(member.name, member.certificate.public_key, roster.address)
                roster = _with_member(roster, replace(member, certificate=certificate))
        return roster

    def at(self, roster: FederationRoster, address: str | None) -> FederationRoster:
        """The roster with the coordinator at another address; a certificate of this authority names the new one."""
        if address is None or address == roster.address:
            return roster
        moved, coordinator = replace(roster, address=address, signatures={}), roster.coordinator
        if self.authority is None or coordinator.certificate.federation != roster.federation:
            return moved
        certificate = self._issued(COORDINATOR, coordinator.certificate.public_key, address)
        return _with_member(moved, replace(coordinator, certificate=certificate))

    def _enrolled(self, roster: FederationRoster, request: KeyRequest) -> FederationRoster:
        keys = {fingerprint_of(request.identity), fingerprint_of(request.tls_public_key)}
        if keys & roster.revoked:
            raise KeyIsRevoked(roster.federation, request.name)
        before = {one.name: one for one in roster.everybody}.get(request.name)
        if before and before.identity not in (request.identity, request.old_identity):
            raise IdentityChanged(roster.federation, request.name)
        if before and request.certificate is None and fits(before, request):  # the same request again, or another number
            return roster if before.holds == request.holds else _with_member(roster, replace(before, holds=request.holds))
        member = self._member(request, roster.address)
        gone = before.revocable - member.revocable if before else frozenset()
        return replace(_with_member(roster, member), revoked=roster.revoked | gone)

    def _member(self, request: KeyRequest, address: str) -> Member:
        certificate = request.certificate or self._issued(request.name, request.tls_public_key, address)
        return Member(request.name, request.identity, certificate, request.holds)

    def _issued(self, name: str, public_key: bytes, address: str) -> Certificate:
        if self.authority is None:
            raise NoCertificate(name)
        names = (name, check_address(address, "the roster")[0]) if name == COORDINATOR else (name,)
        return self.authority.issue(name, public_key, names, self.now, self.days)


def without_member(roster: FederationRoster, name: str) -> FederationRoster:
    """The roster without that party."""
    gone = roster.member(name)
    stays = "cannot leave: a federation without it is another one"
    require(gone is not roster.coordinator, "", "NAME", name, stays, instead="`securetm keys rotate` makes new keys")
    return replace(roster, parties=tuple(one for one in roster.parties if one is not gone), signatures={})


def with_revoked(roster: FederationRoster, name: str) -> FederationRoster:
    """The roster with all keys of that party revoked, or with one fingerprint revoked. Whoever has it leaves."""
    known = parsed_fingerprint(name)
    gone = [one for one in roster.everybody if known in one.revocable] if known else [roster.member(name)]
    revoked = roster.revoked.union(*(one.revocable for one in gone), {known} if known else ())
    for one in gone:
        roster = without_member(roster, one.name)
    return replace(roster, revoked=revoked, signatures={})


def _with_member(roster: FederationRoster, member: Member) -> FederationRoster:
    if member.name == COORDINATOR:
        return replace(roster, coordinator=member, signatures={})
    others = tuple(one for one in roster.parties if one.name != member.name)
    return replace(roster, parties=(*others, member), signatures={})
