"""Homes, rosters and odd certificates for the tests of credentials. No test of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from securetm.credentials.certificates import ORGANISATION, Certificate
from securetm.credentials.homes import KEYS, Replacement, accept, new_keys, next_keys
from securetm.credentials.issuing import RosterOperator
from securetm.credentials.key_requests import KeyRequest
from securetm.credentials.keys import Keys, Passphrase
from securetm.credentials.roster import FederationRoster, write_roster

NOW = datetime.now(UTC)
ADDRESS = "hub.example.org:7443"
BOTH = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH)


@dataclass
class Federation:
    """A coordinator and some parties, each with a home of its own, and the roster that they accepted."""

    folder: Path
    requests: dict[str, KeyRequest]
    roster: FederationRoster

    def home(self, name: str) -> Path:
        return self.folder / name

    @property
    def operator(self) -> RosterOperator:
        return RosterOperator(self.folder / "coordinator", self.folder / "roster.toml")

    def keys(self, name: str) -> Keys:
        return Keys.open(self.home(name) / KEYS)

    def accepted_by_all(self) -> Federation:
        for name in self.roster.members:
            accept(self.home(name), self.roster)
        return self

    def change(self, how: Any) -> FederationRoster:
        """The next roster; it is not accepted by the parties yet."""
        old = self.operator.read()
        self.roster = self.operator.publish(old, how(old))
        return self.roster

    def rotated(self, name: str, identity: bool = False) -> KeyRequest:
        return next_keys(self.home(name), self.keys(name), Replacement(identity), None)

    def enrol(self, *requests: KeyRequest) -> FederationRoster:
        return self.change(lambda old: self.operator.enrol(old, requests))


def federation(folder: Path, *names: str, called: str = "demo", passphrase: Passphrase | None = None) -> Federation:
    """A federation with these parties; nobody but the coordinator has accepted its roster yet."""
    requests = {name: new_keys(folder / name, name, passphrase) for name in names}
    operator = RosterOperator(folder / "coordinator", folder / "roster.toml")
    first = operator.enrol(operator.begin(called, ADDRESS), tuple(requests.values()))
    return Federation(folder, requests, operator.publish(None, first))


def signed_federation(folder: Path) -> Federation:
    """Three parties that have accepted and signed their roster."""
    made = federation(folder, "east", "north", "south").accepted_by_all()
    for name in made.roster.members:
        made.roster = made.roster.signed_by(name, made.keys(name))
    write_roster(folder / "roster.toml", made.roster)
    return made


def odd_certificate(
    key: Any = None,
    *,
    name: str = "hospital-a",
    organisation: str = ORGANISATION + "demo",
    names: Sequence[str] = ("hospital-a",),
    since: datetime = NOW - timedelta(days=1),
    until: datetime = NOW + timedelta(days=100),
    uses: Sequence[x509.ObjectIdentifier] = BOTH,
    is_authority: bool = False,
    signs: bool = True,
    hashed: Any = None,
    signer: Any = None,
) -> Certificate:
    """A certificate that differs from a good one in what a test says."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(since).not_valid_after(until)
    builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    usage = (signs, *(False,) * 8)
    builder = builder.add_extension(x509.KeyUsage(*usage), critical=True)
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(uses)), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general, names))), critical=False)
    return Certificate(builder.sign(signer or key, hashed or hashes.SHA256()).public_bytes(Encoding.DER))


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
