"""Which roster an organisation accepted: a copy of it lies in its home, beside its keys. Nothing else decides whom it trusts.

A roster counts if it is that copy, or a newer one of the same federation that every party has signed, this one included.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from securetm.credentials.certificate_errors import CertificateOfAnotherKey, IdentityOfAnotherKey
from securetm.credentials.key_files import CERTIFICATE, IDENTITY, NEXT, REQUEST, TLS
from securetm.credentials.key_requests import KeyRequest, request_in
from securetm.credentials.roster import FederationRoster, Member
from securetm.credentials.roster_errors import (
    AnotherFederation,
    RevocationDropped,
    RosterForked,
    RosterNotAccepted,
    RosterRolledBack,
)
from securetm.credentials.roster_file import read_roster, write_roster
from securetm.private_files import check_private, private_folder, sync, writing

KEYS, ACCEPTED = "keys", "roster.toml"  # in a home


def accepted_roster(home: Path) -> FederationRoster | None:
    """The roster that was accepted here last."""
    path = home / ACCEPTED
    if not path.exists():
        return None
    check_private(home)
    return read_roster(path)


def check_accepted(home: Path, roster: FederationRoster) -> None:
    """Refuses a roster that was not accepted here. One that every party has signed, this one too, is accepted now."""
    known = accepted_roster(home)
    if known is not None and known.digest == roster.digest:
        settle(home, roster)
        return
    check_succession(known, roster)
    me = request_in(home / KEYS).name
    if roster.unsigned or me not in roster.signatures:
        raise RosterNotAccepted(roster.federation, roster.version)
    accept(home, roster)


def check_succession(known: FederationRoster | None, roster: FederationRoster) -> None:
    """Refuses what may not follow the accepted roster: another federation, an older version, a revocation taken back."""
    if known is None or known.digest == roster.digest:
        return
    if known.federation != roster.federation:
        raise AnotherFederation(roster.federation, known.federation)
    if roster.version < known.version:
        raise RosterRolledBack(roster.federation, roster.version, known.version)
    if roster.version == known.version:
        raise RosterForked(roster.federation, roster.version)
    if dropped := known.revoked - roster.revoked:
        raise RevocationDropped(roster.federation, len(dropped))


def accept(home: Path, roster: FederationRoster) -> None:
    """Trusts this roster from now on. Whoever calls it has asked the operator, or found everybody's signature."""
    check_succession(accepted_roster(home), roster)
    own_entry(home, roster)
    private_folder(home)
    write_roster(home / ACCEPTED, roster)
    settle(home, roster)


def own_entry(home: Path, roster: FederationRoster) -> Member:
    """This organisation's entry. Refuses a roster that has other keys under its name than it holds, or waits to use."""
    present = request_in(home / KEYS)
    member = roster.member(present.name)
    waiting = waiting_request(home)
    if any(fits(member, one) for one in (present, waiting)):
        return member
    if member.identity not in {present.identity, waiting.identity}:
        raise IdentityOfAnotherKey(member.name, str(home / KEYS))
    raise CertificateOfAnotherKey(member.name, str(home / KEYS))


def settle(home: Path, roster: FederationRoster) -> None:
    """Takes the waiting keys into use if the accepted roster names them, and keeps the certificate beside the keys.

    Each step can be repeated, so a crash leaves nothing half done: the request, which says whose keys these are, moves last.
    """
    member, keys = own_entry(home, roster), home / KEYS
    if (keys / NEXT / REQUEST).is_file() and fits(member, request_in(keys / NEXT)):
        for name in (TLS, IDENTITY, REQUEST):
            if (keys / NEXT / name).exists():
                (keys / NEXT / name).replace(keys / name)
        shutil.rmtree(keys / NEXT)
        sync(keys)
    path = keys / CERTIFICATE
    if not path.is_file() or path.read_bytes() != member.certificate.pem:
        with writing(path) as file:
            file.write(member.certificate.pem)
        sync(keys)


def waiting_request(home: Path) -> KeyRequest:
    """The request of the keys that wait for a roster; that of the present ones if none wait."""
    folder = home / KEYS / NEXT
    return request_in(folder if (folder / REQUEST).is_file() else home / KEYS)


def fits(member: Member, request: KeyRequest) -> bool:
    """Whether the member's entry has the keys of this request."""
    return (member.identity, member.certificate.public_key) == (request.identity, request.tls_public_key)
