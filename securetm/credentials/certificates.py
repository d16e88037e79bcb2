"""One X.509 certificate of a member, read and checked by itself. Whether a roster has it, `diagnosis.py` checks.

Only keys on P-256 and P-384 are accepted: the transport leaves no cipher of TLS 1.2 that fits them, only TLS 1.3.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from securetm.credentials.keys import CURVES, fingerprint_of
from securetm.data_classes import dataclass
from securetm.errors import Misuse


class CertificateRefused(Misuse):
    """the certificate of {name} is refused"""

    name: str
    hint = "send a new request to the coordinator's operator (`securetm keys rotate` makes new keys and the request)"


class CertificateUnreadable(CertificateRefused):
    """the certificate of {name} cannot be read: {problem}"""

    problem: str
    hint = "it has to be one X.509 certificate in PEM, from BEGIN CERTIFICATE to END CERTIFICATE"


class CertificateExpired(CertificateRefused):
    """the certificate of {name} ended on {until}, and this machine's clock says {now}"""

    until: str
    now: str
    hint = (
        "check the clock; if it is right, the coordinator's operator renews it: `securetm keys issue`, and sends the new roster"
    )


class CertificateNotYetValid(CertificateRefused):
    """the certificate of {name} begins on {since}, and this machine's clock says {now}"""

    since: str
    now: str
    hint = "set the clock of this machine (for example with an NTP service); the clock of whoever issued it may be wrong, too"


class CertificateRevoked(CertificateRefused):
    """the certificate of {name} was revoked in roster {version} of federation {federation}"""

    version: int
    federation: str


class CertificateOfAnotherKey(CertificateRefused):
    """the certificate of {name} does not belong to the TLS key in {path}"""

    path: str
    hint = "if the keys were changed, accept the roster that has the new ones (`securetm keys accept`), or restore the old"


class IdentityOfAnotherKey(CertificateRefused):
    """the roster names another identity for {name} than the one in {path}"""

    path: str
    hint = "another request may have come under your name: read your fingerprint (`securetm keys show`) to the roster's maker"


class CertificateNotEc(CertificateRefused):
    """the certificate of {name} has a key of kind {kind}, and only elliptic curves P-256 and P-384 are accepted"""

    kind: str
    hint = "have one issued for an EC key: openssl ecparam -name prime256v1 -genkey -noout"


class CertificateWeak(CertificateRefused):
    """the certificate of {name} is too weak: {problem}"""

    problem: str
    hint = "have one issued that is signed with SHA-256 or better, for a key on P-256 or P-384"


class CertificateNotForTls(CertificateRefused):
    """the certificate of {name} may not be used for this: {problem}"""

    problem: str
    hint = "it has to be an end entity's, with clientAuth and serverAuth if it limits its use, and a name in subjectAltName"


class CertificateNotInRoster(CertificateRefused):
    """{name} is in no entry of roster {version} of federation {federation}"""

    version: int
    federation: str
    hint = "check that both sides have the same roster (`securetm keys show roster.toml`), and accept the newest one"


class CertificateReplaced(CertificateNotInRoster):
    """the certificate of {name} is not the one in roster {version} of federation {federation}, though the key is the same"""

    hint = "the newest roster has the renewed certificate: accept it (`securetm keys accept roster.toml`)"


class CertificateOfAnotherFederation(CertificateRefused):
    """the certificate of {name} is of federation {found}, and this is federation {federation}"""

    found: str
    federation: str
    hint = "another home or roster is meant: see --home, and the settings `home` and `roster`"


class NotTheCoordinator(CertificateRefused):
    """the certificate that {name} shows is not the coordinator's in roster {version} of federation {federation}"""

    version: int
    federation: str
    hint = "somebody else answers at this address, or the certificate is new: ask the operator for the newest roster"


E = TypeVar("E", bound=x509.ExtensionType)
HASHES = ("sha256", "sha384", "sha512")
LONGEST = 16_384  # bytes of a certificate in PEM
ORGANISATION = "securetm federation "  # before the federation's name, in certificates of its own authority
# what the library raises for a damaged or unknown field
DAMAGED = (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType)
_TLS_USES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH})


@dataclass(frozen=True)
class Certificate:
    """A certificate, by its bytes in DER: two with the same bytes are the same."""

    der: bytes

    @classmethod
    def from_pem(cls, pem: bytes | str, name: str) -> Certificate:
        """The first certificate in this text, or a refusal that names whose it is meant to be."""
        content = pem.encode() if isinstance(pem, str) else pem
        if len(content) > LONGEST:
            raise CertificateUnreadable(name, f"it is longer than {LONGEST:,} bytes")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of forms that later versions will refuse
                certificate = cls(x509.load_pem_x509_certificate(content).public_bytes(Encoding.DER))
                # Every field that is used, so that damage is found now: the library reads each when it is asked for.
                _ = certificate.public_key, certificate.names, certificate.federation, certificate.since, certificate.until
                _ = certificate.parsed.extensions, certificate.parsed.signature_hash_algorithm
        except DAMAGED as problem:
            raise CertificateUnreadable(name, "it is no certificate, or damaged") from problem
        return certificate

    @cached_property
    def parsed(self) -> x509.Certificate:
        return x509.load_der_x509_certificate(self.der)

    @property
    def pem(self) -> bytes:
        return self.parsed.public_bytes(Encoding.PEM)

    @cached_property
    def public_key(self) -> bytes:
        """The public key in DER."""
        return self.parsed.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.der)

    @property
    def until(self) -> datetime:
        return self.parsed.not_valid_after_utc

    @property
    def since(self) -> datetime:
        return self.parsed.not_valid_before_utc

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of machines and members that it is for, names before addresses."""
        try:
            alternatives = self.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ()
        addresses = map(str, alternatives.get_values_for_type(x509.IPAddress))
        return (*alternatives.get_values_for_type(x509.DNSName), *addresses)

    @property
    def federation(self) -> str:
        """The federation whose authority issued it; empty for a certificate of another authority."""
        named = self.parsed.issuer.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        organisation = str(named[0].value) if named else ""
        return organisation.removeprefix(ORGANISATION) if organisation.startswith(ORGANISATION) else ""


def check_form(certificate: Certificate, name: str) -> None:
    """Refuses a certificate that no member may have, whatever the time: another kind of key, weak, or not made for TLS."""
    try:
        key = certificate.parsed.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise CertificateNotEc(name, type(key).__name__.lstrip("_").removesuffix("PublicKey"))
        if key.curve.name not in CURVES:
            raise CertificateWeak(name, f"its key is on the curve {key.curve.name}")
        signed_with = certificate.parsed.signature_hash_algorithm
        if signed_with is not None and signed_with.name not in HASHES:
            raise CertificateWeak(name, f"it is signed with {signed_with.name}")
        extensions = certificate.parsed.extensions
        if any(one.ca for one in _values(extensions, x509.BasicConstraints)):
            raise CertificateNotForTls(name, "it is the certificate of an authority")
        for uses in _values(extensions, x509.ExtendedKeyUsage):
            if missing := sorted(one._name for one in _TLS_USES - set(uses)):
                raise CertificateNotForTls(name, f"it lacks {' and '.join(missing)}")
        for usage in _values(extensions, x509.KeyUsage):
            if not usage.digital_signature:
                raise CertificateNotForTls(name, "its key may not sign (digitalSignature)")
        if not certificate.names:
            raise CertificateNotForTls(name, "it has no name in subjectAltName")
    except DAMAGED as problem:
        raise CertificateUnreadable(name, "a field of it is damaged or unknown") from problem


def check_time(certificate: Certificate, name: str, now: datetime) -> None:
    """Refuses a certificate that has ended or has not begun."""
    if now < certificate.since:
        raise CertificateNotYetValid(name, day_and_time(certificate.since), day_and_time(now))
    if now > certificate.until:
        raise CertificateExpired(name, day_and_time(certificate.until), day_and_time(now))


def day_and_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _values(extensions: x509.Extensions, kind: type[E]) -> Sequence[E]:
    try:
        return (extensions.get_extension_for_class(kind).value,)
    except x509.ExtensionNotFound:
        return ()
