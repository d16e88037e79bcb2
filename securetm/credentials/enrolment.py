"""How an organisation gets its keys, and how requests become a new version of a roster. Commands call it; it asks nobody.

A home is a folder of one organisation: its keys, and the roster that it accepted. The coordinator has one, too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from securetm.credentials.acceptance import KEYS, fits
from securetm.credentials.authority import Authority
from securetm.credentials.certificates import Certificate
from securetm.credentials.diagnosis import WARNED
from securetm.credentials.fingerprints import fingerprint_of
from securetm.credentials.key_errors import KeysExist, NoCertificate
from securetm.credentials.key_files import NEXT, REQUEST, Keys, Passphrase, make_keys
from securetm.credentials.key_requests import KeyRequest, make_request, write_request
from securetm.credentials.member_names import COORDINATOR, check_name
from securetm.credentials.roster import FederationRoster, Member, check_address
from securetm.credentials.roster_errors import IdentityChanged, KeyIsRevoked
from securetm.private_files import private_folder

DAYS = 365  # that a certificate is valid


def data_home() -> Path:
    """The folder in which homes lie, unless a command names another place."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "securetm"


def new_keys(home: Path, name: str, passphrase: Passphrase | None = None) -> KeyRequest:
    """Makes the first keys of an organisation in its home, and the request that lies beside them."""
    check_name(name, "the command", "NAME")
    folder = home / KEYS
    if (folder / REQUEST).exists():
        raise KeysExist(str(folder))
    private_folder(home)
    request = make_request(name, make_keys(folder, passphrase))
    write_request(folder / REQUEST, request)
    return request


@dataclass(frozen=True)
class Replacement:
    """New keys of a member: what is to change. What is not named stays."""

    identity: bool = False
    tls_key_pem: bytes = b""  # of its own authority
    certificate: Certificate | None = None


def next_keys(home: Path, present: Keys, name: str, change: Replacement, passphrase: Passphrase | None) -> KeyRequest:
    """Makes keys that wait, beside the present ones, for a roster that names them. The present ones stay in use until then."""
    folder = home / KEYS / NEXT
    shutil.rmtree(folder, ignore_errors=True)  # keys that no roster has named yet
    keys = make_keys(folder, passphrase, identity=None if change.identity else present.identity, tls=change.tls_key_pem or None)
    request = make_request(name, keys, certificate=change.certificate, replaced=present)
    write_request(folder / REQUEST, request)
    return request


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

    def _enrolled(self, roster: FederationRoster, request: KeyRequest) -> FederationRoster:
        keys = {fingerprint_of(request.identity), fingerprint_of(request.tls_public_key)}
        if keys & roster.revoked:
            raise KeyIsRevoked(roster.federation, request.name)
        before = {one.name: one for one in roster.everybody}.get(request.name)
        if before and before.identity not in (request.identity, request.old_identity):
            raise IdentityChanged(roster.federation, request.name)
        if before and request.certificate is None and fits(before, request):
            return roster  # the same request again
        member = self._member(request, roster.address)
        gone = before.fingerprints - member.fingerprints if before else frozenset()
        return replace(_with_member(roster, member), revoked=roster.revoked | gone)

    def _member(self, request: KeyRequest, address: str) -> Member:
        certificate = request.certificate or self._issued(request.name, request.tls_public_key, address)
        return Member(request.name, request.identity, certificate)

    def _issued(self, name: str, public_key: bytes, address: str) -> Certificate:
        if self.authority is None:
            raise NoCertificate(name)
        names = (name, check_address(address, "the roster")[0]) if name == COORDINATOR else (name,)
        return self.authority.issue(name, public_key, names, self.now, self.days)


def next_version(old: FederationRoster | None, new: FederationRoster) -> FederationRoster:
    """The new roster with the version after the old one's and no signatures; the old one itself if nothing changed."""
    if old is None or old.digest == new.digest:
        return old or new
    return replace(new, version=old.version + 1, signatures={})


def without_member(roster: FederationRoster, name: str, revoked: Iterable[str] = ()) -> FederationRoster:
    """The roster without that party, and with these fingerprints revoked."""
    roster.member(name)
    parties = tuple(one for one in roster.parties if one.name != name)
    return replace(roster, parties=parties, revoked=roster.revoked | set(revoked), signatures={})


def _with_member(roster: FederationRoster, member: Member) -> FederationRoster:
    if member.name == COORDINATOR:
        return replace(roster, coordinator=member, signatures={})
    others = tuple(one for one in roster.parties if one.name != member.name)
    return replace(roster, parties=(*others, member), signatures={})
