"""A federation's own small certificate authority, in the coordinator's home. It issues certificates for TLS alone.

Nobody trusts a certificate because this authority issued it: a roster pins each one. It names the federation and the end.
"""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from securetm.credentials.certificate_errors import AuthorityEnded
from securetm.credentials.certificates import ORGANISATION, Certificate, day_and_time
from securetm.credentials.key_files import Passphrase, ec_key, write_key
from securetm.private_files import private_folder, sync, writing

AUTHORITY = "authority"  # in the coordinator's home
_KEY, _CERTIFICATE = "authority-key.pem", "authority.pem"
_YEARS = 10
_SKEW = timedelta(hours=1)  # clocks of members may be late by so much


@dataclass(frozen=True)
class Authority:
    """The key and certificate that issue others."""

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
        raise AuthorityEnded(str(folder), day_and_time(certificate.not_valid_after_utc))
    return Authority(federation, ec_key(folder / _KEY, passphrase), certificate)


def authority_pem(home: Path) -> bytes:
    """The certificate of the authority in this home, or nothing if there is none."""
    path = home / AUTHORITY / _CERTIFICATE
    return path.read_bytes() if path.is_file() else b""


def _make(folder: Path, federation: str, passphrase: Passphrase | None, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject("authority", federation)
    until = now + timedelta(days=365 * _YEARS)
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
