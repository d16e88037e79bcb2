"""How requests become members: each change of a roster is its next version, signed and accepted in the coordinator's home.

Its own small certificate authority issues certificates for TLS alone. Nobody trusts a certificate because this authority issued
it: a roster pins each one. It names the federation and the end.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from securetm.credentials.certificates import ORGANISATION, Certificate, day_and_time
from securetm.credentials.diagnosis import WARNED, now_utc
from securetm.credentials.homes import (
    KEYS,
    accept,
    accepted_roster,
    announced,
    check_succession,
    fits,
    new_keys,
    waiting_request,
)
from securetm.credentials.key_requests import KeyRequest
from securetm.credentials.keys import REQUEST, Keys, Passphrase, ec_key, fingerprint_of, parsed_fingerprint, write_key
from securetm.credentials.roster import COORDINATOR, FederationRoster, Member, check_address, read_roster, write_roster
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake
from securetm.private_files import private_folder, sync, writing
from securetm.settings import require

AUTHORITY = "authority"  # in the coordinator's home
_KEY, _CERTIFICATE = "authority-key.pem", "authority.pem"
_SKEW = timedelta(hours=1)  # clocks of members may be late by so much


@dataclass(frozen=True)
class Authority:
    federation: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        """Its certificate, with which a server can tell a certificate of this federation from a stranger's."""
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, public_key: bytes, names: tuple[str, ...], now: datetime, days: int) -> Certificate:
        """A certificate for that member's public key (DER), valid for so many days and for these names of machines."""
        key = load_der_public_key(public_key)
        assert isinstance(key, ec.EllipticCurvePublicKey)
        until = min(now + timedelta(days=days), self.certificate.not_valid_after_utc)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = (
            _builder(_subject(name, self.federation), self.certificate.subject, key, now, until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName(list(map(_general_name, names))), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        return Certificate(builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.DER))


def open_authority(home: Path, federation: str, passphrase: Passphrase | None, now: datetime) -> Authority:
    """The authority in this home; the first time it makes one."""
    folder = home / AUTHORITY
    private_folder(folder)
    if not (folder / _CERTIFICATE).is_file():
        _make(folder, federation, passphrase, now)
    certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    if certificate.not_valid_after_utc < now:
        raise Mistake(
            "the certificate authority in {path} ended on {until}, so it issues nothing",
            hint="move the folder away, and issue again: members accept the new roster, which pins their new certificates",
            path=str(folder),
            until=day_and_time(certificate.not_valid_after_utc),
        )
    return Authority(federation, ec_key(folder / _KEY, passphrase), certificate)


def authority_pem(home: Path) -> bytes:
    path = home / AUTHORITY / _CERTIFICATE
    return path.read_bytes() if path.is_file() else b""


def _make(folder: Path, federation: str, passphrase: Passphrase | None, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject("authority", federation)
    until = now + timedelta(days=3650)
    builder = (
        _builder(subject, subject, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_authority=True), critical=True)
    )
    write_key(folder / _KEY, key, passphrase)
    with writing(folder / _CERTIFICATE) as file:
        file.write(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    sync(folder)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _subject(name: str, federation: str) -> x509.Name:
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANISATION + federation)
    return x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(name: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


DAYS = 365  # that a certificate is valid


@dataclass(frozen=True)
class Issuing:
    """What turns requests into members: the moment, how long a certificate is valid, and an authority if there is one."""

    now: datetime
    days: int = DAYS
    authority: Authority | None = None

    def first(self, federation: str, address: str, request: KeyRequest) -> FederationRoster:
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
            raise Mistake(
                "the request of {name} is for a key that federation {federation} has revoked",
                hint="the member makes new keys (`securetm keys new`) and sends a new request",
                federation=roster.federation,
                name=request.name,
            )
        before = {one.name: one for one in roster.everybody}.get(request.name)
        kept = before is None or before.lasting in (b"", request.lasting, request.old_lasting)
        if before and (before.identity not in (request.identity, request.old_identity) or not kept):
            raise Mistake(
                "the request of {name} has another identity than the roster of federation {federation}, which did not consent",
                hint="somebody else may have sent it: ask the member by telephone; if its old keys are lost, "
                "`securetm keys revoke` them",
                federation=roster.federation,
                name=request.name,
            )
        if before and request.certificate is None and fits(before, request):  # the same request again, or another number
            same = replace(before, holds=request.holds, lasting=request.lasting)
            return roster if before == same else _with_member(roster, same)
        member = self._member(request, roster.address)
        gone = before.revocable - member.revocable if before else frozenset()
        return replace(_with_member(roster, member), revoked=roster.revoked | gone)

    def _member(self, request: KeyRequest, address: str) -> Member:
        certificate = request.certificate or self._issued(request.name, request.tls_public_key, address)
        return Member(request.name, request.identity, certificate, request.holds, request.lasting)

    def _issued(self, name: str, public_key: bytes, address: str) -> Certificate:
        if self.authority is None:
            raise Mistake(
                "the request of {name} brings no certificate, and no authority is there to issue one",
                hint="`securetm keys issue` issues one; or the member brings its own (`securetm keys own CERTIFICATE KEY`)",
                name=name,
            )
        names = (name, check_address(address, "the roster")[0]) if name == COORDINATOR else (name,)
        return self.authority.issue(name, public_key, names, self.now, self.days)


def without_member(roster: FederationRoster, name: str) -> FederationRoster:
    gone = roster.listed(name)
    stays = "cannot leave: a federation without it is another one"
    require(gone is not roster.coordinator, "", "NAME", name, stays, instead="`securetm keys rotate` makes new keys")
    return replace(roster, parties=tuple(one for one in roster.parties if one is not gone), signatures={})


def with_revoked(roster: FederationRoster, name: str) -> FederationRoster:
    """The roster with all keys of that party revoked, or with one fingerprint revoked. Whoever has it leaves."""
    known = parsed_fingerprint(name)
    gone = [one for one in roster.everybody if known in one.revocable] if known else [roster.listed(name)]
    revoked = roster.revoked.union(*(one.revocable for one in gone), {known} if known else ())
    for one in gone:
        roster = without_member(roster, one.name)
    return replace(roster, revoked=revoked, signatures={})


def _with_member(roster: FederationRoster, member: Member) -> FederationRoster:
    if member.name == COORDINATOR:
        return replace(roster, coordinator=member, signatures={})
    others = tuple(one for one in roster.parties if one.name != member.name)
    return replace(roster, parties=(*others, member), signatures={})


@dataclass(frozen=True)
class RosterOperator:
    """Whoever holds the coordinator's home, and the file of the roster that is sent around."""

    home: Path
    path: Path
    passphrase: Passphrase | None = None

    def begin(self, federation: str, address: str, days: int | None = DAYS) -> FederationRoster:
        """Makes the coordinator's keys where there are none, and returns the first roster. It is not written yet."""
        own = self._own_request()
        return self._issuing(federation, days).first(federation, address, own)

    def enrol(
        self, roster: FederationRoster, requests: Sequence[KeyRequest], address: str | None = None, days: int | None = DAYS
    ) -> FederationRoster:
        """The roster with these members, and with the coordinator's keys that wait; certificates that end soon are renewed.

        New certificates are valid for so many days; without a number none are issued.
        """
        issuing = self._issuing(roster.federation, days)
        return issuing.renew(issuing.enrol(issuing.at(roster, address), [self._own_request(), *requests]))

    def publish(self, old: FederationRoster | None, new: FederationRoster) -> FederationRoster:
        """Writes the new roster as the version after the old one, signed by the coordinator, and accepts it in its home."""
        if old is not None and old.digest == new.digest:
            raise Mistake(
                "roster {version} of federation {federation} says so already",
                hint="name the files of new requests: securetm keys issue *.request",
                federation=old.federation,
                version=old.version,
            )
        new = replace(new, version=old.version + 1 if old else 1, signatures={})
        check_succession(accepted_roster(self.home), new)
        write_roster(self.path, new)  # before it is accepted: if this ends in between, the next change begins with this version
        accept(self.home, new)
        signed = new.signed_by(COORDINATOR, Keys.open(self.home / KEYS, self.passphrase))
        write_roster(self.path, signed)
        return signed

    def read(self) -> FederationRoster:
        """The roster as it is now. Refuses one that is older than what the coordinator accepted."""
        roster = read_roster(self.path)
        check_succession(accepted_roster(self.home), roster)
        return roster

    def _own_request(self) -> KeyRequest:
        if not (self.home / KEYS / REQUEST).exists():
            return new_keys(self.home, COORDINATOR, self.passphrase)
        own = waiting_request(self.home)
        own = own if own.lasting else announced(self.home, None, self.passphrase)
        require(own.name == COORDINATOR, "", "--home", str(self.home), f"holds the keys of {own.name}, not the coordinator's")
        return own

    def _issuing(self, federation: str, days: int | None) -> Issuing:
        now = now_utc()
        authority = None if days is None else open_authority(self.home, federation, self.passphrase, now)
        return Issuing(now, days or DAYS, authority)
