"""Says what is wrong with a certificate, by name: one's own before it is used, the other side's after a handshake.

Every check takes the present moment as an argument. What it says depends on public facts alone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from securetm.credentials.certificates import (
    Certificate,
    CertificateNotInRoster,
    CertificateOfAnotherFederation,
    CertificateOfAnotherKey,
    CertificateReplaced,
    CertificateRevoked,
    IdentityOfAnotherKey,
    NotTheCoordinator,
    check_form,
    check_time,
    day_and_time,
)
from securetm.credentials.keys import Keys, fingerprint_of
from securetm.credentials.roster import AnotherBuild, FederationRoster, Member
from securetm.version import build_digest

WARNED = timedelta(days=30)  # before a certificate ends


def now_utc() -> datetime:
    return datetime.now(UTC)


def check_own(me: str, keys: Keys, roster: FederationRoster, now: datetime | None) -> Member:
    """Returns this member's entry, or says why its keys and the roster do not go together. Run before anything is dialed.

    Without a time the certificate may have ended: nothing is dialed.
    """
    member = roster.own_member(me, keys.public_identity, keys.tls_public_key)
    roster.check_protocol()
    if member.public != keys.public:
        raise IdentityOfAnotherKey(me, str(keys.folder))
    if member.certificate.public_key != keys.tls_public_key:
        raise CertificateOfAnotherKey(me, str(keys.folder))
    if now is not None:
        check_time(member.certificate, me, now)
    return member


def said_of_build(roster: FederationRoster) -> str:
    """What the roster says against this build of securetm; nothing where it lists it, or none. It may refuse it.

    A build says of itself which one it is: who changes it can change that, too.
    """
    if not roster.builds or (digest := build_digest()) in roster.builds:
        return ""
    if roster.refuses_others:
        raise AnotherBuild(roster.federation, roster.version, digest)
    return f"this is build {digest} of securetm, and roster {roster.version} of federation {roster.federation} lists others"


def member_with(certificate_pem: bytes | str, roster: FederationRoster, now: datetime) -> str:
    """Returns the party whose certificate the other side of a connection showed, or refuses it by name."""
    member = _entry_of(Certificate.from_pem(certificate_pem, "a party"), roster, now)
    if member is roster.coordinator:
        raise CertificateNotInRoster("the coordinator, as a party,", roster.version, roster.federation)
    return member.name


def check_coordinator(certificate_pem: bytes | str, roster: FederationRoster, now: datetime) -> None:
    """Refuses, by name, a certificate that is not the coordinator's. Run by a party."""
    certificate = Certificate.from_pem(certificate_pem, "the coordinator")
    if certificate.der == roster.coordinator.certificate.der:
        check_time(certificate, roster.coordinator.name, now)
        return
    try:
        name = _entry_of(certificate, roster, now).name
    except CertificateNotInRoster:
        name = roster.address
    raise NotTheCoordinator(name, roster.version, roster.federation)


def ending_soon(roster: FederationRoster, now: datetime) -> tuple[str, ...]:
    """Sentences about certificates that have ended or will end within 30 days."""
    ends = ((one.name, one.certificate.until) for one in roster.everybody if one.certificate.until - now < WARNED)
    return tuple(
        f"the certificate of {name} {'ended' if until < now else 'ends'} on {day_and_time(until)}" for name, until in ends
    )


def ended(roster: FederationRoster, now: datetime) -> tuple[str, ...]:
    return tuple(one.name for one in roster.everybody if one.certificate.until < now)


def _entry_of(certificate: Certificate, roster: FederationRoster, now: datetime) -> Member:
    for member in roster.everybody:
        if member.certificate.der == certificate.der:
            check_time(certificate, member.name, now)
            return member
    name = certificate.names[0][:100] if certificate.names else "a stranger"
    if {fingerprint_of(certificate.der), fingerprint_of(certificate.public_key)} & roster.revoked:
        raise CertificateRevoked(name, roster.version, roster.federation)
    check_form(certificate, name)
    check_time(certificate, name, now)
    if certificate.federation not in ("", roster.federation):
        raise CertificateOfAnotherFederation(name, certificate.federation[:100], roster.federation)
    is_renewed = any(one.certificate.public_key == certificate.public_key for one in roster.everybody)
    raise (CertificateReplaced if is_renewed else CertificateNotInRoster)(name, roster.version, roster.federation)
